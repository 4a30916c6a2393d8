use sealog_upstream::model::ModelConfig;
use sealog_upstream::testing::conversations::{self, Adapter, TOOLS, one_tool};
use serde_json::json;

use crate::provider::RULES;
use crate::request::body;

const ADAPTER: Adapter = Adapter { configured, rules: &RULES, body };

fn configured(toml: &str) -> ModelConfig {
    toml::from_str(&format!("model = 'm-1'\napi_key_env = 'KEY'\n{toml}")).unwrap()
}

#[test]
fn tools_need_to_be_declared() {
    ADAPTER.needs_tools_to_be_declared();
}

#[test]
fn no_member_is_left_out_in_silence() {
    // A `data:` URI says it itself.
    let anyway: &[&str] = &["the media type of an image", "the media type of a file"];
    assert_eq!(ADAPTER.says_anyway(), anyway);
}

#[test]
fn every_part_counts_and_not_only_the_last_message() {
    ADAPTER.counts_every_part();
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
    assert_eq!(ADAPTER.sent(TOOLS, conversations::tool_use()), Ok(expected));
}

#[test]
fn settings() {
    let sampling = json!({"temperature": 0.5, "top_p": 0.25});
    assert_eq!(ADAPTER.added("", json!({"sampling": sampling})), Ok(sampling));
    for unknown in [
        json!({"top_k": 3}),
        json!({"seed": 3}),
        json!({"stop": ["x"]}),
        json!({"presence_penalty": 1}),
        json!({"frequency_penalty": 1}),
    ] {
        ADAPTER.refused("", conversations::with(json!({"sampling": unknown})));
    }
    assert_eq!(ADAPTER.added("", json!({"max_tokens": 50})), Ok(json!({"max_output_tokens": 50})));
    assert_eq!(
        ADAPTER.added("max_tokens = 9", json!({"max_tokens": 50})),
        Ok(json!({"max_output_tokens": 9}))
    );
    let json = json!({"output_format": {"type": "json"}});
    assert_eq!(ADAPTER.added("", json), Ok(json!({"text": {"format": {"type": "json_object"}}})));
    let schema = json!({"type": "json_schema", "name": "n", "description": "d", "schema": {"type": "object"},
        "strict": true});
    assert_eq!(ADAPTER.added("", json!({"output_format": schema})), Ok(json!({"text": {"format": schema}})));
    let named = json!({"tools": one_tool(), "tool_choice": {"name": "f"}, "parallel_tool_calls": false});
    let body = ADAPTER.added(TOOLS, named).unwrap();
    assert_eq!(body["tool_choice"], json!({"type": "function", "name": "f"}));
    assert_eq!(body["parallel_tool_calls"], false);
    for choice in ["none", "required"] {
        let body = ADAPTER.added(TOOLS, json!({"tools": one_tool(), "tool_choice": choice})).unwrap();
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
    let body =
        ADAPTER.sent(media, conversations::of(json!([conversations::message("user", parts)]))).unwrap();
    assert_eq!(body["input"], json!([{"role": "user", "content": content}]));
}

#[test]
fn the_conversation_wins_over_the_extension_and_leaves_the_rest() {
    let mut asked = conversations::with(json!({"sampling": {"temperature": 0.5}, "max_tokens": 7}));
    asked["extensions"]["openai"] =
        json!({"request": {"temperature": 1, "truncation": "auto", "max_output_tokens": 4}});
    let body = ADAPTER.sent("", asked).unwrap();
    assert_eq!((&body["temperature"], &body["truncation"]), (&json!(0.5), &json!("auto")));
    assert_eq!(body["max_output_tokens"], 7);
}
