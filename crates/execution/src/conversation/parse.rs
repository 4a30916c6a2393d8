//! Reading the extension `conversation`, strictly at every level.

use serde_json::value::RawValue;

use super::{
    Conversation, Detail, Message, MessagePart, OutputFormat, Role, SEED_MAX, Sampling, TOKENS_MAX, Tool,
    ToolChoice,
};
use crate::request::BODY_BYTES_MAX;
use crate::strict::{self, Members, Refused};

impl Conversation {
    /// Reads the extension's JSON text.
    ///
    /// # Errors
    /// It does not have the shape, or breaks a rule.
    pub fn parse(json: &str) -> Result<Conversation, Refused> {
        let mut members = Members::of(json)?;
        let tokens = |json: &str| strict::integer(json, 1, TOKENS_MAX);
        let conversation = Conversation {
            messages: list(members.require("messages")?, message)?,
            tools: members.optional("tools", |json| list(json, tool))?.unwrap_or_default(),
            tool_choice: members.optional("tool_choice", tool_choice)?,
            parallel_tool_calls: members.optional("parallel_tool_calls", strict::boolean)?,
            sampling: members.optional("sampling", sampling)?.unwrap_or_default(),
            max_tokens: members.optional("max_tokens", tokens)?,
            output_format: members.optional("output_format", output_format)?.unwrap_or_default(),
        };
        members.finish()?;
        conversation.check().map_err(|_| Refused)?;
        Ok(conversation)
    }
}

fn list<T>(json: &str, read: impl Fn(&str) -> Result<T, Refused>) -> Result<Vec<T>, Refused> {
    strict::items(json)?.into_iter().map(|item| read(item.get())).collect()
}

/// A text; how long it may be is checked behind, if it is less than a body.
fn text(json: &str) -> Result<String, Refused> {
    strict::text(json, 0, BODY_BYTES_MAX)
}

fn message(json: &str) -> Result<Message, Refused> {
    let mut members = Members::of(json)?;
    let role = match text(members.require("role")?)?.as_str() {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return Err(Refused),
    };
    let parts = list(members.require("parts")?, part)?;
    members.finish()?;
    Ok(Message { role, parts })
}

fn part(json: &str) -> Result<MessagePart, Refused> {
    let mut members = Members::of(json)?;
    let part = match text(members.require("type")?)?.as_str() {
        "tool_call" => MessagePart::ToolCall {
            call_id: text(members.require("call_id")?)?,
            name: text(members.require("name")?)?,
            arguments: text(members.require("arguments")?)?,
        },
        "tool_result" => MessagePart::ToolResult {
            call_id: text(members.require("call_id")?)?,
            // Read as content, so that nothing nests.
            parts: list(members.require("parts")?, |json| {
                let mut members = Members::of(json)?;
                let kind = text(members.require("type")?)?;
                content(&kind, members)
            })?,
            is_error: members.optional("is_error", strict::boolean)?.unwrap_or(false),
        },
        kind => return content(kind, members),
    };
    members.finish()?;
    Ok(part)
}

fn content(kind: &str, mut members: Members<'_>) -> Result<MessagePart, Refused> {
    let part = match kind {
        "text" => MessagePart::Text { text: text(members.require("text")?)? },
        "image" => MessagePart::Image {
            uri: text(members.require("uri")?)?,
            media_type: members.optional("media_type", text)?,
            detail: members.optional("detail", |json| Detail::parse(&text(json)?).ok_or(Refused))?,
        },
        "file" => MessagePart::File {
            uri: text(members.require("uri")?)?,
            media_type: members.optional("media_type", text)?,
            name: members.optional("name", text)?,
        },
        _ => return Err(Refused),
    };
    members.finish()?;
    Ok(part)
}

fn tool(json: &str) -> Result<Tool, Refused> {
    let mut members = Members::of(json)?;
    let tool = Tool {
        name: text(members.require("name")?)?,
        description: members.optional("description", text)?,
        parameters: members.optional("parameters", raw)?,
        strict: members.optional("strict", strict::boolean)?,
    };
    members.finish()?;
    Ok(tool)
}

fn tool_choice(json: &str) -> Result<ToolChoice, Refused> {
    if json.starts_with('{') {
        let mut members = Members::of(json)?;
        let name = text(members.require("name")?)?;
        members.finish()?;
        return Ok(ToolChoice::Named(name));
    }
    match text(json)?.as_str() {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        _ => Err(Refused),
    }
}

fn sampling(json: &str) -> Result<Sampling, Refused> {
    let mut members = Members::of(json)?;
    let sampling = Sampling {
        temperature: members.optional("temperature", strict::number)?,
        top_p: members.optional("top_p", strict::number)?,
        top_k: members.optional("top_k", |json| strict::integer(json, 1, TOKENS_MAX))?,
        stop: members.optional("stop", |json| list(json, text))?.unwrap_or_default(),
        seed: members.optional("seed", seed)?,
        presence_penalty: members.optional("presence_penalty", strict::number)?,
        frequency_penalty: members.optional("frequency_penalty", strict::number)?,
    };
    members.finish()?;
    Ok(sampling)
}

/// A whole number that a double holds exactly.
///
/// # Errors
/// Anything else.
pub fn seed(json: &str) -> Result<i64, Refused> {
    let value = strict::number(json)?;
    if value.fract() != 0.0 || value.abs() > SEED_MAX as f64 {
        return Err(Refused);
    }
    Ok(value as i64)
}

fn output_format(json: &str) -> Result<OutputFormat, Refused> {
    let mut members = Members::of(json)?;
    let format = match text(members.require("type")?)?.as_str() {
        "text" => OutputFormat::Text,
        "json" => OutputFormat::Json,
        "json_schema" => OutputFormat::JsonSchema {
            name: text(members.require("name")?)?,
            description: members.optional("description", text)?,
            schema: raw(members.require("schema")?)?,
            strict: members.optional("strict", strict::boolean)?,
        },
        _ => return Err(Refused),
    };
    members.finish()?;
    Ok(format)
}

fn raw(json: &str) -> Result<Box<RawValue>, Refused> {
    RawValue::from_string(json.to_owned()).map_err(|_| Refused)
}
