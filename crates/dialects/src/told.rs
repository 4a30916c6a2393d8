//! What a durable event says to a dialect, read from the event's own JSON text.

use sealog_events::{PortableCode, RecordKind, StopReason};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::usage::Fact;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub sequence: u64,
    pub what: What,
}

/// The part of it that some dialect shows.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Accepted,
    Routed,
    Text(String),
    CallStarted {
        call_id: String,
        name: String,
    },
    CallArguments {
        call_id: String,
        delta: String,
    },
    /// Text of a result that came as a whole.
    Result(String),
    Usage(Vec<Fact>),
    /// With the reason that the provider gave, if it gave one.
    Completed(Option<StopReason>),
    Failed(Failed),
    /// Progress of a task, an attempt that another one follows.
    Other,
}

/// Why an execution did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub code: PortableCode,
    pub message: String,
    pub retryable: bool,
    pub cancelled: bool,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    delta: String,
    #[serde(default)]
    call_id: String,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    facts: Vec<Fact>,
    stop_reason: Option<String>,
    error: Option<WireError>,
    status: String,
}

#[derive(Deserialize)]
struct WireError {
    code: String,
    message: String,
    retryable: bool,
}

impl Told {
    /// Reads an event of that type. `None`: the text is not the event's.
    pub fn read(sequence: u64, type_name: &str, json: &str) -> Option<Told> {
        let kind = RecordKind::from_name(type_name)?;
        let wire: Wire<'_> = serde_json::from_str(json).ok()?;
        let what = match kind {
            RecordKind::Created
            | RecordKind::Origin
            | RecordKind::Labels
            | RecordKind::MaterializedResult
            | RecordKind::AttemptEvidence => return None,
            RecordKind::Accepted => What::Accepted,
            RecordKind::RouteSelected => What::Routed,
            RecordKind::RouteAttemptFailed | RecordKind::Progress => What::Other,
            RecordKind::OutputDelta => What::Text(wire.delta),
            RecordKind::ToolCallStarted => What::CallStarted { call_id: wire.call_id, name: wire.name },
            RecordKind::ToolCallArgumentsDelta => {
                What::CallArguments { call_id: wire.call_id, delta: wire.delta }
            }
            RecordKind::OutputResult => What::Result(result(wire.result?.get())),
            RecordKind::UsageReported => What::Usage(wire.facts),
            RecordKind::Completed | RecordKind::CompletedFor => {
                // One that a later release added says no more than that there was one.
                let known = |name: String| StopReason::from_name(&name).unwrap_or(StopReason::Other);
                What::Completed(wire.stop_reason.map(known))
            }
            RecordKind::Failed => {
                let WireError { code, message, retryable } = wire.error?;
                let code = PortableCode::from_name(&code)?;
                What::Failed(Failed { code, message, retryable, cancelled: wire.status == "cancelled" })
            }
        };
        Some(Told { sequence, what })
    }
}

/// A text as it is, anything else as its JSON.
fn result(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use sealog_events::json::event_json;
    use sealog_events::{
        ErrorFact, Event, EventBody, ExecutionId, Target, Timestamp, UsageFact, UsageSource,
    };

    use super::*;

    pub(crate) const ID: ExecutionId = ExecutionId::from_bytes([0xab; 16]);

    /// Events as they come out of a store.
    pub(crate) fn told(bodies: Vec<EventBody>) -> Vec<Told> {
        let read = |(sequence, body): (u64, EventBody)| {
            let event = Event { sequence, time: Timestamp(1_767_225_600_000), body };
            Told::read(sequence, event.body.type_name(), &event_json(ID, &event)).expect("an event's text")
        };
        (1..).zip(bodies).map(read).collect()
    }

    pub(crate) fn target() -> Target {
        Target { provider: "p".to_owned(), model: "m".to_owned() }
    }

    pub(crate) fn begun() -> Vec<EventBody> {
        vec![EventBody::Accepted, EventBody::RouteSelected { target: target(), attempt: 1 }]
    }

    pub(crate) fn text(delta: &str) -> EventBody {
        EventBody::OutputDelta { output_index: 0, delta: delta.to_owned() }
    }

    pub(crate) fn call(call_id: &str, name: &str) -> EventBody {
        EventBody::ToolCallStarted { call_id: call_id.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn arguments(call_id: &str, delta: &str) -> EventBody {
        EventBody::ToolCallArgumentsDelta { call_id: call_id.to_owned(), delta: delta.to_owned() }
    }

    pub(crate) fn usage(counts: &[(&str, u32)]) -> EventBody {
        let fact = |(unit, count): &(&str, u32)| UsageFact {
            unit: (*unit).to_owned(),
            quantity: (*count).into(),
            source: UsageSource::Provider,
            complete: Some(true),
        };
        EventBody::UsageReported { facts: counts.iter().map(fact).collect() }
    }

    pub(crate) fn completed() -> EventBody {
        EventBody::Completed { target: target(), stop_reason: None }
    }

    pub(crate) fn completed_for(reason: StopReason) -> EventBody {
        EventBody::Completed { target: target(), stop_reason: Some(reason) }
    }

    pub(crate) fn failed(code: PortableCode, cancelled: bool) -> EventBody {
        EventBody::Failed { error: ErrorFact::new(code, "It failed", true), cancelled }
    }

    #[test]
    fn events_are_read_from_their_text() {
        let result = |json: &str| EventBody::OutputResult {
            result: sealog_events::JsonText::new(json).unwrap(),
            artifacts: None,
        };
        let read = told(vec![
            EventBody::Accepted,
            text("a\n\"b"),
            call("c", "f"),
            arguments("c", "{"),
            result("\"plain\""),
            result("{\"a\":1}"),
            usage(&[("input_token", 3)]),
            completed_for(StopReason::Length),
            failed(PortableCode::Cancelled, true),
        ]);
        let whats: Vec<What> = read.into_iter().map(|told| told.what).collect();
        assert_eq!(whats[1], What::Text("a\n\"b".to_owned()));
        assert_eq!(whats[4], What::Result("plain".to_owned()));
        assert_eq!(whats[5], What::Result("{\"a\":1}".to_owned()));
        assert!(matches!(&whats[6], What::Usage(facts) if facts.len() == 1));
        assert_eq!(whats[7], What::Completed(Some(StopReason::Length)));
        assert_eq!(told(vec![completed()])[0].what, What::Completed(None));
        let later = r#"{"status":"succeeded","stop_reason":"whim"}"#;
        let later = Told::read(1, "execution.completed", later).unwrap();
        assert_eq!(later.what, What::Completed(Some(StopReason::Other)));
        assert!(matches!(&whats[8], What::Failed(failed) if failed.cancelled && failed.retryable));
        assert_eq!(Told::read(1, "output.delta", "{"), None);
        assert_eq!(Told::read(1, "created", "{\"status\":\"x\"}"), None);
    }
}
