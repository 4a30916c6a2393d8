//! The rules that every conversation meets, whoever made it.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::{
    Conversation, LABEL_LENGTH_MAX, MESSAGE_PARTS_MAX, MESSAGES_MAX, Message, MessagePart, OutputFormat,
    Role, SEED_MAX, STOPS_MAX, Sampling, TOKENS_MAX, TOOLS_MAX, Tool, ToolChoice,
};

/// The first rule that a conversation breaks; names the member, never its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{member} is not as a conversation has it")]
pub struct BrokenRule {
    pub member: &'static str,
}

type Checked = Result<(), BrokenRule>;

fn rule(holds: bool, member: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(BrokenRule { member }) }
}

impl Conversation {
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Checked {
        rule((1..=MESSAGES_MAX).contains(&self.messages.len()), "messages")?;
        let mut calls = BTreeSet::new();
        for message in &self.messages {
            check_message(message, &mut calls)?;
        }
        rule(self.tools.len() <= TOOLS_MAX, "tools")?;
        let mut names = BTreeSet::new();
        for Tool { name, parameters, .. } in &self.tools {
            rule(is_label(name) && names.insert(name.as_str()), "tools.name")?;
            rule(parameters.as_deref().is_none_or(is_object), "tools.parameters")?;
        }
        match &self.tool_choice {
            Some(ToolChoice::Named(name)) => rule(names.contains(name.as_str()), "tool_choice")?,
            Some(ToolChoice::Required) => rule(!self.tools.is_empty(), "tool_choice")?,
            Some(ToolChoice::Auto | ToolChoice::None) | None => {}
        }
        check_sampling(&self.sampling)?;
        rule(self.max_tokens.is_none_or(|tokens| (1..=TOKENS_MAX).contains(&tokens)), "max_tokens")?;
        match &self.output_format {
            OutputFormat::Text | OutputFormat::Json => Ok(()),
            OutputFormat::JsonSchema { name, schema, .. } => {
                rule(is_label(name) && is_object(schema), "output_format")
            }
        }
    }
}

fn check_message<'a>(message: &'a Message, calls: &mut BTreeSet<&'a str>) -> Checked {
    rule((1..=MESSAGE_PARTS_MAX).contains(&message.parts.len()), "messages.parts")?;
    for part in &message.parts {
        let allowed = match (message.role, part) {
            (_, MessagePart::ToolResult { .. }) => message.role == Role::Tool,
            (Role::System | Role::User | Role::Assistant, MessagePart::Text { .. })
            | (Role::User, MessagePart::Image { .. } | MessagePart::File { .. })
            | (Role::Assistant, MessagePart::ToolCall { .. }) => true,
            (
                Role::System,
                MessagePart::Image { .. } | MessagePart::File { .. } | MessagePart::ToolCall { .. },
            )
            | (Role::User, MessagePart::ToolCall { .. })
            | (Role::Assistant, MessagePart::Image { .. } | MessagePart::File { .. })
            | (Role::Tool, _) => false,
        };
        rule(allowed, "messages.parts")?;
        match part {
            MessagePart::ToolCall { call_id, name, .. } => {
                rule(is_label(call_id) && is_label(name), "messages.parts.tool_call")?;
                calls.insert(call_id);
            }
            MessagePart::ToolResult { call_id, parts, .. } => {
                rule(calls.contains(call_id.as_str()), "messages.parts.call_id")?;
                rule(parts.len() <= MESSAGE_PARTS_MAX, "messages.parts.parts")?;
                for part in parts {
                    let content =
                        !matches!(part, MessagePart::ToolCall { .. } | MessagePart::ToolResult { .. });
                    rule(content, "messages.parts.parts")?;
                    check_media(part)?;
                }
            }
            MessagePart::Text { .. } | MessagePart::Image { .. } | MessagePart::File { .. } => {
                check_media(part)?;
            }
        }
    }
    Ok(())
}

fn check_media(part: &MessagePart) -> Checked {
    match part {
        MessagePart::Text { .. } | MessagePart::ToolCall { .. } | MessagePart::ToolResult { .. } => Ok(()),
        MessagePart::Image { uri, media_type, .. } => {
            rule(!uri.is_empty() && media_type.as_deref().is_none_or(is_label), "messages.parts.uri")
        }
        MessagePart::File { uri, media_type, name } => {
            let labels = [media_type, name].into_iter().flatten().all(|label| is_label(label));
            rule(!uri.is_empty() && labels, "messages.parts.uri")
        }
    }
}

fn check_sampling(sampling: &Sampling) -> Checked {
    let within = |value: Option<f64>, min: f64, max: f64, member| {
        rule(value.is_none_or(|value| (min..=max).contains(&value)), member)
    };
    within(sampling.temperature, 0.0, 2.0, "temperature")?;
    within(sampling.top_p, 0.0, 1.0, "top_p")?;
    within(sampling.presence_penalty, -2.0, 2.0, "presence_penalty")?;
    within(sampling.frequency_penalty, -2.0, 2.0, "frequency_penalty")?;
    rule(sampling.top_k.is_none_or(|top_k| (1..=TOKENS_MAX).contains(&top_k)), "top_k")?;
    rule(sampling.seed.is_none_or(|seed| seed.abs() <= SEED_MAX), "seed")?;
    rule(sampling.stop.len() <= STOPS_MAX && sampling.stop.iter().all(|stop| is_label(stop)), "stop")
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && (text.len() <= LABEL_LENGTH_MAX || text.chars().count() <= LABEL_LENGTH_MAX)
}

fn is_object(json: &RawValue) -> bool {
    json.get().starts_with('{')
}
