//! Asking providers what they declare. Owns the containment of their manifest calls; decides nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sealog_events::PortableCode;
use sealog_execution::{Failure, ModelProvider, ProviderManifest};

/// The manifests of all providers, in their order. One failing manifest fails the whole call: an execution must
/// not be routed past a provider whose abilities are unknown.
///
/// # Errors
/// A manifest call failed or panicked, or a manifest names another provider.
pub(crate) fn read(providers: &[Arc<dyn ModelProvider>]) -> Result<Vec<ProviderManifest>, Failure> {
    providers.iter().map(|provider| manifest(provider.as_ref())).collect()
}

/// One provider's manifest.
///
/// # Errors
/// As [`read`].
pub(crate) fn manifest(provider: &dyn ModelProvider) -> Result<ProviderManifest, Failure> {
    let manifest = catch_unwind(AssertUnwindSafe(|| provider.manifest())).unwrap_or_else(|_| {
        tracing::error!(provider = provider.id(), "a provider panicked in its manifest call");
        Err(Failure::permanent(PortableCode::ProviderUnavailable, "Provider manifest could not be read"))
    })?;
    if manifest.provider == provider.id() {
        Ok(manifest)
    } else {
        Err(Failure::permanent(
            PortableCode::ProviderProtocolError,
            "Provider manifest does not match its registration",
        ))
    }
}
