//! The fold: each rule by example, and all of them against a second, plain implementation on JSON text.
//! Must never share code with the fold but the rendering of events.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Materializer, Snapshot, materialize};
use crate::json::{event_json, snapshot_json};
use crate::{
    Artifact, ErrorFact, Event, EventBody, JsonText, MaterializedResult, PortableCode, Status, StopReason,
    Target, Timestamp, arbitrary,
};

const CREATED: Timestamp = Timestamp(1000);

fn fold(bodies: impl IntoIterator<Item = EventBody>) -> Snapshot {
    let events: Vec<Event> = (1..)
        .zip(bodies)
        .map(|(sequence, body)| Event { sequence, time: Timestamp(1000 + sequence), body })
        .collect();
    materialize(arbitrary::ID, CREATED, &events)
}

#[track_caller]
fn check_result(bodies: impl IntoIterator<Item = EventBody>, expected: Option<&str>) {
    assert_eq!(fold(bodies).result.as_ref().map(JsonText::as_str), expected);
}

fn delta(output_index: u32, delta: &str) -> EventBody {
    EventBody::OutputDelta { output_index, delta: delta.to_owned() }
}

fn started(call_id: &str, name: &str) -> EventBody {
    EventBody::ToolCallStarted { call_id: call_id.to_owned(), name: name.to_owned() }
}

fn arguments(call_id: &str, delta: &str) -> EventBody {
    EventBody::ToolCallArgumentsDelta { call_id: call_id.to_owned(), delta: delta.to_owned() }
}

fn result(text: &str, artifacts: Option<&[&str]>) -> EventBody {
    let artifact =
        |uri: &&str| Artifact { uri: (*uri).to_owned(), media_type: None, name: None, expires_at: None };
    EventBody::OutputResult {
        result: JsonText::new(text).expect("valid"),
        artifacts: artifacts.map(|uris| uris.iter().map(artifact).collect()),
    }
}

fn target(provider: &str) -> Target {
    Target { provider: provider.to_owned(), model: "m".to_owned() }
}

fn completed(provider: &str) -> EventBody {
    EventBody::Completed { target: target(provider), stop_reason: None }
}

/// RM-25.
#[test]
fn text_is_joined_by_index_and_sorted() {
    check_result(
        [delta(10, "c"), delta(2, "a"), delta(10, "d"), delta(2, "b")],
        Some(
            r#"{"outputs":[{"index":2,"type":"text","text":"ab"},{"index":10,"type":"text","text":"cd"}],"tool_calls":[]}"#,
        ),
    );
    check_result(
        [delta(0, "")],
        Some(r#"{"outputs":[{"index":0,"type":"text","text":""}],"tool_calls":[]}"#),
    );
    check_result([EventBody::Accepted], None);
}

/// RM-25.
#[test]
fn tool_calls_stand_in_first_seen_order() {
    check_result(
        [
            arguments("b", "dropped"),
            started("b", "first"),
            started("a", "second"),
            arguments("a", "{}"),
            arguments("b", "[1"),
            arguments("c", "dropped"),
            arguments("b", "]"),
        ],
        Some(
            r#"{"outputs":[],"tool_calls":[{"call_id":"b","name":"first","arguments":"[1]"},{"call_id":"a","name":"second","arguments":"{}"}]}"#,
        ),
    );
    check_result(
        [
            started("b", "old"),
            started("a", "x"),
            arguments("b", "gone"),
            started("b", "new"),
            arguments("b", "kept"),
        ],
        Some(
            r#"{"outputs":[],"tool_calls":[{"call_id":"b","name":"new","arguments":"kept"},{"call_id":"a","name":"x","arguments":""}]}"#,
        ),
    );
    check_result([arguments("a", "dropped")], None);
}

/// RM-26.
#[test]
fn the_last_result_wins_and_brings_its_artifacts() {
    check_result([delta(0, "text"), result("{\"b\": 1}", None), delta(0, "more")], Some("{\"b\": 1}"));
    check_result([delta(0, "text"), result("null", None)], Some("null"));
    let artifacts = |bodies: &[EventBody]| fold(bodies.to_vec()).artifacts.map(|list| list.len());
    assert_eq!(artifacts(&[result("1", Some(&["u", "v"]))]), Some(2));
    assert_eq!(artifacts(&[result("1", Some(&["u"])), result("2", None)]), None);
    assert_eq!(artifacts(&[result("1", Some(&["u"])), result("2", Some(&[]))]), Some(0));
    assert_eq!(artifacts(&[result("1", Some(&["u"])), delta(0, "x")]), Some(1));
}

/// RM-1, RM-25, RM-27.
#[test]
fn status_time_and_target_follow_the_events() {
    let error = ErrorFact::new(PortableCode::ProviderUnavailable, "Provider execution failed", true);
    let selected = |provider: &str, attempt| EventBody::RouteSelected { target: target(provider), attempt };
    let progress = EventBody::Progress { phase: crate::Phase::Queued, progress: None };
    let first_failed =
        EventBody::RouteAttemptFailed { target: target("p1"), attempt: 1, error: error.clone() };

    let nothing = fold([]);
    assert_eq!((nothing.status, nothing.updated_at, nothing.last_sequence), (Status::Accepted, CREATED, 0));

    let back_to_routing =
        fold([EventBody::Accepted, selected("p1", 1), progress.clone(), first_failed.clone()]);
    assert_eq!(back_to_routing.status, Status::Routing);
    assert_eq!(back_to_routing.target, Some(target("p1")));
    assert_eq!(back_to_routing.error, None);
    assert_eq!((back_to_routing.updated_at, back_to_routing.last_sequence), (Timestamp(1004), 4));

    let failed = fold([
        selected("p1", 1),
        first_failed,
        selected("p2", 2),
        EventBody::Failed { error: error.clone(), cancelled: false },
    ]);
    assert_eq!(
        (failed.status, failed.target, failed.error),
        (Status::Failed, Some(target("p2")), Some(error))
    );

    let completed = fold([selected("p1", 1), completed("p3")]);
    assert_eq!((completed.status, completed.target), (Status::Succeeded, Some(target("p3"))));
}

#[test]
fn a_result_record_follows_the_snapshot() {
    let running = fold([delta(0, "a")]);
    assert_eq!(MaterializedResult::of(&running, usize::MAX), None);
    let finished = fold([delta(0, "a"), completed("p")]);
    let text = finished.result.as_ref().expect("text was seen").as_str().to_owned();
    let stored = MaterializedResult::of(&finished, usize::MAX).expect("terminal");
    assert_eq!((stored.bytes, stored.text.as_deref()), (text.len() as u64, Some(text.as_str())));
    let hashed = MaterializedResult::of(&finished, text.len() - 1).expect("terminal");
    assert_eq!(hashed, MaterializedResult { text: None, ..stored.clone() });
    assert_eq!(hashed.agrees_with(&finished), Some(true));
    assert_eq!(stored.agrees_with(&running), Some(false));
    let other = fold([delta(0, "b"), completed("p")]);
    assert_eq!(stored.agrees_with(&other), Some(false));
    assert_eq!(MaterializedResult { rule_version: 2, ..stored }.agrees_with(&finished), None);
    let nothing = fold([completed("p")]);
    let empty = MaterializedResult::of(&nothing, usize::MAX).expect("terminal");
    assert_eq!((empty.bytes, empty.text.as_deref(), empty.agrees_with(&nothing)), (0, None, Some(true)));
}

/// RM-33.
#[test]
fn why_an_answer_ended_stands_in_the_snapshot_if_it_was_said() {
    let ended =
        |stop_reason| fold([delta(0, "a"), EventBody::Completed { target: target("p"), stop_reason }]);
    for reason in StopReason::ALL {
        assert_eq!(ended(Some(*reason)).stop_reason, Some(*reason));
        let member = format!("\"stop_reason\":\"{reason}\"");
        assert!(snapshot_json(&ended(Some(*reason))).contains(&member));
        // What an answer is does not depend on why it ended.
        assert_eq!(ended(Some(*reason)).result, ended(None).result);
    }
    assert_eq!(ended(None).stop_reason, None);
    assert!(!snapshot_json(&ended(None)).contains("stop_reason"));
}

/// The rules once more, on the events' JSON text instead of their types: slow, plain, and written separately.
fn reference(events: &[Event]) -> Value {
    let mut state = json!({
        "execution_id": arbitrary::ID.to_string(), "status": "accepted", "created_at": CREATED.to_string(),
        "updated_at": CREATED.to_string(), "last_sequence": 0, "usage": [], "attempts": [],
    });
    let mut outputs: BTreeMap<u64, String> = BTreeMap::new();
    let mut calls: Vec<[String; 3]> = Vec::new();
    for event in events {
        let event: Map<String, Value> =
            serde_json::from_str(&event_json(arbitrary::ID, event)).expect("valid");
        let text = |member: &str| event[member].as_str().expect("a string").to_owned();
        state["status"] = event["status"].clone();
        state["updated_at"] = event["time"].clone();
        state["last_sequence"] = event["sequence"].clone();
        match text("type").as_str() {
            "route.selected" => state["target"] = event["target"].clone(),
            "execution.completed" => {
                state["target"] = event["target"].clone();
                if let Some(reason) = event.get("stop_reason") {
                    state["stop_reason"] = reason.clone();
                }
            }
            "output.delta" => {
                let index = event["output_index"].as_u64().expect("an index");
                let joined = outputs.remove(&index).unwrap_or_default() + &text("delta");
                outputs.insert(index, joined);
            }
            "tool.call.started" => {
                let fresh = [text("call_id"), text("name"), String::new()];
                match calls.iter().position(|call| call[0] == fresh[0]) {
                    Some(place) => calls[place] = fresh,
                    None => calls.push(fresh),
                }
            }
            "tool.call.arguments.delta" => {
                for call in calls.iter_mut().filter(|call| call[0] == text("call_id")) {
                    call[2] += &text("delta");
                }
            }
            "output.result" => {
                state["result"] = event["result"].clone();
                state.as_object_mut().expect("an object").remove("artifacts");
                if let Some(artifacts) = event.get("artifacts") {
                    state["artifacts"] = artifacts.clone();
                }
            }
            "usage.reported" => {
                let facts = event["facts"].as_array().expect("a list").clone();
                state["usage"].as_array_mut().expect("a list").extend(facts);
            }
            "execution.failed" => state["error"] = event["error"].clone(),
            _ => {}
        }
    }
    state["attempts"] = reference_attempts(events);
    if state.get("result").is_none() && !(outputs.is_empty() && calls.is_empty()) {
        let outputs: Vec<Value> = outputs
            .iter()
            .map(|(index, text)| json!({"index": index, "type": "text", "text": text}))
            .collect();
        let calls: Vec<Value> = calls
            .iter()
            .map(|[call_id, name, arguments]| json!({"call_id": call_id, "name": name, "arguments": arguments}))
            .collect();
        state["result"] = json!({"outputs": outputs, "tool_calls": calls});
    }
    state
}

fn reference_attempts(events: &[Event]) -> Value {
    let mut attempts: Vec<Value> = Vec::new();
    for event in events {
        let event: Value = serde_json::from_str(&event_json(arbitrary::ID, event)).expect("valid");
        let output = ["output.delta", "output.result", "tool.call.started", "tool.call.arguments.delta"];
        let name = event["type"].as_str().expect("a string");
        if name == "route.selected" {
            let (attempt, target) = (&event["attempt"], &event["target"]);
            attempts.push(json!({"attempt": attempt, "target": target, "reached": "selected"}));
        } else if name == "route.attempt_failed" {
            let same = |attempt: &&mut Value| attempt["attempt"] == event["attempt"];
            if let Some(attempt) = attempts.iter_mut().rev().find(same) {
                attempt["error"] = event["error"].clone();
            }
        } else if let (true, Some(newest)) = (output.contains(&name), attempts.last_mut()) {
            newest["reached"] = "first_output".into();
        }
    }
    attempts.into()
}

proptest! {
    #[test]
    fn one_at_a_time_equals_from_scratch_equals_the_rules(events in arbitrary::stream()) {
        let mut materializer = Materializer::new(arbitrary::ID, CREATED);
        for count in 0..=events.len() {
            if let Some(event) = count.checked_sub(1).and_then(|last| events.get(last)) {
                materializer.push(event);
            }
            let snapshot = materializer.snapshot();
            prop_assert_eq!(&snapshot, &materialize(arbitrary::ID, CREATED, &events[..count]));
            let text = snapshot_json(&snapshot);
            prop_assert!(!text.contains(['\n', '\r']));
            let read: Value = serde_json::from_str(&text).expect("a snapshot's text is JSON");
            prop_assert_eq!(read, reference(&events[..count]));
        }
        prop_assert_eq!(materializer.last_sequence(), events.len() as u64);
    }
}
