use sealog_events::Dialect;
use serde_json::{Value, json};

use crate::asked::{Asked, read};
use crate::error::Refusal;

fn asked(body: &Value) -> Result<Asked, Refusal> {
    read(Dialect::OpenAiResponses, body.to_string().as_bytes())
}

fn with(members: Value) -> Value {
    let mut body = json!({"model": "m", "input": "hi"});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

#[track_caller]
fn refused(members: Value, member: &str) {
    let refusal = asked(&with(members.clone())).expect_err("a refusal");
    assert_eq!(refusal.member, Some(member), "{members}: {}", refusal.message);
}

#[test]
fn a_text_is_a_message_of_the_user() {
    let read = asked(&with(json!({"instructions": "be brief", "background": true}))).unwrap();
    assert!(read.background && !read.stream);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let expected = json!({"messages": [
        {"role": "system", "parts": text("be brief")},
        {"role": "user", "parts": text("hi")},
    ]});
    assert_eq!(serde_json::to_value(&read.conversation).unwrap(), expected);
}

#[test]
fn a_whole_conversation() {
    let body = json!({
        "model": "m",
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "what is it"},
                {"type": "input_image", "image_url": "https://h/a.png", "detail": "auto"},
                {"type": "input_file", "file_url": "https://h/a.pdf"},
            ]},
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "let me look", "annotations": [], "logprobs": []}]},
            {"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c1", "name": "look",
                "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": false}],
        "tool_choice": "auto", "parallel_tool_calls": true, "temperature": 0.5, "top_p": 0.5,
        "max_output_tokens": 9,
        "text": {"format": {"type": "json_object"}, "verbosity": "medium"},
        "truncation": "disabled", "reasoning": {"effort": null}, "include": [], "store": false, "user": "u",
        "metadata": {}, "service_tier": "auto", "stream": true, "stream_options": {"include_obfuscation": false},
    });
    let conversation = json!({
        "messages": [
            {"role": "user", "parts": [
                {"type": "text", "text": "what is it"},
                {"type": "image", "uri": "https://h/a.png", "detail": "auto"},
                {"type": "file", "uri": "https://h/a.pdf"},
            ]},
            {"role": "assistant", "parts": [
                {"type": "text", "text": "let me look"},
                {"type": "tool_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            ]},
            {"role": "tool", "parts": [
                {"type": "tool_result", "call_id": "c1", "parts": [{"type": "text", "text": "a cat"}]},
            ]},
        ],
        "tools": [{"name": "look", "parameters": {"type": "object"}, "strict": false}],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "sampling": {"temperature": 0.5, "top_p": 0.5},
        "max_tokens": 9,
        "output_format": {"type": "json"},
    });
    let read = asked(&body).unwrap();
    assert!(read.stream);
    assert_eq!(serde_json::to_value(&read.conversation).unwrap(), conversation);
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (member, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!("conv_1")),
        ("prompt", json!({"id": "p"})),
        ("include", json!(["message.output_text.logprobs"])),
        ("max_tool_calls", json!(1)),
        ("top_logprobs", json!(1)),
        ("truncation", json!("auto")),
        ("max_output_tokens", json!(0)),
        ("temperature", json!(9)),
        ("background", json!(1)),
        ("input", json!([])),
        ("tool_choice", json!("required")),
    ] {
        refused(json!({ member: value }), member);
    }
    refused(json!({"reasoning": {"effort": "low"}}), "reasoning.effort");
    refused(json!({"text": {"verbosity": "low"}}), "text.verbosity");
    refused(json!({"tools": [{"type": "web_search"}]}), "tools.type");
    refused(json!({"input": [{"type": "reasoning", "summary": []}]}), "input.type");
    refused(json!({"input": [{"type": "item_reference", "id": "x"}]}), "input.type");
    let part = |part: Value| json!({"input": [{"role": "user", "content": [part]}]});
    refused(part(json!({"type": "input_audio"})), "input.content.type");
    refused(part(json!({"type": "input_image", "file_id": "f"})), "input.content.file_id");
    refused(json!({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}), "input");
    assert_eq!(asked(&with(json!({"secret_knob": 1}))).unwrap_err().member, None);
    assert!(asked(&with(json!({"previous_response_id": null, "secret_knob": null}))).is_ok());
}
