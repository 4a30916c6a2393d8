//! From the neutral conversation to the input items and members of `POST <base>/responses`.
//!
//! What this protocol has no word for is refused; nothing is left out.

use sealog_execution::Failure;
use sealog_execution::conversation::{
    Conversation, Detail, Message, MessagePart, OutputFormat, Role, Tool, ToolChoice,
};
use sealog_upstream::model::{JsonMembers, set, tool_result_text, unavailable};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::request::LIMIT;

/// Everything but the messages. What the conversation says wins over the request's extension.
///
/// # Errors
/// `capability_unavailable` for what cannot be said.
pub fn add(members: &mut JsonMembers, conversation: &Conversation) -> Result<(), Failure> {
    let sampling = &conversation.sampling;
    let unknown = sampling.top_k.is_some()
        || sampling.seed.is_some()
        || sampling.presence_penalty.is_some()
        || sampling.frequency_penalty.is_some()
        || !sampling.stop.is_empty();
    if unknown {
        return Err(unavailable());
    }
    for (name, value) in [("temperature", sampling.temperature), ("top_p", sampling.top_p)] {
        if let Some(value) = value {
            set(members, name, &value)?;
        }
    }
    if let Some(tokens) = conversation.max_tokens {
        set(members, LIMIT, &tokens)?;
    }
    if !conversation.tools.is_empty() {
        let tools: Vec<_> = conversation.tools.iter().map(function).collect();
        set(members, "tools", &tools)?;
    }
    if let Some(parallel) = conversation.parallel_tool_calls {
        set(members, "parallel_tool_calls", &parallel)?;
    }
    match &conversation.tool_choice {
        None => {}
        Some(ToolChoice::Auto) => set(members, "tool_choice", "auto")?,
        Some(ToolChoice::None) => set(members, "tool_choice", "none")?,
        Some(ToolChoice::Required) => set(members, "tool_choice", "required")?,
        Some(ToolChoice::Named(name)) => set(members, "tool_choice", &Named { kind: "function", name })?,
    }
    match &conversation.output_format {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json => set(members, "text", &Text { format: Format::JsonObject }),
        OutputFormat::JsonSchema { name, description, schema, strict } => {
            let description = description.as_deref();
            let format = Format::JsonSchema { name, description, schema, strict: *strict };
            set(members, "text", &Text { format })
        }
    }
}

#[derive(Serialize)]
struct Named<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(flatten)]
    named: Named<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    /// Required there, also where there are none.
    parameters: Option<&'a RawValue>,
    strict: Option<bool>,
}

fn function(tool: &Tool) -> Function<'_> {
    let Tool { name, description, parameters, strict } = tool;
    Function {
        named: Named { kind: "function", name },
        description: description.as_deref(),
        parameters: parameters.as_deref(),
        strict: *strict,
    }
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        schema: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// One item of the input as it is sent.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Item<'a> {
    Message { role: &'static str, content: Vec<Content<'a>> },
    Typed(Typed<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Typed<'a> {
    FunctionCall { call_id: &'a str, name: &'a str, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: String },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content<'a> {
    InputText {
        text: &'a str,
    },
    OutputText {
        text: &'a str,
    },
    InputImage {
        image_url: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<&'static str>,
    },
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
    },
}

/// The items in order: each run of texts and media is a message, each call and each result an item of its own.
///
/// # Errors
/// `capability_unavailable` for what cannot be said.
pub fn items(conversation: &Conversation) -> Result<Vec<Item<'_>>, Failure> {
    let mut items = Vec::new();
    for Message { role, parts } in &conversation.messages {
        let name = match role {
            Role::System => "system",
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        };
        let mut content = Vec::new();
        for part in parts {
            match part {
                MessagePart::Text { text } if *role == Role::Assistant => {
                    content.push(Content::OutputText { text });
                }
                MessagePart::Text { text } => content.push(Content::InputText { text }),
                MessagePart::Image { uri, detail, .. } => {
                    let detail = detail.map(Detail::as_str);
                    content.push(Content::InputImage { image_url: uri, detail });
                }
                MessagePart::File { uri, name, .. } => content.push(file(uri, name.as_deref())),
                MessagePart::ToolCall { call_id, name: tool, arguments } => {
                    flush(&mut items, name, &mut content);
                    items.push(Item::Typed(Typed::FunctionCall { call_id, name: tool, arguments }));
                }
                MessagePart::ToolResult { call_id, parts, is_error } => {
                    flush(&mut items, name, &mut content);
                    let output = tool_result_text(parts, *is_error)?;
                    items.push(Item::Typed(Typed::FunctionCallOutput { call_id, output }));
                }
            }
        }
        flush(&mut items, name, &mut content);
    }
    Ok(items)
}

fn flush<'a>(items: &mut Vec<Item<'a>>, role: &'static str, content: &mut Vec<Content<'a>>) {
    if !content.is_empty() {
        items.push(Item::Message { role, content: std::mem::take(content) });
    }
}

/// The protocol tells a file that is there from one that is elsewhere, and wants a name of the former.
fn file<'a>(uri: &'a str, name: Option<&'a str>) -> Content<'a> {
    if uri.starts_with("data:") {
        Content::InputFile { file_url: None, file_data: Some(uri), filename: Some(name.unwrap_or("file")) }
    } else {
        Content::InputFile { file_url: Some(uri), file_data: None, filename: name }
    }
}

#[cfg(test)]
mod tests;
