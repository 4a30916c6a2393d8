//! Requests that came through the model API of others: submitted as they were translated, and remembered as such.

use std::sync::Arc;

use sealog_events::{ExecutionId, Identity, Origin, canonical};
use sealog_execution::ExecutionRequest;

use super::{Engine, KEY_LENGTH_MAX, submit};
use crate::{PublicError, Submission};

impl Engine {
    /// As [`Engine::submit`] for a request that somebody else has read and checked; `fingerprint` is of what that was.
    ///
    /// # Errors
    /// As [`Engine::submit`], but for the schema.
    pub async fn submit_translated(
        &self,
        request: ExecutionRequest,
        fingerprint: [u8; 32],
        idempotency_key: Option<&str>,
    ) -> Result<Submission, PublicError> {
        if self.inner.state().stopping {
            return Err(PublicError::shutting_down());
        }
        if let Some(key) = idempotency_key
            && !(1..=KEY_LENGTH_MAX).contains(&key.encode_utf16().take(KEY_LENGTH_MAX + 1).count())
        {
            return Err(PublicError::bad_key());
        }
        let identity =
            idempotency_key.map(|key| Identity { key_hash: canonical::key_hash(key), fingerprint });
        let accepted = submit::submit(&self.inner, Arc::new(request), identity, false).await?;
        Ok(accepted.submission)
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
