use serde_json::{Value, json};

use crate::asked::{Asked, read};
use crate::error::Refusal;
use sealog_events::Dialect;

fn asked(body: &Value) -> Result<Asked, Refusal> {
    read(Dialect::OpenAiChat, body.to_string().as_bytes())
}

fn with(members: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

#[track_caller]
fn becomes(body: Value, conversation: Value) {
    let asked = asked(&body).unwrap_or_else(|refusal| panic!("{refusal:?}: {body}"));
    assert_eq!(serde_json::to_value(&asked.conversation).unwrap(), conversation);
}

#[track_caller]
fn refused(members: Value, member: &str) {
    let refusal = asked(&with(members.clone())).expect_err("a refusal");
    assert_eq!(refusal.member, Some(member), "{members}: {}", refusal.message);
}

#[test]
fn a_whole_conversation() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let body = json!({
        "model": "m",
        "messages": [
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [
                {"type": "text", "text": "what is it"},
                {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"}},
            ]},
            {"role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null,
                "function_call": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a cat"}]},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "sure?"},
        ],
        "tools": [{"type": "function", "function":
            {"name": "look", "description": "d", "parameters": {"type": "object"}, "strict": true}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "parallel_tool_calls": false,
        "temperature": 0.5, "top_p": 1, "stop": "END", "seed": 7, "presence_penalty": 1, "frequency_penalty": -1,
        "max_completion_tokens": 9,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        "n": 1, "logprobs": false, "modalities": ["text"], "logit_bias": {}, "user": "u", "store": true,
        "metadata": {"a": "b"}, "stream": true, "stream_options": {"include_usage": true}, "audio": null,
    });
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let conversation = json!({
        "messages": [
            {"role": "system", "parts": text("be brief")},
            {"role": "user", "parts": [
                {"type": "text", "text": "what is it"},
                {"type": "image", "uri": "https://h/a.png", "detail": "low"},
                {"type": "file", "uri": "data:application/pdf;base64,AA", "name": "a.pdf"},
            ]},
            {"role": "assistant", "parts": [
                {"type": "tool_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            ]},
            {"role": "tool", "parts": [{"type": "tool_result", "call_id": "c1", "parts": text("a cat")}]},
            {"role": "assistant", "parts": text("")},
            {"role": "user", "parts": text("sure?")},
        ],
        "tools": [{"name": "look", "description": "d", "parameters": {"type": "object"}, "strict": true}],
        "tool_choice": {"name": "look"},
        "parallel_tool_calls": false,
        "sampling": {"temperature": 0.5, "top_p": 1.0, "stop": ["END"], "seed": 7, "presence_penalty": 1.0,
            "frequency_penalty": -1.0},
        "max_tokens": 9,
        "output_format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}},
    });
    let read = asked(&body).unwrap();
    assert!(read.stream && read.include_usage && !read.background);
    becomes(body, conversation);
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (member, value) in [
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("top_logprobs", json!(3)),
        ("logit_bias", json!({"1": 5})),
        ("audio", json!({"voice": "v"})),
        ("modalities", json!(["text", "audio"])),
        ("functions", json!([{"name": "f"}])),
        ("function_call", json!("auto")),
        ("reasoning_effort", json!("low")),
        ("verbosity", json!("low")),
        ("web_search_options", json!({"a": 1})),
        ("temperature", json!(3)),
        ("temperature", json!("hot")),
        ("top_p", json!(2)),
        ("seed", json!(0.5)),
        ("stop", json!([""])),
        ("max_tokens", json!(0)),
        ("max_completion_tokens", json!(1.5)),
        ("stream", json!("yes")),
        ("tool_choice", json!("required")),
        ("tools", json!({})),
        ("messages", json!([])),
        ("messages", json!("hi")),
        ("sealog", json!([])),
        ("sealog", json!({"ability": "x"})),
        ("sealog", json!({"routing": {"x": 1}})),
    ] {
        refused(json!({ member: value }), member);
    }
    let message = |message: Value| json!({"messages": [message]});
    refused(message(json!({"role": "function", "content": "x", "name": "f"})), "messages.role");
    refused(message(json!({"role": "user", "content": "x", "name": "n"})), "messages.name");
    refused(message(json!({"role": "user"})), "messages.content");
    let part = |part: Value| message(json!({"role": "user", "content": [part]}));
    refused(part(json!({"type": "input_audio", "input_audio": {}})), "messages.content.type");
    refused(part(json!({"type": "file", "file": {"file_id": "f"}})), "messages.content.file.file_id");
    refused(message(json!({"role": "tool", "tool_call_id": "nobody", "content": "x"})), "messages");
    refused(json!({"tools": [{"type": "custom", "custom": {}}]}), "tools.type");
    refused(json!({"response_format": {"type": "xml"}}), "response_format.type");
}

#[test]
fn what_is_not_known_is_refused_and_null_is_absence() {
    assert_eq!(asked(&with(json!({"secret_knob": 1}))).unwrap_err().member, None);
    assert!(asked(&with(json!({"secret_knob": null, "temperature": null, "tools": null}))).is_ok());
    for body in ["", "[]", "{", "{\"model\":\"m\",\"model\":\"m\"}", "\u{feff}{}"] {
        assert_eq!(read(Dialect::OpenAiChat, body.as_bytes()).unwrap_err().member, None, "{body}");
    }
    assert_eq!(asked(&json!({"messages": []})).unwrap_err().member, Some("model"));
}

#[test]
fn settings_of_ours_are_passed_on() {
    let settings = json!({"sealog": {"routing": {"allow_fallback": true}, "deadline_ms": 50,
        "requirements": {"cancel": true}, "extensions": {"mock": {"chunks": 1}}, "metadata": {"a": 1}}});
    let asked = asked(&with(settings)).unwrap();
    let choice = crate::Choice { ability: "a".to_owned(), only: None };
    let request = asked.into_request(choice);
    assert_eq!((request.ability.as_str(), request.deadline_ms), ("a", Some(50)));
    assert_eq!(request.routing.allow_fallback, Some(true));
    assert!(request.requirements.cancel && request.extension("mock").is_some());
    assert_eq!(request.input.len(), 1);
}

#[test]
fn the_fingerprint_is_of_the_dialect_and_every_member() {
    let one = asked(&with(json!({"user": "a"}))).unwrap().fingerprint;
    assert_eq!(asked(&with(json!({"user": "a"}))).unwrap().fingerprint, one);
    assert_ne!(asked(&with(json!({"user": "b"}))).unwrap().fingerprint, one);
    let body =
        json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}).to_string();
    let of = |dialect| read(dialect, body.as_bytes()).unwrap().fingerprint;
    assert_ne!(of(Dialect::OpenAiChat), of(Dialect::AnthropicMessages));
}
