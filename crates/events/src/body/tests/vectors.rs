//! The checked-in bodies of `spec/vectors/events/v1`: written once, never edited, read by every later version.

use super::*;
use crate::json::event_json;
use crate::{Dialect, Event, Labels, Mark, Origin, RequestId, StopReason};

enum Value {
    Event(EventBody),
    Created(Created),
    Origin(Origin),
    Labels(Labels),
    Result(MaterializedResult),
    Evidence(AttemptEvidence),
}

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../../../../spec/vectors/events/v1/", $name))
    };
}

/// The encoded bodies of a kind, and for events the JSON text of each.
const fn files(kind: RecordKind) -> (&'static str, &'static str) {
    match kind {
        RecordKind::Created => (text!("64-created.hex"), ""),
        RecordKind::MaterializedResult => (text!("65-materialized_result.hex"), ""),
        RecordKind::Origin => (text!("67-origin.hex"), ""),
        RecordKind::AttemptEvidence => (text!("66-attempt_evidence.hex"), ""),
        RecordKind::Labels => (text!("68-labels.hex"), ""),
        RecordKind::Accepted => (text!("80-execution.accepted.hex"), text!("80-execution.accepted.jsonl")),
        RecordKind::RouteSelected => (text!("81-route.selected.hex"), text!("81-route.selected.jsonl")),
        RecordKind::RouteAttemptFailed => {
            (text!("82-route.attempt_failed.hex"), text!("82-route.attempt_failed.jsonl"))
        }
        RecordKind::OutputDelta => (text!("83-output.delta.hex"), text!("83-output.delta.jsonl")),
        RecordKind::ToolCallStarted => {
            (text!("84-tool.call.started.hex"), text!("84-tool.call.started.jsonl"))
        }
        RecordKind::ToolCallArgumentsDelta => {
            (text!("85-tool.call.arguments.delta.hex"), text!("85-tool.call.arguments.delta.jsonl"))
        }
        RecordKind::Progress => (text!("86-execution.progress.hex"), text!("86-execution.progress.jsonl")),
        RecordKind::OutputResult => (text!("87-output.result.hex"), text!("87-output.result.jsonl")),
        RecordKind::UsageReported => (text!("88-usage.reported.hex"), text!("88-usage.reported.jsonl")),
        RecordKind::Completed => (text!("89-execution.completed.hex"), text!("89-execution.completed.jsonl")),
        RecordKind::CompletedFor => {
            (text!("91-execution.completed.for.hex"), text!("91-execution.completed.for.jsonl"))
        }
        RecordKind::Failed => (text!("90-execution.failed.hex"), text!("90-execution.failed.jsonl")),
    }
}

/// What the vectors of a kind hold, in the order of the file.
fn values(kind: RecordKind) -> Vec<Value> {
    let events = |bodies: Vec<EventBody>| bodies.into_iter().map(Value::Event).collect();
    match kind {
        RecordKind::Created => created(),
        RecordKind::MaterializedResult => results(),
        RecordKind::Origin => origins(),
        RecordKind::AttemptEvidence => evidence(),
        RecordKind::Labels => labels(),
        RecordKind::Accepted => events(vec![EventBody::Accepted]),
        RecordKind::RouteSelected => events(vec![
            EventBody::RouteSelected { target: target(), attempt: 1 },
            EventBody::RouteSelected { target: target(), attempt: 70_000 },
        ]),
        RecordKind::RouteAttemptFailed => events(vec![EventBody::RouteAttemptFailed {
            target: target(),
            attempt: 2,
            error: ErrorFact::new(PortableCode::RateLimited, "Provider is rate limited", true)
                .with_provider_code("429"),
        }]),
        RecordKind::OutputDelta => events(vec![
            EventBody::OutputDelta { output_index: 0, delta: "hello".to_owned() },
            EventBody::OutputDelta { output_index: 300, delta: "\"\\\n\u{1}é\u{1f600}".to_owned() },
            EventBody::OutputDelta { output_index: 1, delta: String::new() },
        ]),
        RecordKind::ToolCallStarted => events(vec![EventBody::ToolCallStarted {
            call_id: "call-1".to_owned(),
            name: "lookup".to_owned(),
        }]),
        RecordKind::ToolCallArgumentsDelta => events(vec![EventBody::ToolCallArgumentsDelta {
            call_id: "call-1".to_owned(),
            delta: "{\"q\":".to_owned(),
        }]),
        RecordKind::Progress => events(progress()),
        RecordKind::OutputResult => events(output_results()),
        RecordKind::UsageReported => events(usage()),
        RecordKind::Completed => events(vec![EventBody::Completed { target: target(), stop_reason: None }]),
        RecordKind::CompletedFor => events(
            StopReason::ALL
                .iter()
                .map(|reason| EventBody::Completed { target: target(), stop_reason: Some(*reason) })
                .collect(),
        ),
        RecordKind::Failed => events(failures()),
    }
}

fn target() -> Target {
    Target { provider: "provider-mock".to_owned(), model: "model-alpha".to_owned() }
}

fn created() -> Vec<Value> {
    let created_at = Timestamp(1_767_225_600_000);
    let identity = Identity { key_hash: [0xaa; 32], fingerprint: [0xbb; 32] };
    vec![
        Value::Created(Created { created_at, identity: None }),
        Value::Created(Created { created_at, identity: Some(identity) }),
    ]
}

fn origins() -> Vec<Value> {
    let origin = |dialect, model: &str, max_tokens, background| {
        Value::Origin(Origin { dialect, model: model.to_owned(), max_tokens, background })
    };
    vec![
        origin(Dialect::OpenAiChat, "provider-mock/model-alpha", None, false),
        origin(Dialect::OpenAiResponses, "model-alpha", Some(300), true),
        origin(Dialect::AnthropicMessages, "text-generation", Some(1), false),
    ]
}

fn labels() -> Vec<Value> {
    let labels = |ability: String| Value::Labels(Labels { ability });
    vec![labels("text-generation".to_owned()), labels("\u{e9}".repeat(200)), labels("a".to_owned())]
}

fn results() -> Vec<Value> {
    let text = "{\"outputs\":[{\"index\":0,\"type\":\"text\",\"text\":\"hello\"}],\"tool_calls\":[]}";
    let result = |status, text: &str, by_value: bool| MaterializedResult {
        rule_version: 1,
        status,
        bytes: text.len() as u64,
        sha256: Sha256::digest(text.as_bytes()).into(),
        text: by_value.then(|| text.to_owned()),
    };
    vec![
        Value::Result(result(Status::Succeeded, text, true)),
        Value::Result(result(Status::Cancelled, text, false)),
        Value::Result(result(Status::Failed, "", false)),
    ]
}

fn evidence() -> Vec<Value> {
    let evidence = |attempt, mark| Value::Evidence(AttemptEvidence { attempt, mark });
    let request_id = RequestId::new("req_011CSHoEeqs5C35K2UUqR7Fy");
    vec![
        evidence(1, Mark::RequestSent),
        evidence(2, Mark::ResponseHeaders { request_id }),
        evidence(300, Mark::ResponseHeaders { request_id: None }),
    ]
}

fn progress() -> Vec<EventBody> {
    let progress = |phase, value: Option<f64>| EventBody::Progress {
        phase,
        progress: value.map(|value| ProgressNumber::new(value).expect("finite")),
    };
    vec![
        progress(Phase::Queued, None),
        progress(Phase::Processing, Some(0.5)),
        progress(Phase::Processing, Some(-3.0)),
    ]
}

fn output_results() -> Vec<EventBody> {
    let full = Artifact {
        uri: "https://media.example/1.png".to_owned(),
        media_type: Some("image/png".to_owned()),
        name: Some("one".to_owned()),
        expires_at: Some("2026-01-02T00:00:00Z".to_owned()),
    };
    let bare = Artifact {
        uri: "https://media.example/2".to_owned(),
        media_type: None,
        name: None,
        expires_at: None,
    };
    let result = |text: &str, artifacts| EventBody::OutputResult {
        result: JsonText::new(text).expect("valid"),
        artifacts,
    };
    vec![
        result("{\"b\":1.0, \"a\":[1e3]}", Some(vec![full, bare])),
        result("null", Some(Vec::new())),
        result("\"text\"", None),
    ]
}

fn usage() -> Vec<EventBody> {
    let fact = |unit: &str, quantity: f64, source, complete| UsageFact {
        unit: unit.to_owned(),
        quantity: Quantity::new(quantity).expect("finite, not negative"),
        source,
        complete,
    };
    vec![
        EventBody::UsageReported {
            facts: vec![
                fact("input_token", 1.0, UsageSource::Runtime, None),
                fact("output_token", 9_007_199_254_740_991.0, UsageSource::Provider, Some(true)),
                fact("audio_output_second", 0.25, UsageSource::Provider, Some(false)),
                fact("request", 0.0, UsageSource::Runtime, None),
            ],
        },
        EventBody::UsageReported { facts: Vec::new() },
    ]
}

fn failures() -> Vec<EventBody> {
    let interrupted = "Execution was interrupted by a runtime restart";
    let failed = |error, cancelled| EventBody::Failed { error, cancelled };
    vec![
        failed(
            ErrorFact::new(PortableCode::ProviderUnavailable, "Provider execution failed", true)
                .with_provider_code("503"),
            false,
        ),
        failed(ErrorFact::new(PortableCode::Cancelled, "Execution was cancelled", false), true),
        failed(
            ErrorFact::new(
                PortableCode::InternalError,
                format!("{interrupted}; remote outcome is unknown"),
                false,
            )
            .with_outcome(Outcome::Unknown),
            false,
        ),
        failed(
            ErrorFact::new(PortableCode::InternalError, format!("{interrupted}; nothing was sent"), false)
                .with_outcome(Outcome::NotDispatched),
            false,
        ),
    ]
}

/// The bodies of a vector file: one for each line that begins with `# value:`, in hexadecimal on the lines after it.
fn bodies(file: &str) -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for line in file.lines() {
        if line.starts_with("# value:") {
            bodies.push(Vec::new());
        } else if !line.starts_with('#') {
            let body = bodies.last_mut().expect("a value line comes first");
            let digits: Vec<u32> =
                line.chars().map(|digit| digit.to_digit(16).expect("hexadecimal")).collect();
            assert_eq!(digits.len() % 2, 0, "half a byte");
            body.extend(digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).expect("a byte")));
        }
    }
    bodies
}

#[test]
fn every_kind_reads_and_writes_its_vectors() {
    for kind in RecordKind::ALL {
        let (hex, json) = files(*kind);
        let heading = format!("# record kind {} {}, body format 1", kind.number(), kind);
        assert_eq!(hex.lines().next(), Some(heading.as_str()));
        let values = values(*kind);
        let bodies = bodies(hex);
        assert_eq!(values.len(), bodies.len(), "{kind}");
        let mut texts = json.lines();
        for (value, bytes) in values.into_iter().zip(bodies) {
            match value {
                Value::Event(body) => {
                    assert_eq!(encode(&body).as_ref(), Ok(&bytes), "{kind}");
                    assert_eq!(decode(kind.number(), &bytes).as_ref(), Ok(&body), "{kind}");
                    let event = Event { sequence: 7, time: Timestamp(1_767_225_600_123), body };
                    assert_eq!(Some(event_json(arbitrary::ID, &event).as_str()), texts.next(), "{kind}");
                }
                Value::Created(created) => {
                    assert_eq!(encode_created(&created), bytes);
                    assert_eq!(decode_created(&bytes), Ok(created));
                }
                Value::Origin(origin) => {
                    assert_eq!(encode_origin(&origin).as_ref(), Ok(&bytes));
                    assert_eq!(decode_origin(&bytes), Ok(origin));
                }
                Value::Labels(labels) => {
                    assert_eq!(encode_labels(&labels).as_ref(), Ok(&bytes));
                    assert_eq!(decode_labels(&bytes), Ok(labels));
                }
                Value::Result(result) => {
                    assert_eq!(encode_result(&result).as_ref(), Ok(&bytes));
                    assert_eq!(decode_result(&bytes), Ok(result));
                }
                Value::Evidence(evidence) => {
                    assert_eq!(encode_evidence(&evidence).as_ref(), Ok(&bytes));
                    assert_eq!(decode_evidence(&bytes), Ok(evidence));
                }
            }
        }
        assert_eq!(texts.next(), None, "{kind}");
    }
}
