//! What was asked for in a dialect, before it is known which model answers.

use sealog_events::{Dialect, Origin, canonical};
use sealog_execution::conversation::ToolChoice;
use sealog_execution::request::BODY_BYTES_MAX;
use sealog_execution::{Conversation, ExecutionRequest};

use crate::error::Refusal;
use crate::members::{self, Object};
use crate::models::Choice;
use crate::{chat, messages, responses};

/// A request, translated.
#[derive(Debug)]
pub struct Asked {
    pub dialect: Dialect,
    /// As it was written.
    pub model: String,
    pub conversation: Conversation,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether the answer is to be waited for.
    pub background: bool,
    /// Whether a stream ends with what was used. Only one dialect asks.
    pub include_usage: bool,
    /// What [`settings`] read; its own ability and input mean nothing.
    pub settings: Option<ExecutionRequest>,
    /// Of dialect and request, every member as it was sent.
    pub fingerprint: [u8; 32],
}

/// Reads a request of that dialect.
///
/// # Errors
/// What is wrong with it, or cannot be honoured.
pub fn read(dialect: Dialect, body: &[u8]) -> Result<Asked, Refusal> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Refusal::body());
    }
    // First, because everything behind it relies on what the canonical parser refuses: invalid UTF-8, duplicate
    // members, lone surrogates, unbounded depth.
    let fingerprint = canonical::fingerprint(body).map_err(|_| Refusal::body())?;
    let json = std::str::from_utf8(body).map_err(|_| Refusal::body())?;
    let members = Object::of(json, "body").map_err(|_| Refusal::body())?;
    let mut asked = match dialect {
        Dialect::OpenAiChat => chat::request::read(members)?,
        Dialect::OpenAiResponses => responses::request::read(members)?,
        Dialect::AnthropicMessages => messages::request::read(members)?,
    };
    asked.fingerprint = in_dialect(dialect, &fingerprint);
    without_tools(&mut asked.conversation);
    asked.conversation.check().map_err(|broken| Refusal::invalid(member(dialect, broken.member)))?;
    Ok(asked)
}

/// Where there are no tools, leaving the choice to the model and choosing none are the same: nothing is asked for, and
/// clients say so whether they have tools or not. Insisting on a call stays, and is refused.
fn without_tools(conversation: &mut Conversation) {
    if !conversation.tools.is_empty() {
        return;
    }
    conversation.parallel_tool_calls = None;
    if let Some(ToolChoice::Auto | ToolChoice::None) = conversation.tool_choice {
        conversation.tool_choice = None;
    }
}

/// The same text is another request in another dialect.
fn in_dialect(dialect: Dialect, fingerprint: &[u8; 32]) -> [u8; 32] {
    let mut text = format!("{dialect}:");
    for byte in fingerprint {
        text.push_str(&format!("{byte:02x}"));
    }
    canonical::key_hash(&text)
}

/// The dialect's name for a member of the neutral conversation.
fn member(dialect: Dialect, neutral: &'static str) -> &'static str {
    let first = neutral.split('.').next().unwrap_or(neutral);
    match (dialect, first) {
        (Dialect::OpenAiResponses, "messages") => "input",
        (Dialect::OpenAiResponses, "max_tokens") => "max_output_tokens",
        (Dialect::OpenAiChat, "output_format") => "response_format",
        (Dialect::OpenAiResponses, "output_format") => "text",
        (Dialect::AnthropicMessages, "output_format") => "output_config",
        (Dialect::AnthropicMessages, "stop") => "stop_sequences",
        (Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::AnthropicMessages, _) => first,
    }
}

/// The member `sealog`, which every dialect has here: `routing`, `deadline_ms`, `requirements`, `metadata` and
/// `extensions` of an execution's request.
pub(crate) fn settings(members: &mut Object<'_>) -> Result<Option<ExecutionRequest>, Refusal> {
    const NAME: &str = "sealog";
    let Some(json) = members.take(NAME) else { return Ok(None) };
    let inner = json.trim_start_matches('{').trim_end_matches('}').trim();
    if !json.starts_with('{') || inner.is_empty() {
        return if inner.is_empty() { Ok(None) } else { Err(Refusal::invalid(NAME)) };
    }
    let object = &json[1..json.len() - 1];
    // Ability and input cannot be given: they would stand twice.
    let whole = format!(r#"{{"ability":"-","input":[{{"type":"text","text":""}}],{object}}}"#);
    let request = ExecutionRequest::parse(whole.as_bytes()).map_err(|_| Refusal::invalid(NAME))?.request;
    if request.conversation.is_some() { Err(Refusal::invalid(NAME)) } else { Ok(Some(request)) }
}

impl Asked {
    /// A request that says only these things.
    pub(crate) fn of(dialect: Dialect, model: String, conversation: Conversation) -> Asked {
        Asked {
            dialect,
            model,
            conversation,
            stream: false,
            background: false,
            include_usage: false,
            settings: None,
            fingerprint: [0; 32],
        }
    }

    /// What is kept with the execution.
    pub fn origin(&self) -> Origin {
        Origin {
            dialect: self.dialect,
            model: self.model.clone(),
            max_tokens: self.conversation.max_tokens,
            background: self.background,
        }
    }

    /// The execution's request, once the model is chosen.
    pub fn into_request(self, choice: Choice) -> ExecutionRequest {
        let Choice { ability, only } = choice;
        let mut request = ExecutionRequest::of_conversation(ability, self.conversation);
        request.only = only;
        if let Some(settings) = self.settings {
            request.routing = settings.routing;
            request.deadline_ms = settings.deadline_ms;
            request.metadata = settings.metadata;
            request.extensions = settings.extensions;
            request.require(settings.requirements);
        }
        request
    }
}

/// A choice of tools that is one word, as both of OpenAI's interfaces spell it.
pub(crate) fn tool_choice_word(json: &str) -> Result<ToolChoice, Refusal> {
    match members::text(json, "tool_choice")?.as_str() {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        _ => Err(Refusal::unsupported("tool_choice")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DIALECTS: [Dialect; 3] =
        [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::AnthropicMessages];

    fn asked(dialect: Dialect, more: &Value) -> Result<Asked, Refusal> {
        let mut body = match dialect {
            Dialect::OpenAiChat => json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
            Dialect::OpenAiResponses => json!({"model": "m", "input": "hi"}),
            Dialect::AnthropicMessages => {
                json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
            }
        };
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(dialect, body.to_string().as_bytes())
    }

    #[test]
    fn a_choice_among_no_tools_asks_for_none() {
        for dialect in DIALECTS {
            let choice = |word: &str| match dialect {
                Dialect::OpenAiChat | Dialect::OpenAiResponses => json!(word),
                Dialect::AnthropicMessages => json!({"type": word, "disable_parallel_tool_use": true}),
            };
            for tools in [json!(null), json!([])] {
                for word in ["auto", "none"] {
                    let mut more = json!({"tools": tools, "tool_choice": choice(word)});
                    if dialect != Dialect::AnthropicMessages {
                        more["parallel_tool_calls"] = json!(true);
                    }
                    let read = asked(dialect, &more).unwrap();
                    assert!(!read.conversation.needs_tools(), "{dialect} {more}");
                    assert_ne!(read.fingerprint, asked(dialect, &json!({})).unwrap().fingerprint);
                }
            }
            let insisting = if dialect == Dialect::AnthropicMessages { "any" } else { "required" };
            let refused = asked(dialect, &json!({"tool_choice": choice(insisting)})).unwrap_err();
            assert_eq!(refused.member, Some("tool_choice"));
        }
    }

    #[test]
    fn what_is_harmless_is_so_by_its_value_and_not_by_its_text() {
        let chat = |members: &str| {
            let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],{members}}}"#);
            read(Dialect::OpenAiChat, body.as_bytes())
        };
        for members in [
            r#""n":1.0"#,
            r#""n":10e-1"#,
            r#""modalities":[ "text" ]"#,
            r#""modalities":["te\u0078t"]"#,
            r#""logit_bias":{ }"#,
            r#""functions":[ ]"#,
        ] {
            assert!(chat(members).is_ok(), "{members}");
        }
        for (members, member) in [
            (r#""n":1.5"#, "n"),
            (r#""n":"1""#, "n"),
            (r#""modalities":["text","audio"]"#, "modalities"),
            (r#""logit_bias":{"1":1}"#, "logit_bias"),
        ] {
            assert_eq!(chat(members).unwrap_err().member, Some(member), "{members}");
        }
    }
}
