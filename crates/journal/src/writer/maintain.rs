//! What happens beside the commits and never in their way: the head, the preparation of the next segment, the look
//! at the directory. A helper thread calls `tick`; a simulation calls it itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::head::HeadContent;
use crate::shared::{Shared, lock};

const IDENTITY_INTERVAL: Duration = Duration::from_secs(1);
/// Why a journal is given up whose files are not where a later start would look.
pub(crate) const NOT_IN_PLACE: &str = "the data directory or a file in it was moved, replaced or removed";
const STALL: Duration = Duration::from_secs(10);
const STALL_SAY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    identity_seen: Duration,
}

impl Maintenance {
    /// One round of everything that is due. Returns whether more filling waits.
    pub fn tick(&mut self, shared: &Shared) -> bool {
        if shared.poisoned().is_some() || lock(&shared.status).closed {
            return false;
        }
        tidy(shared);
        let now = shared.clock.monotonic();
        head(shared, now);
        if now.saturating_sub(self.identity_seen) >= IDENTITY_INTERVAL {
            self.identity_seen = now;
            if !shared.in_place() {
                shared.poison(NOT_IN_PLACE);
            }
        }
        stall(shared, now);
        budget(shared);
        prepare(shared, now)
    }
}

/// Lets the head name all that is durable, so that whoever reads beside this writer has evidence of it. `false`: the
/// writer is over.
pub(crate) fn name_durable(shared: &Shared) -> bool {
    rewrite(shared, shared.clock.monotonic(), true);
    shared.poisoned().is_none()
}

/// JC-3: after a pause without commits, and at least once in an interval.
fn head(shared: &Shared, now: Duration) {
    rewrite(shared, now, false);
}

fn rewrite(shared: &Shared, now: Duration, at_once: bool) {
    let mut head = lock(&shared.head);
    // Read under the head's lock: a later publication cannot be overwritten by an older state.
    let durable = shared.read().durable;
    if durable.end.segment == 0 || durable.end.frames == 0 {
        return;
    }
    let content = HeadContent::naming(&durable.end, durable.lineage, durable.epoch, false);
    // A segment that is being published is named already, before its first frame is there.
    if head.writer.says(&content) || head.writer.names_later(durable.end.segment) {
        return;
    }
    let idle = now.saturating_sub(durable.moved) >= shared.tuning.head_idle;
    let overdue = now.saturating_sub(head.rewritten) >= shared.tuning.head_interval;
    if !idle && !overdue && !at_once {
        return;
    }
    head.rewritten = now;
    shared.counting.head_rewrites.fetch_add(1, Ordering::Relaxed);
    if head.writer.rewrite(&content).is_err() {
        drop(head);
        shared.poison("the head was not written");
    }
}

/// What a start has left takes room and nothing else, so whatever goes wrong with it here stops nobody.
pub(crate) fn tidy(shared: &Shared) {
    let mut leftovers = lock(&shared.leftovers);
    let preparation = shared.preparation.lock();
    if leftovers.take_next() {
        preparation.discard_foreign(shared);
    }
    drop(preparation);
    if let Err(e) = leftovers.cut_zeros(&*shared.store.disk) {
        tracing::warn!(kind = ?e.kind, "an ended segment keeps its unused zeros");
    }
}

fn stall(shared: &Shared, now: Duration) {
    let mut status = lock(&shared.status);
    let Some(since) = status.sync_since else {
        status.stall_said = None;
        return;
    };
    let quiet = status.stall_said.is_none_or(|said| now.saturating_sub(said) >= STALL_SAY);
    if now.saturating_sub(since) > STALL && quiet {
        status.stall_said = Some(now);
        let seconds = now.saturating_sub(since).as_secs();
        tracing::warn!(seconds, "a sync does not come back");
    }
}

/// JC-10: compaction may have made room for what the budget refused; nobody has to ask first.
fn budget(shared: &Shared) {
    let frame = lock(&shared.status).beyond_budget;
    if frame > 0 && shared.read().frame_bytes().saturating_add(frame) <= shared.tuning.disk_bytes_max {
        let mut status = lock(&shared.status);
        if status.beyond_budget == frame {
            status.has_budget();
        }
    }
}

fn prepare(shared: &Shared, now: Duration) -> bool {
    let mut preparation = shared.preparation.lock();
    if !preparation.pending(now) {
        return false;
    }
    // A failure is told there, and tried again after a rest.
    let _failed = preparation.step(shared).is_err();
    if preparation.is_ready() {
        // New work was refused for want of exactly this.
        lock(&shared.status).has_segment();
    }
    preparation.pending(now)
}
