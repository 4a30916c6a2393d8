//! From the neutral conversation to the messages and members of `POST <base>/chat/completions`.
//!
//! What this protocol has no word for is refused; nothing is left out.

use sealog_execution::Failure;
use sealog_execution::conversation::{
    Conversation, Detail, Message, MessagePart, OutputFormat, Role, Tool, ToolChoice,
};
use sealog_upstream::model::{JsonMembers, add_sampling, set, tool_result_text, unavailable};
use serde::Serialize;
use serde_json::value::RawValue;

/// The limit's name, and the newer one, which is used where the request's extension already does.
const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Everything but the messages. What the conversation says wins over the request's extension.
///
/// # Errors
/// `capability_unavailable` for what cannot be said.
pub fn add(members: &mut JsonMembers, conversation: &Conversation) -> Result<(), Failure> {
    let sampling = &conversation.sampling;
    add_sampling(members, sampling)?;
    if sampling.top_k.is_some() {
        return Err(unavailable());
    }
    if let Some(tokens) = conversation.max_tokens {
        let newer = members.remove(LIMITS[1]).is_some();
        set(members, LIMITS[usize::from(newer)], &tokens)?;
    }
    add_tools(members, conversation)?;
    match &conversation.output_format {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json => set(members, "response_format", &Format::JsonObject),
        OutputFormat::JsonSchema { name, description, schema, strict } => {
            let schema = Schema { name, description: description.as_deref(), schema, strict: *strict };
            set(members, "response_format", &Format::JsonSchema { json_schema: schema })
        }
    }
}

fn add_tools(members: &mut JsonMembers, conversation: &Conversation) -> Result<(), Failure> {
    if !conversation.tools.is_empty() {
        let tools: Vec<_> = conversation.tools.iter().map(tool).collect();
        set(members, "tools", &tools)?;
    }
    if let Some(parallel) = conversation.parallel_tool_calls {
        set(members, "parallel_tool_calls", &parallel)?;
    }
    match &conversation.tool_choice {
        None => Ok(()),
        Some(ToolChoice::Auto) => set(members, "tool_choice", "auto"),
        Some(ToolChoice::None) => set(members, "tool_choice", "none"),
        Some(ToolChoice::Required) => set(members, "tool_choice", "required"),
        Some(ToolChoice::Named(name)) => {
            set(members, "tool_choice", &Typed { kind: "function", function: Named { name } })
        }
    }
}

fn tool(tool: &Tool) -> Typed<Function<'_>> {
    let Tool { name, description, parameters, strict } = tool;
    let function = Function {
        name,
        description: description.as_deref(),
        parameters: parameters.as_deref(),
        strict: *strict,
    };
    Typed { kind: "function", function }
}

#[derive(Serialize)]
struct Typed<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: T,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema { json_schema: Schema<'a> },
}

#[derive(Serialize)]
struct Schema<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// One message as it is sent.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Sent<'a> {
    System {
        content: Content<'a>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

#[derive(Serialize)]
pub struct Call<'a> {
    id: &'a str,
    #[serde(flatten)]
    function: Typed<Called<'a>>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// A plain string where one is enough: not every compatible server takes a list of parts.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    Text(&'a str),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
pub struct ImageUrl<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'static str>,
}

/// The messages in order; each result of a tool becomes one of its own.
///
/// # Errors
/// `capability_unavailable` for what cannot be said.
pub fn messages(conversation: &Conversation) -> Result<Vec<Sent<'_>>, Failure> {
    let mut sent = Vec::with_capacity(conversation.messages.len());
    for Message { role, parts } in &conversation.messages {
        match role {
            Role::System => sent.push(Sent::System { content: content(parts)? }),
            Role::User => sent.push(Sent::User { content: content(parts)? }),
            Role::Assistant => sent.push(assistant(parts)?),
            Role::Tool => {
                for part in parts {
                    let MessagePart::ToolResult { call_id, parts, is_error } = part else {
                        return Err(unavailable());
                    };
                    let content = tool_result_text(parts, *is_error)?;
                    sent.push(Sent::Tool { tool_call_id: call_id, content });
                }
            }
        }
    }
    Ok(sent)
}

fn assistant(parts: &[MessagePart]) -> Result<Sent<'_>, Failure> {
    let mut texts = Vec::new();
    let mut tool_calls = Vec::new();
    for part in parts {
        match part {
            MessagePart::ToolCall { call_id, name, arguments } => {
                let function = Typed { kind: "function", function: Called { name, arguments } };
                tool_calls.push(Call { id: call_id, function });
            }
            // What was said behind a call would be read as said before it.
            MessagePart::Text { .. } if !tool_calls.is_empty() => return Err(unavailable()),
            MessagePart::Text { text } => texts.push(ContentPart::Text { text }),
            MessagePart::Image { .. } | MessagePart::File { .. } | MessagePart::ToolResult { .. } => {
                return Err(unavailable());
            }
        }
    }
    let content = (!texts.is_empty()).then(|| plain(texts));
    Ok(Sent::Assistant { content, tool_calls })
}

fn content(parts: &[MessagePart]) -> Result<Content<'_>, Failure> {
    Ok(plain(parts.iter().map(content_part).collect::<Result<Vec<_>, _>>()?))
}

fn plain(parts: Vec<ContentPart<'_>>) -> Content<'_> {
    match parts[..] {
        [ContentPart::Text { text }] => Content::Text(text),
        _ => Content::Parts(parts),
    }
}

fn content_part(part: &MessagePart) -> Result<ContentPart<'_>, Failure> {
    match part {
        MessagePart::Text { text } => Ok(ContentPart::Text { text }),
        MessagePart::Image { uri, detail, .. } => {
            let image_url = ImageUrl { url: uri, detail: detail.map(Detail::as_str) };
            Ok(ContentPart::ImageUrl { image_url })
        }
        MessagePart::File { .. } | MessagePart::ToolCall { .. } | MessagePart::ToolResult { .. } => {
            Err(unavailable())
        }
    }
}

#[cfg(test)]
mod tests;
