//! The store's reading side: what is durable, from memory or from the journal.

use std::sync::Arc;

use sealog_events::body::BodyError;
use sealog_events::{ExecutionId, RecordKind, Snapshot};
use sealog_journal::Journal;

use super::error::failed;
use super::watch::{Found, JournalWatch};
use super::{Shared, State, open, records};
use crate::StoreError;
use crate::store::listing::Outlines;
use crate::store::{Brief, Watch};

/// Keeps an execution as long as it lives.
pub(super) struct Pin {
    pub shared: Arc<Shared>,
    pub id: ExecutionId,
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.shared.unpin(self.id);
    }
}

impl Shared {
    /// What is at a watch's place.
    pub(super) fn look(&self, id: ExecutionId, after: u64) -> Result<Found, StoreError> {
        let state = self.readable()?;
        let record = state.records.get(&id);
        let (status, last_sequence) = match record {
            Some(record) => (record.status, record.last_sequence),
            None => state
                .ledger
                .ended(id)
                .map(|ended| (ended.status, ended.last_sequence))
                .ok_or(StoreError::Unknown)?,
        };
        if after >= last_sequence {
            return match (status.is_terminal(), state.over) {
                (true, _) => Ok(Found::End),
                (false, Some(error)) => Err(error),
                (false, None) => Ok(Found::NotYet),
            };
        }
        let window = match record.and_then(|record| record.live.as_ref()) {
            Some(live) => Some(&live.window),
            None => state.recent.get(id).map(|ended| &ended.window),
        };
        Ok(window.and_then(|window| window.get(after + 1)).map_or(Found::Cold, Found::Event))
    }

    pub(super) fn watch(
        self: &Arc<Self>,
        id: ExecutionId,
        after: u64,
    ) -> Result<Option<Box<dyn Watch>>, StoreError> {
        let mut state = self.readable()?;
        if self.visible(&state, id).is_none() {
            return Ok(None);
        }
        if state.copied.get(&id).is_some_and(|held| after > *held) {
            return Err(StoreError::Diverged);
        }
        let live = state.records.get(&id).and_then(|record| record.live.as_ref());
        let changed = live.map(|live| live.changed.subscribe());
        state.ledger.pin(id);
        drop(state);
        Ok(Some(Box::new(JournalWatch::new(Arc::clone(self), id, after, changed))))
    }

    /// What may be seen of the execution, which must not be forgotten while it is read.
    pub(super) fn pinned(self: &Arc<Self>, id: ExecutionId) -> Result<Option<(Brief, Pin)>, StoreError> {
        let mut state = self.readable()?;
        let Some(brief) = self.visible(&state, id) else { return Ok(None) };
        state.ledger.pin(id);
        Ok(Some((brief, Pin { shared: Arc::clone(self), id })))
    }

    pub(super) fn unpin(&self, id: ExecutionId) {
        self.lock().ledger.unpin(id);
    }

    /// The short facts of an execution that new calls may see.
    pub(super) fn visible(&self, state: &State, id: ExecutionId) -> Option<Brief> {
        state.brief(id).filter(|_| state.ledger.visible(id, self.now(state)))
    }

    /// The execution's fold: at hand for a live one, kept for a recent one, else read from the journal.
    pub(super) async fn snapshot(self: Arc<Self>, id: ExecutionId) -> Result<Option<Snapshot>, StoreError> {
        match self.find(id)? {
            Fold::Absent => Ok(None),
            Fold::AtHand(snapshot) => Ok(Some(*snapshot)),
            Fold::InJournal(brief, pin) => {
                let shared = Arc::clone(&self);
                self.blocking(move || shared.read(&brief, pin)).await?.map(Some)
            }
        }
    }

    /// Outlines of many, all on one thread for blocking calls: a turn of it for each costs more than most of them.
    pub(super) async fn outlines(
        self: Arc<Self>,
        ids: Vec<ExecutionId>,
        bytes_max: usize,
    ) -> Result<Vec<Option<String>>, StoreError> {
        let shared = Arc::clone(&self);
        let collecting = move || {
            let mut outlines = Outlines::new(bytes_max);
            for id in ids {
                let snapshot = match shared.find(id)? {
                    Fold::Absent => None,
                    Fold::AtHand(snapshot) => Some(*snapshot),
                    Fold::InJournal(brief, pin) => Some(shared.read(&brief, pin)?),
                };
                if !outlines.take(snapshot) {
                    break;
                }
            }
            Ok(outlines.texts)
        };
        self.blocking(collecting).await?
    }

    fn find(self: &Arc<Self>, id: ExecutionId) -> Result<Fold, StoreError> {
        let mut state = self.readable()?;
        let Some(brief) = self.visible(&state, id) else { return Ok(Fold::Absent) };
        if let Some(live) = state.records.get_mut(&id).and_then(|record| record.live.as_mut()) {
            live.settle();
            let fold = Arc::clone(&live.fold);
            drop(state);
            return Ok(Fold::AtHand(Box::new(fold.snapshot())));
        }
        if let Some(ended) = state.recent.get(id) {
            let snapshot = Arc::clone(&ended.snapshot);
            drop(state);
            return Ok(Fold::AtHand(Box::new(Snapshot::clone(&snapshot))));
        }
        // What is being read must not be forgotten meanwhile.
        state.ledger.pin(id);
        Ok(Fold::InJournal(brief, Pin { shared: Arc::clone(self), id }))
    }

    /// Blocks.
    fn read(&self, brief: &Brief, pin: Pin) -> Result<Snapshot, StoreError> {
        let fold = open::fold(&self.journal, brief.id, brief.created_at)?;
        drop(pin);
        if fold.last_sequence() != brief.last_sequence {
            tracing::error!("an execution's events are not all in the journal");
            return Err(StoreError::Failed);
        }
        Ok(fold.into_snapshot())
    }
}

/// Where an execution's fold is.
enum Fold {
    Absent,
    AtHand(Box<Snapshot>),
    InJournal(Brief, Pin),
}

/// The record of this kind that stands between an execution's creation and its first event, if there is one: nothing
/// behind that is looked at.
pub(super) fn beside_creation<T>(
    journal: &Journal,
    id: ExecutionId,
    kind: RecordKind,
    decode: fn(&[u8]) -> Result<T, BodyError>,
) -> Result<Option<T>, StoreError> {
    for record in journal.read_stream(records::stream(id), 1) {
        let record = record.map_err(|error| failed("a stream could not be read", &error))?;
        if record.kind == kind.number() {
            return decode(&record.body).map(Some).map_err(|error| {
                tracing::error!(%error, ?kind, "a record beside an execution's creation could not be read");
                StoreError::Failed
            });
        }
        if record.event_number > 0 {
            break;
        }
    }
    Ok(None)
}
