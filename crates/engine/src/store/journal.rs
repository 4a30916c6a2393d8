//! The journal store: executions kept in the sealed journal.
//!
//! Owns the two layers of state: decided (the ledger, changed when a unit is about to be submitted) and durable
//! (what readers see, changed only behind the ticket). Holds no lock while it waits. Opening and what is done for
//! interrupted executions is `open`'s.

mod codec;
mod digest;
mod error;
mod evidence;
mod finish;
mod interrupted;
mod live;
mod open;
mod origin;
mod page;
mod read;
mod records;
mod stats;
pub mod transfer;
mod watch;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealog_disk::Clock;
use sealog_events::{
    AttemptEvidence, Event, ExecutionId, Identity, Materializer, Origin, Snapshot, Status, Timestamp,
};
use sealog_journal::{Admission, Health, Journal, JournalError, Unit};

use self::error::failed;
use self::finish::Finish;
use self::live::{Ended, Live, Recent};
use self::records::{Prepared, Text};
use super::ledger::Ledger;
use super::listing::{Filter, Page};
use super::{Brief, Claim, EventStore, ListPosition, NewExecution, StoreError, StoreFuture, Watch};

pub use codec::EngineCodec;
pub use interrupted::Interrupted;
pub use open::{ClockFound, OpenError, Opened};

/// A store over one open journal. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct JournalStore {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) journal: Journal,
    clock: Arc<dyn Clock>,
    blocking: Blocking,
    /// Made from another journal and not unfenced: nothing is created.
    fenced: bool,
    state: Mutex<State>,
    /// Held while what an earlier process left is ended.
    ending: tokio::sync::Mutex<()>,
    /// When a creation last looked whether something must go for the disk's sake; milliseconds of the wall clock.
    looked_ms: AtomicU64,
}

/// Between two such looks: each adds up what the segments hold.
const LOOK_MS: u64 = 20;

/// Where the journal's blocking calls run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// On the runtime's threads for such calls.
    Threads,
    /// In the task that needs them: a store whose journal has no threads is to do everything in one order.
    #[cfg(any(test, feature = "testing"))]
    InPlace,
}

struct State {
    ledger: Ledger,
    /// Of executions that have not ended durably; of the others the ledger knows what there is to know.
    records: HashMap<ExecutionId, Record>,
    recent: Recent,
    /// Let go by the ledger and not yet forgotten durably.
    unforgotten: Vec<ExecutionId>,
    /// What a restored copy held of the executions that were open in it: the number of their last event there.
    copied: HashMap<ExecutionId, u64>,
    /// What an earlier process left unfinished and there was no room to end: nothing new is taken before.
    unended: Vec<Interrupted>,
    /// The newest time in the journal: a clock that was set back brings nothing back.
    newest: Timestamp,
    /// Why nothing can be written any more.
    over: Option<StoreError>,
}

/// What is durable of an execution that goes on.
struct Record {
    status: Status,
    /// 0 while its creation is not durable: nobody sees it then.
    last_sequence: u64,
    /// Absent for what an earlier process left and this one only reads.
    live: Option<Box<Live>>,
}

/// A claim that is known now, or somebody else's creation to wait for.
enum Claimed {
    Known(Claim),
    Pending(tokio::sync::watch::Receiver<()>),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, and each change is complete before the next statement can fail.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self, state: &State) -> Timestamp {
        Timestamp(self.clock.wall_ms()).max(state.newest)
    }

    /// The state for a call that writes, without what expired by now.
    fn writable(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.lock();
        if let Some(error) = state.over {
            return Err(error);
        }
        let now = self.now(&state);
        let expired = state.ledger.expire(now);
        state.let_go(expired, now);
        Ok(state)
    }

    /// The state for a call that reads, without what expired by now. Reading durable data goes on when writing has
    /// failed.
    fn readable(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.lock();
        if state.over == Some(StoreError::Closed) {
            return Err(StoreError::Closed);
        }
        let now = self.now(&state);
        let expired = state.ledger.expire(now);
        state.let_go(expired, now);
        Ok(state)
    }

    /// Runs a call of the journal that blocks.
    ///
    /// # Errors
    /// The call panicked, or the runtime is being shut down.
    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        match self.blocking {
            Blocking::Threads => tokio::task::spawn_blocking(call).await.map_err(|_| StoreError::Failed),
            #[cfg(any(test, feature = "testing"))]
            Blocking::InPlace => Ok(call()),
        }
    }

    fn claim(&self, state: &State, identity: Option<Identity>) -> Option<Claimed> {
        let owner = state.ledger.owner(&identity?, self.now(state))?;
        if let Some(Record { last_sequence: 0, live: Some(live), .. }) = state.records.get(&owner.id) {
            return Some(Claimed::Pending(live.changed.subscribe()));
        }
        match owner.same_request {
            true => state.brief(owner.id).map(|brief| Claimed::Known(Claim::Replay(brief))),
            false => Some(Claimed::Known(Claim::Conflict)),
        }
    }

    /// Decides a creation; `Some` tells who owns its key already. Waits for a creation of the same key that is
    /// under way.
    async fn decide(&self, new: &NewExecution, first: &Prepared) -> Result<Option<Claim>, StoreError> {
        loop {
            let mut pending = {
                let mut state = self.writable()?;
                match self.claim(&state, new.identity) {
                    Some(Claimed::Known(claim)) => return Ok(Some(claim)),
                    Some(Claimed::Pending(pending)) => pending,
                    None if self.fenced => return Err(StoreError::Fenced),
                    None if !state.unended.is_empty() => return Err(StoreError::Full),
                    None => {
                        let now = self.now(&state);
                        let NewExecution { id, created_at, identity, .. } = *new;
                        let evicted = state.ledger.open(id, created_at, identity, first.weight, now)?;
                        state.let_go(evicted, now);
                        let live = Some(Box::new(Live::new(new.id, new.created_at)));
                        state
                            .records
                            .insert(new.id, Record { status: Status::Accepted, last_sequence: 0, live });
                        return Ok(None);
                    }
                }
            };
            // Told when it is durable, closed when it was refused: either way the key is looked up again.
            let _ = pending.changed().await;
        }
    }

    async fn create(self: Arc<Self>, new: NewExecution) -> Result<Claim, StoreError> {
        let first = records::prepare(new.id, &new.accepted)?;
        let origin = new.origin.as_ref().map(|origin| records::origin(new.id, new.created_at, origin));
        let origin = origin.transpose()?;
        let labels = new.labels.as_ref().map(|labels| records::labels(new.id, new.created_at, labels));
        let labels = labels.transpose()?;
        if let Some(claim) = self.decide(&new, &first).await? {
            return Ok(claim);
        }
        let now_ms = self.clock.wall_ms();
        if now_ms.abs_diff(self.looked_ms.load(Ordering::Relaxed)) >= LOOK_MS {
            self.looked_ms.store(now_ms, Ordering::Relaxed);
            self.relieve();
        }
        let created = records::created(new.id, new.created_at, new.identity);
        let records =
            [created].into_iter().chain(origin).chain(labels).chain([first.record.clone()]).collect();
        let unit = Unit { records };
        match self.commit(unit, Admission::Create).await {
            Ok(()) => {
                self.publish(new.id, first, None);
                Ok(Claim::New)
            }
            Err(error) => {
                let mut state = self.lock();
                state.ledger.remove(new.id);
                state.records.remove(&new.id);
                drop(state);
                self.relieve();
                Err(error)
            }
        }
    }

    async fn append(self: Arc<Self>, id: ExecutionId, event: Event) -> Result<(), StoreError> {
        let next = records::prepare(id, &event)?;
        let weight = next.weight;
        let fold = {
            let mut state = self.writable()?;
            let now = self.now(&state);
            let evicted = state.ledger.admit(id, weight, now)?;
            state.let_go(evicted, now);
            let live = state.records.get(&id).and_then(|record| record.live.as_ref());
            live.map(|live| Arc::clone(&live.fold))
        };
        let committed = match fold {
            Some(fold) => self.commit_event(&fold, &next).await,
            None => Err(StoreError::Unknown),
        };
        match committed {
            Ok(snapshot) => {
                self.publish(id, next, snapshot);
                Ok(())
            }
            Err(error) => {
                self.lock().ledger.withdraw(id, weight);
                self.relieve();
                Err(error)
            }
        }
    }

    /// Makes an event durable, a terminal one together with the result it leaves.
    async fn commit_event(
        &self,
        fold: &Materializer,
        next: &Prepared,
    ) -> Result<Option<Snapshot>, StoreError> {
        if !next.weight.terminal {
            self.commit(Unit::one(next.record.clone()), Admission::Ordinary).await?;
            return Ok(None);
        }
        let snapshot = Live::snapshot_with(fold, &next.event);
        let whole = records::ending(&snapshot, &next.record, Text::Whole)?;
        if records::fits_reserve(&whole) {
            self.commit(whole, Admission::Reserved).await?;
            return Ok(Some(snapshot));
        }
        // A long text must not eat what the reserve keeps for the ends of others, and must not cost this one its own.
        match self.commit(whole, Admission::Ordinary).await {
            Err(StoreError::Full) => {
                let hashed = records::ending(&snapshot, &next.record, Text::Hashed)?;
                self.commit(hashed, Admission::Reserved).await?;
            }
            committed => committed?,
        }
        Ok(Some(snapshot))
    }

    /// Submits a unit and waits until it is durable. What was let go is forgotten durably before, if there is room
    /// for saying so: an end must not wait for it.
    async fn commit(&self, unit: Unit, admission: Admission) -> Result<(), StoreError> {
        match self.forget_gone().await {
            Ok(()) | Err(StoreError::Full) => self.submit(unit, admission).await,
            Err(error) => Err(error),
        }
    }

    /// Lets go of what ended longest ago where what is kept takes most of its share of the disk: once that is forgotten
    /// durably, compaction makes room. A disk that is full for another reason costs nobody anything.
    /// A fenced store takes nothing new, so that nothing has to go for it.
    fn relieve(&self) {
        if self.fenced {
            return;
        }
        let usage = self.journal.usage();
        let mut state = self.lock();
        let now = self.now(&state);
        let gone = state.ledger.relieve(usage.live_bytes, usage.expected_bytes, now);
        state.let_go(gone, now);
    }

    /// Forgets durably what was let go. What there is no room for now is tried again later.
    async fn forget_gone(&self) -> Result<(), StoreError> {
        loop {
            let (gone, time) = {
                let mut state = self.lock();
                let count = state.unforgotten.len().min(records::FORGOTTEN_AT_ONCE_MAX);
                let gone: Vec<ExecutionId> = state.unforgotten.drain(..count).collect();
                (gone, state.newest)
            };
            if gone.is_empty() {
                return Ok(());
            }
            let forgotten = self.submit(Unit::one(records::forget(&gone, time)?), Admission::Forget).await;
            if let Err(error) = forgotten {
                self.lock().unforgotten.extend(gone);
                return Err(error);
            }
        }
    }

    /// Hands over what was let go, to be written by the journal's own close. What is not is let go again by the next
    /// start.
    fn forget_at_close(&self, state: &mut State) {
        let now = self.now(state);
        let expired = state.ledger.expire(now);
        state.let_go(expired, now);
        for gone in std::mem::take(&mut state.unforgotten).chunks(records::FORGOTTEN_AT_ONCE_MAX) {
            if let Ok(forget) = records::forget(gone, state.newest)
                && self.journal.submit(Unit::one(forget), Admission::Forget).is_err()
            {
                return;
            }
        }
    }

    async fn submit(&self, unit: Unit, admission: Admission) -> Result<(), StoreError> {
        self.journal.append(unit, admission).await.map_err(|error| {
            let error = failed("a unit was not committed", &error);
            if error == StoreError::Failed {
                self.end(error);
            }
            error
        })
    }

    /// Shows an event that is durable. `snapshot` is the terminal one's.
    fn publish(&self, id: ExecutionId, next: Prepared, snapshot: Option<Snapshot>) {
        let mut state = self.lock();
        let state = &mut *state;
        state.newest = state.newest.max(next.event.time);
        let Some(record) = state.records.get_mut(&id) else { return };
        record.status = next.event.body.status();
        record.last_sequence = next.event.sequence;
        if let Some(live) = record.live.as_mut() {
            live.push(&next.event, next.stored);
        }
        if let Some(mut snapshot) = snapshot {
            // Not the event's own time: the store's clock is never behind it, and retention counts by that one.
            state.ledger.settle(id, record.status, state.newest);
            let record = state.records.remove(&id);
            if let Some(live) = record.and_then(|record| record.live) {
                // Evidence became durable behind the event's decision and before the event.
                live.fold.attempts().clone_into(&mut snapshot.attempts);
                // Dropping the rest of `live` wakes every watch for the last time.
                state.recent.insert(id, Ended { window: live.window, snapshot: Arc::new(snapshot) });
            }
        }
    }

    /// Nothing can be written any more. Wakes everybody who waits for an event.
    pub(crate) fn end(&self, error: StoreError) {
        let mut state = self.lock();
        state.over.get_or_insert(error);
        let mut live: Vec<(&ExecutionId, &Live)> =
            state.records.iter().filter_map(|(id, record)| Some((id, record.live.as_deref()?))).collect();
        // Those who wait are woken in an order that does not depend on the map's.
        live.sort_unstable_by_key(|(id, _)| **id);
        for (_, live) in live {
            live.changed.send_replace(());
        }
    }
}

impl Record {
    fn brief(&self, id: ExecutionId, created_at: Timestamp) -> Brief {
        Brief { id, created_at, status: self.status, last_sequence: self.last_sequence }
    }
}

impl State {
    /// What is durable of an execution; `None` for one whose creation is not.
    fn brief(&self, id: ExecutionId) -> Option<Brief> {
        match self.records.get(&id) {
            Some(record) if record.last_sequence == 0 => None,
            Some(record) => Some(record.brief(id, self.ledger.created_at(id)?)),
            None => self.ledger.ended(id),
        }
    }

    /// Drops what the ledger let go at this time. By a clock that is set back behind it nothing comes back.
    fn let_go(&mut self, ids: Vec<ExecutionId>, now: Timestamp) {
        if !ids.is_empty() {
            self.newest = self.newest.max(now);
        }
        for id in &ids {
            self.records.remove(id);
            self.recent.remove(*id);
            self.copied.remove(id);
        }
        self.unforgotten.extend(ids);
    }
}

impl JournalStore {
    /// The damage to the journal that was found while it was open and stopped the writer.
    pub fn damage(&self) -> Option<JournalError> {
        self.shared.journal.damage()
    }
}

impl EventStore for JournalStore {
    fn create(&self, new: NewExecution) -> StoreFuture<'_, Claim> {
        Box::pin(Finish::new(Arc::clone(&self.shared).create(new)))
    }

    fn find(&self, identity: Identity) -> StoreFuture<'_, Option<Claim>> {
        Box::pin(async move {
            loop {
                let mut pending = {
                    let state = self.shared.readable()?;
                    match self.shared.claim(&state, Some(identity)) {
                        None => return Ok(None),
                        Some(Claimed::Known(claim)) => return Ok(Some(claim)),
                        Some(Claimed::Pending(pending)) => pending,
                    }
                };
                let _ = pending.changed().await;
            }
        })
    }

    fn append(&self, id: ExecutionId, event: Event) -> StoreFuture<'_, ()> {
        Box::pin(Finish::new(Arc::clone(&self.shared).append(id, event)))
    }

    fn note(&self, id: ExecutionId, evidence: AttemptEvidence) {
        self.shared.note(id, evidence);
    }

    fn brief(&self, id: ExecutionId) -> StoreFuture<'_, Option<Brief>> {
        Box::pin(async move {
            let state = self.shared.readable()?;
            Ok(self.shared.visible(&state, id))
        })
    }

    fn origin(&self, id: ExecutionId) -> StoreFuture<'_, Option<Origin>> {
        Box::pin(Arc::clone(&self.shared).origin(id))
    }

    fn snapshot(&self, id: ExecutionId) -> StoreFuture<'_, Option<Snapshot>> {
        Box::pin(Arc::clone(&self.shared).snapshot(id))
    }

    fn watch(&self, id: ExecutionId, after: u64) -> StoreFuture<'_, Option<Box<dyn Watch>>> {
        Box::pin(async move { self.shared.watch(id, after) })
    }

    fn list(&self, after: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Vec<Brief>> {
        Box::pin(async move {
            let state = self.shared.readable()?;
            let ids = state.ledger.list(after, limit, self.shared.now(&state));
            Ok(ids.into_iter().filter_map(|id| self.shared.visible(&state, id)).collect())
        })
    }

    fn page(&self, filter: Filter, before: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Page> {
        Box::pin(Arc::clone(&self.shared).page(filter, before, limit))
    }

    fn outlines(&self, ids: Vec<ExecutionId>, bytes_max: usize) -> StoreFuture<'_, Vec<Option<String>>> {
        Box::pin(Arc::clone(&self.shared).outlines(ids, bytes_max))
    }

    fn sweep(&self) -> StoreFuture<'_, ()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(Finish::new(async move {
            drop(shared.writable()?);
            shared.relieve();
            match shared.forget_gone().await {
                // Later, when there is room.
                Ok(()) | Err(StoreError::Full) => Ok(()),
                Err(error) => Err(error),
            }
        }))
    }

    fn available(&self) -> bool {
        let writing = match self.shared.journal.health() {
            // A full disk refuses creations by itself, with a code that says so.
            Health::Ready | Health::Full => true,
            Health::Stalled | Health::Poisoned { .. } | Health::Closed => false,
        };
        let state = self.shared.lock();
        writing && state.over.is_none() && state.unended.is_empty()
    }

    fn fenced(&self) -> bool {
        self.shared.fenced
    }

    fn read_only(&self) -> bool {
        self.shared.lock().over == Some(StoreError::ReadOnly)
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(Finish::new(async move {
            {
                let mut state = shared.lock();
                if state.over == Some(StoreError::Closed) {
                    return Ok(());
                }
                shared.forget_at_close(&mut state);
                state.over = Some(StoreError::Closed);
                state.recent.clear();
            }
            shared.end(StoreError::Closed);
            let journal = shared.journal.clone();
            let closed = shared.blocking(move || journal.close()).await?;
            closed.map_err(|error| failed("the journal did not close", &error))
        }))
    }
}

impl fmt::Debug for JournalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalStore").field("health", &self.shared.journal.health()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
