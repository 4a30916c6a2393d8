//! One journal on a simulated disk with a clock and randomness that repeat.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::sim::SimDisk;
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_seal::{Secret, SlotParams, StoreId};

use super::digests::Sums;
use crate::{
    Admission, Class, Config, Create, Journal, JournalError, NewRecord, Record, RecoveryReport, StreamId,
    Ticket, Turn, Unit,
};

pub(crate) const START_MS: u64 = 1_800_000_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub disk: SimDisk,
    pub clock: Arc<ManualClock>,
    pub config: Config,
}

impl Bench {
    /// A fresh journal with small segments.
    pub fn new() -> Bench {
        let bench = Bench::on(SimDisk::new(), 7);
        bench.create();
        bench
    }

    /// The same secrets over any disk; `seed` chooses the randomness of this process.
    pub fn on(disk: SimDisk, seed: u64) -> Bench {
        let clock = Arc::new(ManualClock::new(START_MS));
        let entropy = Arc::new(SeededEntropy::new(seed));
        let secrets = vec![Secret::raw([9; 32])];
        let mut config = Config::new(Arc::new(disk.clone()), clock.clone(), entropy, secrets);
        config.tuning.first_segment_bytes = 16 << 10;
        config.tuning.segment_bytes_min = 16 << 10;
        config.tuning.segment_bytes_max = 64 << 10;
        config.tuning.reserve_bytes = 0;
        config.tuning.lock_wait = Duration::ZERO;
        config.tuning.reader_wait = Duration::ZERO;
        config.codec = Arc::new(Sums { version: 1 });
        // A step of the background is one of compaction.
        config.tuning.summarise = false;
        // Calls of the disk stand in the same order every time.
        config.tuning.check_threads = 1;
        Bench { disk, clock, config }
    }

    pub fn create(&self) {
        self.try_create().unwrap();
    }

    pub fn try_create(&self) -> Result<(), JournalError> {
        let secret = Secret::raw([9; 32]);
        let create = Create {
            disk: self.config.disk.clone(),
            clock: self.config.clock.clone(),
            entropy: self.config.entropy.clone(),
            store_id: StoreId([3; 16]),
            slot_name: "key",
            secret: &secret,
            params: SlotParams::DEFAULT,
        };
        create.run(&mut || Ok(()))
    }

    pub fn open(&self) -> Result<Opened, JournalError> {
        let mut records = Records::default();
        let (journal, report) = Journal::open_manual(&self.config, &mut records)?;
        Ok(Opened { journal, report, records: records.0 })
    }
}

#[derive(Default)]
pub(crate) struct Records(pub Vec<Record>);

impl crate::Replay for Records {
    fn record(&mut self, record: &Record) {
        self.0.push(record.clone());
    }
}

#[derive(Debug)]
pub(crate) struct Opened {
    pub journal: Journal,
    pub report: RecoveryReport,
    pub records: Vec<Record>,
}

impl Opened {
    /// Submits and turns until the ticket resolves.
    pub fn commit(&self, unit: Unit) -> Result<(), JournalError> {
        let mut ticket = self.submit(unit);
        loop {
            if let Some(result) = ticket.try_result() {
                return result;
            }
            if self.journal.turn() == Turn::Ended {
                return ticket.try_result().expect("a poisoned journal decides every ticket");
            }
        }
    }

    pub fn submit(&self, unit: Unit) -> Ticket {
        self.journal.submit(unit, Admission::Reserved).expect("the queue takes reserved units")
    }
}

pub(crate) fn stream(n: u8) -> StreamId {
    StreamId([n; 16])
}

/// One record of a stream; `event` 1 opens it.
pub(crate) fn record(n: u8, event: u64, body: &[u8]) -> NewRecord {
    NewRecord {
        kind: 83,
        stream: Some(stream(n)),
        class: if event == 1 { Class::OPENS } else { Class::NONE },
        event_number: event,
        time_ms: START_MS + event,
        logical_size: body.len() as u64,
        body: body.to_vec(),
    }
}

pub(crate) fn closing(n: u8, event: u64) -> NewRecord {
    NewRecord { class: Class::CLOSES, ..record(n, event, b"done") }
}
