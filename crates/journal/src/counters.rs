//! What the writer counts. Histogram buckets are powers of two of microseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const BUCKETS: usize = 26;

/// Counts by power-of-two buckets: bucket `n` holds values below 2^n.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Histogram {
    pub fn add(&self, value: u64) {
        let bucket = (u64::BITS - value.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub fn view(&self) -> HistogramView {
        HistogramView {
            buckets: self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed)),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

/// A histogram at one moment: `buckets[n]` counts values v with 2^(n-1) <= v < 2^n (the first: v = 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramView {
    pub buckets: [u64; BUCKETS],
    pub sum: u64,
}

impl HistogramView {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What was added after `earlier`, a view of the same histogram.
    pub(crate) fn since(&self, earlier: &HistogramView) -> HistogramView {
        let mut buckets = self.buckets;
        for (bucket, before) in buckets.iter_mut().zip(earlier.buckets) {
            *bucket -= before;
        }
        HistogramView { buckets, sum: self.sum.wrapping_sub(earlier.sum) }
    }

    /// The value below which so many thousandths lie, as if each bucket were evenly filled; 0 of an empty one.
    pub(crate) fn quantile(&self, thousandths: u64) -> u64 {
        let mut rest = self.count() * thousandths / 1000;
        for (n, count) in self.buckets.iter().enumerate() {
            if rest <= *count && *count > 0 {
                let (from, to) = if n == 0 { (0, 0) } else { (1_u64 << (n - 1), 1 << n) };
                return from + (to - from) * rest / count;
            }
            rest -= count;
        }
        0
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub group_records: Histogram,
    pub sync_us: Histogram,
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub rolls: AtomicU64,
    pub head_rewrites: AtomicU64,
    pub unchecked_bytes: AtomicU64,
    compactions: AtomicU64,
    compaction_read_bytes: AtomicU64,
    compaction_written_bytes: AtomicU64,
    compaction_dropped_records: AtomicU64,
}

impl Counting {
    pub fn group(&self, records: u64, bytes: u64, sync: Duration) {
        self.group_records.add(records);
        self.sync_us.add(u64::try_from(sync.as_micros()).unwrap_or(u64::MAX));
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// One rewrite of segments.
    pub fn compacted(&self, read_bytes: u64, written_bytes: u64, dropped_records: u64) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
        self.compaction_read_bytes.fetch_add(read_bytes, Ordering::Relaxed);
        self.compaction_written_bytes.fetch_add(written_bytes, Ordering::Relaxed);
        self.compaction_dropped_records.fetch_add(dropped_records, Ordering::Relaxed);
    }

    pub fn view(&self, queue_depth: usize) -> Counters {
        Counters {
            group_records: self.group_records.view(),
            sync_us: self.sync_us.view(),
            records: self.records.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            rolls: self.rolls.load(Ordering::Relaxed),
            head_rewrites: self.head_rewrites.load(Ordering::Relaxed),
            unchecked_bytes: self.unchecked_bytes.load(Ordering::Relaxed),
            queue_depth: queue_depth as u64,
            compactions: self.compactions.load(Ordering::Relaxed),
            compaction_read_bytes: self.compaction_read_bytes.load(Ordering::Relaxed),
            compaction_written_bytes: self.compaction_written_bytes.load(Ordering::Relaxed),
            compaction_dropped_records: self.compaction_dropped_records.load(Ordering::Relaxed),
        }
    }
}

/// The writer's counters at one moment, since the journal was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Records a commit group.
    pub group_records: HistogramView,
    /// Write and sync of a group, microseconds.
    pub sync_us: HistogramView,
    pub records: u64,
    /// Bytes of written frames.
    pub bytes: u64,
    pub rolls: u64,
    pub head_rewrites: u64,
    /// Bytes of ended segments that the start did not read to the last and the scrub has not yet.
    pub unchecked_bytes: u64,
    /// Units waiting now.
    pub queue_depth: u64,
    /// Rewrites of segments, the bytes that went in and came out, and the records of what was forgotten.
    pub compactions: u64,
    pub compaction_read_bytes: u64,
    pub compaction_written_bytes: u64,
    pub compaction_dropped_records: u64,
}
