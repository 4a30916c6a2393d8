//! The registered providers, in registration order. Owns identities and typed lookups; knows nothing of routing.

use std::fmt;
use std::sync::Arc;

use sealog_events::PortableCode;

use crate::{Failure, ModelProvider, ProviderLimits};

/// Longest provider identity, in bytes; a terminal event that names it must stay within the terminal reserve.
pub const IDENTITY_BYTES_MAX: usize = 256;

/// Why a provider was not registered. A mistake of the composition root, never of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("a provider is already registered under this identity")]
    Duplicate,
    #[error("a provider identity has 1 to 256 bytes")]
    BadIdentity,
}

/// Why a lookup has no provider to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    #[error("provider is not registered")]
    Missing,
    #[error("provider is not available")]
    Unavailable,
}

impl LookupError {
    /// The failure that an execution gets.
    pub fn to_failure(self) -> Failure {
        match self {
            LookupError::Missing => {
                Failure::permanent(PortableCode::ProviderUnavailable, "Provider is not registered")
            }
            LookupError::Unavailable => {
                Failure::transient(PortableCode::ProviderUnavailable, "Provider is not available")
            }
        }
    }
}

/// An ordered set of providers with distinct identities.
#[derive(Clone, Default)]
pub struct Registry {
    providers: Vec<Arc<dyn ModelProvider>>,
    /// Of each provider, in the same order.
    limits: Vec<Option<ProviderLimits>>,
}

impl Registry {
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a provider behind all registered before it.
    ///
    /// # Errors
    /// The identity is taken, empty or too long.
    pub fn register(&mut self, provider: Arc<dyn ModelProvider>) -> Result<(), RegistryError> {
        self.add(provider, None)
    }

    /// As [`Registry::register`], for a provider with limits of its own.
    ///
    /// # Errors
    /// As [`Registry::register`].
    pub fn register_limited(
        &mut self,
        provider: Arc<dyn ModelProvider>,
        limits: ProviderLimits,
    ) -> Result<(), RegistryError> {
        self.add(provider, Some(limits))
    }

    fn add(
        &mut self,
        provider: Arc<dyn ModelProvider>,
        limits: Option<ProviderLimits>,
    ) -> Result<(), RegistryError> {
        if !(1..=IDENTITY_BYTES_MAX).contains(&provider.id().len()) {
            return Err(RegistryError::BadIdentity);
        }
        if self.providers.iter().any(|registered| registered.id() == provider.id()) {
            return Err(RegistryError::Duplicate);
        }
        self.providers.push(provider);
        self.limits.push(limits);
        Ok(())
    }

    /// The provider with exactly this identity.
    ///
    /// # Errors
    /// Nobody has it, or the provider says it is not available.
    pub fn lookup(&self, id: &str) -> Result<Arc<dyn ModelProvider>, LookupError> {
        let provider =
            self.providers.iter().find(|provider| provider.id() == id).ok_or(LookupError::Missing)?;
        if provider.available() { Ok(Arc::clone(provider)) } else { Err(LookupError::Unavailable) }
    }

    /// The limits a provider was registered with; `None` if it had none or is not registered.
    pub fn limits(&self, id: &str) -> Option<ProviderLimits> {
        let place = self.providers.iter().position(|provider| provider.id() == id)?;
        self.limits.get(place).copied().flatten()
    }

    /// All providers in registration order.
    pub fn providers(&self) -> &[Arc<dyn ModelProvider>] {
        &self.providers
    }

    pub fn len(&self) -> usize {
        self.providers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.providers.iter().map(|provider| provider.id())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelCall, ProviderManifest, ProviderStream};

    struct Named(&'static str, bool);

    impl ModelProvider for Named {
        fn id(&self) -> &str {
            self.0
        }
        fn manifest(&self) -> Result<ProviderManifest, Failure> {
            Err(Failure::protocol("none"))
        }
        fn execute(&self, _: ModelCall) -> ProviderStream {
            Box::pin(futures_util::stream::empty())
        }
        fn available(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn identities_are_distinct_and_order_is_kept() {
        let mut registry = Registry::new();
        for name in ["b", "a"] {
            registry.register(Arc::new(Named(name, true))).unwrap();
        }
        assert_eq!(registry.register(Arc::new(Named("a", true))), Err(RegistryError::Duplicate));
        assert_eq!(registry.register(Arc::new(Named("", true))), Err(RegistryError::BadIdentity));
        assert_eq!(format!("{registry:?}"), r#"["b", "a"]"#);
        assert_eq!(registry.len(), 2);
    }

    #[test]
    fn limits_are_those_of_the_registration() {
        let mut registry = Registry::new();
        let limits = ProviderLimits { max_concurrency: 3, max_queue_depth: 0 };
        registry.register(Arc::new(Named("a", true))).unwrap();
        registry.register_limited(Arc::new(Named("b", true)), limits).unwrap();
        assert_eq!(
            registry.register_limited(Arc::new(Named("a", true)), limits),
            Err(RegistryError::Duplicate)
        );
        assert_eq!(["a", "b", "c"].map(|id| registry.limits(id)), [None, Some(limits), None]);
    }

    #[test]
    fn lookups_fail_with_their_reason() {
        let mut registry = Registry::new();
        registry.register(Arc::new(Named("up", true))).unwrap();
        registry.register(Arc::new(Named("down", false))).unwrap();
        assert!(registry.lookup("up").is_ok_and(|provider| provider.id() == "up"));
        assert_eq!(registry.lookup("down").err(), Some(LookupError::Unavailable));
        assert_eq!(registry.lookup("UP").err(), Some(LookupError::Missing));
        assert!(LookupError::Unavailable.to_failure().retryable());
        assert!(!LookupError::Missing.to_failure().retryable());
    }
}
