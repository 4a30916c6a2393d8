//! Compaction of a journal that no node runs: everything that can be folded or dropped, and beforehand what that would be.

use sealog_journal_format::journal_records::{Forget, KIND_FORGET};

use crate::audit::{Audit, audit};
use crate::background::{Halt, at_full_speed};
use crate::compact::policy::{self, Policy, View};
use crate::compact::{Compaction, FILES_MAX, sources_max, view};
use crate::config::{Config, Tuning};
use crate::error::{JournalError, Result};
use crate::index::{FrameRef, Index};
use crate::journal::Journal;
use crate::record::{Class, NewRecord, Record, Unit};
use crate::recovery::findings::{FrameView, SegmentFacts, Sink};
use crate::writer::core::Turn;
use crate::writer::queue::Admission;

/// What would become of one segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPlan {
    pub first: u64,
    pub last: u64,
    pub file: String,
    pub bytes: u64,
    /// In thousandths of the streams in it: forgotten, finished and not folded.
    pub forgotten: u64,
    pub foldable: u64,
    pub rewritten: bool,
    /// Why it is rewritten, or what keeps it as it is.
    pub why: &'static str,
}

/// What [`Journal::compact_all`] would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionPlan {
    pub segments: Vec<SegmentPlan>,
    /// The newest segment holds something: a new one is published first.
    pub publishes: bool,
}

/// What a compaction came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionTotals {
    pub files_before: u64,
    pub files_after: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub records_kept: u64,
    pub records_dropped: u64,
    pub rewrites: u64,
}

/// How far a compaction has come, in bytes of the segments to rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

fn everything(tuning: &Tuning) -> Policy {
    Policy {
        dead_thousandths: 0,
        age_ms: 0,
        small_bytes: tuning.segment_bytes_min,
        run_bytes_max: tuning.compacted_bytes_largest(),
        files_max: FILES_MAX,
        sources_max: sources_max(tuning),
        everything: true,
    }
}

/// Reads a journal, beside a running node too, and says what a compaction of everything would do to it.
///
/// # Errors
/// As [`audit`]; damage is no error here, it is in the audit.
pub fn plan_compaction(config: &Config) -> Result<(Audit, CompactionPlan)> {
    #[derive(Default)]
    struct Built(Index);
    impl Sink for Built {
        fn record(&mut self, frame: &FrameView, record: &Record) {
            self.0.add(FrameRef { segment: frame.segment, offset: frame.offset }, record);
        }
    }
    let (audit, built) = audit(config, &mut Built::default)?;
    let plan = plan(&audit, &built.0, &config.tuning);
    Ok((audit, plan))
}

fn plan(audit: &Audit, index: &Index, tuning: &Tuning) -> CompactionPlan {
    let segments = audit.segments.as_slice();
    let retired = |facts: &SegmentFacts| facts.key_id != audit.active_root;
    let newest = segments.iter().rposition(|facts| facts.records > 0);
    let publishes = newest.is_some_and(|at| gains(index, segments[at].number) || retired(&segments[at]));
    let mut views: Vec<View> = segments
        .iter()
        .enumerate()
        .map(|(at, facts)| {
            let sources = facts.last_number - facts.number + 1;
            let eligible = newest.is_some_and(|newest| at < newest || (at == newest && publishes));
            let file = View {
                eligible,
                compacted: facts.generation > 0,
                bytes: facts.end_offset,
                sources,
                retired_key: retired(facts),
                ..View::default()
            };
            view(index.tally(facts.number), file)
        })
        .collect();
    let shown = views.clone();
    let mut rewritten = vec![false; views.len()];
    while let Some(run) = policy::choose(&views, &everything(tuning)) {
        for at in run {
            rewritten[at] = true;
            views[at].eligible = false;
        }
    }
    let plans = segments.iter().zip(&shown).zip(rewritten).map(|((facts, view), rewritten)| SegmentPlan {
        first: facts.number,
        last: facts.last_number,
        file: facts.file.clone(),
        bytes: view.bytes,
        forgotten: thousandths(view.dead, view.all),
        foldable: if view.foldable() { thousandths(view.closed, view.all) } else { 0 },
        rewritten,
        why: why(view, rewritten),
    });
    CompactionPlan { segments: plans.collect(), publishes }
}

fn thousandths(part: u64, all: u64) -> u64 {
    (part * 1000).checked_div(all).unwrap_or(0)
}

/// Whether the newest segment holds something to fold or to drop.
fn gains(index: &Index, number: u64) -> bool {
    let tally = index.tally(number);
    tally.dead > 0 || tally.closed > 0
}

fn why(view: &View, rewritten: bool) -> &'static str {
    match (rewritten, view) {
        (true, View { dead: 1.., .. }) => "forgotten executions go",
        (true, view) if view.foldable() => "finished executions are folded",
        (true, View { forgets: 1.., .. }) => "records that nothing needs any more go",
        (true, View { retired_key: true, .. }) => "written under a retired key",
        (true, _) => "joined with its neighbours",
        (false, View { eligible: false, .. }) => "the newest one, with nothing to fold or drop",
        (false, View { forgets: 1.., all: 0, .. }) => "names what an older segment still holds",
        (false, View { compacted: true, .. }) => "compacted already",
        (false, View { closed: 0, .. }) => "holds only executions that go on",
        (false, _) => "nothing to gain",
    }
}

impl Journal {
    /// Folds and drops whatever can be, the newest segment included. Only for a journal opened without threads.
    ///
    /// # Errors
    /// Storage errors; damage that is found on the way stops the writer. What was rewritten until then stays so.
    pub fn compact_all(&self, progress: &mut dyn FnMut(Progress)) -> Result<CompactionTotals> {
        let shared = self.shared();
        let sizes = || {
            let catalog = shared.read();
            (catalog.segments.len() as u64, catalog.ends.values().sum::<u64>())
        };
        let mut published = self.publish_behind_newest()?;
        let (files_before, bytes_before) = sizes();
        let mut totals = CompactionTotals { files_before, bytes_before, ..CompactionTotals::default() };
        let mut compaction = Compaction::default();
        let policy = everything(&shared.tuning);
        let mut shown = Progress { done: 0, total: bytes_before };
        loop {
            let rewritten = at_full_speed(shared, |pace| compaction.rewrite(shared, policy, pace));
            let outcome = match rewritten {
                Ok(Some(outcome)) => outcome,
                // What has ended is rewritten by now: that may be room for the new segment.
                Ok(None) if !published && (totals.rewrites > 0 || compaction.reserve.give_up(shared)) => {
                    if !self.publish_behind_newest()? {
                        return Err(JournalError::Full);
                    }
                    published = true;
                    continue;
                }
                Ok(None) if published => break,
                Ok(None) => return Err(JournalError::Full),
                Err(Halt::Stopped) => {
                    return Err(JournalError::Poisoned { cause: shared.poisoned().unwrap_or("closed") });
                }
                Err(Halt::Failed(e)) => return Err(e),
            };
            totals.rewrites += 1;
            totals.records_kept += outcome.records_kept;
            totals.records_dropped += outcome.records_dropped;
            shown.done = (shown.done + outcome.bytes_before).min(shown.total);
            progress(shown);
        }
        progress(Progress { done: shown.total, ..shown });
        (totals.files_after, totals.bytes_after) = sizes();
        Ok(totals)
    }

    /// A segment behind the newest one, if that holds something: a record that forgets nobody, whose link ends it.
    /// `false`: there is no room for it.
    fn publish_behind_newest(&self) -> Result<bool> {
        let shared = self.shared();
        let gains = {
            let catalog = shared.read();
            let newest = catalog.durable.end.segment;
            let active = shared.store.keyring.active_root().id().0;
            let retired =
                catalog.segments.get(&newest).is_some_and(|segment| segment.header.key_id != active);
            retired || gains(&catalog.index, newest)
        };
        if !gains {
            return Ok(true);
        }
        let body = Forget::default().encode().map_err(|_| JournalError::Misuse("an empty list"))?;
        let record = NewRecord {
            kind: KIND_FORGET,
            stream: None,
            class: Class::FORGETS,
            event_number: 0,
            time_ms: shared.clock.wall_ms(),
            logical_size: 0,
            body,
        };
        let submitted = self.submit(Unit::one(record), Admission::Reserved);
        let mut ticket = submitted.map_err(|_| JournalError::Closed)?;
        loop {
            if let Some(result) = ticket.try_result() {
                return match result {
                    Ok(()) => Ok(true),
                    Err(JournalError::Full) => Ok(false),
                    Err(e) => Err(e),
                };
            }
            if self.turn() == Turn::Ended {
                return Err(JournalError::Poisoned { cause: shared.poisoned().unwrap_or("closed") });
            }
        }
    }
}
