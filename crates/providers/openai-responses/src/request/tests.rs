use sealog_events::PortableCode;
use serde_json::{Value, json};

use super::*;
use crate::provider::RULES;

fn with(toml: &str, request: Value) -> Result<Value, PortableCode> {
    let config = toml::from_str(&format!("model = 'm-1'\napi_key_env = 'KEY'\n{toml}")).unwrap();
    let model = Model::new(config, &RULES).unwrap();
    let request = ExecutionRequest::parse(request.to_string().as_bytes()).unwrap().request;
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
    text(json!({"extensions": {"openai": {"request": members}}}))
}

fn body_with(extra: Value) -> Value {
    let content = json!([{"type": "input_text", "text": "hi"}]);
    let mut body = json!({
        "model": "m-1", "stream": true, "store": false, "input": [{"role": "user", "content": content}],
    });
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    body
}

#[track_caller]
fn check(toml: &str, request: Value, expected: Value) {
    assert_eq!(with(toml, request), Ok(expected));
}

#[track_caller]
fn refused(toml: &str, request: Value, code: PortableCode) {
    assert_eq!(with(toml, request), Err(code));
}

#[test]
fn the_limit_comes_from_configuration_and_request() {
    check("", text(json!({})), body_with(json!({})));
    check("max_tokens = 9", text(json!({})), body_with(json!({"max_output_tokens": 9})));
    let asked = |tokens: Value| extended(json!({ "max_output_tokens": tokens }));
    check("", asked(json!(5000)), body_with(json!({"max_output_tokens": 5000})));
    check("max_tokens = 9", asked(json!(5000)), body_with(json!({"max_output_tokens": 9})));
    check("max_tokens = 9", asked(json!(3.0)), body_with(json!({"max_output_tokens": 3})));
    for wrong in [json!(0), json!(-1), json!("9"), json!(null), json!(0.5)] {
        refused("", asked(wrong), PortableCode::InvalidRequest);
    }
}

#[test]
fn parts_keep_their_order_and_json_its_text() {
    let input = r#"{"ability": "a", "input": [
        {"type": "text", "text": "look"}, {"type": "json", "value": {"x": 1.50, "y":1e2}},
        {"type": "image", "uri": "https://example.com/a.png", "media_type": "image/png"},
        {"type": "file", "uri": "https://example.com/a.pdf"}]}"#;
    let config = "model = 'm-1'\napi_key_env = 'KEY'\n[capabilities]\n\
                  input_modalities = ['text', 'json', 'image', 'file']";
    let model = Model::new(toml::from_str(config).unwrap(), &RULES).unwrap();
    let request = ExecutionRequest::parse(input.as_bytes()).unwrap().request;
    let body: Value = serde_json::from_slice(&body(&model, &request).unwrap()).unwrap();
    let content = json!([
        {"type": "input_text", "text": "look"},
        {"type": "input_text", "text": "{\"x\": 1.50, \"y\":1e2}"},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
    ]);
    assert_eq!(body["input"], json!([{"role": "user", "content": content}]));
}

#[test]
fn members_of_the_extension_are_added_and_ours_win() {
    let members = json!({
        "instructions": "short", "temperature": 0.25, "reasoning": {"effort": "low"}, "background": false,
        "model": "other", "input": "x", "stream": false, "store": true,
    });
    let kept = json!({
        "instructions": "short", "temperature": 0.25, "reasoning": {"effort": "low"}, "background": false,
    });
    check("", extended(members), body_with(kept));
    for wrong in [json!(1), json!({"requests": {}}), json!({"request": []})] {
        refused("", text(json!({"extensions": {"openai": wrong}})), PortableCode::InvalidRequest);
    }
    refused("", extended(json!({"background": true})), PortableCode::CapabilityUnavailable);
}

#[test]
fn what_was_not_declared_is_unavailable() {
    let unavailable = PortableCode::CapabilityUnavailable;
    for kind in ["image", "audio", "video", "file"] {
        let input = json!([{"type": kind, "uri": "https://example.com/x"}]);
        refused("", json!({"ability": "text-generation", "input": input}), unavailable);
    }
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
