//! The memory store: everything of one process, gone with it. For tests, embedding and a look around.
//!
//! Owns its records and its wake-ups. Durable means here: in the map. Keeps an event both as a value and as its
//! text, so it takes about twice its logical bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_core::future::BoxFuture;
use sealog_disk::Clock;
use sealog_events::{
    AttemptEvidence, Event, ExecutionId, Identity, Materializer, Origin, Snapshot, Status, Timestamp,
};
use tokio::sync::watch;

use super::ledger::Ledger;
use super::listing::{Filter, LOOKED_AT_MAX, Listed, Page};
use super::render::render;
use super::{
    Brief, Claim, EventStore, ListPosition, NewExecution, StoreError, StoreFuture, StoreLimits, StoredEvent,
    Watch,
};

/// A bounded store without a disk. Cheap to clone; all clones are the same store.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    records: HashMap<ExecutionId, Record>,
    /// The newest time of an event or a forgetting: a clock that was set back brings nothing back.
    newest: Timestamp,
    closed: bool,
}

#[derive(Debug)]
struct Record {
    origin: Option<Origin>,
    ability: Option<String>,
    created_at: Timestamp,
    /// The event with sequence n stands at n - 1; never empty.
    events: Vec<Event>,
    stored: Vec<Arc<StoredEvent>>,
    evidence: Vec<AttemptEvidence>,
    status: Status,
    /// Told the newest sequence; closed when the record or the store goes away.
    changed: watch::Sender<u64>,
}

impl Record {
    fn brief(&self, id: ExecutionId) -> Brief {
        let last_sequence = self.events.len() as u64;
        Brief { id, created_at: self.created_at, status: self.status, last_sequence }
    }

    fn snapshot(&self, id: ExecutionId) -> Snapshot {
        let mut fold = Materializer::new(id, self.created_at);
        self.events.iter().for_each(|event| fold.push(event));
        self.evidence.iter().for_each(|evidence| fold.push_evidence(evidence));
        fold.into_snapshot()
    }

    fn push(&mut self, event: Event, stored: StoredEvent) {
        self.status = event.body.status();
        self.changed.send_replace(event.sequence);
        self.events.push(event);
        self.stored.push(Arc::new(stored));
    }
}

impl MemoryStore {
    pub fn new(limits: StoreLimits, clock: Arc<dyn Clock>) -> MemoryStore {
        let state = State {
            ledger: Ledger::new(limits),
            records: HashMap::new(),
            newest: Timestamp(0),
            closed: false,
        };
        MemoryStore { shared: Arc::new(Shared { clock, state: Mutex::new(state) }) }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No caller's code runs under the lock, and a record is complete before the ledger is told.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self, state: &State) -> Timestamp {
        Timestamp(self.clock.wall_ms()).max(state.newest)
    }

    /// The open state with everything expired removed.
    fn open(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.lock();
        if state.closed {
            return Err(StoreError::Closed);
        }
        let now = self.now(&state);
        let expired = state.ledger.expire(now);
        state.forget(&expired, now);
        Ok(state)
    }

    fn claim(&self, state: &State, identity: Option<Identity>) -> Option<Claim> {
        let owner = state.ledger.owner(&identity?, self.now(state))?;
        if !owner.same_request {
            return Some(Claim::Conflict);
        }
        state.records.get(&owner.id).map(|record| Claim::Replay(record.brief(owner.id)))
    }

    fn create(&self, new: NewExecution) -> Result<Claim, StoreError> {
        let mut state = self.open()?;
        if let Some(claim) = self.claim(&state, new.identity) {
            return Ok(claim);
        }
        let (stored, weight) = render(new.id, &new.accepted)?;
        let now = self.now(&state);
        let evicted = state.ledger.open(new.id, new.created_at, new.identity, weight, now)?;
        state.forget(&evicted, now);
        state.newest = state.newest.max(new.accepted.time);
        let mut record = Record {
            origin: new.origin,
            ability: new.labels.map(|labels| labels.ability),
            created_at: new.created_at,
            events: Vec::new(),
            stored: Vec::new(),
            evidence: Vec::new(),
            status: Status::Accepted,
            changed: watch::Sender::new(0),
        };
        record.push(new.accepted, stored);
        state.records.insert(new.id, record);
        Ok(Claim::New)
    }

    fn append(&self, id: ExecutionId, event: Event) -> Result<(), StoreError> {
        let mut state = self.open()?;
        let (stored, weight) = render(id, &event)?;
        let now = self.now(&state);
        let evicted = state.ledger.admit(id, weight, now)?;
        state.forget(&evicted, now);
        state.newest = state.newest.max(event.time);
        let status = event.body.status();
        if let Some(record) = state.records.get_mut(&id) {
            record.push(event, stored);
        }
        if weight.terminal {
            // Not the event's own time: the store's clock is never behind it, and retention counts by that one.
            let ended = state.newest;
            state.ledger.settle(id, status, ended);
        }
        Ok(())
    }

    /// Runs `read` on a record that new calls may see.
    fn read<T>(&self, id: ExecutionId, read: impl FnOnce(&Record) -> T) -> Result<Option<T>, StoreError> {
        let state = self.open()?;
        let visible = state.ledger.visible(id, self.now(&state));
        Ok(state.records.get(&id).filter(|_| visible).map(read))
    }

    fn watch(self: &Arc<Self>, id: ExecutionId, after: u64) -> Result<Option<Box<dyn Watch>>, StoreError> {
        let mut state = self.open()?;
        if !state.ledger.visible(id, self.now(&state)) {
            return Ok(None);
        }
        let Some(changed) = state.records.get(&id).map(|record| record.changed.subscribe()) else {
            return Ok(None);
        };
        state.ledger.pin(id);
        Ok(Some(Box::new(MemoryWatch { shared: Arc::clone(self), id, after, changed })))
    }
}

impl State {
    /// Drops what the ledger let go at this time. By a clock that is set back behind it nothing comes back.
    fn forget(&mut self, ids: &[ExecutionId], now: Timestamp) {
        if !ids.is_empty() {
            self.newest = self.newest.max(now);
        }
        for id in ids {
            self.records.remove(id);
        }
    }
}

impl EventStore for MemoryStore {
    fn create(&self, new: NewExecution) -> StoreFuture<'_, Claim> {
        Box::pin(async move { self.shared.create(new) })
    }

    fn find(&self, identity: Identity) -> StoreFuture<'_, Option<Claim>> {
        Box::pin(async move {
            let state = self.shared.open()?;
            Ok(self.shared.claim(&state, Some(identity)))
        })
    }

    fn append(&self, id: ExecutionId, event: Event) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.shared.append(id, event) })
    }

    fn note(&self, id: ExecutionId, evidence: AttemptEvidence) {
        let mut state = self.shared.lock();
        if let Some(record) = state.records.get_mut(&id).filter(|record| !record.status.is_terminal()) {
            record.evidence.push(evidence);
        }
    }

    fn brief(&self, id: ExecutionId) -> StoreFuture<'_, Option<Brief>> {
        Box::pin(async move { self.shared.read(id, |record| record.brief(id)) })
    }

    fn origin(&self, id: ExecutionId) -> StoreFuture<'_, Option<Origin>> {
        Box::pin(async move { Ok(self.shared.read(id, |record| record.origin.clone())?.flatten()) })
    }

    fn snapshot(&self, id: ExecutionId) -> StoreFuture<'_, Option<Snapshot>> {
        Box::pin(async move { self.shared.read(id, |record| record.snapshot(id)) })
    }

    fn watch(&self, id: ExecutionId, after: u64) -> StoreFuture<'_, Option<Box<dyn Watch>>> {
        Box::pin(async move { self.shared.watch(id, after) })
    }

    fn list(&self, after: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Vec<Brief>> {
        Box::pin(async move {
            let state = self.shared.open()?;
            let ids = state.ledger.list(after, limit, self.shared.now(&state));
            Ok(ids
                .into_iter()
                .filter_map(|id| state.records.get(&id).map(|record| record.brief(id)))
                .collect())
        })
    }

    fn page(&self, filter: Filter, before: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Page> {
        Box::pin(async move {
            let state = self.shared.open()?;
            let now = self.shared.now(&state);
            let mut page = Page::default();
            for place in state.ledger.places_before(before, LOOKED_AT_MAX) {
                if page.listed.len() == limit {
                    return Ok(page);
                }
                page.next = Some(place);
                if let Some(record) = state.records.get(&place.id)
                    && state.ledger.visible(place.id, now)
                    && filter.takes_status(record.status)
                    && filter.takes_ability(record.ability.as_deref())
                {
                    page.listed
                        .push(Listed { brief: record.brief(place.id), ability: record.ability.clone() });
                }
            }
            if state.ledger.places_before(page.next, 1).is_empty() {
                page.next = None;
            }
            Ok(page)
        })
    }

    fn sweep(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.shared.open().map(drop) })
    }

    fn available(&self) -> bool {
        !self.shared.lock().closed
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut state = self.shared.lock();
            state.closed = true;
            // Dropping the senders wakes every watch.
            state.records.clear();
            Ok(())
        })
    }
}

/// A reader's place in one record. Holds a pin, never an event.
struct MemoryWatch {
    shared: Arc<Shared>,
    id: ExecutionId,
    after: u64,
    changed: watch::Receiver<u64>,
}

/// What a watch finds at its place.
enum Found {
    Event(Arc<StoredEvent>),
    End,
    NotYet,
}

impl MemoryWatch {
    fn look(&mut self) -> Result<Found, StoreError> {
        // Marked as seen under the record's lock: an event that comes later wakes again.
        let state = self.shared.lock();
        self.changed.mark_unchanged();
        if state.closed {
            return Err(StoreError::Closed);
        }
        let record = state.records.get(&self.id).ok_or(StoreError::Unknown)?;
        // Sequence `after` + 1 stands at index `after`.
        let next = usize::try_from(self.after).ok().and_then(|index| record.stored.get(index));
        match next {
            Some(event) => {
                self.after = event.sequence;
                Ok(Found::Event(Arc::clone(event)))
            }
            None if record.status.is_terminal() => Ok(Found::End),
            None => Ok(Found::NotYet),
        }
    }

    async fn pull(&mut self) -> Option<Result<Arc<StoredEvent>, StoreError>> {
        loop {
            match self.look() {
                Err(error) => return Some(Err(error)),
                Ok(Found::Event(event)) => return Some(Ok(event)),
                Ok(Found::End) => return None,
                // A closed channel means the store was closed; the next look says so.
                Ok(Found::NotYet) => {
                    let _ = self.changed.changed().await;
                }
            }
        }
    }
}

impl Watch for MemoryWatch {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Arc<StoredEvent>, StoreError>>> {
        Box::pin(self.pull())
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.shared.lock().ledger.unpin(self.id);
    }
}

#[cfg(test)]
mod tests;
