//! What the journal store keeps in memory: the newest events of active executions, and recently ended ones as far
//! as a budget goes. Everything here can be read again from the journal.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sealog_events::{Event, ExecutionId, Materializer, Snapshot, Timestamp};
use tokio::sync::watch;

use super::evidence::Pending;
use crate::store::StoredEvent;

/// Text of the newest events kept per active execution, in bytes; always at least one event.
const WINDOW_BYTES_MAX: usize = 256 << 10;
/// Text and results of ended executions kept, in bytes.
const RECENT_BYTES_MAX: usize = 16 << 20;

/// The newest events of one execution, without gaps up to the last durable one.
#[derive(Debug, Default)]
pub(crate) struct Window {
    events: VecDeque<Arc<StoredEvent>>,
    bytes: usize,
}

impl Window {
    fn push(&mut self, event: StoredEvent) {
        self.bytes += event.data.len();
        self.events.push_back(Arc::new(event));
        while self.bytes > WINDOW_BYTES_MAX && self.events.len() > 1 {
            if let Some(oldest) = self.events.pop_front() {
                self.bytes -= oldest.data.len();
            }
        }
    }

    /// The event with this sequence, if it is still here.
    pub(crate) fn get(&self, sequence: u64) -> Option<Arc<StoredEvent>> {
        let first = self.events.front()?.sequence;
        let index = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.events.get(index).map(Arc::clone)
    }
}

/// An active execution.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) window: Window,
    /// The fold of all durable events. Shared with readers that take a snapshot at the moment.
    pub(crate) fold: Arc<Materializer>,
    /// Evidence of attempts that is not known to be durable.
    pub(super) pending: Vec<Pending>,
    /// Told at every durable event; closed when the execution is no longer live.
    pub(crate) changed: watch::Sender<()>,
}

impl Live {
    pub(crate) fn new(id: ExecutionId, created_at: Timestamp) -> Live {
        Live {
            window: Window::default(),
            fold: Arc::new(Materializer::new(id, created_at)),
            pending: Vec::new(),
            changed: watch::Sender::new(()),
        }
    }

    /// An execution of an earlier process that has not ended: its events are in the journal.
    pub(crate) fn resumed(fold: Materializer) -> Live {
        let changed = watch::Sender::new(());
        Live { window: Window::default(), fold: Arc::new(fold), pending: Vec::new(), changed }
    }

    /// Takes an event that is durable.
    pub(crate) fn push(&mut self, event: &Event, stored: StoredEvent) {
        self.settle();
        Arc::make_mut(&mut self.fold).push(event);
        self.window.push(stored);
        self.changed.send_replace(());
    }

    /// What the execution is once this event is durable, too.
    pub(crate) fn snapshot_with(fold: &Materializer, event: &Event) -> Snapshot {
        let mut fold = fold.clone();
        fold.push(event);
        fold.into_snapshot()
    }
}

/// An execution that ended not long ago.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) window: Window,
    pub(crate) snapshot: Arc<Snapshot>,
}

impl Ended {
    fn bytes(&self) -> usize {
        self.window.bytes + self.snapshot.result.as_ref().map_or(0, |result| result.as_str().len())
    }
}

/// Ended executions, the newest of them.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    ended: HashMap<ExecutionId, Ended>,
    order: VecDeque<ExecutionId>,
    bytes: usize,
}

impl Recent {
    pub(crate) fn insert(&mut self, id: ExecutionId, ended: Ended) {
        self.bytes += ended.bytes();
        self.order.push_back(id);
        self.ended.insert(id, ended);
        while self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.remove(oldest);
        }
    }

    pub(crate) fn get(&self, id: ExecutionId) -> Option<&Ended> {
        self.ended.get(&id)
    }

    /// Lets one go. Its place in the order stays behind and finds nothing when its turn comes.
    pub(crate) fn remove(&mut self, id: ExecutionId) {
        if let Some(ended) = self.ended.remove(&id) {
            self.bytes -= ended.bytes();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Recent::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sealog_events::materialize;

    fn stored(sequence: u64, bytes: usize) -> StoredEvent {
        StoredEvent { sequence, type_name: "output.delta", terminal: false, data: "x".repeat(bytes) }
    }

    #[test]
    fn a_window_keeps_the_newest_and_at_least_one() {
        let mut window = Window::default();
        for sequence in 1..=4 {
            window.push(stored(sequence, 100_000));
        }
        let held: Vec<u64> = (0..=5).filter(|sequence| window.get(*sequence).is_some()).collect();
        assert_eq!(held, [3, 4]);
        window.push(stored(5, WINDOW_BYTES_MAX + 1));
        let held: Vec<u64> = (0..=6).filter(|sequence| window.get(*sequence).is_some()).collect();
        assert_eq!(held, [5]);
    }

    #[test]
    fn recently_ended_executions_stay_within_their_budget() {
        let mut recent = Recent::default();
        let id = |number: u8| ExecutionId::from_random([number; 16]);
        for number in 0..100 {
            let mut window = Window::default();
            window.push(stored(1, 250_000));
            let snapshot = Arc::new(materialize::materialize(id(number), Timestamp(0), []));
            recent.insert(id(number), Ended { window, snapshot });
        }
        assert!(recent.bytes <= RECENT_BYTES_MAX);
        assert!(recent.get(id(0)).is_none());
        assert!(recent.get(id(99)).is_some());
        recent.remove(id(99));
        assert_eq!(recent.bytes, recent.ended.values().map(Ended::bytes).sum::<usize>());
    }
}
