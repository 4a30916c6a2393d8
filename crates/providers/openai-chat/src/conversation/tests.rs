use sealog_upstream::model::ModelConfig;
use sealog_upstream::testing::conversations::{self, Adapter, TOOLS, one_tool};
use serde_json::{Value, json};

use crate::provider::RULES;
use crate::request::body;

const ADAPTER: Adapter = Adapter { configured, rules: &RULES, body };

fn configured(toml: &str) -> ModelConfig {
    toml::from_str(&format!("model = 'm-1'\nbase_url = 'http://127.0.0.1:1/v1'\n{toml}")).unwrap()
}

#[test]
fn tools_need_to_be_declared() {
    ADAPTER.needs_tools_to_be_declared();
}

#[test]
fn no_member_is_left_out_in_silence() {
    // A `data:` URI says it itself.
    let anyway: &[&str] = &["the media type of an image"];
    assert_eq!(ADAPTER.says_anyway(), anyway);
}

#[test]
fn every_part_counts_and_not_only_the_last_message() {
    ADAPTER.counts_every_part();
}

#[test]
fn a_conversation_with_tools() {
    let function = |function: Value| json!({"type": "function", "function": function});
    let mut call = function(json!({"name": "weather", "arguments": "{\"city\": \"Rome\"}"}));
    call["id"] = json!("c1");
    let expected = json!({
        "model": "m-1", "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "weather in Rome?"},
            {"role": "assistant", "content": "let me look", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            {"role": "user", "content": "and tomorrow?"},
        ],
        "tools": [
            function(json!({"name": "weather", "description": "looks outside", "parameters": {"type": "object"}})),
            function(json!({"name": "clock"})),
        ],
        "tool_choice": "auto",
    });
    assert_eq!(ADAPTER.sent(TOOLS, conversations::tool_use()), Ok(expected));
}

#[test]
fn settings() {
    let sampling = json!({"temperature": 0.5, "top_p": 0.25, "stop": ["x"], "seed": -3, "presence_penalty": 1.5,
        "frequency_penalty": -0.5});
    assert_eq!(ADAPTER.added("", json!({"sampling": sampling})), Ok(sampling));
    ADAPTER.refused("", conversations::with(json!({"sampling": {"top_k": 3}})));
    assert_eq!(ADAPTER.added("", json!({"max_tokens": 50})), Ok(json!({"max_tokens": 50})));
    assert_eq!(ADAPTER.added("max_tokens = 9", json!({"max_tokens": 50})), Ok(json!({"max_tokens": 9})));
    let json = json!({"output_format": {"type": "json"}});
    assert_eq!(ADAPTER.added("", json), Ok(json!({"response_format": {"type": "json_object"}})));
    let schema = json!({"name": "n", "description": "d", "schema": {"type": "object"}, "strict": true});
    let mut asked = schema.clone();
    asked["type"] = json!("json_schema");
    let expected = json!({"response_format": {"type": "json_schema", "json_schema": schema}});
    assert_eq!(ADAPTER.added("", json!({"output_format": asked})), Ok(expected));
    let named = json!({"tools": one_tool(), "tool_choice": {"name": "f"}, "parallel_tool_calls": false});
    let body = ADAPTER.added(TOOLS, named).unwrap();
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "f"}}));
    assert_eq!(body["parallel_tool_calls"], false);
    for choice in ["none", "required"] {
        let body = ADAPTER.added(TOOLS, json!({"tools": one_tool(), "tool_choice": choice})).unwrap();
        assert_eq!(body["tool_choice"], choice);
    }
}

#[test]
fn the_conversation_wins_over_the_extension_and_leaves_the_rest() {
    let mut asked = conversations::with(json!({"sampling": {"temperature": 0.5}, "max_tokens": 7}));
    asked["extensions"]["openai_chat"] =
        json!({"request": {"temperature": 1, "min_p": 0.1, "max_completion_tokens": 4}});
    let body = ADAPTER.sent("", asked).unwrap();
    assert_eq!((&body["temperature"], &body["min_p"]), (&json!(0.5), &json!(0.1)));
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(7), &json!(null)));
}

#[test]
fn images_have_their_detail_and_what_cannot_be_said_is_refused() {
    let images = "capabilities = { input_modalities = ['text', 'image'], tools = true }";
    let image = json!({"type": "image", "uri": "https://h/a.png", "detail": "low"});
    let asked =
        conversations::of(json!([conversations::message("user", json!([conversations::text("t"), image]))]));
    let content = json!([
        {"type": "text", "text": "t"},
        {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}},
    ]);
    assert_eq!(ADAPTER.sent(images, asked).unwrap()["messages"][0]["content"], content);
    let call = json!({"type": "tool_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let result =
        |parts: Value| json!([{"type": "tool_result", "call_id": "c", "parts": parts, "is_error": true}]);
    let asked = |assistant: Value, result: Value| {
        conversations::of(json!([
            conversations::message("user", json!([conversations::text("t")])),
            conversations::message("assistant", assistant),
            conversations::message("tool", result),
        ]))
    };
    let text = conversations::text("no");
    let body = ADAPTER.sent(images, asked(json!([call]), result(json!([text])))).unwrap();
    assert_eq!(body["messages"][1]["content"], json!(null));
    assert_eq!(body["messages"][2]["content"], "Error: no");
    ADAPTER.refused(images, asked(json!([call]), result(json!([image]))));
    ADAPTER.refused(images, asked(json!([call, text]), result(json!([text]))));
}
