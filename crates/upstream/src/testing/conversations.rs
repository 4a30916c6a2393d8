//! Conversations that every adapter translates: one with all that is said between user, model and tools, and ways to
//! ask for more.

use sealog_events::PortableCode;
use sealog_execution::{ExecutionRequest, Failure};
use serde_json::{Value, json};

use crate::model::{Model, ModelConfig, Rules};

/// The line of a configuration that declares tools.
pub const TOOLS: &str = "capabilities = { tools = true }";

/// The translating half of an adapter: what it makes of a request, under a configuration.
#[derive(Debug)]
pub struct Adapter {
    /// The configuration of its model `m-1` with these lines of TOML.
    pub configured: fn(&str) -> ModelConfig,
    pub rules: &'static Rules,
    pub body: fn(&Model, &ExecutionRequest) -> Result<Vec<u8>, Failure>,
}

impl Adapter {
    /// The body that is sent for `asked` when `toml` is configured beside the rest; else the code of the refusal.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// The configuration or the request is not valid.
    pub fn sent(&self, toml: &str, asked: Value) -> Result<Value, PortableCode> {
        let model = Model::new((self.configured)(toml), self.rules).expect("a test's configuration is valid");
        let request = super::request(&asked);
        let made = model.supports("m-1", &request).and_then(|()| (self.body)(&model, &request));
        Ok(serde_json::from_slice(&made.map_err(|failure| failure.code)?).expect("JSON is sent"))
    }

    /// What is sent for a conversation of one message with these members, without the members that are always sent.
    ///
    /// # Errors
    /// As [`Adapter::sent`].
    ///
    /// # Panics
    /// As [`Adapter::sent`].
    pub fn added(&self, toml: &str, members: Value) -> Result<Value, PortableCode> {
        let mut body = self.sent(toml, with(members))?;
        for name in ["model", "messages", "input", "stream", "stream_options", "store"] {
            body.as_object_mut().expect("an object is sent").remove(name);
        }
        Ok(body)
    }

    /// # Panics
    /// It is not refused as something that cannot be said.
    #[track_caller]
    pub fn refused(&self, toml: &str, asked: Value) {
        assert_eq!(self.sent(toml, asked), Err(PortableCode::CapabilityUnavailable));
    }

    /// # Panics
    /// A conversation gets tools that the configuration does not declare.
    pub fn needs_tools_to_be_declared(&self) {
        let choice = json!({"tool_choice": "none"});
        for members in [json!({"tools": one_tool()}), choice, json!({"parallel_tool_calls": true})] {
            self.refused("", with(members));
        }
        self.refused("", tool_use());
    }

    /// # Panics
    /// An image in an earlier message passes without the modality, or is refused with it.
    pub fn counts_every_part(&self) {
        let image = json!([{"type": "image", "uri": "data:image/png;base64,AA"}]);
        let asked = of(json!([
            message("user", image),
            message("assistant", json!([text("a cat")])),
            message("user", json!([text("sure?")])),
        ]));
        self.refused("", asked.clone());
        let images = "capabilities = { input_modalities = ['text', 'image'] }";
        assert!(self.sent(images, asked).is_ok());
    }
}

/// The tools of a conversation that has one.
pub fn one_tool() -> Value {
    json!([{"name": "f", "description": "d", "parameters": {"type": "object"}}])
}

/// A request that goes on with a conversation; `input` is what has to stand beside it.
///
/// # Panics
/// `conversation` is no object with messages.
pub fn request(conversation: &Value) -> Value {
    let messages = conversation["messages"].as_array().expect("messages");
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    let part = |part: &Value| {
        let mut part = part.clone();
        let members = part.as_object_mut().expect("a part");
        members.remove("detail");
        members.remove("name");
        part
    };
    let parts = last.map(|last| last["parts"].as_array().expect("parts").iter().map(part).collect());
    let input: Vec<Value> = parts.unwrap_or_else(|| vec![json!({"type": "text", "text": ""})]);
    json!({"ability": "text-generation", "input": input, "extensions": {"conversation": conversation}})
}

/// A conversation of one message with these members.
///
/// # Panics
/// `members` is no object.
pub fn with(members: Value) -> Value {
    let mut conversation = json!({"messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]});
    conversation.as_object_mut().expect("an object").extend(members.as_object().expect("members").clone());
    request(&conversation)
}

/// A conversation with these messages.
pub fn of(messages: Value) -> Value {
    request(&json!({ "messages": messages }))
}

/// One message.
pub fn message(role: &str, parts: Value) -> Value {
    json!({"role": role, "parts": parts})
}

/// A text part.
pub fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The question, a call of a tool, its result, and a second question.
pub fn tool_use() -> Value {
    request(&json!({
        "messages": [
            message("system", json!([text("be brief")])),
            message("user", json!([text("weather in Rome?")])),
            message("assistant", json!([
                text("let me look"),
                {"type": "tool_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Rome\"}"},
            ])),
            message("tool", json!([{"type": "tool_result", "call_id": "c1", "parts": [text("sunny")]}])),
            message("user", json!([text("and tomorrow?")])),
        ],
        "tools": [
            {"name": "weather", "description": "looks outside", "parameters": {"type": "object"}},
            {"name": "clock"},
        ],
        "tool_choice": "auto",
    }))
}
