//! What a read-only scan tells about executions: the one sink behind `inspect` and `verify`.
//!
//! Owns the checks that need the vocabulary of events: bodies decode, events are numbered without a hole, one terminal
//! ends them, and the stored result is what the events give. What is damaged and what is torn is the journal's verdict
//! alone; nothing here overrules it.

use std::collections::{BTreeSet, HashMap};

use sealog_events::body;
use sealog_events::{Event, ExecutionId, MaterializedResult, Materializer, RecordKind, Status, Timestamp};
use sealog_journal::{FrameView, Record, Sink, StreamId};
use sealog_journal_format::journal_records::{Forget, KIND_FORGET, KIND_JOURNAL_MAX};

/// Something in the records that is not as it must be. `offset` is that of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    pub segment: u64,
    pub offset: u64,
    pub sequence: u64,
    pub stream: Option<StreamId>,
    pub what: What,
}

/// What a record has wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    UnreadableForget,
    UnreadableCreation,
    UnreadableOrigin,
    UnreadableEvent,
    UnreadableResult,
    UnreadableEvidence,
    UnknownRecord,
    SecondCreation,
    EventWithoutCreation,
    ResultWithoutCreation,
    EvidenceWithoutCreation,
    MissingEvents,
    EventBehindTerminal,
    TerminalWithoutResult,
    OtherResult,
}

impl What {
    pub fn words(self) -> &'static str {
        match self {
            What::UnreadableForget => "a forget record that cannot be read",
            What::UnreadableCreation => "a creation that cannot be read",
            What::UnreadableOrigin => "an origin that cannot be read",
            What::UnreadableEvent => "an event that cannot be read",
            What::UnreadableResult => "a stored result that cannot be read",
            What::UnreadableEvidence => "evidence of an attempt that cannot be read",
            What::UnknownRecord => "a record that this release does not know",
            What::SecondCreation => "an execution is created a second time",
            What::EventWithoutCreation => "an event of an execution whose creation is not here",
            What::ResultWithoutCreation => "a result of an execution whose creation is not here",
            What::EvidenceWithoutCreation => "evidence of an execution whose creation is not here",
            What::MissingEvents => "events are missing before this one",
            What::EventBehindTerminal => "an event behind the terminal one",
            What::TerminalWithoutResult => "a terminal event without its stored result",
            What::OtherResult => "the stored result is not what the events give",
        }
    }

    /// Whether a gap in the journal alone brings it about, or a part that compaction took.
    fn follows_from_a_gap(self) -> bool {
        match self {
            What::EventWithoutCreation
            | What::ResultWithoutCreation
            | What::EvidenceWithoutCreation
            | What::MissingEvents => true,
            What::UnreadableForget
            | What::UnreadableCreation
            | What::UnreadableOrigin
            | What::UnreadableEvent
            | What::UnreadableResult
            | What::UnreadableEvidence
            | What::UnknownRecord
            | What::SecondCreation
            | What::EventBehindTerminal
            | What::TerminalWithoutResult
            | What::OtherResult => false,
        }
    }
}

/// One execution, without its content.
#[derive(Debug)]
pub struct Execution {
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub status: Status,
    pub events: u64,
    /// Logical bytes: the JSON text of its events.
    pub bytes: u64,
    pub first_segment: u64,
    pub last_segment: u64,
    /// Events so far, while they are checked.
    fold: Option<Box<Materializer>>,
    result: Option<MaterializedResult>,
}

/// One event's place, without its content.
#[derive(Clone, Copy, Debug)]
pub struct EventRow {
    pub number: u64,
    pub type_name: &'static str,
    pub time: Timestamp,
    pub bytes: u64,
    pub segment: u64,
    pub offset: u64,
    pub sequence: u64,
}

/// The sink.
#[derive(Debug, Default)]
pub struct Survey {
    pub executions: HashMap<StreamId, Execution>,
    pub findings: Vec<Finding>,
    pub frames: Vec<FrameView>,
    pub events: Vec<EventRow>,
    pub forgotten: u64,
    /// Executions of which events read, but not the creation.
    pub orphans: BTreeSet<StreamId>,
    keep_frames: bool,
    keep_events_of: Option<StreamId>,
    fold: bool,
}

impl Survey {
    /// Counts, and keeps what is asked for: every frame's header, the places of one execution's events.
    pub fn looking(keep_frames: bool, keep_events_of: Option<ExecutionId>) -> Survey {
        let keep_events_of = keep_events_of.map(|id| StreamId(*id.as_bytes()));
        Survey { keep_frames, keep_events_of, ..Survey::default() }
    }

    /// Recomputes every result.
    pub fn checking() -> Survey {
        Survey { fold: true, ..Survey::default() }
    }

    /// Takes out what only says again that the journal has gaps.
    pub fn explain_by_gaps(&mut self) {
        self.findings.retain(|finding| !finding.what.follows_from_a_gap());
    }

    fn find(&mut self, frame: &FrameView, record: &Record, what: What) {
        let Record { sequence, stream, .. } = *record;
        self.findings.push(Finding { segment: frame.segment, offset: frame.offset, sequence, stream, what });
    }

    fn journal_record(&mut self, frame: &FrameView, record: &Record) {
        if record.kind != KIND_FORGET {
            return;
        }
        match Forget::ids(&record.body) {
            Ok(ids) => {
                for id in ids {
                    // Compaction may have taken a part of it already.
                    self.findings.retain(|finding| {
                        finding.stream != Some(StreamId(id)) || !finding.what.follows_from_a_gap()
                    });
                    self.orphans.remove(&StreamId(id));
                    if self.executions.remove(&StreamId(id)).is_some() {
                        self.forgotten += 1;
                    }
                    if self.keep_events_of == Some(StreamId(id)) {
                        self.events.clear();
                    }
                }
            }
            Err(_) => self.find(frame, record, What::UnreadableForget),
        }
    }

    fn created(&mut self, frame: &FrameView, record: &Record, stream: StreamId) {
        let Ok(created) = body::decode_created(&record.body) else {
            return self.find(frame, record, What::UnreadableCreation);
        };
        let id = ExecutionId::from_bytes(stream.0);
        let execution = Execution {
            created_at: created.created_at,
            updated_at: created.created_at,
            status: Status::Accepted,
            events: 0,
            bytes: 0,
            first_segment: frame.segment,
            last_segment: frame.segment,
            fold: self.fold.then(|| Box::new(Materializer::new(id, created.created_at))),
            result: None,
        };
        if self.executions.insert(stream, execution).is_some() {
            self.find(frame, record, What::SecondCreation);
        }
    }

    fn result(&mut self, frame: &FrameView, record: &Record, stream: StreamId) {
        let result = body::decode_result(&record.body);
        match (result, self.executions.get_mut(&stream)) {
            (Err(_), _) => self.find(frame, record, What::UnreadableResult),
            (Ok(_), None) => self.find(frame, record, What::ResultWithoutCreation),
            (Ok(result), Some(execution)) => {
                if execution.fold.is_some() {
                    execution.result = Some(result);
                }
            }
        }
    }

    fn evidence(&mut self, frame: &FrameView, record: &Record, stream: StreamId) {
        match (body::decode_evidence(&record.body), self.executions.get(&stream)) {
            (Err(_), _) => self.find(frame, record, What::UnreadableEvidence),
            (Ok(_), None) => self.find(frame, record, What::EvidenceWithoutCreation),
            (Ok(_), Some(_)) => {}
        }
    }

    fn event(&mut self, frame: &FrameView, record: &Record, stream: StreamId) {
        let Ok(body) = body::decode(record.kind, &record.body) else {
            return self.find(frame, record, What::UnreadableEvent);
        };
        let event = Event { sequence: record.event_number, time: Timestamp(record.time_ms), body };
        if self.keep_events_of == Some(stream) {
            self.events.push(EventRow {
                number: event.sequence,
                type_name: event.body.type_name(),
                time: event.time,
                bytes: record.logical_size,
                segment: frame.segment,
                offset: frame.offset,
                sequence: record.sequence,
            });
        }
        let Some(execution) = self.executions.get_mut(&stream) else {
            self.orphans.insert(stream);
            return self.find(frame, record, What::EventWithoutCreation);
        };
        let what = execution.take(frame, record, &event);
        if let Some(what) = what {
            self.find(frame, record, what);
        }
    }
}

impl Execution {
    /// Takes the next event; says what is wrong with it.
    fn take(&mut self, frame: &FrameView, record: &Record, event: &Event) -> Option<What> {
        let ended = self.status.is_terminal();
        let follows = event.sequence == self.events + 1;
        self.status = event.body.status();
        self.updated_at = event.time;
        self.events = event.sequence;
        self.bytes += record.logical_size;
        self.last_segment = frame.segment;
        if ended {
            return Some(What::EventBehindTerminal);
        }
        if !follows {
            self.fold = None;
            return Some(What::MissingEvents);
        }
        let fold = self.fold.as_mut()?;
        fold.push(event);
        if !event.body.is_terminal() {
            return None;
        }
        let snapshot = self.fold.take()?.into_snapshot();
        match self.result.take().map(|result| result.agrees_with(&snapshot)) {
            None => Some(What::TerminalWithoutResult),
            Some(Some(false)) => Some(What::OtherResult),
            // `None`: made by other rules, which this release does not have.
            Some(Some(true) | None) => None,
        }
    }
}

impl Sink for Survey {
    fn frame(&mut self, frame: &FrameView) {
        if self.keep_frames {
            self.frames.push(frame.clone());
        }
    }

    fn record(&mut self, frame: &FrameView, record: &Record) {
        if record.kind <= KIND_JOURNAL_MAX {
            return self.journal_record(frame, record);
        }
        let (Some(kind), Some(stream)) = (RecordKind::from_number(record.kind), record.stream) else {
            return self.find(frame, record, What::UnknownRecord);
        };
        match kind {
            RecordKind::Created => self.created(frame, record, stream),
            // Nothing else depends on it.
            RecordKind::Origin => {
                if body::decode_origin(&record.body).is_err() {
                    self.find(frame, record, What::UnreadableOrigin);
                }
            }
            RecordKind::Labels if body::decode_labels(&record.body).is_err() => {
                self.find(frame, record, What::UnreadableCreation);
            }
            RecordKind::Labels => {}
            RecordKind::MaterializedResult => self.result(frame, record, stream),
            RecordKind::AttemptEvidence => self.evidence(frame, record, stream),
            RecordKind::Accepted
            | RecordKind::RouteSelected
            | RecordKind::RouteAttemptFailed
            | RecordKind::OutputDelta
            | RecordKind::ToolCallStarted
            | RecordKind::ToolCallArgumentsDelta
            | RecordKind::Progress
            | RecordKind::OutputResult
            | RecordKind::UsageReported
            | RecordKind::Completed
            | RecordKind::CompletedFor
            | RecordKind::Failed => self.event(frame, record, stream),
        }
    }
}

#[cfg(test)]
mod tests;
