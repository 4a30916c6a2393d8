//! The request.

use sealog_events::Dialect;
use sealog_execution::Conversation;
use sealog_execution::conversation::{Message, MessagePart, OutputFormat, Role, Tool, ToolChoice};
use serde_json::value::RawValue;

use crate::asked::{Asked, settings};
use crate::error::Refusal;
use crate::members::{self, Object, is_text};

type Result<T> = std::result::Result<T, Refusal>;

/// Members that change nothing of what is answered here.
const HARMLESS: [&str; 6] =
    ["metadata", "service_tier", "cache_control", "diagnostics", "user_profile_id", "workspace_id"];

/// Members that ask for what an execution does not give.
const UNSUPPORTED: [&str; 5] = ["container", "context_management", "mcp_servers", "inference_geo", "speed"];

pub(crate) fn read(mut members: Object<'_>) -> Result<Asked> {
    let model = members.need_text("model")?;
    let mut messages = Vec::new();
    if let Some(json) = members.take("system") {
        messages.push(Message { role: Role::System, parts: content(json, "system")? });
    }
    for item in members::items(members.need("messages")?, "messages")? {
        message(item.get(), &mut messages)?;
    }
    let mut asked = Asked::of(Dialect::AnthropicMessages, model, Conversation::of(messages));
    asked.settings = settings(&mut members)?;
    asked.stream = members.boolean("stream")?.unwrap_or(false);
    let conversation = &mut asked.conversation;
    let max_tokens = members.integer("max_tokens")?;
    conversation.max_tokens = Some(max_tokens.ok_or_else(|| Refusal::missing("max_tokens"))?);
    conversation.sampling.temperature = members.number("temperature")?;
    conversation.sampling.top_p = members.number("top_p")?;
    conversation.sampling.top_k = members.integer("top_k")?;
    let stops = members.take("stop_sequences");
    let stops =
        stops.map(|json| members::list(json, "stop_sequences", |json| members::text(json, "stop_sequences")));
    conversation.sampling.stop = stops.transpose()?.unwrap_or_default();
    let tools = members.take("tools").map(|json| members::list(json, "tools", tool)).transpose()?;
    conversation.tools = tools.unwrap_or_default();
    if let Some(json) = members.take("tool_choice") {
        tool_choice(json, conversation)?;
    }
    if let Some(json) = members.take("output_config") {
        conversation.output_format = output_config(json)?;
    }
    if let Some(json) = members.take("thinking") {
        let mut thinking = Object::of(json, "thinking")?;
        if thinking.need_text("thinking.type")? != "disabled" {
            return Err(Refusal::unsupported("thinking"));
        }
        thinking.finish()?;
    }
    members.refuse_all(&UNSUPPORTED)?;
    members.ignore(&HARMLESS);
    members.finish()?;
    Ok(asked)
}

/// Results of tools stand in the user's messages there and are messages of their own here.
fn message(json: &str, messages: &mut Vec<Message>) -> Result<()> {
    let mut members = Object::of(json, "messages")?;
    let role = match members.need_text("messages.role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return Err(Refusal::unsupported("messages.role")),
    };
    let parts = content(members.need("messages.content")?, "messages.content")?;
    members.finish()?;
    if parts.is_empty() {
        return Err(Refusal::invalid("messages.content"));
    }
    let (results, said): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| matches!(part, MessagePart::ToolResult { .. }));
    if !results.is_empty() {
        if role != Role::User {
            return Err(Refusal::invalid("messages.content"));
        }
        messages.push(Message { role: Role::Tool, parts: results });
    }
    if !said.is_empty() {
        messages.push(Message { role, parts: said });
    }
    Ok(())
}

fn content(json: &str, path: &'static str) -> Result<Vec<MessagePart>> {
    if is_text(json) {
        return Ok(vec![MessagePart::text(members::text(json, path)?)]);
    }
    members::list(json, path, block)
}

fn block(json: &str) -> Result<MessagePart> {
    let mut members = Object::of(json, "messages.content")?;
    let part = match members.need_text("messages.content.type")?.as_str() {
        "text" => {
            members.refuse_all(&["messages.content.citations"])?;
            MessagePart::Text { text: members.need_text("messages.content.text")? }
        }
        "image" => {
            let (uri, media_type) = source(members.need("messages.content.source")?)?;
            MessagePart::Image { uri, media_type, detail: None }
        }
        "document" => {
            let (uri, media_type) = source(members.need("messages.content.source")?)?;
            members.refuse_all(&["messages.content.context"])?;
            if let Some(json) = members.take("messages.content.citations") {
                let mut citations = Object::of(json, "messages.content.citations")?;
                citations.refuse("messages.content.citations.enabled", &["false"])?;
                citations.finish()?;
            }
            MessagePart::File { uri, media_type, name: members.text("messages.content.title")? }
        }
        "tool_use" => MessagePart::ToolCall {
            call_id: members.need_text("messages.content.id")?,
            name: members.need_text("messages.content.name")?,
            arguments: arguments(members.raw("messages.content.input")?)?,
        },
        "tool_result" => MessagePart::ToolResult {
            call_id: members.need_text("messages.content.tool_use_id")?,
            parts: match members.take("messages.content.content") {
                Some(json) => content(json, "messages.content.content")?,
                None => Vec::new(),
            },
            is_error: members.boolean("messages.content.is_error")?.unwrap_or(false),
        },
        _ => return Err(Refusal::unsupported("messages.content.type")),
    };
    members.ignore(&["cache_control", "caller"]);
    members.finish()?;
    Ok(part)
}

fn arguments(input: Option<Box<RawValue>>) -> Result<String> {
    match input {
        Some(json) if json.get().starts_with('{') => Ok(json.get().to_owned()),
        Some(_) | None => Err(Refusal::invalid("messages.content.input")),
    }
}

/// The URI of what is elsewhere, or that holds what is there.
fn source(json: &str) -> Result<(String, Option<String>)> {
    let mut members = Object::of(json, "messages.content.source")?;
    let source = match members.need_text("messages.content.source.type")?.as_str() {
        "url" => (members.need_text("messages.content.source.url")?, None),
        "base64" => {
            let media_type = members.need_text("messages.content.source.media_type")?;
            let data = members.need_text("messages.content.source.data")?;
            (format!("data:{media_type};base64,{data}"), Some(media_type))
        }
        _ => return Err(Refusal::unsupported("messages.content.source.type")),
    };
    members.finish()?;
    Ok(source)
}

fn tool(json: &str) -> Result<Tool> {
    let mut members = Object::of(json, "tools")?;
    if members.text("tools.type")?.is_some_and(|kind| kind != "custom") {
        return Err(Refusal::unsupported("tools.type"));
    }
    let schema = members.raw("tools.input_schema")?;
    let tool = Tool {
        name: members.need_text("tools.name")?,
        description: members.text("tools.description")?,
        parameters: Some(schema.ok_or_else(|| Refusal::missing("tools.input_schema"))?),
        strict: members.boolean("tools.strict")?,
    };
    members.refuse("tools.defer_loading", &["false"])?;
    members.refuse_all(&["tools.allowed_callers", "tools.input_examples"])?;
    members.ignore(&["cache_control", "eager_input_streaming"]);
    members.finish()?;
    Ok(tool)
}

/// The choice, and whether several calls may be made.
fn tool_choice(json: &str, conversation: &mut Conversation) -> Result<()> {
    let mut members = Object::of(json, "tool_choice")?;
    let choice = match members.need_text("tool_choice.type")?.as_str() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Named(members.need_text("tool_choice.name")?),
        _ => return Err(Refusal::unsupported("tool_choice.type")),
    };
    conversation.tool_choice = Some(choice);
    let disabled = members.boolean("tool_choice.disable_parallel_tool_use")?;
    conversation.parallel_tool_calls = disabled.map(|disabled| !disabled);
    members.finish()
}

fn output_config(json: &str) -> Result<OutputFormat> {
    let mut members = Object::of(json, "output_config")?;
    members.refuse_all(&["output_config.effort"])?;
    let format = members.take("output_config.format").map(output_format).transpose()?.unwrap_or_default();
    members.finish()?;
    Ok(format)
}

/// A schema has no name there.
fn output_format(json: &str) -> Result<OutputFormat> {
    let mut members = Object::of(json, "output_config.format")?;
    if members.need_text("output_config.format.type")? != "json_schema" {
        return Err(Refusal::unsupported("output_config.format.type"));
    }
    let schema = members.raw("output_config.format.schema")?;
    members.finish()?;
    Ok(OutputFormat::JsonSchema {
        name: "answer".to_owned(),
        description: None,
        schema: schema.ok_or_else(|| Refusal::missing("output_config.format.schema"))?,
        strict: Some(true),
    })
}

#[cfg(test)]
mod tests;
