use sealog_events::Dialect;
use serde_json::{Value, json};

use crate::asked::{Asked, read};
use crate::error::Refusal;

fn asked(body: &Value) -> Result<Asked, Refusal> {
    read(Dialect::AnthropicMessages, body.to_string().as_bytes())
}

fn with(members: Value) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

#[track_caller]
fn refused(members: Value, member: &str) {
    let refusal = asked(&with(members.clone())).expect_err("a refusal");
    assert_eq!(refusal.member, Some(member), "{members}: {}", refusal.message);
}

#[test]
fn a_whole_conversation() {
    let body = json!({
        "model": "m", "max_tokens": 9,
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "what is it"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
                {"type": "document", "source": {"type": "url", "url": "https://h/a.pdf"}, "title": "a.pdf"},
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "let me look", "citations": null},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "a cat", "is_error": true},
                {"type": "text", "text": "sure?"},
            ]},
        ],
        "tools": [{"type": "custom", "name": "look", "description": "d", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "temperature": 0.5, "top_p": 0.5, "top_k": 4, "stop_sequences": ["END"],
        "thinking": {"type": "disabled"}, "metadata": {"user_id": "u"}, "service_tier": "auto", "stream": true,
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    });
    let text = |text: &str| json!({"type": "text", "text": text});
    let conversation = json!({
        "messages": [
            {"role": "system", "parts": [text("be brief")]},
            {"role": "user", "parts": [
                text("what is it"),
                {"type": "image", "uri": "data:image/png;base64,AA", "media_type": "image/png"},
                {"type": "file", "uri": "https://h/a.pdf", "name": "a.pdf"},
            ]},
            {"role": "assistant", "parts": [
                text("let me look"),
                {"type": "tool_call", "call_id": "c1", "name": "look", "arguments": "{\"at\":1}"},
            ]},
            {"role": "tool", "parts": [
                {"type": "tool_result", "call_id": "c1", "parts": [text("a cat")], "is_error": true},
            ]},
            {"role": "user", "parts": [text("sure?")]},
        ],
        "tools": [{"name": "look", "description": "d", "parameters": {"type": "object"}}],
        "tool_choice": "required",
        "parallel_tool_calls": false,
        "sampling": {"temperature": 0.5, "top_p": 0.5, "top_k": 4, "stop": ["END"]},
        "max_tokens": 9,
        "output_format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": true},
    });
    let read = asked(&body).unwrap();
    assert!(read.stream);
    assert_eq!(serde_json::to_value(&read.conversation).unwrap(), conversation);
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (member, value) in [
        ("max_tokens", json!(null)),
        ("max_tokens", json!(0)),
        ("temperature", json!(-1)),
        ("top_k", json!(0)),
        ("stop_sequences", json!([""])),
        ("stop_sequences", json!("END")),
        ("container", json!("c")),
        ("context_management", json!({"edits": [1]})),
        ("mcp_servers", json!([{"url": "x"}])),
        ("thinking", json!({"type": "enabled", "budget_tokens": 1024})),
        ("messages", json!([])),
    ] {
        refused(json!({ member: value }), member);
    }
    refused(json!({"output_config": {"effort": "low"}}), "output_config.effort");
    refused(json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}), "tools.type");
    refused(json!({"tools": [{"name": "f"}]}), "tools.input_schema");
    refused(json!({"tool_choice": {"type": "some"}}), "tool_choice.type");
    let message = |role: &str, content: Value| json!({"messages": [{"role": role, "content": content}]});
    refused(message("system", json!("x")), "messages.role");
    refused(message("user", json!([])), "messages.content");
    refused(message("user", json!([{"type": "thinking", "thinking": "x"}])), "messages.content.type");
    let file = json!([{"type": "document", "source": {"type": "file", "file_id": "x"}}]);
    refused(message("user", file), "messages.content.source.type");
    let result = json!([{"type": "tool_result", "tool_use_id": "nobody"}]);
    refused(message("user", result.clone()), "messages");
    refused(message("assistant", result), "messages.content");
    let call = json!([{"type": "tool_use", "id": "c", "name": "f", "input": "x"}]);
    refused(message("assistant", call), "messages.content.input");
    assert_eq!(asked(&with(json!({"secret_knob": 1}))).unwrap_err().member, None);
}
