//! The background side of expiry: what nobody asks for goes all the same.
//!
//! Owns the period and nothing else; what has expired is the store's to say.

use std::sync::Weak;
use std::time::Duration;

use super::{EventStore, StoreError};

/// Between two sweeps. One that finds nothing costs a look at the oldest end.
const PERIOD: Duration = Duration::from_secs(1);

/// Sweeps until the store is gone, closed or failed.
pub async fn sweep(store: Weak<dyn EventStore>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(store) = store.upgrade() else { return };
        match store.sweep().await {
            Ok(()) => {}
            Err(StoreError::Closed | StoreError::Failed) => return,
            Err(error) => tracing::warn!(%error, "expired executions were not forgotten"),
        }
    }
}
