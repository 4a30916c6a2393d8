use sealog_upstream::model::ModelConfig;
use sealog_upstream::testing::conversations::{self, Adapter, TOOLS, one_tool};
use serde_json::{Value, json};

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
    // A schema there is always strict and has no name, a tool is not unless it says so.
    let anyway: &[&str] = &[
        "strict: false of a tool",
        "the name of an output_format",
        "strict: true of an output_format",
        "detail auto of an image",
        "the media type of an image",
    ];
    assert_eq!(ADAPTER.says_anyway(), anyway);
}

#[test]
fn every_part_counts_and_not_only_the_last_message() {
    ADAPTER.counts_every_part();
}

#[test]
fn a_conversation_with_tools() {
    let expected = json!({
        "model": "m-1", "stream": true, "max_tokens": 1024,
        "system": [{"type": "text", "text": "be brief"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "weather in Rome?"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "let me look"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "sunny"}]},
                {"type": "text", "text": "and tomorrow?"},
            ]},
        ],
        "tools": [
            {"name": "weather", "description": "looks outside", "input_schema": {"type": "object"}},
            {"name": "clock", "input_schema": {"type": "object"}},
        ],
        "tool_choice": {"type": "auto"},
    });
    assert_eq!(ADAPTER.sent(TOOLS, conversations::tool_use()), Ok(expected));
}

#[test]
fn settings() {
    let asked =
        json!({"sampling": {"temperature": 0.5, "top_p": 0.25, "top_k": 4, "stop": ["x"]}, "max_tokens": 50});
    let expected =
        json!({"temperature": 0.5, "top_p": 0.25, "top_k": 4, "stop_sequences": ["x"], "max_tokens": 50});
    assert_eq!(ADAPTER.added("", asked.clone()), Ok(expected));
    assert_eq!(ADAPTER.added("max_tokens = 9", asked).unwrap()["max_tokens"], 9);
    for unknown in [json!({"seed": 3}), json!({"presence_penalty": 1}), json!({"frequency_penalty": 1})] {
        ADAPTER.refused("", conversations::with(json!({"sampling": unknown})));
    }
    ADAPTER.refused("", conversations::with(json!({"output_format": {"type": "json"}})));
    let schema = |strict: bool| json!({"output_format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": strict}});
    ADAPTER.refused("", conversations::with(schema(false)));
    let config = json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
    assert_eq!(ADAPTER.added("", schema(true)).unwrap()["output_config"], config);
}

#[test]
fn choices_of_tools() {
    let choice = |choice: Value, parallel: Value| {
        let mut members = json!({"tools": one_tool()});
        if !choice.is_null() {
            members["tool_choice"] = choice;
        }
        if !parallel.is_null() {
            members["parallel_tool_calls"] = parallel;
        }
        ADAPTER.added(TOOLS, members).unwrap()["tool_choice"].clone()
    };
    assert_eq!(choice(json!(null), json!(null)), json!(null));
    assert_eq!(choice(json!("none"), json!(false)), json!({"type": "none"}));
    assert_eq!(choice(json!("required"), json!(null)), json!({"type": "any"}));
    assert_eq!(choice(json!({"name": "f"}), json!(null)), json!({"type": "tool", "name": "f"}));
    let auto = |disabled: bool| json!({"type": "auto", "disable_parallel_tool_use": disabled});
    assert_eq!(choice(json!(null), json!(false)), auto(true));
    assert_eq!(choice(json!("auto"), json!(true)), auto(false));
}

#[test]
fn what_the_protocol_has_no_word_for_is_refused() {
    let said = |role: &str| conversations::message(role, json!([conversations::text("t")]));
    ADAPTER.refused("", conversations::of(json!([said("user"), said("system")])));
    ADAPTER.refused("", conversations::of(json!([said("system"), said("assistant")])));
    ADAPTER.refused("", conversations::of(json!([said("system")])));
    let call = |arguments: &str| {
        let call = json!([{"type": "tool_call", "call_id": "c", "name": "f", "arguments": arguments}]);
        conversations::of(json!([said("user"), conversations::message("assistant", call)]))
    };
    ADAPTER.refused(TOOLS, call("[1]"));
    ADAPTER.refused(TOOLS, call("{"));
    let body = ADAPTER.sent(TOOLS, call("")).unwrap();
    assert_eq!(body["messages"][1]["content"][0]["input"], json!({}));
}

#[test]
fn results_of_tools_hold_images_and_failures() {
    let images = "capabilities = { input_modalities = ['text', 'image'], tools = true }";
    let call = json!([{"type": "tool_call", "call_id": "c", "name": "f", "arguments": "{}"}]);
    let result = json!([{"type": "tool_result", "call_id": "c", "is_error": true,
        "parts": [{"type": "image", "uri": "data:image/png;base64,AA"}]}]);
    let asked = conversations::of(json!([
        conversations::message("user", json!([conversations::text("t")])),
        conversations::message("assistant", call),
        conversations::message("tool", result),
    ]));
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AA"});
    let expected = json!([{"type": "tool_result", "tool_use_id": "c", "is_error": true,
        "content": [{"type": "image", "source": source}]}]);
    assert_eq!(ADAPTER.sent(images, asked).unwrap()["messages"][2]["content"], expected);
}
