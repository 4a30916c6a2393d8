//! Which records of a damaged journal still have their place: of each stream what stands before its first hole. They are
//! written as they come; only positions are kept.

use std::collections::HashMap;
use std::sync::Arc;

use sealog_journal_format::journal_records::{Forget, KIND_FORGET, KIND_JOURNAL_MAX};

use crate::backup::Fence;
use crate::codec::Codec;
use crate::completion::Ticket;
use crate::error::{JournalError, Result};
use crate::journal::{Journal, Refusal};
use crate::record::{Class, NewRecord, Record, StreamId, Unit};
use crate::recovery::findings::{FrameView, Sink};
use crate::writer::core::Turn;
use crate::writer::queue::Admission;

/// Something of a stream that the new journal does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its creation does not read: nothing of it is kept. `events` of it were read.
    Stream { stream: StreamId, events: u64 },
    /// Events that do not read, and the ones behind them, which have lost their place: `readable` of those were read.
    Events { stream: StreamId, first_event: u64, last_event: u64, readable: u64 },
}

/// Units that are submitted before the new journal is turned.
const BATCH_UNITS: usize = 512;

#[derive(Debug, Default)]
struct Place {
    /// The event that comes next.
    next: u64,
    closed: bool,
    /// The hole it has: the event before which nothing reads, the highest one seen, and how many were read behind it.
    hole: Option<(u64, u64)>,
    /// Records that stand before their event, as the result before the terminal one.
    waiting: Vec<NewRecord>,
}

/// The sink.
#[derive(Debug)]
pub(super) struct Salvage {
    journal: Journal,
    codec: Arc<dyn Codec>,
    places: HashMap<StreamId, Place>,
    /// Streams without a creation.
    orphans: HashMap<StreamId, u64>,
    fence: Fence,
    submitted: Vec<Ticket>,
    failed: Option<JournalError>,
}

pub(super) struct Salvaged {
    pub losses: Vec<Loss>,
    pub open: Vec<StreamId>,
    /// As the journal's own records say that were kept.
    pub fence: Fence,
}

impl Salvage {
    pub fn into(journal: Journal, codec: Arc<dyn Codec>) -> Salvage {
        let (places, orphans, fence) = (HashMap::new(), HashMap::new(), Fence::default());
        Salvage { journal, codec, places, orphans, fence, submitted: Vec::new(), failed: None }
    }

    /// Writes what is left; what came of every stream.
    pub fn finish(mut self) -> Result<Salvaged> {
        self.drain();
        if let Some(error) = self.failed {
            return Err(error);
        }
        let orphans =
            self.orphans.iter().map(|(stream, events)| Loss::Stream { stream: *stream, events: *events });
        let mut losses: Vec<Loss> = orphans.collect();
        let mut open = Vec::new();
        for (stream, place) in &self.places {
            if let Some((last_event, readable)) = place.hole {
                losses.push(Loss::Events { stream: *stream, first_event: place.next, last_event, readable });
            }
            if !place.closed {
                open.push(*stream);
            }
        }
        losses.sort_by_key(|loss| match loss {
            Loss::Stream { stream, .. } | Loss::Events { stream, .. } => *stream,
        });
        open.sort();
        Ok(Salvaged { losses, open, fence: self.fence })
    }

    fn take(&mut self, record: &Record) {
        let Some(stream) = record.stream.filter(|_| record.kind > KIND_JOURNAL_MAX) else {
            return self.of_journal(record);
        };
        if record.class.contains(Class::OPENS) {
            self.places.insert(stream, Place { next: record.event_number + 1, ..Place::default() });
            return self.write(vec![again(record)]);
        }
        let Some(place) = self.places.get_mut(&stream) else {
            *self.orphans.entry(stream).or_default() += u64::from(record.event_number > 0);
            return;
        };
        if let Some((last_event, readable)) = &mut place.hole {
            *last_event = record.event_number.max(*last_event);
            *readable += u64::from(record.event_number > 0);
        } else if record.event_number == 0 && self.codec.stands_alone(record.kind) {
            if !place.closed {
                self.write(vec![again(record)]);
            }
        } else if record.event_number == 0 {
            place.waiting.push(again(record));
        } else if record.event_number == place.next && !place.closed {
            place.next += 1;
            place.closed = record.class.contains(Class::CLOSES);
            let mut records = std::mem::take(&mut place.waiting);
            records.push(again(record));
            self.write(records);
        } else {
            place.waiting.clear();
            place.hole = Some((record.event_number, 1));
        }
    }

    /// Records of no stream keep their order among the others.
    fn of_journal(&mut self, record: &Record) {
        self.fence.take(record.kind, &record.body);
        if record.kind == KIND_FORGET {
            for id in Forget::ids(&record.body).into_iter().flatten() {
                self.places.remove(&StreamId(id));
                self.orphans.remove(&StreamId(id));
            }
        }
        self.write(vec![again(record)]);
    }

    fn write(&mut self, records: Vec<NewRecord>) {
        if self.failed.is_some() {
            return;
        }
        match self.journal.submit(Unit { records }, Admission::Reserved) {
            Ok(ticket) => self.submitted.push(ticket),
            Err(Refusal::Busy(_)) => self.failed = Some(JournalError::Full),
            Err(Refusal::TooLarge) => self.failed = Some(JournalError::Misuse("a record is too large")),
            Err(Refusal::Ended(e)) => self.failed = Some(e),
        }
        if self.submitted.len() >= BATCH_UNITS {
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Turn::Decided(_) = self.journal.turn() {}
        for mut ticket in std::mem::take(&mut self.submitted) {
            match ticket.try_result() {
                Some(Ok(())) => {}
                Some(Err(e)) => self.failed = self.failed.take().or(Some(e)),
                None => self.failed = self.failed.take().or(Some(JournalError::Closed)),
            }
        }
    }
}

impl Sink for Salvage {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        self.take(record);
    }
}

fn again(record: &Record) -> NewRecord {
    NewRecord {
        kind: record.kind,
        stream: record.stream,
        class: record.class,
        event_number: record.event_number,
        time_ms: record.time_ms,
        logical_size: record.logical_size,
        body: record.body.clone(),
    }
}
