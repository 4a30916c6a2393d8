//! Reading one execution's events: from memory as long as they are there, else from the journal, a frame at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_core::future::BoxFuture;
use sealog_events::ExecutionId;
use sealog_journal::StreamReader;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::error::failed;
use super::{Blocking, Shared, records};
use crate::store::render::render;
use crate::store::{StoreError, StoredEvent, Watch};

/// Text read ahead from the journal, in bytes; at least one event.
const AHEAD_BYTES_MAX: usize = 256 << 10;

type Read = (StreamReader, VecDeque<Arc<StoredEvent>>);
type Batch = Result<Read, StoreError>;

/// A place in one execution's stream. Pins the execution.
pub(crate) struct JournalWatch {
    shared: Arc<Shared>,
    id: ExecutionId,
    after: u64,
    /// Told while the execution is live; absent for one that had ended before.
    changed: Option<watch::Receiver<()>>,
    /// Read from the journal and not yet delivered.
    ahead: VecDeque<Arc<StoredEvent>>,
    /// Where reading from the journal goes on.
    reader: Option<StreamReader>,
    /// The place that the reader was made for.
    reader_after: u64,
    /// A read under way; kept here, so that a dropped pull loses nothing.
    reading: Option<JoinHandle<Batch>>,
}

/// What is at the watch's place in memory.
pub(crate) enum Found {
    Event(Arc<StoredEvent>),
    /// Durable, but only in the journal.
    Cold,
    End,
    NotYet,
}

impl JournalWatch {
    /// A watch on an execution that the caller has pinned.
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: ExecutionId,
        after: u64,
        changed: Option<watch::Receiver<()>>,
    ) -> JournalWatch {
        let ahead = VecDeque::new();
        JournalWatch { shared, id, after, changed, ahead, reader: None, reader_after: 0, reading: None }
    }

    async fn pull(&mut self) -> Option<Result<Arc<StoredEvent>, StoreError>> {
        loop {
            if let Some(event) = self.ahead.pop_front() {
                return self.deliver(event);
            }
            if self.reading.is_some() || self.reader.is_some() {
                match self.read().await {
                    Ok(()) => continue,
                    Err(error) => return Some(Err(error)),
                }
            }
            if let Some(changed) = &mut self.changed {
                // Before the look: what becomes durable behind it wakes again.
                changed.mark_unchanged();
            }
            match self.shared.look(self.id, self.after) {
                Ok(Found::Event(event)) => return self.deliver(event),
                Ok(Found::End) => return None,
                Ok(Found::Cold) => {
                    let stream = records::stream(self.id);
                    self.reader = Some(self.shared.journal.read_stream(stream, self.after + 1));
                    self.reader_after = self.after;
                }
                Ok(Found::NotYet) => match &mut self.changed {
                    // Closed: the execution has ended or the store failed; the next look says which.
                    Some(changed) => drop(changed.changed().await),
                    None => return Some(Err(StoreError::Failed)),
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn deliver(&mut self, event: Arc<StoredEvent>) -> Option<Result<Arc<StoredEvent>, StoreError>> {
        self.after = event.sequence;
        Some(Ok(event))
    }

    /// Reads the next events from the journal. A reader that is used up is dropped; memory or a new one goes on.
    async fn read(&mut self) -> Result<(), StoreError> {
        if let Some(reader) = self.reader.take() {
            let (id, after) = (self.id, self.after);
            match self.shared.blocking {
                Blocking::Threads => {
                    self.reading = Some(tokio::task::spawn_blocking(move || read(reader, id, after)));
                }
                #[cfg(any(test, feature = "testing"))]
                Blocking::InPlace => return self.take(read(reader, id, after)?),
            }
        }
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let batch = reading.await;
        self.reading = None;
        self.take(batch.map_err(|_| StoreError::Failed)??)
    }

    fn take(&mut self, (reader, events): Read) -> Result<(), StoreError> {
        if events.is_empty() && self.after == self.reader_after {
            // The event is durable, so a new reader must find it: looking again would never end.
            tracing::error!("a durable event is not in the journal");
            return Err(StoreError::Failed);
        }
        self.reader = (!events.is_empty()).then_some(reader);
        self.ahead = events;
        Ok(())
    }
}

fn read(mut reader: StreamReader, id: ExecutionId, mut after: u64) -> Batch {
    let mut events = VecDeque::new();
    let mut bytes = 0;
    while bytes < AHEAD_BYTES_MAX {
        let Some(record) = reader.next() else { break };
        let record = record.map_err(|error| failed("a stream could not be read", &error))?;
        let Some(event) = records::event(&record).map_err(|_| StoreError::Failed)? else { continue };
        if event.sequence != after + 1 {
            tracing::error!(sequence = record.sequence, "an event is missing in the journal");
            return Err(StoreError::Failed);
        }
        let (stored, _) = render(id, &event)?;
        after = stored.sequence;
        bytes += stored.data.len();
        events.push_back(Arc::new(stored));
    }
    Ok((reader, events))
}

impl Watch for JournalWatch {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Arc<StoredEvent>, StoreError>>> {
        Box::pin(self.pull())
    }
}

impl Drop for JournalWatch {
    fn drop(&mut self) {
        self.shared.unpin(self.id);
    }
}
