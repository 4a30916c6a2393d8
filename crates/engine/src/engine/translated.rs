//! Requests that came through the model API of others: submitted as they were translated, and remembered as such.

use std::sync::Arc;

use sealog_events::{ExecutionId, Origin};
use sealog_execution::ExecutionRequest;

use super::{Engine, identity};
use crate::store::Watch;
use crate::{PublicError, Submission};

impl Engine {
    /// As [`Engine::submit_watching`] for a request that somebody else has read and checked; `fingerprint` is of what that
    /// was. Always watched: whatever is answered there is made of the events.
    ///
    /// # Errors
    /// As [`Engine::submit_watching`], but for the schema.
    pub async fn submit_translated(
        &self,
        request: ExecutionRequest,
        fingerprint: [u8; 32],
        idempotency_key: Option<&str>,
    ) -> Result<(Submission, Box<dyn Watch>), PublicError> {
        self.check_entry(idempotency_key)?;
        self.watched(Arc::new(request), identity(idempotency_key, fingerprint)).await
    }

    /// Which model API of others an execution came through; `None` for one of the runtime's own, and for one that is
    /// unknown or no longer kept.
    ///
    /// # Errors
    /// The store failed.
    pub async fn origin(&self, id: ExecutionId) -> Result<Option<Origin>, PublicError> {
        self.inner.known(self.inner.store.origin(id).await?)
    }
}
