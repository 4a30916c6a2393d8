use sealog_events::{Dialect, EventBody, Origin, PortableCode, StopReason, Timestamp};
use serde_json::{Value, json};

use crate::answer::{Answer, Head};
use crate::told::tests::{
    ID, arguments, begun, call, completed, completed_for, failed, target, text, told, usage,
};

fn answer(max_tokens: Option<u64>, include_usage: bool) -> Answer {
    let origin =
        Origin { dialect: Dialect::OpenAiChat, model: "asked".to_owned(), max_tokens, background: false };
    Answer::new(Head { id: ID, created_at: Timestamp(1_767_225_600_999), origin }, include_usage)
}

/// The data of every frame that the events give, `[DONE]` as a text.
fn frames(answer: &mut Answer, bodies: Vec<EventBody>) -> Vec<Value> {
    let mut data = Vec::new();
    for told in told(bodies) {
        for frame in answer.tell(&told) {
            assert_eq!((frame.event, frame.number), (None, None));
            data.push(serde_json::from_str(&frame.data).unwrap_or_else(|_| frame.data.into()));
        }
    }
    data
}

fn chunk(delta: Value, reason: Value) -> Value {
    json!({
        "id": "chatcmpl-abababababababababababababababab", "object": "chat.completion.chunk",
        "created": 1_767_225_600, "model": "asked",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}],
    })
}

fn story(rest: Vec<EventBody>) -> Vec<EventBody> {
    [begun(), rest].concat()
}

#[test]
fn text_streams() {
    let told = story(vec![text("hel"), text(""), text("lo"), completed()]);
    let expected = [
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({"content": "hel"}), Value::Null),
        chunk(json!({"content": "lo"}), Value::Null),
        chunk(json!({}), json!("stop")),
        json!("[DONE]"),
    ];
    assert_eq!(frames(&mut answer(None, false), told.clone()), expected);
    // Told again, the same.
    assert_eq!(frames(&mut answer(None, false), told), expected);
}

#[test]
fn an_answer_without_output_has_its_frames_too() {
    let expected = [
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({}), json!("stop")),
        json!("[DONE]"),
    ];
    assert_eq!(frames(&mut answer(None, false), story(vec![completed()])), expected);
}

#[test]
fn calls_of_tools_stream_interleaved() {
    let call_of = |call: Value| chunk(json!({"tool_calls": [call]}), Value::Null);
    let start = |index: u32, id: &str, name: &str| {
        call_of(json!({"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""}}))
    };
    let more = |index: u32, delta: &str| call_of(json!({"index": index, "function": {"arguments": delta}}));
    let told = story(vec![
        call("c1", "f"),
        call("c2", "g"),
        arguments("c2", "{}"),
        arguments("c1", "{\"a\""),
        arguments("nobody", "x"),
        arguments("c1", ":1}"),
        completed(),
    ]);
    let mut answer = answer(None, false);
    let expected = [
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        start(0, "c1", "f"),
        start(1, "c2", "g"),
        more(1, "{}"),
        more(0, "{\"a\""),
        more(0, ":1}"),
        chunk(json!({}), json!("tool_calls")),
        json!("[DONE]"),
    ];
    assert_eq!(frames(&mut answer, told), expected);
    let object: Value = serde_json::from_str(&answer.object().unwrap()).unwrap();
    let message = &object["choices"][0]["message"];
    assert_eq!(message["content"], Value::Null);
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    assert_eq!(message["tool_calls"], json!([call("c1", "f", "{\"a\":1}"), call("c2", "g", "{}")]));
    assert_eq!(object["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn usage_is_the_sum_and_stands_in_a_chunk_of_its_own_if_asked_for() {
    let facts = |input: u32, output: u32| {
        usage(&[
            ("input_token", input),
            ("output_token", output),
            ("cache_read_token", 1),
            ("image_count", 4),
        ])
    };
    let told = story(vec![facts(2, 1), text("x"), facts(3, 6), completed()]);
    let mut answer = answer(Some(7), true);
    let all = frames(&mut answer, told);
    let usage = json!({
        "prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 0},
    });
    assert!(all[..3].iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!(all[2]["choices"][0]["finish_reason"], "length");
    assert_eq!((&all[3]["usage"], &all[3]["choices"]), (&usage, &json!([])));
    let object: Value = serde_json::from_str(&answer.object().unwrap()).unwrap();
    let expected = json!({
        "id": "chatcmpl-abababababababababababababababab", "object": "chat.completion",
        "created": 1_767_225_600, "model": "asked", "usage": usage,
        "choices": [{"index": 0, "logprobs": null, "finish_reason": "length",
            "message": {"role": "assistant", "content": "x", "refusal": null}}],
    });
    assert_eq!(object, expected);
}

/// RM-33: in the stream and in the object.
#[test]
fn the_providers_reason_to_stop_is_the_choices() {
    let reason = |output: u32, body: EventBody| {
        let mut answer = answer(Some(7), false);
        let all = frames(&mut answer, story(vec![text("x"), usage(&[("output_token", output)]), body]));
        let object: Value = serde_json::from_str(&answer.object().unwrap()).unwrap();
        let reason = object["choices"][0]["finish_reason"].clone();
        assert_eq!(all[all.len() - 2]["choices"][0]["finish_reason"], reason);
        reason
    };
    assert_eq!(reason(3, completed_for(StopReason::Length)), "length");
    assert_eq!(reason(7, completed_for(StopReason::Stop)), "stop");
    assert_eq!(reason(3, completed_for(StopReason::ContentFilter)), "content_filter");
    assert_eq!(reason(7, completed_for(StopReason::Other)), "length");
}

#[test]
fn a_failure_is_an_error_and_nothing_follows_it() {
    let mut failing = answer(None, false);
    let all = frames(&mut failing, story(vec![text("x"), failed(PortableCode::RateLimited, false)]));
    let error = json!({"error": {"message": "It failed", "type": "rate_limit_error", "param": null,
        "code": "rate_limited"}});
    assert_eq!(all.last(), Some(&error));
    assert!(failing.has_output());
    let failure = failing.failure().unwrap();
    assert_eq!((failure.status, failure.retry), (429, true));
    assert_eq!(serde_json::from_str::<Value>(&failure.body).unwrap(), error);
}

#[test]
fn attempts_before_and_whole_results() {
    let attempt = EventBody::RouteAttemptFailed {
        target: target(),
        attempt: 1,
        error: sealog_events::ErrorFact::new(PortableCode::ProviderUnavailable, "m", true),
    };
    let mut first = answer(None, false);
    assert_eq!(frames(&mut first, story(vec![attempt])), [] as [Value; 0]);
    assert!(!first.has_output());
    let result = EventBody::OutputResult {
        result: sealog_events::JsonText::new("{\"images\":[1]}").unwrap(),
        artifacts: None,
    };
    let all = frames(&mut answer(None, false), story(vec![result.clone(), completed()]));
    assert_eq!(all[1], chunk(json!({"content": "{\"images\":[1]}"}), Value::Null));
    let all = frames(&mut answer(None, false), story(vec![text("x"), result, completed()]));
    assert_eq!(all.len(), 4);
}
