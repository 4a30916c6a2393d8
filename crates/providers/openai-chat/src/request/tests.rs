use serde_json::{Value, json};

use sealog_events::PortableCode;

use super::*;
use crate::provider::RULES;

fn model(toml: &str) -> Model {
    let text = format!("model = 'm-1'\nbase_url = 'http://127.0.0.1:1/v1'\n{toml}");
    Model::new(toml::from_str(&text).unwrap(), &RULES).unwrap()
}

fn with(toml: &str, request: Value) -> Result<Value, PortableCode> {
    let request = ExecutionRequest::parse(request.to_string().as_bytes()).unwrap().request;
    let model = model(toml);
    let made = model.supports("m-1", &request).and_then(|()| body(&model, &request));
    let body = made.map_err(|failure| {
        assert!(!failure.retryable());
        failure.code
    })?;
    Ok(serde_json::from_slice(&body).unwrap())
}

fn text(extra: Value) -> Value {
    let mut request = json!({"ability": "text-generation", "input": [{"type": "text", "text": "hi"}]});
    request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    request
}

fn extended(members: Value) -> Value {
    text(json!({"extensions": {"openai_chat": {"request": members}}}))
}

#[track_caller]
fn check(toml: &str, request: Value, expected: Value) {
    assert_eq!(with(toml, request), Ok(expected));
}

#[track_caller]
fn refused(toml: &str, request: Value, code: PortableCode) {
    assert_eq!(with(toml, request), Err(code));
}

fn body_with(extra: Value) -> Value {
    let mut body = json!({
        "model": "m-1", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "hi"}],
    });
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    body
}

#[test]
fn one_text_is_a_plain_message() {
    check("", text(json!({})), body_with(json!({})));
    check("", text(json!({"extensions": {"other": 1}})), body_with(json!({})));
}

#[test]
fn parts_keep_their_order_and_json_its_text() {
    let image = "[capabilities]\ninput_modalities = ['text', 'json', 'image']";
    let input = json!([
        {"type": "text", "text": "look"},
        {"type": "json", "value": {"b": 9007199254740993_u64, "a": null}},
        {"type": "image", "uri": "https://example.com/a.png", "media_type": "image/png"},
    ]);
    let content = json!([
        {"type": "text", "text": "look"},
        {"type": "text", "text": "{\"a\":null,\"b\":9007199254740993}"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]);
    let messages = json!([{"role": "user", "content": content}]);
    check(
        image,
        json!({"ability": "text-generation", "input": input}),
        body_with(json!({"messages": messages})),
    );
    let one = json!({"ability": "text-generation", "input": [{"type": "json", "value": null}]});
    check("", one, body_with(json!({"messages": [{"role": "user", "content": "null"}]})));
}

#[test]
fn json_text_is_passed_on_as_it_was_sent() {
    let sent = br#"{"ability":"a","input":[{"type":"json","value":{"x": 1.50, "y":1e2}}]}"#;
    let request = ExecutionRequest::parse(sent).unwrap().request;
    let body: Value = serde_json::from_slice(&body(&model(""), &request).ok().unwrap()).unwrap();
    assert_eq!(body["messages"][0]["content"], r#"{"x": 1.50, "y":1e2}"#);
}

#[test]
fn members_of_the_extension_are_added_and_ours_win() {
    let members = json!({
        "temperature": 0.25, "seed": 7, "model": "other", "messages": [], "stream": false,
        "stream_options": {"include_usage": false}, "response_format": {"type": "json_object"},
    });
    let kept = json!({"temperature": 0.25, "seed": 7, "response_format": {"type": "json_object"}});
    check("", extended(members), body_with(kept));
}

#[test]
fn an_extension_of_another_shape_is_invalid() {
    for extension in [
        json!(1),
        json!([]),
        json!(null),
        json!({"requests": {}}),
        json!({"request": []}),
        json!({"request": null}),
    ] {
        refused("", text(json!({"extensions": {"openai_chat": extension}})), PortableCode::InvalidRequest);
    }
    check("", text(json!({"extensions": {"openai_chat": {}}})), body_with(json!({})));
}

#[test]
fn the_configured_limit_is_a_ceiling() {
    check("max_tokens = 50", text(json!({})), body_with(json!({"max_tokens": 50})));
    check("max_tokens = 50", extended(json!({"max_tokens": 9})), body_with(json!({"max_tokens": 9})));
    check("max_tokens = 50", extended(json!({"max_tokens": 51})), body_with(json!({"max_tokens": 50})));
    let newer = json!({"max_completion_tokens": 900});
    check("max_tokens = 50", extended(newer), body_with(json!({"max_completion_tokens": 50})));
    check("max_tokens = 50", extended(json!({"max_tokens": 9.0})), body_with(json!({"max_tokens": 9})));
    check("", extended(json!({"max_tokens": 900})), body_with(json!({"max_tokens": 900})));
    for limit in [json!(-1), json!(0), json!("9"), json!(null), json!(1.5)] {
        refused("max_tokens = 50", extended(json!({"max_tokens": limit})), PortableCode::InvalidRequest);
    }
}

#[test]
fn what_was_not_declared_is_unavailable() {
    let unavailable = PortableCode::CapabilityUnavailable;
    for kind in ["image", "audio", "video", "file"] {
        let input = json!([{"type": kind, "uri": "https://example.com/x"}]);
        refused("", json!({"ability": "text-generation", "input": input}), unavailable);
    }
    let only_text = "[capabilities]\ninput_modalities = ['text']";
    let json_part = json!({"ability": "text-generation", "input": [{"type": "json", "value": 1}]});
    refused(only_text, json_part, unavailable);
    for requirement in [
        json!({"structured_output": true}),
        json!({"async": true}),
        json!({"tools": true}),
        json!({"input_modalities": ["image"]}),
        json!({"output_modalities": ["json"]}),
    ] {
        refused("", text(json!({"requirements": requirement})), unavailable);
    }
    let fine = json!({"requirements": {"stream": true, "cancel": true, "tools": false, "async": false}});
    check("", text(fine), body_with(json!({})));
}

#[test]
fn tools_need_their_declaration_even_when_empty() {
    let tools = "[capabilities]\ntools = true";
    for member in TOOL_MEMBERS {
        let members = json!({ member: [] });
        refused("", extended(members.clone()), PortableCode::CapabilityUnavailable);
        check(tools, extended(members.clone()), body_with(members));
    }
    check(tools, text(json!({"requirements": {"tools": true}})), body_with(json!({})));
}
