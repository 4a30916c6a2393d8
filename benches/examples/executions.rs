//! A journal of whole executions, created, followed by their events and ended with their results, 64 at a time: what
//! `sealog journal verify` has everything to check of. `executions DIR EVENTS` makes it in an absent folder; its key is 32
//! bytes of 1.

use std::path::Path;

use anyhow::{Context, Result};
use sealog_benches::sealed;
use sealog_benches::workload::Deltas;
use sealog_events::{
    Created, Event, EventBody, ExecutionId, MaterializedResult, Materializer, RecordKind, Target, Timestamp,
    body,
};
use sealog_journal::{Admission, Class, Ignore, Journal, NewRecord, StreamId, Unit};

const AT_ONCE: usize = 64;
/// Between `accepted` and `completed`.
const DELTAS: u64 = 10;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (folder, events) = (args.next(), args.next());
    let (folder, events) = folder.zip(events).context("a folder and a number of events")?;
    let (folder, events) = (Path::new(&folder), events.parse::<u64>()?);
    let config = sealed::config(folder, true)?;
    sealed::create(&config)?;
    let (journal, _) = Journal::open(&config, &mut Ignore)?;
    let mut running: Vec<_> = (0..AT_ONCE as u64).map(|number| Execution::new(number << 40)).collect();
    let mut written = 0;
    while written < events || running.iter().any(|execution| execution.fold.is_some()) {
        let mut tickets = Vec::with_capacity(AT_ONCE);
        for execution in &mut running {
            // What runs is brought to its end, so that every execution has its result.
            if written < events || execution.fold.is_some() {
                written += 1;
                let ticket = journal.submit(execution.next_unit()?, Admission::Ordinary);
                tickets.push(ticket.map_err(|refusal| anyhow::anyhow!("refused: {refusal:?}"))?);
            }
        }
        tickets.into_iter().try_for_each(|ticket| ticket.wait())?;
    }
    journal.close()?;
    println!("{written} events, {} executions", journal.streams());
    Ok(())
}

/// One producer: one execution after the other.
struct Execution {
    deltas: Deltas,
    id: ExecutionId,
    number: u64,
    /// Of the one that runs.
    fold: Option<Materializer>,
}

impl Execution {
    fn new(seed: u64) -> Execution {
        Execution { deltas: Deltas::new(seed), id: ExecutionId::from_bytes([0; 16]), number: 0, fold: None }
    }

    fn next_unit(&mut self) -> Result<Unit> {
        let (id, delta) = self.deltas.next_event();
        let time = delta.time;
        let mut records = Vec::new();
        if self.fold.is_none() {
            (self.id, self.number) = (id, 0);
            self.fold = Some(Materializer::new(id, time));
            let created = body::encode_created(&Created { created_at: time, identity: None });
            records.push(self.record(RecordKind::Created.number(), Class::OPENS, 0, time, created));
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
            records.push(self.record(RecordKind::MaterializedResult.number(), Class::NONE, 0, time, result));
        }
        let encoded = body::encode(&event.body)?;
        records.push(self.record(event.body.kind(), class, event.sequence, time, encoded));
        Ok(Unit { records })
    }

    fn record(
        &self,
        kind: u16,
        class: Class,
        event_number: u64,
        time: Timestamp,
        body: Vec<u8>,
    ) -> NewRecord {
        NewRecord {
            kind,
            stream: Some(StreamId(*self.id.as_bytes())),
            class,
            event_number,
            time_ms: time.0,
            logical_size: if event_number == 0 { 0 } else { 289 },
            body,
        }
    }
}
