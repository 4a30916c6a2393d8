//! Where an execution came from: read from the beginning of its stream, since it is asked for seldom.

use std::sync::Arc;

use sealog_events::{ExecutionId, Origin, RecordKind, body};
use sealog_journal::Journal;

use super::error::failed;
use super::read::Pin;
use super::{Shared, records};
use crate::StoreError;

impl Shared {
    pub(super) async fn origin(self: Arc<Self>, id: ExecutionId) -> Result<Option<Origin>, StoreError> {
        let pin = {
            let mut state = self.readable()?;
            if self.visible(&state, id).is_none() {
                return Ok(None);
            }
            // What is being read must not be forgotten meanwhile.
            state.ledger.pin(id);
            Pin { shared: Arc::clone(&self), id }
        };
        let journal = self.journal.clone();
        let origin = self.blocking(move || read(&journal, id)).await?;
        drop(pin);
        origin
    }
}

/// It stands between the creation and the first event, so nothing behind that is looked at.
fn read(journal: &Journal, id: ExecutionId) -> Result<Option<Origin>, StoreError> {
    for record in journal.read_stream(records::stream(id), 1) {
        let record = record.map_err(|error| failed("a stream could not be read", &error))?;
        if record.kind == RecordKind::Origin.number() {
            return body::decode_origin(&record.body).map(Some).map_err(|error| {
                tracing::error!(%error, "an execution's origin could not be read");
                StoreError::Failed
            });
        }
        if record.event_number > 0 {
            break;
        }
    }
    Ok(None)
}
