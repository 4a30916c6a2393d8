//! JSON text: sizes clients rely on, fixed member order, escapes as serde_json writes them.
//! Must never render the expected text with the code under test.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Materializer, Quantity, arbitrary, materialize::materialize};

const CREATED: Timestamp = Timestamp(1_767_225_600_000);

fn at(sequence: u64, body: EventBody) -> Event {
    Event { sequence, time: CREATED, body }
}

#[test]
fn sizes_that_limits_of_other_runtimes_rely_on() {
    // 256 bytes per execution and these two must fit 700, as clients' own test suites have it.
    let accepted = event_json(arbitrary::ID, &at(1, EventBody::Accepted));
    assert_eq!(accepted.len(), 150);
    let target = Target { provider: "provider-mock".to_owned(), model: "model-alpha".to_owned() };
    let selected = event_json(arbitrary::ID, &at(2, EventBody::RouteSelected { target, attempt: 1 }));
    assert_eq!(selected.len(), 217);
}

#[track_caller]
fn check_number(value: f64, expected: &str) {
    let mut out = String::new();
    put_number(&mut out, Quantity::new(value).expect("finite, not negative").get());
    assert_eq!(out, expected);
}

#[test]
fn quantities_print_as_ecmascript_prints_them() {
    check_number(0.0, "0");
    check_number(-0.0, "0");
    check_number(1.0, "1");
    check_number(9_007_199_254_740_991.0, "9007199254740991");
    check_number(0.1, "0.1");
    check_number(1e21, "1e+21");
    check_number(1.5e-7, "1.5e-7");
    assert_eq!(Quantity::new(-1.0), None);
    assert_eq!(Quantity::new(f64::NAN), None);
    assert_eq!(Quantity::new(f64::INFINITY), None);
}

#[test]
fn snapshot_and_result_text() {
    let empty = materialize(arbitrary::ID, CREATED, []);
    assert_eq!(
        snapshot_json(&empty),
        "{\"execution_id\":\"11111111-2222-4333-8444-555555555555\",\"status\":\"accepted\",\
         \"created_at\":\"2026-01-01T00:00:00.000Z\",\"updated_at\":\"2026-01-01T00:00:00.000Z\",\
         \"last_sequence\":0,\"usage\":[],\"attempts\":[]}"
    );
    assert_eq!(
        result_json(&empty),
        "{\"execution_id\":\"11111111-2222-4333-8444-555555555555\",\"artifacts\":[],\"usage\":[]}"
    );
    let target = Target { provider: "p".to_owned(), model: "m".to_owned() };
    let failure =
        ErrorFact::new(crate::PortableCode::RateLimited, "Provider is busy", true).with_provider_code("429");
    let failed = materialize(
        arbitrary::ID,
        CREATED,
        &[
            at(1, EventBody::RouteSelected { target, attempt: 1 }),
            at(2, EventBody::OutputDelta { output_index: 0, delta: "a\"\n".to_owned() }),
            at(3, EventBody::Failed { error: failure.clone(), cancelled: false }),
        ],
    );
    assert_eq!(
        snapshot_json(&failed),
        "{\"execution_id\":\"11111111-2222-4333-8444-555555555555\",\"status\":\"failed\",\
         \"created_at\":\"2026-01-01T00:00:00.000Z\",\"updated_at\":\"2026-01-01T00:00:00.000Z\",\
         \"last_sequence\":3,\"usage\":[],\
         \"attempts\":[{\"attempt\":1,\"target\":{\"provider\":\"p\",\"model\":\"m\"},\"reached\":\"first_output\"}],\"target\":{\"provider\":\"p\",\"model\":\"m\"},\
         \"error\":{\"code\":\"rate_limited\",\"message\":\"Provider is busy\",\"retryable\":true,\"provider_code\":\"429\"},\
         \"result\":{\"outputs\":[{\"index\":0,\"type\":\"text\",\"text\":\"a\\\"\\n\"}],\"tool_calls\":[]}}"
    );
    assert_eq!(
        status_json(failed.status, failed.error.as_ref()),
        format!("{{\"status\":\"failed\",\"error\":{}}}", error_json(&failure))
    );
    assert_eq!(status_json(Status::Running, None), "{\"status\":\"running\"}");
}

#[test]
fn attempts_show_what_is_known_of_each() {
    let target = |provider: &str| Target { provider: provider.to_owned(), model: "m".to_owned() };
    let error = ErrorFact::new(crate::PortableCode::RateLimited, "Provider is busy", true);
    let mut fold = Materializer::new(arbitrary::ID, CREATED);
    fold.push(&at(1, EventBody::RouteSelected { target: target("a"), attempt: 1 }));
    let request_id = crate::RequestId::new("r\"1");
    let mark = crate::Mark::ResponseHeaders { request_id };
    fold.push_evidence(&crate::AttemptEvidence { attempt: 1, mark });
    fold.push(&at(2, EventBody::RouteAttemptFailed { target: target("a"), attempt: 1, error }));
    fold.push(&at(3, EventBody::RouteSelected { target: target("b"), attempt: 2 }));
    fold.push_evidence(&crate::AttemptEvidence { attempt: 2, mark: crate::Mark::RequestSent });
    let text = snapshot_json(&fold.snapshot());
    let expected = "\"attempts\":[\
         {\"attempt\":1,\"target\":{\"provider\":\"a\",\"model\":\"m\"},\"reached\":\"response_headers\",\"request_id\":\"r\\\"1\",\
         \"error\":{\"code\":\"rate_limited\",\"message\":\"Provider is busy\",\"retryable\":true}},\
         {\"attempt\":2,\"target\":{\"provider\":\"b\",\"model\":\"m\"},\"reached\":\"request_sent\"}]";
    assert!(text.contains(expected), "{text}");
}

/// Plain text is passed over in runs: a character to be escaped is found at every place of them.
#[test]
fn one_character_is_escaped_wherever_it_stands() {
    for character in ('\0'..='\u{80}').chain(['\u{a2}', '\u{dc}', '\u{1f600}']) {
        for before in 0..70 {
            let text = format!("{}{character}{}", "a".repeat(before), "é".repeat(70 - before));
            assert_eq!(string_json(&text), serde_json::to_string(&text).expect("a string has a text"));
        }
    }
}

proptest! {
    #[test]
    fn strings_are_escaped_as_others_do(text in arbitrary::text(30)) {
        prop_assert_eq!(string_json(&text), serde_json::to_string(&text).expect("a string has a text"));
    }

    #[test]
    fn events_are_one_line_that_reads_back(body in arbitrary::body(), sequence in 1_u64..1 << 53) {
        let (type_name, status) = (body.type_name(), body.status());
        let text = event_json(arbitrary::ID, &at(sequence, body.clone()));
        prop_assert!(!text.contains(['\n', '\r']));
        let read: Value = serde_json::from_str(&text).expect("an event's text is JSON");
        prop_assert_eq!(&read["type"], type_name);
        prop_assert_eq!(&read["status"], status.as_str());
        prop_assert_eq!(&read["execution_id"], "11111111-2222-4333-8444-555555555555");
        prop_assert_eq!(&read["sequence"], &json!(sequence));
        prop_assert_eq!(&read["time"], "2026-01-01T00:00:00.000Z");
        match body {
            EventBody::OutputDelta { output_index, delta } => {
                prop_assert_eq!(&read["output_index"], output_index);
                prop_assert_eq!(&read["delta"], &delta);
            }
            EventBody::UsageReported { facts } => {
                let quantities: Vec<Option<f64>> = facts.iter().map(|fact| Some(fact.quantity.get())).collect();
                let found = read["facts"].as_array().expect("a list");
                prop_assert_eq!(found.iter().map(|fact| fact["quantity"].as_f64()).collect::<Vec<_>>(), quantities);
            }
            EventBody::OutputResult { result, .. } => {
                let result: Value = serde_json::from_str(result.as_str()).expect("checked text");
                prop_assert_eq!(&read["result"], &result);
            }
            EventBody::Failed { error, .. } | EventBody::RouteAttemptFailed { error, .. } => {
                prop_assert_eq!(&read["error"]["message"], &error.message);
                prop_assert_eq!(read["error"]["provider_code"].as_str(), error.provider_code.as_deref());
                prop_assert_eq!(read["error"]["outcome"].as_str(), error.outcome.map(crate::Outcome::as_str));
            }
            EventBody::Accepted
            | EventBody::RouteSelected { .. }
            | EventBody::ToolCallStarted { .. }
            | EventBody::ToolCallArgumentsDelta { .. }
            | EventBody::Progress { .. } => {}
            EventBody::Completed { stop_reason, .. } => {
                prop_assert_eq!(read["stop_reason"].as_str(), stop_reason.map(crate::StopReason::as_str));
            }
        }
    }
}
