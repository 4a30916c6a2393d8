//! The request.

use sealog_events::Dialect;
use sealog_execution::Conversation;
use sealog_execution::conversation::{
    Detail, Message, MessagePart, OutputFormat, Role, Sampling, Tool, ToolChoice,
};

use crate::asked::{Asked, settings, tool_choice_word};
use crate::error::Refusal;
use crate::members::{self, Object, is_text};

type Result<T> = std::result::Result<T, Refusal>;

/// Members that change nothing of what is answered here: who asks, what is kept, and how fast it comes.
const HARMLESS: [&str; 9] = [
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prediction",
    "prompt_cache_options",
];

/// Members that ask for what an execution does not give.
const UNSUPPORTED: [&str; 9] = [
    "audio",
    "function_call",
    "functions",
    "logit_bias",
    "moderation",
    "reasoning_effort",
    "top_logprobs",
    "verbosity",
    "web_search_options",
];

pub(crate) fn read(mut members: Object<'_>) -> Result<Asked> {
    let model = members.need_text("model")?;
    let messages = members::list(members.need("messages")?, "messages", message)?;
    let mut asked = Asked::of(Dialect::OpenAiChat, model, Conversation::of(messages));
    asked.settings = settings(&mut members)?;
    asked.stream = members.boolean("stream")?.unwrap_or(false);
    asked.include_usage = stream_options(&mut members)?;
    let conversation = &mut asked.conversation;
    conversation.sampling = Sampling {
        temperature: members.number("temperature")?,
        top_p: members.number("top_p")?,
        top_k: None,
        stop: members.take("stop").map(|json| members::texts(json, "stop")).transpose()?.unwrap_or_default(),
        seed: seed(&mut members)?,
        presence_penalty: members.number("presence_penalty")?,
        frequency_penalty: members.number("frequency_penalty")?,
    };
    let older = members.integer("max_tokens")?;
    conversation.max_tokens = members.integer("max_completion_tokens")?.or(older);
    let tools = members.take("tools").map(|json| members::list(json, "tools", tool)).transpose()?;
    conversation.tools = tools.unwrap_or_default();
    conversation.tool_choice = members.take("tool_choice").map(tool_choice).transpose()?;
    conversation.parallel_tool_calls = members.boolean("parallel_tool_calls")?;
    if let Some(json) = members.take("response_format") {
        conversation.output_format = output_format(json)?;
    }
    members.refuse("n", &["1"])?;
    members.refuse("logprobs", &["false"])?;
    members.refuse("modalities", &[r#"["text"]"#])?;
    members.refuse_all(&UNSUPPORTED)?;
    members.ignore(&HARMLESS);
    members.finish()?;
    Ok(asked)
}

fn seed(members: &mut Object<'_>) -> Result<Option<i64>> {
    let read = |json| sealog_execution::conversation::seed(json).map_err(|_| Refusal::invalid("seed"));
    members.take("seed").map(read).transpose()
}

/// Whether the stream ends with what was used.
fn stream_options(members: &mut Object<'_>) -> Result<bool> {
    let Some(json) = members.take("stream_options") else { return Ok(false) };
    let mut options = Object::of(json, "stream_options")?;
    let include = options.boolean("stream_options.include_usage")?.unwrap_or(false);
    options.ignore(&["include_obfuscation"]);
    options.finish()?;
    Ok(include)
}

fn message(json: &str) -> Result<Message> {
    let mut members = Object::of(json, "messages")?;
    let role = members.need_text("messages.role")?;
    let message = match role.as_str() {
        "system" | "developer" => Message { role: Role::System, parts: content(&mut members)? },
        "user" => Message { role: Role::User, parts: content(&mut members)? },
        "assistant" => Message { role: Role::Assistant, parts: assistant(&mut members)? },
        "tool" => {
            let call_id = members.need_text("messages.tool_call_id")?;
            let parts = content(&mut members)?;
            let result = MessagePart::ToolResult { call_id, parts, is_error: false };
            Message { role: Role::Tool, parts: vec![result] }
        }
        _ => return Err(Refusal::unsupported("messages.role")),
    };
    members.refuse_all(&["messages.name"])?;
    members.finish()?;
    Ok(message)
}

fn content(members: &mut Object<'_>) -> Result<Vec<MessagePart>> {
    parts(members.need("messages.content")?)
}

fn parts(json: &str) -> Result<Vec<MessagePart>> {
    if is_text(json) {
        return Ok(vec![MessagePart::text(members::text(json, "messages.content")?)]);
    }
    members::list(json, "messages.content", part)
}

fn part(json: &str) -> Result<MessagePart> {
    let mut members = Object::of(json, "messages.content")?;
    let kind = members.need_text("messages.content.type")?;
    let part = match kind.as_str() {
        "text" => MessagePart::Text { text: members.need_text("messages.content.text")? },
        "refusal" => MessagePart::Text { text: members.need_text("messages.content.refusal")? },
        "image_url" => {
            let json = members.need("messages.content.image_url")?;
            let mut image = Object::of(json, "messages.content.image_url")?;
            let uri = image.need_text("messages.content.image_url.url")?;
            let detail = image.text("messages.content.image_url.detail")?;
            let unknown = || Refusal::unsupported("messages.content.image_url.detail");
            let detail = detail.map(|detail| Detail::parse(&detail).ok_or_else(unknown)).transpose()?;
            image.finish()?;
            MessagePart::Image { uri, media_type: None, detail }
        }
        "file" => {
            let json = members.need("messages.content.file")?;
            let mut file = Object::of(json, "messages.content.file")?;
            file.refuse_all(&["messages.content.file.file_id"])?;
            let uri = file.need_text("messages.content.file.file_data")?;
            let name = file.text("messages.content.file.filename")?;
            file.finish()?;
            MessagePart::File { uri, media_type: None, name }
        }
        _ => return Err(Refusal::unsupported("messages.content.type")),
    };
    members.ignore(&["annotations", "prompt_cache_breakpoint"]);
    members.finish()?;
    Ok(part)
}

/// What the model said before, as answers hold it: also members that say nothing.
fn assistant(members: &mut Object<'_>) -> Result<Vec<MessagePart>> {
    let mut said = members.take("messages.content").map(parts).transpose()?.unwrap_or_default();
    if let Some(text) = members.text("messages.refusal")? {
        said.push(MessagePart::Text { text });
    }
    let calls = members.take("messages.tool_calls");
    let calls = calls.map(|json| members::list(json, "messages.tool_calls", call)).transpose()?;
    let calls = calls.unwrap_or_default();
    // Beside calls an empty text is the way of some clients to say none.
    if !calls.is_empty() {
        said.retain(|part| !matches!(part, MessagePart::Text { text } if text.is_empty()));
    }
    said.extend(calls);
    if said.is_empty() {
        said.push(MessagePart::text(""));
    }
    members.refuse_all(&["messages.audio", "messages.function_call"])?;
    members.ignore(&["annotations"]);
    Ok(said)
}

fn call(json: &str) -> Result<MessagePart> {
    let mut members = Object::of(json, "messages.tool_calls")?;
    let kind = members.text("messages.tool_calls.type")?;
    if kind.is_some_and(|kind| kind != "function") {
        return Err(Refusal::unsupported("messages.tool_calls.type"));
    }
    let call_id = members.need_text("messages.tool_calls.id")?;
    let mut function =
        Object::of(members.need("messages.tool_calls.function")?, "messages.tool_calls.function")?;
    let name = function.need_text("messages.tool_calls.function.name")?;
    let arguments = function.need_text("messages.tool_calls.function.arguments")?;
    function.finish()?;
    members.ignore(&["index"]);
    members.finish()?;
    Ok(MessagePart::ToolCall { call_id, name, arguments })
}

fn tool(json: &str) -> Result<Tool> {
    let mut members = Object::of(json, "tools")?;
    if members.need_text("tools.type")? != "function" {
        return Err(Refusal::unsupported("tools.type"));
    }
    let mut function = Object::of(members.need("tools.function")?, "tools.function")?;
    let tool = Tool {
        name: function.need_text("tools.function.name")?,
        description: function.text("tools.function.description")?,
        parameters: function.raw("tools.function.parameters")?,
        strict: function.boolean("tools.function.strict")?,
    };
    function.finish()?;
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
    let mut function = Object::of(members.need("tool_choice.function")?, "tool_choice.function")?;
    let name = function.need_text("tool_choice.function.name")?;
    function.finish()?;
    members.finish()?;
    Ok(ToolChoice::Named(name))
}

fn output_format(json: &str) -> Result<OutputFormat> {
    let mut members = Object::of(json, "response_format")?;
    let format = match members.need_text("response_format.type")?.as_str() {
        "text" => OutputFormat::Text,
        "json_object" => OutputFormat::Json,
        "json_schema" => {
            let json = members.need("response_format.json_schema")?;
            let mut schema = Object::of(json, "response_format.json_schema")?;
            let format = OutputFormat::JsonSchema {
                name: schema.need_text("response_format.json_schema.name")?,
                description: schema.text("response_format.json_schema.description")?,
                schema: schema
                    .raw("response_format.json_schema.schema")?
                    .ok_or_else(|| Refusal::missing("response_format.json_schema.schema"))?,
                strict: schema.boolean("response_format.json_schema.strict")?,
            };
            schema.finish()?;
            format
        }
        _ => return Err(Refusal::unsupported("response_format.type")),
    };
    members.finish()?;
    Ok(format)
}

#[cfg(test)]
mod tests;
