//! What a journal is opened with. No path, clock or random number is taken from anywhere else.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::{Clock, Disk, Entropy};
use sealog_seal::Secret;

use crate::codec::{Codec, Opaque};

/// The host and the secrets; the same for writers and read-only tools.
#[derive(Clone, Debug)]
pub struct Config {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    /// Tried in order, raw keys before passphrases; any one that opens a slot is enough.
    pub secrets: Vec<Secret>,
    /// Who understands the bodies.
    pub codec: Arc<dyn Codec>,
    pub tuning: Tuning,
}

impl Config {
    pub fn new(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        secrets: Vec<Secret>,
    ) -> Config {
        Config { disk, clock, entropy, secrets, codec: Arc::new(Opaque), tuning: Tuning::default() }
    }
}

/// Numbers an operator or a test may change; none of them changes what is promised.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Length of the first segment after an open, in bytes; doubled with each roll.
    pub first_segment_bytes: u64,
    /// Longest ordinary segment, in bytes.
    pub segment_bytes_max: u64,
    /// Shortest segment, in bytes.
    pub segment_bytes_min: u64,
    /// Most bytes of written frames; beyond them only ends of streams and what is forgotten are taken (JC-10).
    pub disk_bytes_max: u64,
    /// Units waiting for the writer, in encoded bytes.
    pub queue_bytes_max: usize,
    /// Units waiting for the writer.
    pub queue_units_max: usize,
    /// The head is rewritten after this long without a commit.
    pub head_idle: Duration,
    /// The head is rewritten at least this often while commits go on.
    pub head_interval: Duration,
    /// Opened frames kept for readers, in bytes of memory.
    pub cache_bytes_max: usize,
    /// How long a starting writer retries a held lock.
    pub lock_wait: Duration,
    /// How long a reader beside a live writer waits for evidence to cover what it saw first.
    pub reader_wait: Duration,
    /// Whether the direct write path may be used where the disk offers it.
    pub direct: bool,
    /// How long the copy of a torn tail is kept in quarantine.
    pub quarantine_keep: Duration,
    /// How long to wait after a failed preparation of the next segment before the next try.
    pub prepare_retry: Duration,
    /// Whether segments are compacted in the background.
    pub compact: bool,
    /// From when on a segment is: so much of it was forgotten, in thousandths.
    pub compact_dead_thousandths: u64,
    /// Or so old, and half of it or more can be folded.
    pub compact_age: Duration,
    /// Most zeros kept for compaction on a full disk, in bytes; 0: none. As many as what it has to rewrite, and never more
    /// than one segment.
    pub reserve_bytes: u64,
    /// What summaries, scrub and compaction together may read and write in a second, in bytes.
    pub background_bytes_per_second: u64,
    /// Whether summaries are written, and what a start did not check is read, in the background.
    pub summarise: bool,
    /// How much of the ended segments a start reads before it is ready, the newest first, in bytes of frames.
    pub boot_check_bytes: u64,
    /// Threads that check ended segments, at a start and for read-only tools.
    pub check_threads: usize,
}

impl Tuning {
    /// Longest segment on a disk with so many bytes free (JC-10).
    pub(crate) fn segment_bytes_largest(&self, available: u64) -> u64 {
        (available.min(self.disk_bytes_max) / 16).min(self.segment_bytes_max).max(self.segment_bytes_min)
    }

    /// Longest file that compaction makes of several: no longer than a segment may be, so that the files stay within the
    /// budget and four segments while it is written beside what it replaces (JD-6, JC-10).
    pub(crate) fn compacted_bytes_largest(&self) -> u64 {
        self.segment_bytes_largest(u64::MAX)
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            first_segment_bytes: 4 << 20,
            segment_bytes_max: 64 << 20,
            segment_bytes_min: 256 << 10,
            disk_bytes_max: u64::MAX,
            queue_bytes_max: 32 << 20,
            queue_units_max: 65_536,
            head_idle: Duration::from_millis(250),
            head_interval: Duration::from_millis(1000),
            cache_bytes_max: 64 << 20,
            lock_wait: Duration::from_secs(1),
            reader_wait: Duration::from_millis(500),
            direct: true,
            quarantine_keep: Duration::from_secs(7 * 86_400),
            prepare_retry: Duration::from_millis(500),
            compact: true,
            compact_dead_thousandths: 300,
            compact_age: Duration::from_secs(600),
            reserve_bytes: 64 << 20,
            background_bytes_per_second: 64 << 20,
            summarise: true,
            boot_check_bytes: 4 << 30,
            check_threads: std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8)),
        }
    }
}
