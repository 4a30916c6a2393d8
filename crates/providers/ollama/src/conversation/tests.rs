use sealog_events::PortableCode;
use sealog_upstream::model::Model;
use sealog_upstream::testing::{conversations, request};
use serde_json::{Value, json};

use crate::provider::RULES;
use crate::request::body;

fn sent(toml: &str, asked: Value) -> Result<Value, PortableCode> {
    let config = toml::from_str(&format!("model = 'm-1'\n\n{toml}")).unwrap();
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
    assert_eq!(sent(TOOLS, conversations::tool_use()), Ok(expected));
}

#[test]
fn settings_are_options_of_the_model() {
    let sampling = json!({"temperature": 0.5, "top_p": 0.25, "top_k": 4, "stop": ["x"], "seed": -3,
        "presence_penalty": 1.5, "frequency_penalty": -0.5});
    assert_eq!(added("", json!({"sampling": sampling})), Ok(json!({"options": sampling})));
    assert_eq!(added("", json!({"max_tokens": 50})), Ok(json!({"options": {"num_predict": 50}})));
    assert_eq!(
        added("max_tokens = 9", json!({"max_tokens": 50})),
        Ok(json!({"options": {"num_predict": 9}}))
    );
    assert_eq!(added("", json!({"output_format": {"type": "json"}})), Ok(json!({"format": "json"})));
    let schema = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true});
    assert_eq!(added("", json!({"output_format": schema})), Ok(json!({"format": {"type": "object"}})));
    let mut asked = conversations::with(json!({"sampling": {"temperature": 0.5}}));
    asked["extensions"]["ollama"] = json!({"request": {"options": {"temperature": 1, "mirostat": 1}}});
    assert_eq!(sent("", asked).unwrap()["options"], json!({"temperature": 0.5, "mirostat": 1}));
}

#[test]
fn tools_are_offered_or_not_and_nothing_between() {
    let tools = |choice: Value| added(TOOLS, json!({"tools": one_tool(), "tool_choice": choice}));
    assert!(tools(json!("auto")).unwrap()["tools"].is_array());
    assert_eq!(tools(json!("none")), Ok(json!({})));
    for refused in [json!("required"), json!({"name": "f"})] {
        assert_eq!(tools(refused), Err(PortableCode::CapabilityUnavailable));
    }
    let parallel =
        |parallel: bool| added(TOOLS, json!({"tools": one_tool(), "parallel_tool_calls": parallel}));
    assert!(parallel(true).is_ok());
    assert_eq!(parallel(false), Err(PortableCode::CapabilityUnavailable));
    refused(TOOLS, conversations::with(json!({"tools": [{"name": "f", "strict": true}]})));
}

#[test]
fn what_the_protocol_has_no_word_for_is_refused() {
    let images = "capabilities = { input_modalities = ['text', 'image'] }";
    let image = |uri: &str| {
        let part = json!([{"type": "image", "uri": uri}]);
        conversations::of(json!([conversations::message("user", part)]))
    };
    assert_eq!(
        sent(images, image("data:image/png;base64,AA")).unwrap()["messages"][0]["images"],
        json!(["AA"])
    );
    refused(images, image("https://h/a.png"));
    let call = |arguments: &str| {
        let call = json!([{"type": "tool_call", "call_id": "c", "name": "f", "arguments": arguments}]);
        conversations::of(json!([conversations::message("assistant", call)]))
    };
    refused(TOOLS, call("[1]"));
    assert_eq!(
        sent(TOOLS, call("")).unwrap()["messages"][0]["tool_calls"][0]["function"]["arguments"],
        json!({})
    );
}
