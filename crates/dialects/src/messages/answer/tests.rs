use sealog_events::{Dialect, EventBody, Origin, PortableCode, StopReason, Timestamp};
use serde_json::{Value, json};

use crate::answer::{Answer, Head};
use crate::told::tests::{ID, arguments, begun, call, completed, completed_for, failed, text, told, usage};

fn answer(max_tokens: Option<u64>) -> Answer {
    let dialect = Dialect::AnthropicMessages;
    let origin = Origin { dialect, model: "asked".to_owned(), max_tokens, background: false };
    Answer::new(Head { id: ID, created_at: Timestamp(1_767_225_600_999), origin }, false)
}

fn frames(answer: &mut Answer, rest: Vec<EventBody>) -> Vec<Value> {
    let mut data = Vec::new();
    for told in told([begun(), rest].concat()) {
        for frame in answer.tell(&told) {
            let value: Value = serde_json::from_str(&frame.data).unwrap();
            assert_eq!(value["type"].as_str(), frame.event);
            data.push(value);
        }
    }
    data
}

fn counts(input: u32, output: u32, written: u32, read: u32) -> Value {
    json!({"input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read})
}

fn message(content: Value, reason: Value, usage: Value) -> Value {
    json!({"id": "msg_abababababababababababababababab", "type": "message", "role": "assistant",
        "model": "asked", "content": content, "stop_reason": reason, "stop_sequence": null, "usage": usage})
}

fn start() -> Value {
    json!({"type": "message_start", "message": message(json!([]), Value::Null, counts(0, 0, 0, 0))})
}

fn block(index: u32, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str, usage: Value) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn text_then_calls_one_block_at_a_time() {
    let mut answer = answer(Some(100));
    let told = vec![
        text("look"),
        text("ing"),
        call("c1", "f"),
        arguments("c1", "{\"a\""),
        call("c2", "g"),
        arguments("c2", "{}"),
        arguments("c1", ":1}"),
        usage(&[("input_token", 5), ("output_token", 7), ("cache_write_token", 1), ("cache_read_token", 2)]),
        completed(),
    ];
    let tool = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let json = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let [last_delta, last] = end("tool_use", counts(5, 7, 1, 2));
    let expected = [
        start(),
        block(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "look"})),
        delta(0, json!({"type": "text_delta", "text": "ing"})),
        stop(0),
        block(1, tool("c1", "f")),
        delta(1, json("{\"a\"")),
        delta(1, json(":1}")),
        stop(1),
        block(2, tool("c2", "g")),
        delta(2, json("{}")),
        stop(2),
        last_delta,
        last,
    ];
    assert_eq!(frames(&mut answer, told), expected);
    let content = json!([
        {"type": "text", "text": "looking"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
    ]);
    let object: Value = serde_json::from_str(&answer.object().unwrap()).unwrap();
    assert_eq!(object, message(content, json!("tool_use"), counts(5, 7, 1, 2)));
}

#[test]
fn reasons_to_stop() {
    let reason = |max_tokens, output: u32| {
        let mut answer = answer(max_tokens);
        frames(&mut answer, vec![text("x"), usage(&[("output_token", output)]), completed()]);
        serde_json::from_str::<Value>(&answer.object().unwrap()).unwrap()["stop_reason"].clone()
    };
    assert_eq!(reason(Some(7), 6), "end_turn");
    assert_eq!(reason(Some(7), 7), "max_tokens");
    assert_eq!(reason(None, 7), "end_turn");
}

/// RM-33: in the stream and in the object.
#[test]
fn the_providers_reason_to_stop_is_the_messages() {
    let reason = |said| {
        let mut answer = answer(Some(7));
        let all = frames(&mut answer, vec![text("x"), usage(&[("output_token", 7)]), completed_for(said)]);
        let object: Value = serde_json::from_str(&answer.object().unwrap()).unwrap();
        assert_eq!(all[all.len() - 2]["delta"]["stop_reason"], object["stop_reason"]);
        object["stop_reason"].clone()
    };
    assert_eq!(reason(StopReason::Stop), "end_turn");
    assert_eq!(reason(StopReason::StopSequence), "stop_sequence");
    assert_eq!(reason(StopReason::Refusal), "refusal");
    assert_eq!(reason(StopReason::PauseTurn), "pause_turn");
    assert_eq!(reason(StopReason::Other), "max_tokens");
}

#[test]
fn an_answer_without_output_has_its_frames_too() {
    let [last_delta, last] = end("end_turn", counts(0, 0, 0, 0));
    assert_eq!(frames(&mut answer(None), vec![completed()]), [start(), last_delta, last]);
}

#[test]
fn a_failure_is_an_error() {
    let mut failing = answer(None);
    let all = frames(&mut failing, vec![failed(PortableCode::QueueFull, false)]);
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "It failed"},
        "request_id": null});
    assert_eq!(all, [error]);
    assert!(!failing.has_output());
    assert_eq!(failing.failure().unwrap().status, 503);
}

#[test]
fn arguments_that_are_no_object_cannot_stand_in_a_message() {
    for (text, fine) in [("", true), (" {} ", true), ("[1]", false), ("{", false), ("1", false)] {
        let mut answer = answer(None);
        frames(&mut answer, vec![call("c", "f"), arguments("c", text), completed()]);
        assert_eq!(answer.object().map_err(|error| error.status).err(), (!fine).then_some(502), "{text:?}");
    }
}
