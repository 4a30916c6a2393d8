//! Conversations that every adapter translates: one with all that is said between user, model and tools, and ways to
//! ask for more.

use serde_json::{Value, json};

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
