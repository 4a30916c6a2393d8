use sealog_events::PortableCode;
use sealog_upstream::model::Model;
use sealog_upstream::testing::{conversations, request};
use serde_json::{Value, json};

use crate::provider::RULES;
use crate::request::body;

fn sent(toml: &str, asked: Value) -> Result<Value, PortableCode> {
    let config = toml::from_str(&format!("model = 'm-1'\napi_key_env = 'KEY'\n{toml}")).unwrap();
    let model = Model::new(config, &RULES).unwrap();
    let request = request(&asked);
    let made = model.supports("m-1", &request).and_then(|()| body(&model, &request));
    Ok(serde_json::from_slice(&made.map_err(|failure| failure.code)?).unwrap())
}

const TOOLS: &str = "capabilities = { tools = true }";

/// What is sent for a conversation of one message with these members, without the members that are always sent.
fn added(toml: &str, members: Value) -> Result<Value, PortableCode> {
    let mut body = sent(toml, conversations::with(members))?;
    for name in ["model", "messages", "input", "stream", "stream_options", "store"] {
        body.as_object_mut().unwrap().remove(name);
    }
    Ok(body)
}

#[track_caller]
fn refused(toml: &str, asked: Value) {
    assert_eq!(sent(toml, asked), Err(PortableCode::CapabilityUnavailable));
}

fn one_tool() -> Value {
    json!([{"name": "f", "description": "d", "parameters": {"type": "object"}}])
}

#[test]
fn tools_need_to_be_declared() {
    for members in
        [json!({"tools": one_tool()}), json!({"tool_choice": "none"}), json!({"parallel_tool_calls": true})]
    {
        refused("", conversations::with(members));
    }
    refused("", conversations::tool_use());
}

#[test]
fn every_part_counts_and_not_only_the_last_message() {
    let image = json!([{"type": "image", "uri": "data:image/png;base64,AA"}]);
    let asked = conversations::of(json!([
        conversations::message("user", image),
        conversations::message("assistant", json!([conversations::text("a cat")])),
        conversations::message("user", json!([conversations::text("sure?")])),
    ]));
    refused("", asked.clone());
    let images = "capabilities = { input_modalities = ['text', 'image'] }";
    assert!(sent(images, asked).is_ok());
}

#[test]
fn a_conversation_with_tools() {
    let expected = json!({
        "model": "m-1", "stream": true, "store": false,
        "input": [
            {"role": "system", "content": [{"type": "input_text", "text": "be brief"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "weather in Rome?"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "let me look"}]},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Rome\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
            {"role": "user", "content": [{"type": "input_text", "text": "and tomorrow?"}]},
        ],
        "tools": [
            {"type": "function", "name": "weather", "description": "looks outside",
                "parameters": {"type": "object"}, "strict": null},
            {"type": "function", "name": "clock", "parameters": null, "strict": null},
        ],
        "tool_choice": "auto",
    });
    assert_eq!(sent(TOOLS, conversations::tool_use()), Ok(expected));
}

#[test]
fn settings() {
    let sampling = json!({"temperature": 0.5, "top_p": 0.25});
    assert_eq!(added("", json!({"sampling": sampling})), Ok(sampling));
    for unknown in [
        json!({"top_k": 3}),
        json!({"seed": 3}),
        json!({"stop": ["x"]}),
        json!({"presence_penalty": 1}),
        json!({"frequency_penalty": 1}),
    ] {
        refused("", conversations::with(json!({"sampling": unknown})));
    }
    assert_eq!(added("", json!({"max_tokens": 50})), Ok(json!({"max_output_tokens": 50})));
    assert_eq!(added("max_tokens = 9", json!({"max_tokens": 50})), Ok(json!({"max_output_tokens": 9})));
    let json = json!({"output_format": {"type": "json"}});
    assert_eq!(added("", json), Ok(json!({"text": {"format": {"type": "json_object"}}})));
    let schema = json!({"type": "json_schema", "name": "n", "description": "d", "schema": {"type": "object"},
        "strict": true});
    assert_eq!(added("", json!({"output_format": schema})), Ok(json!({"text": {"format": schema}})));
    let named = json!({"tools": one_tool(), "tool_choice": {"name": "f"}, "parallel_tool_calls": false});
    let body = added(TOOLS, named).unwrap();
    assert_eq!(body["tool_choice"], json!({"type": "function", "name": "f"}));
    assert_eq!(body["parallel_tool_calls"], false);
    for choice in ["none", "required"] {
        let body = added(TOOLS, json!({"tools": one_tool(), "tool_choice": choice})).unwrap();
        assert_eq!(body["tool_choice"], choice);
    }
}

#[test]
fn media_are_items_of_a_message() {
    let media = "capabilities = { input_modalities = ['text', 'image', 'file'] }";
    let parts = json!([
        {"type": "image", "uri": "https://h/a.png", "detail": "high"},
        {"type": "file", "uri": "https://h/a.pdf"},
        {"type": "file", "uri": "data:application/pdf;base64,AA", "name": "a.pdf"},
        {"type": "file", "uri": "data:application/pdf;base64,AA"},
    ]);
    let content = json!([
        {"type": "input_image", "image_url": "https://h/a.png", "detail": "high"},
        {"type": "input_file", "file_url": "https://h/a.pdf"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA", "filename": "file"},
    ]);
    let body = sent(media, conversations::of(json!([conversations::message("user", parts)]))).unwrap();
    assert_eq!(body["input"], json!([{"role": "user", "content": content}]));
}

#[test]
fn the_conversation_wins_over_the_extension_and_leaves_the_rest() {
    let mut asked = conversations::with(json!({"sampling": {"temperature": 0.5}, "max_tokens": 7}));
    asked["extensions"]["openai"] =
        json!({"request": {"temperature": 1, "truncation": "auto", "max_output_tokens": 4}});
    let body = sent("", asked).unwrap();
    assert_eq!((&body["temperature"], &body["truncation"]), (&json!(0.5), &json!("auto")));
    assert_eq!(body["max_output_tokens"], 7);
}
