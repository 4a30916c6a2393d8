//! What a read-only scan tells about executions: the one sink behind `inspect` and `verify`.
//!
//! Owns the checks that need the vocabulary of events: bodies decode, events are numbered without a hole, one terminal
//! ends them, and the stored result is what the events give. What is damaged and what is torn is the journal's verdict
//! alone; nothing here overrules it.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};

use sealog_events::body;
use sealog_events::{
    Created, Event, ExecutionId, Holds, MaterializedResult, Materializer, RecordKind, Status, Timestamp,
};
use sealog_journal::{FrameView, Parts, Record, Sink, StreamId};
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
    result: Option<Box<MaterializedResult>>,
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

    /// Takes what a record tells.
    fn take(&mut self, told: Told, place: &Place) {
        let what = match told {
            Told::Created(created) => {
                let execution = Execution::new(place, created.created_at, self.fold);
                self.created(place, execution)
            }
            Told::Event(event) => self.event(place, &event),
            Told::Result(result) => self.result(place, result),
            Told::Evidence => self.evidence(place),
            Told::Forget(ids) => {
                ids.into_iter().for_each(|id| self.forget(StreamId(id)));
                None
            }
            Told::Nothing => None,
        };
        self.findings.extend(what.map(|what| place.finding(what)));
    }

    fn forget(&mut self, stream: StreamId) {
        // Compaction may have taken a part of it already.
        self.findings.retain(|finding| finding.stream != Some(stream) || !finding.what.follows_from_a_gap());
        self.orphans.remove(&stream);
        if self.executions.remove(&stream).is_some() {
            self.forgotten += 1;
        }
        if self.keep_events_of == Some(stream) {
            self.events.clear();
        }
    }

    fn created(&mut self, place: &Place, execution: Execution) -> Option<What> {
        let before = self.executions.insert(place.stream?, execution);
        before.map(|_| What::SecondCreation)
    }

    fn result(&mut self, place: &Place, result: Box<MaterializedResult>) -> Option<What> {
        match self.executions.get_mut(&place.stream?) {
            None => return Some(What::ResultWithoutCreation),
            Some(execution) => execution.result(result),
        }
        None
    }

    fn evidence(&self, place: &Place) -> Option<What> {
        let known = self.executions.contains_key(&place.stream?);
        (!known).then_some(What::EvidenceWithoutCreation)
    }

    fn event(&mut self, place: &Place, event: &Event) -> Option<What> {
        let stream = place.stream?;
        if self.keep_events_of == Some(stream) {
            self.events.push(EventRow {
                number: event.sequence,
                type_name: event.body.type_name(),
                time: event.time,
                bytes: place.logical_size,
                segment: place.segment,
                offset: place.offset,
                sequence: place.sequence,
            });
        }
        match self.executions.get_mut(&stream) {
            Some(execution) => execution.take(place, event),
            None => {
                self.orphans.insert(stream);
                Some(What::EventWithoutCreation)
            }
        }
    }
}

/// Where a record stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    segment: u64,
    offset: u64,
    sequence: u64,
    stream: Option<StreamId>,
    logical_size: u64,
}

impl Place {
    fn of(frame: &FrameView, record: &Record) -> Place {
        let Record { sequence, stream, logical_size, .. } = *record;
        Place { segment: frame.segment, offset: frame.offset, sequence, stream, logical_size }
    }

    fn finding(&self, what: What) -> Finding {
        let Place { segment, offset, sequence, stream, .. } = *self;
        Finding { segment, offset, sequence, stream, what }
    }
}

/// What a record tells, read; whether it fits what came before is not asked here.
#[derive(Debug)]
enum Told {
    Created(Created),
    Event(Event),
    Result(Box<MaterializedResult>),
    Evidence,
    Forget(Vec<[u8; 16]>),
    /// Nothing that others depend on.
    Nothing,
}

fn read(record: &Record) -> Result<Told, What> {
    if record.kind <= KIND_JOURNAL_MAX {
        return match record.kind {
            KIND_FORGET => match Forget::ids(&record.body) {
                Ok(ids) => Ok(Told::Forget(ids.collect())),
                Err(_) => Err(What::UnreadableForget),
            },
            _ => Ok(Told::Nothing),
        };
    }
    let (Some(kind), Some(_)) = (RecordKind::from_number(record.kind), record.stream) else {
        return Err(What::UnknownRecord);
    };
    match kind.holds() {
        Holds::Creation => {
            body::decode_created(&record.body).map(Told::Created).map_err(|_| What::UnreadableCreation)
        }
        Holds::Origin => {
            body::decode_origin(&record.body).map(|_| Told::Nothing).map_err(|_| What::UnreadableOrigin)
        }
        Holds::Labels => {
            body::decode_labels(&record.body).map(|_| Told::Nothing).map_err(|_| What::UnreadableCreation)
        }
        Holds::Result => body::decode_result(&record.body)
            .map(|result| Told::Result(Box::new(result)))
            .map_err(|_| What::UnreadableResult),
        Holds::Evidence => {
            body::decode_evidence(&record.body).map(|_| Told::Evidence).map_err(|_| What::UnreadableEvidence)
        }
        Holds::Event => {
            let body = body::decode(record.kind, &record.body).map_err(|_| What::UnreadableEvent)?;
            let (sequence, time) = (record.event_number, Timestamp(record.time_ms));
            Ok(Told::Event(Event { sequence, time, body }))
        }
    }
}

impl Execution {
    fn new(place: &Place, created_at: Timestamp, fold: bool) -> Execution {
        let id = place.stream.filter(|_| fold).map(|stream| ExecutionId::from_bytes(stream.0));
        Execution {
            created_at,
            updated_at: created_at,
            status: Status::Accepted,
            events: 0,
            bytes: 0,
            first_segment: place.segment,
            last_segment: place.segment,
            fold: id.map(|id| Box::new(Materializer::new(id, created_at))),
            result: None,
        }
    }

    fn result(&mut self, result: Box<MaterializedResult>) {
        if self.fold.is_some() {
            self.result = Some(result);
        }
    }

    /// Takes the next event; says what is wrong with it.
    fn take(&mut self, place: &Place, event: &Event) -> Option<What> {
        let ended = self.status.is_terminal();
        let follows = event.sequence == self.events + 1;
        self.status = event.body.status();
        self.updated_at = event.time;
        self.events = event.sequence;
        self.bytes += place.logical_size;
        self.last_segment = place.segment;
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
    fn parts(&self) -> Option<Parts> {
        // What is kept of frames and events would take the memory of a segment twice.
        let checks_only = self.fold && !self.keep_frames && self.keep_events_of.is_none();
        checks_only.then(|| Parts::new(part::Part::default))
    }

    fn absorb(&mut self, part: Box<dyn Any>) {
        if let Ok(part) = part.downcast::<part::Part>() {
            part.give(self);
        }
    }

    fn frame(&mut self, frame: &FrameView) {
        if self.keep_frames {
            self.frames.push(frame.clone());
        }
    }

    fn record(&mut self, frame: &FrameView, record: &Record) {
        let place = Place::of(frame, record);
        match read(record) {
            Ok(told) => self.take(told, &place),
            Err(what) => self.findings.push(place.finding(what)),
        }
    }
}

mod part;

#[cfg(test)]
mod tests;
