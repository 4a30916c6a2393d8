//! The request.

use sealog_events::Dialect;
use sealog_execution::Conversation;
use sealog_execution::conversation::{Detail, Message, MessagePart, OutputFormat, Role, Tool, ToolChoice};

use crate::asked::{Asked, settings, tool_choice_word};
use crate::error::Refusal;
use crate::members::{self, Object, is_text};

type Result<T> = std::result::Result<T, Refusal>;

/// Members that change nothing of what is answered here: who asks, what is kept (everything is, for a while), and how
/// fast it comes.
const HARMLESS: [&str; 8] = [
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
];

/// Members that ask for what an execution does not give. Requests are not kept, so nothing can go on from one.
const UNSUPPORTED: [&str; 11] = [
    "previous_response_id",
    "conversation",
    "prompt",
    "include",
    "max_tool_calls",
    "top_logprobs",
    "context_management",
    "moderation",
    "access_programs",
    "background_options",
    "image",
];

pub(crate) fn read(mut members: Object<'_>) -> Result<Asked> {
    let model = members.need_text("model")?;
    let mut messages = Vec::new();
    if let Some(text) = members.text("instructions")? {
        messages.push(Message { role: Role::System, parts: vec![MessagePart::Text { text }] });
    }
    let input = members.need("input")?;
    if is_text(input) {
        let text = members::text(input, "input")?;
        messages.push(Message { role: Role::User, parts: vec![MessagePart::Text { text }] });
    } else {
        for item in members::items(input, "input")? {
            add(&mut messages, self::item(item.get())?);
        }
    }
    let mut asked = Asked::of(Dialect::OpenAiResponses, model, Conversation::of(messages));
    asked.settings = settings(&mut members)?;
    asked.stream = members.boolean("stream")?.unwrap_or(false);
    asked.background = members.boolean("background")?.unwrap_or(false);
    let conversation = &mut asked.conversation;
    conversation.sampling.temperature = members.number("temperature")?;
    conversation.sampling.top_p = members.number("top_p")?;
    conversation.max_tokens = members.integer("max_output_tokens")?;
    let tools = members.take("tools").map(|json| members::list(json, "tools", tool)).transpose()?;
    conversation.tools = tools.unwrap_or_default();
    conversation.tool_choice = members.take("tool_choice").map(tool_choice).transpose()?;
    conversation.parallel_tool_calls = members.boolean("parallel_tool_calls")?;
    if let Some(json) = members.take("text") {
        conversation.output_format = text(json)?;
    }
    if let Some(json) = members.take("stream_options") {
        let mut options = Object::of(json, "stream_options")?;
        options.ignore(&["include_obfuscation"]);
        options.finish()?;
    }
    if let Some(json) = members.take("reasoning") {
        let mut reasoning = Object::of(json, "reasoning")?;
        reasoning.refuse_all(&["reasoning.effort", "reasoning.summary", "reasoning.generate_summary"])?;
        reasoning.finish()?;
    }
    members.refuse("truncation", &[r#""disabled""#])?;
    members.refuse_all(&UNSUPPORTED)?;
    members.ignore(&HARMLESS);
    members.finish()?;
    Ok(asked)
}

/// Several items of what the model said in one answer are one message again.
fn add(messages: &mut Vec<Message>, message: Message) {
    match messages.last_mut() {
        Some(last) if last.role == Role::Assistant && message.role == Role::Assistant => {
            last.parts.extend(message.parts);
        }
        Some(_) | None => messages.push(message),
    }
}

fn item(json: &str) -> Result<Message> {
    let mut members = Object::of(json, "input")?;
    let kind = members.text("input.type")?.unwrap_or_else(|| "message".to_owned());
    let message = match kind.as_str() {
        "message" => {
            let role = match members.need_text("input.role")?.as_str() {
                "system" | "developer" => Role::System,
                "user" => Role::User,
                "assistant" => Role::Assistant,
                _ => return Err(Refusal::unsupported("input.role")),
            };
            Message { role, parts: parts(members.need("input.content")?)? }
        }
        "function_call" => {
            let call = MessagePart::ToolCall {
                call_id: members.need_text("input.call_id")?,
                name: members.need_text("input.name")?,
                arguments: members.need_text("input.arguments")?,
            };
            Message { role: Role::Assistant, parts: vec![call] }
        }
        "function_call_output" => {
            let result = MessagePart::ToolResult {
                call_id: members.need_text("input.call_id")?,
                parts: parts(members.need("input.output")?)?,
                is_error: false,
            };
            Message { role: Role::Tool, parts: vec![result] }
        }
        _ => return Err(Refusal::unsupported("input.type")),
    };
    // What an answer's own items hold besides.
    members.ignore(&["id", "status", "phase", "namespace", "created_by", "caller"]);
    members.finish()?;
    Ok(message)
}

fn parts(json: &str) -> Result<Vec<MessagePart>> {
    if is_text(json) {
        return Ok(vec![MessagePart::text(members::text(json, "input.content")?)]);
    }
    members::list(json, "input.content", part)
}

fn part(json: &str) -> Result<MessagePart> {
    let mut members = Object::of(json, "input.content")?;
    let part = match members.need_text("input.content.type")?.as_str() {
        "input_text" | "output_text" | "text" => {
            MessagePart::Text { text: members.need_text("input.content.text")? }
        }
        "refusal" => MessagePart::Text { text: members.need_text("input.content.refusal")? },
        "input_image" => {
            members.refuse_all(&["input.content.file_id"])?;
            let unknown = || Refusal::unsupported("input.content.detail");
            let detail = members.text("input.content.detail")?;
            MessagePart::Image {
                uri: members.need_text("input.content.image_url")?,
                media_type: None,
                detail: detail.map(|detail| Detail::parse(&detail).ok_or_else(unknown)).transpose()?,
            }
        }
        "input_file" => {
            members.refuse_all(&["input.content.file_id", "input.content.detail"])?;
            let data = members.text("input.content.file_data")?;
            let uri = match (data, members.text("input.content.file_url")?) {
                (Some(uri), None) | (None, Some(uri)) => uri,
                (None, None) | (Some(_), Some(_)) => return Err(Refusal::invalid("input.content.file_url")),
            };
            MessagePart::File { uri, media_type: None, name: members.text("input.content.filename")? }
        }
        _ => return Err(Refusal::unsupported("input.content.type")),
    };
    members.ignore(&["annotations", "logprobs", "prompt_cache_breakpoint"]);
    members.finish()?;
    Ok(part)
}

fn tool(json: &str) -> Result<Tool> {
    let mut members = Object::of(json, "tools")?;
    if members.need_text("tools.type")? != "function" {
        return Err(Refusal::unsupported("tools.type"));
    }
    let tool = Tool {
        name: members.need_text("tools.name")?,
        description: members.text("tools.description")?,
        parameters: members.raw("tools.parameters")?,
        strict: members.boolean("tools.strict")?,
    };
    members.refuse("tools.defer_loading", &["false"])?;
    members.finish()?;
    Ok(tool)
}

fn tool_choice(json: &str) -> Result<ToolChoice> {
    if is_text(json) {
        return tool_choice_word(json);
    }
    let mut members = Object::of(json, "tool_choice")?;
    if members.need_text("tool_choice.type")? != "function" {
        return Err(Refusal::unsupported("tool_choice.type"));
    }
    let name = members.need_text("tool_choice.name")?;
    members.finish()?;
    Ok(ToolChoice::Named(name))
}

fn text(json: &str) -> Result<OutputFormat> {
    let mut members = Object::of(json, "text")?;
    members.refuse("text.verbosity", &[r#""medium""#])?;
    let format = members.take("text.format").map(output_format).transpose()?.unwrap_or_default();
    members.finish()?;
    Ok(format)
}

fn output_format(json: &str) -> Result<OutputFormat> {
    let mut members = Object::of(json, "text.format")?;
    let format = match members.need_text("text.format.type")?.as_str() {
        "text" => OutputFormat::Text,
        "json_object" => OutputFormat::Json,
        "json_schema" => OutputFormat::JsonSchema {
            name: members.need_text("text.format.name")?,
            description: members.text("text.format.description")?,
            schema: members
                .raw("text.format.schema")?
                .ok_or_else(|| Refusal::missing("text.format.schema"))?,
            strict: members.boolean("text.format.strict")?,
        },
        _ => return Err(Refusal::unsupported("text.format.type")),
    };
    members.finish()?;
    Ok(format)
}

#[cfg(test)]
mod tests;
