use sealog_events::{Dialect, EventBody, Origin, PortableCode, StopReason, Timestamp};
use serde_json::{Value, json};

use crate::answer::{Answer, Head};
use crate::told::tests::{ID, arguments, begun, call, completed, completed_for, failed, text, told, usage};

const HEX: &str = "abababababababababababababababab";

fn answer(max_tokens: Option<u64>, background: bool) -> Answer {
    let origin =
        Origin { dialect: Dialect::OpenAiResponses, model: "asked".to_owned(), max_tokens, background };
    Answer::new(Head { id: ID, created_at: Timestamp(1_767_225_600_999), origin }, false)
}

/// Type and data of every frame; numbers are dense from 0.
fn frames(answer: &mut Answer, rest: Vec<EventBody>) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for told in told([begun(), rest].concat()) {
        for frame in answer.tell(&told) {
            let mut value: Value = serde_json::from_str(&frame.data).unwrap();
            let members = value.as_object_mut().unwrap();
            let kind = members.remove("type").unwrap();
            assert_eq!(kind.as_str(), frame.event);
            assert_eq!(members.remove("sequence_number"), Some(json!(all.len())));
            assert_eq!(frame.number, Some(all.len() as u64));
            all.push((kind.as_str().unwrap().to_owned(), value));
        }
    }
    all
}

fn object(answer: &Answer) -> Value {
    serde_json::from_str(&answer.object().unwrap()).unwrap()
}

#[test]
fn a_text_streams_through_all_its_stages() {
    let mut answer = answer(None, false);
    let told = vec![text("hel"), text("lo"), usage(&[("input_token", 3), ("output_token", 2)]), completed()];
    let all = frames(&mut answer, told);
    let kinds: Vec<&str> = all.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let id = format!("msg_{HEX}_0");
    let item = |status: &str, content: Value| json!({"type": "message", "id": id, "status": status, "role": "assistant", "content": content});
    assert_eq!(all[0].1["response"]["status"], "in_progress");
    assert_eq!(all[2].1, json!({"output_index": 0, "item": item("in_progress", json!([]))}));
    let place = json!({"item_id": id, "output_index": 0, "content_index": 0});
    let placed = |members: Value| {
        let mut place = place.clone();
        place.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        place
    };
    assert_eq!(all[3].1, placed(json!({"part": part("")})));
    assert_eq!(all[4].1, placed(json!({"delta": "hel", "logprobs": []})));
    assert_eq!(all[6].1, placed(json!({"text": "hello", "logprobs": []})));
    assert_eq!(all[7].1, placed(json!({"part": part("hello")})));
    let whole = item("completed", json!([part("hello")]));
    assert_eq!(all[8].1, json!({"output_index": 0, "item": whole}));
    assert_eq!(all[9].1["response"], object(&answer));
    let expected = json!({
        "id": format!("resp_{HEX}"), "object": "response", "created_at": 1_767_225_600, "status": "completed",
        "background": false, "error": null, "incomplete_details": null, "instructions": null,
        "max_output_tokens": null, "metadata": {}, "model": "asked", "output": [whole],
        "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null}, "store": true, "temperature": null,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": null,
        "truncation": "disabled",
        "usage": {"input_tokens": 3, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 5},
    });
    assert_eq!(object(&answer), expected);
}

#[test]
fn calls_of_tools_are_items() {
    let mut answer = answer(None, false);
    let all =
        frames(&mut answer, vec![call("c1", "f"), arguments("c1", "{"), arguments("c1", "}"), completed()]);
    let kinds: Vec<&str> = all[2..].iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let id = format!("fc_{HEX}_0");
    let item = |status: &str, arguments: &str| {
        json!({"type": "function_call", "id": id, "status": status, "call_id": "c1", "name": "f",
            "arguments": arguments})
    };
    assert_eq!(all[2].1, json!({"output_index": 0, "item": item("in_progress", "")}));
    assert_eq!(all[3].1, json!({"item_id": id, "output_index": 0, "delta": "{"}));
    assert_eq!(all[5].1, json!({"item_id": id, "output_index": 0, "name": "f", "arguments": "{}"}));
    assert_eq!(all[6].1, json!({"output_index": 0, "item": item("completed", "{}")}));
    assert_eq!(object(&answer)["output"], json!([item("completed", "{}")]));
}

#[test]
fn states() {
    let mut waiting = answer(None, true);
    assert_eq!(object(&waiting)["status"], "queued");
    let (first, rest) = (told(begun()), vec![text("x")]);
    waiting.tell(&first[0]);
    assert_eq!((&object(&waiting)["status"], &object(&waiting)["usage"]), (&json!("queued"), &Value::Null));
    let mut running = answer(None, true);
    frames(&mut running, rest);
    assert_eq!(object(&running)["status"], "in_progress");
    assert_eq!(object(&running)["output"][0]["status"], "in_progress");

    let end = |body: EventBody, max_tokens| {
        let mut answer = answer(max_tokens, false);
        let all = frames(&mut answer, vec![text("x"), usage(&[("output_token", 4)]), body]);
        let object = object(&answer);
        (all.last().unwrap().0.clone(), object["status"].clone(), object["error"].clone(), object)
    };
    let (kind, status, error, object) = end(completed(), Some(4));
    assert_eq!((kind.as_str(), status, error), ("response.incomplete", json!("incomplete"), Value::Null));
    assert_eq!(object["incomplete_details"], json!({"reason": "max_output_tokens"}));
    // RM-33: what the provider said counts before what the length lets guess.
    for (said, status, reason) in [
        (StopReason::Stop, "completed", None),
        (StopReason::Length, "incomplete", Some("max_output_tokens")),
        (StopReason::ContentFilter, "incomplete", Some("content_filter")),
        (StopReason::PauseTurn, "completed", None),
        (StopReason::Other, "incomplete", Some("max_output_tokens")),
    ] {
        let (kind, found, _, object) = end(completed_for(said), Some(4));
        assert_eq!((kind, found), (format!("response.{status}"), json!(status)), "{said}");
        assert_eq!(object["incomplete_details"]["reason"].as_str(), reason, "{said}");
    }
    let (kind, status, error, object) = end(failed(PortableCode::ProviderUnavailable, false), None);
    assert_eq!((kind.as_str(), status), ("response.failed", json!("failed")));
    assert_eq!(error, json!({"code": "server_error", "message": "provider_unavailable: It failed"}));
    assert_eq!(object["output"][0]["status"], "incomplete");
    let (kind, status, error, _) = end(failed(PortableCode::Cancelled, true), None);
    assert_eq!((kind.as_str(), status, error), ("response.failed", json!("cancelled"), Value::Null));
}
