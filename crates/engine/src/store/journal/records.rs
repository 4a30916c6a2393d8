//! Between events and the journal's records: what is written for a creation, an event, an end, a forgetting, and
//! how an event is read back.
//!
//! Live text is rendered from the encoded record by the same functions as a replay's, so both are the same bytes.

use sealog_events::body::{self, BodyError};
use sealog_events::limits::RESULT_BYTES_MAX;
use sealog_events::{
    AttemptEvidence, Created, Event, ExecutionId, Identity, Labels, MaterializedResult, Materializer, Origin,
    RecordKind, Snapshot, Timestamp, limits,
};
use sealog_journal::{Class, NewRecord, Record, StreamId, Unit};
use sealog_journal_format::journal_records::{Forget, KIND_FORGET};

use crate::store::ledger::{EXECUTION_BYTES, Weight};
use crate::store::{StoreError, StoredEvent, render};

/// Bodies of an ending that fit the journal's reserve of 2304 bytes for each open stream together with envelopes,
/// padding and a frame's header. An ending without its text is never larger.
const RESERVED_BODY_BYTES: usize = 1792;

/// An event ready to be written: its record, and what becomes visible once that is durable.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) record: NewRecord,
    pub(crate) event: Event,
    pub(crate) stored: StoredEvent,
    pub(crate) weight: Weight,
}

pub(crate) fn stream(id: ExecutionId) -> StreamId {
    StreamId(*id.as_bytes())
}

/// Encodes an event and renders what was encoded.
///
/// # Errors
/// The event cannot exist.
pub(crate) fn prepare(id: ExecutionId, event: &Event) -> Result<Prepared, StoreError> {
    let bytes = body::encode(&event.body).map_err(unstorable)?;
    let body = body::decode(event.body.kind(), &bytes).map_err(unstorable)?;
    let event = Event { sequence: event.sequence, time: event.time, body };
    let (stored, weight) = render::render(id, &event)?;
    let record = NewRecord {
        kind: event.body.kind(),
        stream: Some(stream(id)),
        class: if weight.terminal { Class::CLOSES } else { Class::NONE },
        event_number: event.sequence,
        time_ms: event.time.0,
        logical_size: weight.json_bytes,
        body: bytes,
    };
    Ok(Prepared { record, event, stored, weight })
}

/// The record that opens an execution's stream.
pub(crate) fn created(id: ExecutionId, created_at: Timestamp, identity: Option<Identity>) -> NewRecord {
    let class = if identity.is_some() { Class::OPENS | Class::IDENTITY } else { Class::OPENS };
    NewRecord {
        kind: RecordKind::Created.number(),
        stream: Some(stream(id)),
        class,
        event_number: 0,
        time_ms: created_at.0,
        logical_size: EXECUTION_BYTES,
        body: body::encode_created(&Created { created_at, identity }),
    }
}

/// The record that says in which dialect an execution was asked for.
///
/// # Errors
/// The origin cannot be stored.
pub(crate) fn origin(
    id: ExecutionId,
    created_at: Timestamp,
    origin: &Origin,
) -> Result<NewRecord, StoreError> {
    let body = body::encode_origin(origin).map_err(unstorable)?;
    Ok(beside_creation(RecordKind::Origin, id, created_at, body))
}

/// The record that says what an execution is found by.
///
/// # Errors
/// The labels cannot be stored.
pub(crate) fn labels(
    id: ExecutionId,
    created_at: Timestamp,
    labels: &Labels,
) -> Result<NewRecord, StoreError> {
    let body = body::encode_labels(labels).map_err(unstorable)?;
    Ok(beside_creation(RecordKind::Labels, id, created_at, body))
}

/// A record between the creation and the first event.
fn beside_creation(kind: RecordKind, id: ExecutionId, created_at: Timestamp, body: Vec<u8>) -> NewRecord {
    NewRecord {
        kind: kind.number(),
        stream: Some(stream(id)),
        class: Class::NONE,
        event_number: 0,
        time_ms: created_at.0,
        logical_size: 0,
        body,
    }
}

/// How much of a result's text stands beside the terminal event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// All of it, up to the bound of a result.
    Whole,
    /// Its length and hash only: what the reserve of an execution has room for.
    Hashed,
}

/// What ends an execution, in one unit. The result stands before the terminal event, so that the stream's last
/// record is the one that closes it.
///
/// # Errors
/// The snapshot is not a finished one's.
pub(crate) fn ending(snapshot: &Snapshot, terminal: &NewRecord, text: Text) -> Result<Unit, StoreError> {
    Ok(Unit { records: vec![result(snapshot, text)?, terminal.clone()] })
}

/// Whether such a unit is no larger than what the reserve keeps for it.
pub(crate) fn fits_reserve(ending: &Unit) -> bool {
    ending.records.iter().map(|record| record.body.len()).sum::<usize>() <= RESERVED_BODY_BYTES
}

fn result(snapshot: &Snapshot, text: Text) -> Result<NewRecord, StoreError> {
    let bytes_max = match text {
        Text::Whole => RESULT_BYTES_MAX,
        Text::Hashed => 0,
    };
    let result = MaterializedResult::of(snapshot, bytes_max).ok_or(StoreError::Unstorable)?;
    Ok(NewRecord {
        kind: RecordKind::MaterializedResult.number(),
        stream: Some(stream(snapshot.execution_id)),
        class: Class::NONE,
        event_number: 0,
        time_ms: snapshot.updated_at.0,
        logical_size: 0,
        body: body::encode_result(&result).map_err(unstorable)?,
    })
}

/// The record of evidence, beside the events.
///
/// # Errors
/// Evidence that cannot exist.
pub(crate) fn evidence(
    id: ExecutionId,
    evidence: &AttemptEvidence,
    time: Timestamp,
) -> Result<NewRecord, StoreError> {
    Ok(NewRecord {
        kind: RecordKind::AttemptEvidence.number(),
        stream: Some(stream(id)),
        class: Class::NONE,
        event_number: 0,
        time_ms: time.0,
        logical_size: 0,
        body: body::encode_evidence(evidence).map_err(unstorable)?,
    })
}

/// Takes a record of an execution into its fold; what is neither event nor evidence says nothing there.
///
/// # Errors
/// The body is not what its kind requires.
pub(crate) fn take(fold: &mut Materializer, record: &Record) -> Result<(), BodyError> {
    if record.kind == RecordKind::AttemptEvidence.number() {
        fold.push_evidence(&body::decode_evidence(&record.body)?);
    } else if let Some(event) = event(record)? {
        fold.push(&event);
    }
    Ok(())
}

/// Most executions that one record forgets: its frame must fit into what the reserve has beside the ends of others.
pub(crate) const FORGOTTEN_AT_ONCE_MAX: usize = 128;

/// The record after which these executions and their keys are gone.
///
/// # Errors
/// More executions than one record names.
pub(crate) fn forget(ids: &[ExecutionId], now: Timestamp) -> Result<NewRecord, StoreError> {
    let streams = ids.iter().map(|id| *id.as_bytes()).collect();
    Ok(NewRecord {
        kind: KIND_FORGET,
        stream: None,
        class: Class::FORGETS,
        event_number: 0,
        time_ms: now.0,
        logical_size: 0,
        body: Forget { streams }.encode().map_err(|_| StoreError::Unstorable)?,
    })
}

/// The event of a record; `None` for a record that is none.
///
/// # Errors
/// The body is not what its kind requires.
pub(crate) fn event(record: &Record) -> Result<Option<Event>, BodyError> {
    if record.event_number == 0 {
        return Ok(None);
    }
    let body = body::decode(record.kind, &record.body)?;
    Ok(Some(Event { sequence: record.event_number, time: Timestamp(record.time_ms), body }))
}

fn unstorable(error: BodyError) -> StoreError {
    match error {
        BodyError::Unproducible(unproducible) => render::refused(unproducible),
        BodyError::UnknownKind
        | BodyError::TooLong
        | BodyError::Malformed
        | BodyError::NotCanonical
        | BodyError::UnknownNumber
        | BodyError::InvalidValue => StoreError::Unstorable,
    }
}

// A terminal with its result, and a creation with its first event, are far below what one unit may hold.
const _: () = assert!(
    limits::BODY_BYTES_MAX <= sealog_journal_format::limits::RECORD_BYTES_MAX
        && RESULT_BYTES_MAX + 2 * limits::TERMINAL_JSON_BYTES_MAX
            < sealog_journal_format::limits::UNIT_BYTES_MAX
);
