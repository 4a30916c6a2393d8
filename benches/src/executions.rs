//! Whole executions, created, followed by their events and ended with their results.

use anyhow::{Context, Result};
use sealog_events::{
    Created, Event, EventBody, ExecutionId, MaterializedResult, Materializer, RecordKind, Target, Timestamp,
    body, json,
};
use sealog_journal::{Class, NewRecord, StreamId, Unit};

use crate::workload::Deltas;

/// Between `accepted` and `completed`.
const DELTAS: u64 = 10;
/// Events of one execution.
pub const EVENTS_EACH: u64 = DELTAS + 2;
/// Number and logical size of what is not an event.
const NO_EVENT: (u64, u64) = (0, 0);

/// One producer: one execution after the other.
#[derive(Debug)]
pub struct Executions {
    deltas: Deltas,
    id: ExecutionId,
    number: u64,
    /// Of the one that runs.
    fold: Option<Materializer>,
}

impl Executions {
    pub fn new(deltas: Deltas) -> Executions {
        Executions { deltas, id: ExecutionId::from_bytes([0; 16]), number: 0, fold: None }
    }

    /// Whether one has begun and has not ended.
    pub fn is_running(&self) -> bool {
        self.fold.is_some()
    }

    /// The next event, with the creation before the first and the result before the last.
    ///
    /// # Errors
    /// An event that cannot be encoded; there is none.
    pub fn next_unit(&mut self) -> Result<Unit> {
        let (id, delta) = self.deltas.next_event();
        let time = delta.time;
        let mut records = Vec::new();
        if self.fold.is_none() {
            (self.id, self.number) = (id, 0);
            self.fold = Some(Materializer::new(id, time));
            let created = body::encode_created(&Created { created_at: time, identity: None });
            records.push(self.record(RecordKind::Created.number(), Class::OPENS, time, NO_EVENT, created));
        }
        self.number += 1;
        let body = match self.number {
            1 => EventBody::Accepted,
            number if number < 2 + DELTAS => delta.body,
            _ => {
                let target = Target { provider: "p".into(), model: "m".into() };
                EventBody::Completed { target, stop_reason: None }
            }
        };
        let event = Event { sequence: self.number, time, body };
        let fold = self.fold.as_mut().context("it runs")?;
        fold.push(&event);
        let mut class = Class::NONE;
        if event.body.is_terminal() {
            class = Class::CLOSES;
            let snapshot = self.fold.take().context("it runs")?.into_snapshot();
            let result = MaterializedResult::of(&snapshot, usize::MAX).context("it has ended")?;
            let result = body::encode_result(&result)?;
            let kind = RecordKind::MaterializedResult.number();
            records.push(self.record(kind, Class::NONE, time, NO_EVENT, result));
        }
        let encoded = body::encode(&event.body)?;
        let numbered = (event.sequence, json::event_json(self.id, &event).len() as u64);
        records.push(self.record(event.body.kind(), class, time, numbered, encoded));
        Ok(Unit { records })
    }

    fn record(
        &self,
        kind: u16,
        class: Class,
        time: Timestamp,
        (event_number, logical_size): (u64, u64),
        body: Vec<u8>,
    ) -> NewRecord {
        NewRecord {
            kind,
            stream: Some(StreamId(*self.id.as_bytes())),
            class,
            event_number,
            time_ms: time.0,
            logical_size,
            body,
        }
    }
}
