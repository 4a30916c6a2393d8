//! The event store seam: what the engine asks of whoever keeps executions and their events.
//!
//! Owns the trait and its types. Implementations must keep every rule of the `contract` suite; the memory store and the
//! journal store pass the same suite.

#[cfg(any(test, feature = "testing"))]
pub mod contract;
pub mod journal;
mod ledger;
pub mod listing;
pub mod memory;
mod render;
pub mod sweep;

use std::fmt;
use std::sync::Arc;

use futures_core::future::BoxFuture;
pub use sealog_events::Identity;
use sealog_events::{
    AttemptEvidence, Event, ExecutionId, Labels, Origin, PortableCode, Snapshot, Status, Timestamp,
};
use sealog_execution::Failure;

pub use ledger::StoreLimits;
use listing::{Filter, Page};

/// What a store call answers with, later.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Keeps executions: their identity, their events in order, and who is reading them.
///
/// A call that changes something is durable when its future is ready with `Ok`. A future that is dropped before
/// may or may not have taken effect.
pub trait EventStore: Send + Sync + fmt::Debug {
    /// Creates an execution together with its first event, or answers for the identity's earlier one. Concurrent
    /// calls with the same key agree on one execution.
    ///
    /// # Errors
    /// No room ([`StoreError::Full`], [`StoreError::Busy`]), or the store failed.
    fn create(&self, new: NewExecution) -> StoreFuture<'_, Claim>;

    /// What [`EventStore::create`] would answer for a known identity; `None` if its key is free. Changes nothing.
    ///
    /// # Errors
    /// The store failed.
    fn find(&self, identity: Identity) -> StoreFuture<'_, Option<Claim>>;

    /// Appends the execution's next event.
    ///
    /// # Errors
    /// The execution is not there or has ended, the sequence is not the next one, a limit would be exceeded, or
    /// the store failed. Nothing was appended then, unless the store failed.
    fn append(&self, id: ExecutionId, event: Event) -> StoreFuture<'_, ()>;

    /// Keeps evidence of an attempt of an active execution, without waiting and as well as it can: it becomes durable no
    /// later than the execution's next event, or not at all if there is no room, no such execution, or it has ended.
    /// A snapshot shows it once it is durable.
    fn note(&self, id: ExecutionId, evidence: AttemptEvidence);

    /// The short facts of an execution; `None` for an unknown, expired or evicted one.
    ///
    /// # Errors
    /// The store failed.
    fn brief(&self, id: ExecutionId) -> StoreFuture<'_, Option<Brief>>;

    /// In which dialect the execution was asked for; `None` as in [`EventStore::brief`], and for one that was asked for
    /// in the runtime's own.
    ///
    /// # Errors
    /// The store failed.
    fn origin(&self, id: ExecutionId) -> StoreFuture<'_, Option<Origin>>;

    /// The execution's events materialized; `None` as in [`EventStore::brief`].
    ///
    /// # Errors
    /// The store failed.
    fn snapshot(&self, id: ExecutionId) -> StoreFuture<'_, Option<Snapshot>>;

    /// Follows the execution's events with a sequence above `after`. The execution is not evicted while the watch
    /// lives.
    ///
    /// # Errors
    /// The store failed.
    fn watch(&self, id: ExecutionId, after: u64) -> StoreFuture<'_, Option<Box<dyn Watch>>>;

    /// Up to `limit` executions created behind `after`, oldest first.
    ///
    /// # Errors
    /// The store failed.
    fn list(&self, after: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Vec<Brief>>;

    /// Up to `limit` executions that `filter` takes and that were created before `before`, the youngest first. A store
    /// looks at a bounded number of executions for one page, so that it may be short and still have a next one.
    ///
    /// # Errors
    /// The store failed.
    fn page(&self, filter: Filter, before: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Page>;

    /// [`listing::outline`]s of these executions in the same order; `None` as in [`EventStore::brief`]. Ends before the one
    /// that would make the texts together longer than `bytes_max`, but never before the first, and once a bounded number of
    /// bytes was read for them. One snapshot at a time is held.
    ///
    /// # Errors
    /// The store failed.
    fn outlines(&self, ids: Vec<ExecutionId>, bytes_max: usize) -> StoreFuture<'_, Vec<Option<String>>> {
        Box::pin(async move {
            let mut outlines = listing::Outlines::new(bytes_max);
            for id in ids {
                if !outlines.take(self.snapshot(id).await?) {
                    break;
                }
            }
            Ok(outlines.texts)
        })
    }

    /// Forgets durably what has expired. Expired executions are hidden without it; it is what frees their room when
    /// nobody calls.
    ///
    /// # Errors
    /// The store failed.
    fn sweep(&self) -> StoreFuture<'_, ()>;

    /// Whether the store can still make anything durable.
    fn available(&self) -> bool;

    /// Whether this store only reads, by intention.
    fn read_only(&self) -> bool {
        false
    }

    /// Whether what this store does not know may be known elsewhere: its journal was made from another one and nobody has
    /// said yet that the original is gone. It creates nothing then.
    fn fenced(&self) -> bool {
        false
    }

    /// Ends the store: watches wake with an error, later calls fail. Idempotent.
    ///
    /// # Errors
    /// The store failed while it was closed.
    fn close(&self) -> StoreFuture<'_, ()>;
}

/// A reader of one execution's events, in order, each once.
pub trait Watch: Send {
    /// The next event once it is durable; `None` after the terminal event. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The store failed; the watch is over.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Arc<StoredEvent>, StoreError>>>;
}

/// An execution about to exist.
#[derive(Clone, Debug)]
pub struct NewExecution {
    pub id: ExecutionId,
    pub created_at: Timestamp,
    /// `None` for a submission without an idempotency key.
    pub identity: Option<Identity>,
    /// `None` for one that was asked for in the runtime's own protocol.
    pub origin: Option<Origin>,
    /// What it is found by in lists.
    pub labels: Option<Labels>,
    /// `execution.accepted` with sequence 1.
    pub accepted: Event,
}

/// Who owns an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The execution was created.
    New,
    /// The key belongs to this execution of the same request.
    Replay(Brief),
    /// The key belongs to another request.
    Conflict,
}

/// The short facts of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    pub id: ExecutionId,
    pub created_at: Timestamp,
    pub status: Status,
    pub last_sequence: u64,
}

/// A place in the list of executions; stays valid when the execution it names is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition {
    pub created_at: Timestamp,
    pub id: ExecutionId,
}

/// One durable event as it is streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    pub sequence: u64,
    pub type_name: &'static str,
    /// Nothing follows this event.
    pub terminal: bool,
    /// The event's JSON text, one line.
    pub data: String,
}

/// Why a store did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StoreError {
    /// No room in the whole store, and nothing that may be evicted.
    #[error("the event store is full")]
    Full,
    /// The execution's own limit of events or bytes.
    #[error("the execution reached its limits")]
    ExecutionFull,
    /// The writer's queue is full just now.
    #[error("the event store is busy")]
    Busy,
    /// No such execution, or no longer.
    #[error("the execution is not in the store")]
    Unknown,
    /// The event's sequence is not the next one.
    #[error("the event is out of order")]
    OutOfOrder,
    /// The execution has its terminal event.
    #[error("the execution has ended")]
    Ended,
    /// The terminal event is larger than its reserve.
    #[error("the terminal event is too large")]
    TerminalTooLarge,
    /// The event cannot be stored as it is.
    #[error("the event cannot be stored")]
    Unstorable,
    /// The store failed and stays failed until it is opened again.
    #[error("the event store has failed")]
    Failed,
    /// The store was closed.
    #[error("the event store is closed")]
    Closed,
    /// A restored copy that does not know this: the original may.
    #[error("the event store is fenced")]
    Fenced,
    /// A place behind what a restored copy held of an execution: the original went on in another way.
    #[error("the place belongs to another history of the execution")]
    Diverged,
    /// Nothing is written here, by intention.
    #[error("the event store is read-only")]
    ReadOnly,
}

impl StoreError {
    /// The failure that callers and executions are told.
    pub fn to_failure(self) -> Failure {
        match self {
            StoreError::Full => {
                Failure::permanent(PortableCode::QueueFull, "Event store capacity is exhausted")
            }
            StoreError::ExecutionFull => {
                Failure::permanent(PortableCode::QueueFull, "Execution event capacity is exhausted")
            }
            StoreError::Busy => Failure::transient(PortableCode::QueueFull, "Event store is busy"),
            StoreError::Unknown
            | StoreError::OutOfOrder
            | StoreError::Ended
            | StoreError::TerminalTooLarge
            | StoreError::Unstorable => {
                Failure::permanent(PortableCode::InternalError, "Execution event could not be stored")
            }
            StoreError::Failed | StoreError::Closed => {
                Failure::permanent(PortableCode::InternalError, "Event store is unavailable")
            }
            StoreError::Fenced => Failure::transient(
                PortableCode::ProviderUnavailable,
                "Runtime is fenced: its journal was made from another one",
            ),
            StoreError::Diverged => Failure::permanent(
                PortableCode::InvalidRequest,
                "Event cursor belongs to another history of this execution",
            ),
            StoreError::ReadOnly => {
                Failure::transient(PortableCode::ProviderUnavailable, "Runtime is read-only")
            }
        }
    }
}
