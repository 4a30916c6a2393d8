//! Where an execution came from: read from the beginning of its stream, since it is asked for seldom.

use std::sync::Arc;

use sealog_events::{ExecutionId, Origin, RecordKind, body};

use super::{Shared, read};
use crate::StoreError;

impl Shared {
    pub(super) async fn origin(self: Arc<Self>, id: ExecutionId) -> Result<Option<Origin>, StoreError> {
        let Some((_, pin)) = self.pinned(id)? else { return Ok(None) };
        let journal = self.journal.clone();
        let read = move || read::beside_creation(&journal, id, RecordKind::Origin, body::decode_origin);
        let origin = self.blocking(read).await?;
        drop(pin);
        origin
    }
}
