//! What the journal shows, and what its start found.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sealog_engine::store::journal::JournalStore;
use sealog_journal::Health;

use super::Recovered;
use super::page::Page;

#[derive(Debug)]
pub(super) struct Storing {
    pub store: Arc<JournalStore>,
    pub recovered: Recovered,
}

impl Collector for Storing {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut page = Page(encoder);
        self.writer(&mut page)?;
        self.disk(&mut page)?;
        self.start(&mut page)
    }
}

impl Storing {
    fn writer(&self, page: &mut Page<'_>) -> fmt::Result {
        const MICROSECOND: f64 = 1e-6;
        let counters = self.store.counters();
        let (commits, groups) = (&counters.sync_us, &counters.group_records);
        page.histogram("journal_commit_seconds", "Write and sync of a commit group", commits, MICROSECOND)?;
        page.histogram("journal_group_records", "Records of a commit group", groups, 1.0)?;
        page.counter("journal_records", "Records made durable", counters.records)?;
        page.counter("journal_frame_bytes", "Bytes of frames written", counters.bytes)?;
        page.gauge("journal_queue_units", "Units that wait for the writer", counters.queue_depth)?;
        page.counter(
            "journal_segments_ended",
            "Segments that were full or old and got a successor",
            counters.rolls,
        )?;
        let health = self.store.health();
        let states = [
            ("ready", health == Health::Ready),
            ("full", health == Health::Full),
            ("stalled", health == Health::Stalled),
            ("poisoned", matches!(health, Health::Poisoned { .. })),
            ("closed", health == Health::Closed),
        ];
        let rows = states.map(|(state, is)| (state, u64::from(is)));
        page.gauges("journal_health", "1 for what the writer is", "state", rows)
    }

    fn disk(&self, page: &mut Page<'_>) -> fmt::Result {
        let (usage, counters) = (self.store.usage(), self.store.counters());
        page.gauge("journal_disk_bytes", "Bytes of frames on disk", usage.frame_bytes)?;
        page.gauge("journal_disk_budget_bytes", "Most bytes of frames that may be", usage.budget_bytes)?;
        page.gauge("journal_segments", "Segment files", usage.segments)?;
        page.gauge(
            "journal_executions",
            "Executions kept, ended ones included",
            self.store.executions() as u64,
        )?;
        page.counter("journal_compactions", "Rewrites of segments", counters.compactions)?;
        page.counter(
            "journal_compaction_read_bytes",
            "Bytes that were rewritten",
            counters.compaction_read_bytes,
        )?;
        page.counter(
            "journal_compaction_written_bytes",
            "Bytes that came out",
            counters.compaction_written_bytes,
        )?;
        page.counter(
            "journal_compaction_dropped_records",
            "Records of what was forgotten",
            counters.compaction_dropped_records,
        )?;
        let unchecked = counters.unchecked_bytes;
        page.gauge("journal_unchecked_bytes", "Bytes that neither start nor scrub has read", unchecked)?;
        let scrubbed = self.recovered.unchecked_bytes.saturating_sub(unchecked);
        page.counter("journal_scrubbed_bytes", "Bytes that the scrub has read since the start", scrubbed)
    }

    fn start(&self, page: &mut Page<'_>) -> fmt::Result {
        let Recovered { epoch, records, torn_tail_bytes, outcome_unknown, not_dispatched, expired, .. } =
            self.recovered;
        page.gauge("journal_epoch", "How often the journal was opened for writing", epoch)?;
        page.gauge("recovery_records", "Records that the start found", records)?;
        page.gauge(
            "recovery_torn_tail_bytes",
            "Bytes of an unfinished write that the start cut",
            torn_tail_bytes,
        )?;
        let interrupted = [("unknown", outcome_unknown), ("not_dispatched", not_dispatched)];
        let help = "Executions that the start ended, by what is known of them";
        page.gauges("recovery_interrupted", help, "outcome", interrupted)?;
        page.gauge("recovery_expired", "Executions that had expired before the start", expired)
    }
}
