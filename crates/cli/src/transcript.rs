//! One execution's events out of a scan: the sink behind `replay`.
//!
//! Events become text through the same two functions as the live stream's. Keeps one execution and nothing else.

use sealog_events::json::{event_json, snapshot_json};
use sealog_events::{
    AttemptEvidence, Event, EventBody, ExecutionId, Materializer, RecordKind, Timestamp, body,
};
use sealog_http::sse_frame;
use sealog_journal::{FrameView, Record, Sink, StreamId};
use sealog_journal_format::journal_records::{Forget, KIND_FORGET};

use crate::args::ReplayFormat;

/// Events that are not there, by their own numbers. `last`: `None` if the end is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub first: u64,
    pub last: u64,
    pub why: &'static str,
}

/// The sink.
#[derive(Debug)]
pub struct Transcript {
    id: ExecutionId,
    created_at: Option<Timestamp>,
    events: Vec<Event>,
    evidence: Vec<AttemptEvidence>,
    missing: Vec<Missing>,
    next: u64,
}

impl Transcript {
    pub fn of(id: ExecutionId) -> Transcript {
        let (events, evidence, missing) = (Vec::new(), Vec::new(), Vec::new());
        Transcript { id, created_at: None, events, evidence, missing, next: 1 }
    }

    /// Nothing of the execution was found.
    pub fn is_empty(&self) -> bool {
        self.created_at.is_none() && self.events.is_empty() && self.missing.is_empty()
    }

    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    fn stream(&self) -> StreamId {
        StreamId(*self.id.as_bytes())
    }

    fn event(&mut self, record: &Record) {
        let number = record.event_number;
        if number > self.next {
            self.missing.push(Missing { first: self.next, last: number - 1, why: "corrupt" });
        }
        self.next = number + 1;
        match body::decode(record.kind, &record.body) {
            Ok(body) => {
                self.events.push(Event { sequence: number, time: Timestamp(record.time_ms), body });
            }
            Err(_) => self.missing.push(Missing { first: number, last: number, why: "unreadable" }),
        }
    }

    fn forget(&mut self) {
        *self = Transcript::of(self.id);
    }

    /// Everything found, as it was asked for.
    pub fn print(&self, format: ReplayFormat) -> String {
        match format {
            ReplayFormat::Sse => self
                .events
                .iter()
                .map(|event| sse_frame(event.sequence, event.body.type_name(), &event_json(self.id, event)))
                .collect(),
            ReplayFormat::Jsonl => {
                self.events.iter().map(|event| event_json(self.id, event) + "\n").collect()
            }
            ReplayFormat::Text => self.text(),
            ReplayFormat::Snapshot => snapshot_json(&self.fold().into_snapshot()) + "\n",
        }
    }

    fn fold(&self) -> Materializer {
        let created_at = self.created_at.or_else(|| self.events.first().map(|event| event.time));
        let mut fold = Materializer::new(self.id, created_at.unwrap_or_default());
        for event in &self.events {
            fold.push(event);
        }
        self.evidence.iter().for_each(|evidence| fold.push_evidence(evidence));
        fold
    }

    /// The text of all outputs as it streamed; without any, the result's JSON. Ends its last line.
    fn text(&self) -> String {
        let mut text = String::new();
        let mut result = None;
        for event in &self.events {
            match &event.body {
                EventBody::OutputDelta { delta, .. } => text.push_str(delta),
                EventBody::OutputResult { result: found, .. } => result = Some(found.as_str()),
                EventBody::Accepted
                | EventBody::RouteSelected { .. }
                | EventBody::RouteAttemptFailed { .. }
                | EventBody::ToolCallStarted { .. }
                | EventBody::ToolCallArgumentsDelta { .. }
                | EventBody::Progress { .. }
                | EventBody::UsageReported { .. }
                | EventBody::Completed { .. }
                | EventBody::Failed { .. } => {}
            }
        }
        if text.is_empty() {
            text.push_str(result.unwrap_or_default());
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }
}

impl Sink for Transcript {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        if record.kind == KIND_FORGET {
            let names_it =
                Forget::ids(&record.body).is_ok_and(|mut ids| ids.any(|id| StreamId(id) == self.stream()));
            if names_it {
                self.forget();
            }
            return;
        }
        if record.stream != Some(self.stream()) {
            return;
        }
        if record.event_number > 0 {
            self.event(record);
        } else if record.kind == RecordKind::Created.number() {
            self.created_at = body::decode_created(&record.body).ok().map(|created| created.created_at);
        } else if record.kind == RecordKind::AttemptEvidence.number() {
            self.evidence.extend(body::decode_evidence(&record.body));
        }
    }
}
