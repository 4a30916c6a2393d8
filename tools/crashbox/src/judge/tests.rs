use serde_json::json;

use super::*;
use crate::work::Expected;

fn work(success: Option<Output>, failures: &[&'static str]) -> Work {
    Work {
        name: "w".to_owned(),
        key: None,
        body: b"{}".to_vec(),
        counted: true,
        expected: Expected { success, failures: failures.to_vec(), stalls: false },
    }
}

fn hello() -> Option<Output> {
    Some(Output { deltas: Some(1), text: Text::Exactly("hello".to_owned()), tool_calls: Vec::new() })
}

fn frames(events: &[Value]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (event, sequence) in events.iter().zip(1_u64..) {
        let mut event = event.clone();
        if event.get("sequence").is_none() {
            event["sequence"] = sequence.into();
        }
        let (sequence, kind) = (event["sequence"].as_u64().unwrap(), event["type"].as_str().unwrap());
        let bytes = format!("id: {sequence}\nevent: {kind}\ndata: {event}\n\n");
        frames.push(Frame::read(bytes.as_bytes()).unwrap().unwrap());
    }
    frames
}

fn accepted() -> Value {
    json!({"type": "execution.accepted", "status": "accepted"})
}

fn routed() -> Value {
    json!({"type": "route.selected", "status": "routing"})
}

fn delta(text: &str) -> Value {
    json!({"type": "output.delta", "status": "running", "delta": text})
}

fn completed() -> Value {
    json!({"type": "execution.completed", "status": "succeeded"})
}

fn failed(status: &str, error: Value) -> Value {
    json!({"type": "execution.failed", "status": status, "error": error})
}

fn interrupted(outcome: &str, message: &str) -> Value {
    failed(
        "failed",
        json!({"code": "internal_error", "message": message, "retryable": false, "outcome": outcome}),
    )
}

#[track_caller]
fn check(work: &Work, events: &[Value], calls: u64, expected: Result<Ending, Class>) {
    let verdict = judge(work, &State::default(), &frames(events), calls);
    assert_eq!(verdict.clone().map_err(|wrong| wrong.class), expected, "{verdict:?}");
}

#[test]
fn a_success_has_the_output_that_was_asked_for() {
    let work = work(hello(), &[]);
    check(&work, &[accepted(), routed(), delta("hello"), completed()], 1, Ok(Ending::Succeeded));
    check(&work, &[accepted(), routed(), delta("hell"), completed()], 1, Err(Class::Disagrees));
    check(&work, &[accepted(), routed(), delta("hel"), delta("lo"), completed()], 1, Err(Class::Disagrees));
}

#[test]
fn gaps_second_ends_and_missing_ends_are_told_apart() {
    let work = work(hello(), &[]);
    let mut gap = delta("hello");
    gap["sequence"] = 4.into();
    check(&work, &[accepted(), routed(), gap, completed()], 1, Err(Class::Lost));
    check(&work, &[accepted(), routed(), delta("hello")], 1, Err(Class::Stuck));
    check(&work, &[accepted(), routed(), delta("hello"), completed(), completed()], 1, Err(Class::Phantom));
    check(&work, &[accepted(), routed(), completed(), delta("hello")], 1, Err(Class::Phantom));
    check(&work, &[routed(), accepted(), completed()], 0, Err(Class::Disagrees));
}

#[test]
fn effects_are_counted_and_must_be_announced() {
    let work = work(hello(), &["rate_limited"]);
    let good = [accepted(), routed(), delta("hello"), completed()];
    check(&work, &good, 2, Err(Class::Phantom));
    let failed = failed("failed", json!({"code": "rate_limited"}));
    check(&work, &[accepted(), failed.clone()], 0, Ok(Ending::Failed));
    check(&work, &[accepted(), failed], 1, Err(Class::Phantom));
    check(&work, &[accepted(), routed(), routed(), completed()], 1, Err(Class::Phantom));
}

#[test]
fn an_interruption_says_what_is_known() {
    let work = work(hello(), &[]);
    check(&work, &[accepted(), routed(), interrupted("unknown", INTERRUPTED)], 1, Ok(Ending::Interrupted));
    check(&work, &[accepted(), interrupted("not_dispatched", NOTHING_SENT)], 0, Ok(Ending::NotDispatched));
    for (outcome, message) in
        [("not_dispatched", NOTHING_SENT), ("unknown", NOTHING_SENT), ("other", INTERRUPTED)]
    {
        check(&work, &[accepted(), routed(), interrupted(outcome, message)], 1, Err(Class::Disagrees));
    }
    let mut retryable = interrupted("unknown", INTERRUPTED);
    retryable["error"]["retryable"] = true.into();
    check(&work, &[accepted(), routed(), retryable], 1, Err(Class::Disagrees));
}

#[test]
fn a_failure_needs_a_reason() {
    let work = work(None, &["rate_limited"]);
    let end = |status: &str, code: &str| [accepted(), routed(), failed(status, json!({"code": code}))];
    check(&work, &end("failed", "rate_limited"), 1, Ok(Ending::Failed));
    check(&work, &end("failed", "provider_unavailable"), 1, Err(Class::Disagrees));
    check(&work, &end("cancelled", "cancelled"), 1, Err(Class::Disagrees));
    check(&work, &end("failed", "cancelled"), 1, Err(Class::Disagrees));
    check(&work, &[accepted(), routed(), completed()], 1, Err(Class::Disagrees));
    let asked = State { cancel_asked: true, ..State::default() };
    assert_eq!(judge(&work, &asked, &frames(&end("cancelled", "cancelled")), 1), Ok(Ending::Cancelled));
}
