//! The machine of a simulation: a disk, a clock, and how a journal on it is opened. Outlives every node.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::Clock;
use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_engine::store::journal::EngineCodec;
use sealog_events::Timestamp;
use sealog_journal::{Audit, Config, Create, FrameView, JournalError, Record, Sink, audit};
use sealog_seal::{Secret, SlotParams, StoreId};

use super::plan::Swarm;

const START_MS: u64 = 1_767_225_600_000;
pub(super) const KEY: [u8; 32] = [9; 32];
/// Opens a slot that may be there or not.
pub(super) const SECOND_KEY: [u8; 32] = [8; 32];

#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) disk: SimDisk,
    pub(super) clock: ManualClock,
    seed: u64,
    life: u64,
    segment_bytes: u64,
    disk_bytes_max: u64,
    /// Whether the disk writes directly and reads past its cache.
    abilities: (bool, bool),
}

impl Host {
    /// A fresh journal on a fresh disk.
    pub(super) fn new(seed: u64, swarm: &Swarm) -> Result<Host, JournalError> {
        let disk = SimDisk::new();
        disk.set_direct(swarm.direct);
        disk.set_uncached(swarm.uncached);
        let clock = ManualClock::new(START_MS);
        let (segment_bytes, disk_bytes_max) = (swarm.segment_bytes, swarm.disk_bytes_max);
        let abilities = (swarm.direct, swarm.uncached);
        let host = Host { disk, clock, seed, life: 0, segment_bytes, disk_bytes_max, abilities };
        let config = host.config(&host.disk);
        let create = Create {
            disk: Arc::clone(&config.disk),
            clock: Arc::clone(&config.clock),
            entropy: Arc::clone(&config.entropy),
            store_id: StoreId([3; 16]),
            slot_name: "key",
            secret: &Secret::raw(KEY),
            params: SlotParams::DEFAULT,
        };
        create.run(&mut || Ok(()))?;
        Ok(host)
    }

    pub(super) fn config(&self, disk: &SimDisk) -> Config {
        let clock = Arc::new(self.clock.clone());
        let secrets = vec![Secret::raw(KEY), Secret::raw(SECOND_KEY)];
        let mut config = Config::new(Arc::new(disk.clone()), clock, self.entropy(1), secrets);
        config.codec = Arc::new(EngineCodec);
        config.tuning.first_segment_bytes = self.segment_bytes;
        config.tuning.segment_bytes_min = self.segment_bytes.min(64 << 10);
        config.tuning.segment_bytes_max = 4 * self.segment_bytes;
        config.tuning.disk_bytes_max = self.disk_bytes_max;
        config.tuning.lock_wait = Duration::ZERO;
        config.tuning.reader_wait = Duration::ZERO;
        config
    }

    /// There is a limit on what the journal takes.
    pub(super) fn is_bounded(&self) -> bool {
        self.disk_bytes_max != u64::MAX
    }

    /// Another process draws other numbers.
    pub(super) fn entropy(&self, subject: u64) -> Arc<SeededEntropy> {
        Arc::new(SeededEntropy::new(
            self.seed ^ (self.life << 8 | subject).wrapping_mul(0x9E37_79B9_97F4_A7C1),
        ))
    }

    pub(super) fn next_process(&mut self) {
        self.life += 1;
        self.clock.set_process_id(self.life as u32 + 1);
    }

    /// The power goes, or went when the disk says so, and comes back. Which unsynced changes are there is chosen.
    pub(super) fn lose_power(&mut self, keep: Choice) {
        self.disk = self.disk.crash_point().image(keep);
        self.clock.set_boot_id([self.life as u8 + 2; 16]);
    }

    /// The process dies; the page cache stays.
    pub(super) fn kill(&mut self) {
        self.disk = self.disk.fork();
    }

    /// Time goes by without anybody who writes: the kernel writes back what it holds.
    pub(super) fn write_back(&mut self) {
        self.disk = self.disk.crash_point().image(Choice::Everything);
    }

    /// Another directory takes the place of the journal's.
    pub(super) fn replace_disk(&mut self, disk: SimDisk) {
        disk.set_direct(self.abilities.0);
        disk.set_uncached(self.abilities.1);
        self.disk = disk;
    }

    pub(super) fn wall(&self) -> Timestamp {
        Timestamp(self.clock.wall_ms())
    }

    /// What an offline tool finds, on a copy: looking must change nothing.
    pub(super) fn audit(&self) -> Result<(Audit, Records), JournalError> {
        audit(&self.config(&self.disk.fork()), &mut Records::default)
    }
}

/// Every record of a journal.
#[derive(Debug, Default)]
pub(super) struct Records(pub(super) Vec<Record>);

impl Sink for Records {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        self.0.push(record.clone());
    }
}
