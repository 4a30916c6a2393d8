//! The write path without a disk and without threads: hand-over, encoding, sealing, index, acknowledgement.

use std::sync::Arc;

use sealog_disk::sim::SimDisk;
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_journal::{Admission, Config, Ignore, Journal, Ticket, Turn, Unit};
use sealog_seal::Secret;

use crate::sealed;
use crate::workload::Deltas;

/// A journal on a simulated disk, with its producers.
#[derive(Debug)]
pub struct InMemory {
    journal: Journal,
    producers: Vec<Deltas>,
    tickets: Vec<Ticket>,
}

impl InMemory {
    /// # Panics
    /// Never: an empty simulated disk takes a journal.
    pub fn new(producers: u64) -> InMemory {
        InMemory { journal: empty(), producers: producers_of(producers), tickets: Vec::new() }
    }

    /// One record of each producer, in one group.
    ///
    /// # Panics
    /// Never: a simulated disk without faults keeps what it is given.
    pub fn commit(&mut self) {
        commit(&self.journal, &mut self.producers, &mut self.tickets);
    }

    pub fn records(&self) -> u64 {
        self.journal.counters().records
    }
}

/// An empty journal without threads.
fn empty() -> Journal {
    let (clock, entropy) = (Arc::new(ManualClock::new(1)), Arc::new(SeededEntropy::new(1)));
    let disk = Arc::new(SimDisk::new());
    let config = Config::new(disk, clock, entropy, vec![Secret::raw([1; 32])]);
    sealed::create(&config).expect("an empty disk takes a journal");
    let (journal, _) = Journal::open_manual(&config, &mut Ignore).expect("it is sound");
    journal
}

/// Producers whose executions never meet.
pub fn producers_of(count: u64) -> Vec<Deltas> {
    (0..count).map(|seed| Deltas::new(seed << 40)).collect()
}

/// One record of each producer into a journal that was opened without threads.
///
/// # Panics
/// A record is refused or not durable.
pub fn commit(journal: &Journal, producers: &mut [Deltas], tickets: &mut Vec<Ticket>) {
    tickets.clear();
    for deltas in producers {
        let record = deltas.next_record().expect("a delta can be encoded");
        tickets.push(journal.submit(Unit::one(record), Admission::Ordinary).expect("there is room"));
    }
    while let Turn::Decided(_) = journal.turn() {}
    for ticket in tickets {
        assert!(matches!(ticket.try_result(), Some(Ok(()))), "it is durable");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executions::Executions;

    /// Bytes of written frames for each byte of the events' JSON text, in thousandths, and for each event: 64 producers
    /// or one, in groups of all of them.
    fn live(name: &str, producers: u64, next: &mut dyn FnMut(u64) -> Unit) -> (u64, u64) {
        let journal = empty();
        let (mut json, mut events) = (0, 0);
        for _ in 0..12 * 200 {
            let units: Vec<_> = (0..producers).map(&mut *next).collect();
            let records = || units.iter().flat_map(|unit| &unit.records);
            json += records().map(|record| record.logical_size).sum::<u64>();
            events += records().filter(|record| record.event_number > 0).count() as u64;
            let submit = |unit| journal.submit(unit, Admission::Ordinary).expect("there is room");
            let mut tickets: Vec<_> = units.into_iter().map(submit).collect();
            while let Turn::Decided(_) = journal.turn() {}
            assert!(tickets.iter_mut().all(|ticket| matches!(ticket.try_result(), Some(Ok(())))));
        }
        let bytes = journal.counters().bytes;
        println!(
            "{name}, {producers} at once: {:.1} B an event of {:.1}",
            bytes as f64 / events as f64,
            json as f64 / events as f64
        );
        (bytes * 1000 / json, bytes / events)
    }

    /// What `docs/performance.md` says that events take before they are compacted.
    #[test]
    fn what_is_written_stays_small() {
        let deltas = |make: fn(u64) -> Deltas| {
            let mut all: Vec<_> = (0..64).map(|seed| make(seed << 40)).collect();
            move |at: u64| Unit::one(all[at as usize].next_record().expect("a delta can be encoded"))
        };
        let whole = |make: fn(u64) -> Deltas| {
            let mut all: Vec<_> = (0..64).map(|seed| Executions::new(make(seed << 40))).collect();
            move |at: u64| all[at as usize].next_unit().expect("its events can be encoded")
        };
        let words: fn(u64) -> Deltas = |seed| Deltas::new(seed).with_words();
        assert!(live("text of 118 bytes", 64, &mut deltas(Deltas::new)).0 <= 520);
        assert!(live("text of 118 bytes", 1, &mut deltas(Deltas::new)).0 <= 1050);
        assert!(live("words", 64, &mut deltas(words)).0 <= 200);
        live("words", 1, &mut deltas(words));
        let (ratio, _) = live("whole executions, text of 118 bytes", 64, &mut whole(Deltas::new));
        assert!(ratio <= 1000, "{ratio}");
        live("whole executions, text of 118 bytes", 1, &mut whole(Deltas::new));
        live("whole executions, words", 64, &mut whole(words));
    }
}
