//! From the neutral conversation to the messages and members of `POST <base>/v1/messages`.
//!
//! What this protocol has no word for is refused; nothing is left out.

use sealog_execution::Failure;
use sealog_execution::conversation::{
    Conversation, Detail, Message, MessagePart, OutputFormat, Role, Tool, ToolChoice,
};
use sealog_upstream::model::{JsonMembers, data_uri, set, unavailable};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::request::LIMIT;

/// Everything but the messages. What the conversation says wins over the request's extension.
///
/// # Errors
/// `capability_unavailable` for what cannot be said.
pub fn add(members: &mut JsonMembers, conversation: &Conversation) -> Result<(), Failure> {
    let sampling = &conversation.sampling;
    let penalties = sampling.presence_penalty.is_some() || sampling.frequency_penalty.is_some();
    if sampling.seed.is_some() || penalties {
        return Err(unavailable());
    }
    for (name, value) in [("temperature", sampling.temperature), ("top_p", sampling.top_p)] {
        if let Some(value) = value {
            set(members, name, &value)?;
        }
    }
    if let Some(top_k) = sampling.top_k {
        set(members, "top_k", &top_k)?;
    }
    if !sampling.stop.is_empty() {
        set(members, "stop_sequences", &sampling.stop)?;
    }
    if let Some(tokens) = conversation.max_tokens {
        set(members, LIMIT, &tokens)?;
    }
    if !conversation.tools.is_empty() {
        let tools: Vec<_> = conversation.tools.iter().map(tool).collect();
        set(members, "tools", &tools)?;
    }
    if let Some(choice) = choice(conversation) {
        set(members, "tool_choice", &choice)?;
    }
    match &conversation.output_format {
        OutputFormat::Text => Ok(()),
        // There is no object without a schema, no schema that is a suggestion, and none that is described.
        OutputFormat::Json => Err(unavailable()),
        OutputFormat::JsonSchema { strict: Some(false), .. } => Err(unavailable()),
        OutputFormat::JsonSchema { description: Some(_), .. } => Err(unavailable()),
        OutputFormat::JsonSchema { schema, .. } => {
            set(members, "output_config", &OutputConfig { format: Format { kind: "json_schema", schema } })
        }
    }
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: &'a RawValue,
}

#[derive(Serialize)]
struct SentTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Schema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// The protocol wants one, also of a tool that takes nothing.
#[derive(Serialize)]
#[serde(untagged)]
enum Schema<'a> {
    Given(&'a RawValue),
    Empty {
        #[serde(rename = "type")]
        kind: &'static str,
    },
}

fn tool(tool: &Tool) -> SentTool<'_> {
    let Tool { name, description, parameters, strict } = tool;
    let input_schema = match parameters {
        Some(schema) => Schema::Given(schema),
        None => Schema::Empty { kind: "object" },
    };
    // Not strict is what it is without the member.
    let strict = strict.filter(|strict| *strict);
    SentTool { name, description: description.as_deref(), input_schema, strict }
}

#[derive(Serialize)]
struct Choice<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disable_parallel_tool_use: Option<bool>,
}

/// Whether calls may be parallel is said along with the choice.
fn choice(conversation: &Conversation) -> Option<Choice<'_>> {
    let parallel = conversation.parallel_tool_calls;
    let (kind, name) = match &conversation.tool_choice {
        Some(ToolChoice::Auto) => ("auto", None),
        Some(ToolChoice::None) => {
            return Some(Choice { kind: "none", name: None, disable_parallel_tool_use: None });
        }
        Some(ToolChoice::Required) => ("any", None),
        Some(ToolChoice::Named(name)) => ("tool", Some(name.as_str())),
        None if parallel.is_some() && !conversation.tools.is_empty() => ("auto", None),
        None => return None,
    };
    Some(Choice { kind, name, disable_parallel_tool_use: parallel.map(|parallel| !parallel) })
}

/// What stands before the first turn, and the turns.
#[derive(Default)]
pub struct Sent<'a> {
    pub system: Vec<Block<'a>>,
    pub messages: Vec<Turn<'a>>,
}

#[derive(Serialize)]
pub struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source<'a> {
    Url { url: &'a str },
    Base64 { media_type: &'a str, data: &'a str },
}

/// The protocol has two speakers who take turns: results of tools belong to the user's, and what one says in several
/// messages is one turn.
///
/// # Errors
/// `capability_unavailable` for what cannot be said.
pub fn turns(conversation: &Conversation) -> Result<Sent<'_>, Failure> {
    let mut sent = Sent::default();
    for Message { role, parts } in &conversation.messages {
        let blocks = parts.iter().map(block).collect::<Result<Vec<_>, _>>()?;
        let role = match role {
            Role::System if sent.messages.is_empty() => {
                sent.system.extend(blocks);
                continue;
            }
            Role::System => return Err(unavailable()),
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        };
        match sent.messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            Some(_) | None => sent.messages.push(Turn { role, content: blocks }),
        }
    }
    // A conversation begins with the user there.
    if sent.messages.first().is_none_or(|first| first.role != "user") {
        return Err(unavailable());
    }
    Ok(sent)
}

fn block(part: &MessagePart) -> Result<Block<'_>, Failure> {
    match part {
        MessagePart::Text { text } => Ok(Block::Text { text }),
        MessagePart::Image { detail: Some(Detail::Low | Detail::High), .. } => Err(unavailable()),
        MessagePart::Image { uri, .. } => {
            let source = match data_uri(uri) {
                Some((media_type, data)) => Source::Base64 { media_type, data },
                None => Source::Url { url: uri },
            };
            Ok(Block::Image { source })
        }
        MessagePart::File { .. } => Err(unavailable()),
        MessagePart::ToolCall { call_id, name, arguments } => {
            Ok(Block::ToolUse { id: call_id, name, input: object(arguments)? })
        }
        MessagePart::ToolResult { call_id, parts, is_error } => {
            let content = parts.iter().map(block).collect::<Result<Vec<_>, _>>()?;
            Ok(Block::ToolResult { tool_use_id: call_id, content, is_error: *is_error })
        }
    }
}

/// The arguments of a call are an object there; no text at all is one without members.
fn object(arguments: &str) -> Result<Box<RawValue>, Failure> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments.trim() };
    let json: Box<RawValue> = serde_json::from_str(text).map_err(|_| unavailable())?;
    if json.get().starts_with('{') { Ok(json) } else { Err(unavailable()) }
}

#[cfg(test)]
mod tests;
