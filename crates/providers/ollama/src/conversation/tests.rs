use sealog_events::PortableCode;
use sealog_upstream::model::ModelConfig;
use sealog_upstream::testing::conversations::{self, Adapter, TOOLS, one_tool};
use serde_json::{Value, json};

use crate::provider::RULES;
use crate::request::body;

const ADAPTER: Adapter = Adapter { configured, rules: &RULES, body };

fn configured(toml: &str) -> ModelConfig {
    toml::from_str(&format!("model = 'm-1'\n{toml}")).unwrap()
}

#[test]
fn tools_need_to_be_declared() {
    ADAPTER.needs_tools_to_be_declared();
}

#[test]
fn no_member_is_left_out_in_silence() {
    // A schema there always binds and has no name; a tool never does, and whether it is called is up to the model.
    let anyway: &[&str] = &[
        "strict: false of a tool",
        "tool_choice auto",
        "parallel_tool_calls: true",
        "the name of an output_format",
        "strict: true of an output_format",
        "strict: false of an output_format",
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
    let function = |function: Value| json!({"type": "function", "function": function});
    let call = json!({"id": "c1", "function": {"name": "weather", "arguments": {"city": "Rome"}}});
    let expected = json!({
        "model": "m-1", "stream": true,
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "weather in Rome?"},
            {"role": "assistant", "content": "let me look", "tool_calls": [call]},
            {"role": "tool", "content": "sunny", "tool_call_id": "c1", "tool_name": "weather"},
            {"role": "user", "content": "and tomorrow?"},
        ],
        "tools": [
            function(json!({"name": "weather", "description": "looks outside", "parameters": {"type": "object"}})),
            function(json!({"name": "clock"})),
        ],
    });
    assert_eq!(ADAPTER.sent(TOOLS, conversations::tool_use()), Ok(expected));
}

#[test]
fn settings_are_options_of_the_model() {
    let sampling = json!({"temperature": 0.5, "top_p": 0.25, "top_k": 4, "stop": ["x"], "seed": -3,
        "presence_penalty": 1.5, "frequency_penalty": -0.5});
    assert_eq!(ADAPTER.added("", json!({"sampling": sampling})), Ok(json!({"options": sampling})));
    assert_eq!(ADAPTER.added("", json!({"max_tokens": 50})), Ok(json!({"options": {"num_predict": 50}})));
    assert_eq!(
        ADAPTER.added("max_tokens = 9", json!({"max_tokens": 50})),
        Ok(json!({"options": {"num_predict": 9}}))
    );
    assert_eq!(ADAPTER.added("", json!({"output_format": {"type": "json"}})), Ok(json!({"format": "json"})));
    let schema = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true});
    assert_eq!(
        ADAPTER.added("", json!({"output_format": schema})),
        Ok(json!({"format": {"type": "object"}}))
    );
    let mut asked = conversations::with(json!({"sampling": {"temperature": 0.5}}));
    asked["extensions"]["ollama"] = json!({"request": {"options": {"temperature": 1, "mirostat": 1}}});
    assert_eq!(ADAPTER.sent("", asked).unwrap()["options"], json!({"temperature": 0.5, "mirostat": 1}));
}

#[test]
fn tools_are_offered_or_not_and_nothing_between() {
    let tools = |choice: Value| ADAPTER.added(TOOLS, json!({"tools": one_tool(), "tool_choice": choice}));
    assert!(tools(json!("auto")).unwrap()["tools"].is_array());
    assert_eq!(tools(json!("none")), Ok(json!({})));
    for refused in [json!("required"), json!({"name": "f"})] {
        assert_eq!(tools(refused), Err(PortableCode::CapabilityUnavailable));
    }
    let parallel =
        |parallel: bool| ADAPTER.added(TOOLS, json!({"tools": one_tool(), "parallel_tool_calls": parallel}));
    assert!(parallel(true).is_ok());
    assert_eq!(parallel(false), Err(PortableCode::CapabilityUnavailable));
    ADAPTER.refused(TOOLS, conversations::with(json!({"tools": [{"name": "f", "strict": true}]})));
}

#[test]
fn what_the_protocol_has_no_word_for_is_refused() {
    let images = "capabilities = { input_modalities = ['text', 'image'] }";
    let image = |uri: &str| {
        let part = json!([{"type": "image", "uri": uri}]);
        conversations::of(json!([conversations::message("user", part)]))
    };
    assert_eq!(
        ADAPTER.sent(images, image("data:image/png;base64,AA")).unwrap()["messages"][0]["images"],
        json!(["AA"])
    );
    ADAPTER.refused(images, image("https://h/a.png"));
    let call = |arguments: &str| {
        let call = json!([{"type": "tool_call", "call_id": "c", "name": "f", "arguments": arguments}]);
        conversations::of(json!([conversations::message("assistant", call)]))
    };
    ADAPTER.refused(TOOLS, call("[1]"));
    assert_eq!(
        ADAPTER.sent(TOOLS, call("")).unwrap()["messages"][0]["tool_calls"][0]["function"]["arguments"],
        json!({})
    );
}
