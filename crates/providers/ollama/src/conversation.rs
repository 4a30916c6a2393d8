//! From the neutral conversation to the messages and members of `POST <base>/api/chat`.
//!
//! What this protocol has no word for is refused; nothing is left out.

use sealog_execution::Failure;
use sealog_execution::conversation::{
    Conversation, Detail, Message, MessagePart, OutputFormat, Role, Tool, ToolChoice,
};
use sealog_upstream::model::{JsonMembers, add_sampling, data_uri, set, tool_result_text, unavailable};
use serde::Serialize;
use serde_json::value::RawValue;

/// Everything but the messages and the model's options. What the conversation says wins over the request's extension.
///
/// # Errors
/// `capability_unavailable` for what cannot be said.
pub fn add(members: &mut JsonMembers, conversation: &Conversation) -> Result<(), Failure> {
    let offered = match &conversation.tool_choice {
        None | Some(ToolChoice::Auto) => true,
        // A tool that is not named cannot be called.
        Some(ToolChoice::None) => false,
        Some(ToolChoice::Required | ToolChoice::Named(_)) => return Err(unavailable()),
    };
    if conversation.parallel_tool_calls == Some(false) {
        return Err(unavailable());
    }
    if offered && !conversation.tools.is_empty() {
        let tools = conversation.tools.iter().map(tool).collect::<Result<Vec<_>, _>>()?;
        set(members, "tools", &tools)?;
    }
    match &conversation.output_format {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json => set(members, "format", "json"),
        // A schema stands there as it is, and whoever describes it wants that to be read.
        OutputFormat::JsonSchema { description: Some(_), .. } => Err(unavailable()),
        OutputFormat::JsonSchema { schema, .. } => set(members, "format", schema),
    }
}

/// The settings that are options of the model there.
///
/// # Errors
/// As [`set`].
pub fn add_options(
    options: &mut JsonMembers,
    conversation: &Conversation,
    limit: &str,
) -> Result<(), Failure> {
    let sampling = &conversation.sampling;
    add_sampling(options, sampling)?;
    if let Some(top_k) = sampling.top_k {
        set(options, "top_k", &top_k)?;
    }
    match conversation.max_tokens {
        Some(tokens) => set(options, limit, &tokens),
        None => Ok(()),
    }
}

#[derive(Serialize)]
struct Typed<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
}

fn tool(tool: &Tool) -> Result<Typed<'_>, Failure> {
    let Tool { name, description, parameters, strict } = tool;
    if *strict == Some(true) {
        return Err(unavailable());
    }
    let function = Function { name, description: description.as_deref(), parameters: parameters.as_deref() };
    Ok(Typed { kind: "function", function })
}

/// One message as it is sent.
#[derive(Default, Serialize)]
pub struct Sent<'a> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

#[derive(Serialize)]
pub struct Call<'a> {
    id: &'a str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: Box<RawValue>,
}

/// The messages in order. A message has one text: its texts are the lines of it. Each result of a tool becomes a
/// message of its own, named by the tool, too: older upstreams know no ids.
///
/// # Errors
/// `capability_unavailable` for what cannot be said.
pub fn messages(conversation: &Conversation) -> Result<Vec<Sent<'_>>, Failure> {
    let mut sent = Vec::with_capacity(conversation.messages.len());
    for Message { role, parts } in &conversation.messages {
        let role = match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => {
                for part in parts {
                    sent.push(result(conversation, part)?);
                }
                continue;
            }
        };
        sent.push(message(role, parts)?);
    }
    Ok(sent)
}

fn result<'a>(conversation: &'a Conversation, part: &'a MessagePart) -> Result<Sent<'a>, Failure> {
    let MessagePart::ToolResult { call_id, parts, is_error } = part else { return Err(unavailable()) };
    Ok(Sent {
        role: "tool",
        content: tool_result_text(parts, *is_error)?,
        tool_call_id: Some(call_id),
        tool_name: conversation.tool_of(call_id),
        ..Sent::default()
    })
}

fn message<'a>(role: &'static str, parts: &'a [MessagePart]) -> Result<Sent<'a>, Failure> {
    let mut sent = Sent { role, ..Sent::default() };
    let mut texts = Vec::new();
    for part in parts {
        match part {
            // What was said behind a call would be read as said before it.
            MessagePart::Text { .. } if !sent.tool_calls.is_empty() => return Err(unavailable()),
            MessagePart::Text { text } => texts.push(text.as_str()),
            MessagePart::Image { detail: Some(Detail::Low | Detail::High), .. } => return Err(unavailable()),
            // The protocol takes the image itself; nothing is fetched to get it.
            MessagePart::Image { uri, .. } => sent.images.push(data_uri(uri).ok_or_else(unavailable)?.1),
            MessagePart::File { .. } | MessagePart::ToolResult { .. } => return Err(unavailable()),
            MessagePart::ToolCall { call_id, name, arguments } => {
                let function = Called { name, arguments: object(arguments)? };
                sent.tool_calls.push(Call { id: call_id, function });
            }
        }
    }
    sent.content = texts.join("\n");
    Ok(sent)
}

/// The arguments of a call are an object there; no text at all is one without members.
fn object(arguments: &str) -> Result<Box<RawValue>, Failure> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments.trim() };
    let json: Box<RawValue> = serde_json::from_str(text).map_err(|_| unavailable())?;
    if json.get().starts_with('{') { Ok(json) } else { Err(unavailable()) }
}

#[cfg(test)]
mod tests;
