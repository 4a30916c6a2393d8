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
        let (clock, entropy) = (Arc::new(ManualClock::new(1)), Arc::new(SeededEntropy::new(1)));
        let disk = Arc::new(SimDisk::new());
        let config = Config::new(disk, clock, entropy, vec![Secret::raw([1; 32])]);
        sealed::create(&config).expect("an empty disk takes a journal");
        let (journal, _) = Journal::open_manual(&config, &mut Ignore).expect("it is sound");
        InMemory { journal, producers: producers_of(producers), tickets: Vec::new() }
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
