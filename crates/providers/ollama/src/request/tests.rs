use sealog_events::PortableCode;
use serde_json::{Value, json};

use super::*;
use crate::provider::RULES;

fn with(toml: &str, request: Value) -> Result<Value, PortableCode> {
    let config = toml::from_str(&format!("model = 'm-1'\n{toml}")).unwrap();
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
    text(json!({"extensions": {"ollama": {"request": members}}}))
}

fn body_with(extra: Value) -> Value {
    let mut body = json!({"model": "m-1", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
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
fn the_limit_is_an_option_from_configuration_and_request() {
    check("", text(json!({})), body_with(json!({})));
    check("max_tokens = 9", text(json!({})), body_with(json!({"options": {"num_predict": 9}})));
    let asked = |tokens: Value| extended(json!({"options": {"seed": 7, "num_predict": tokens}}));
    let sent = |tokens: Value| body_with(json!({"options": {"seed": 7, "num_predict": tokens}}));
    check("", asked(json!(5000)), sent(json!(5000)));
    check("", asked(json!(-1)), sent(json!(-1)));
    check("max_tokens = 9", asked(json!(5000)), sent(json!(9)));
    check("max_tokens = 9", asked(json!(3.0)), sent(json!(3)));
    check("max_tokens = 9", asked(json!(-1)), sent(json!(9)));
    for wrong in [json!(0), json!("9"), json!(null), json!(0.5)] {
        refused("", asked(wrong), PortableCode::InvalidRequest);
    }
    refused("", extended(json!({"options": [1]})), PortableCode::InvalidRequest);
}

#[test]
fn texts_are_lines_of_one_message_and_images_stand_beside_them() {
    let images = "[capabilities]\ninput_modalities = ['text', 'json', 'image']";
    let input = json!([
        {"type": "text", "text": "look"},
        {"type": "image", "uri": "data:image/png;base64,AAAA"},
        {"type": "json", "value": null},
    ]);
    let message = json!({"role": "user", "content": "look\nnull", "images": ["AAAA"]});
    let request = json!({"ability": "text-generation", "input": input});
    check(images, request, body_with(json!({"messages": [message]})));
    let far = json!([{"type": "image", "uri": "https://example.com/a.png"}]);
    let far = json!({"ability": "text-generation", "input": far});
    refused(images, far, PortableCode::CapabilityUnavailable);
}

#[test]
fn members_of_the_extension_are_added_and_ours_win() {
    let members = json!({
        "keep_alive": "5m", "think": false, "format": "json", "model": "other", "messages": [], "stream": false,
    });
    check("", extended(members), body_with(json!({"keep_alive": "5m", "think": false, "format": "json"})));
    for wrong in [json!(1), json!({"requests": {}}), json!({"request": []})] {
        refused("", text(json!({"extensions": {"ollama": wrong}})), PortableCode::InvalidRequest);
    }
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
