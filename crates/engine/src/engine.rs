//! The engine's public face: submit, cancel, read, shut down. Owns admission, idempotent joining and the set of
//! active executions; what happens inside one execution is the driver's.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sealog_disk::{Clock, Entropy};
use sealog_events::{ExecutionId, Identity, Snapshot, Timestamp, canonical};
use sealog_execution::lease::Gate;
use sealog_execution::manifest::PROTOCOL_VERSION;
use sealog_execution::registry::LookupError;
use sealog_execution::request::ParsedRequest;
use sealog_execution::{ExecutionRequest, ModelProvider, ProviderLimits, ProviderManifest, Registry};
use tokio_util::task::TaskTracker;

use crate::catalog;
use crate::model::attempt::StopCause;
use crate::stop::Stop;
use crate::store::listing::{self, Filter, Listing};
use crate::store::{ListPosition, Watch};
use crate::{EventStore, Features, Observer, PublicError, RuntimeInfo, RuntimeState, Submission};

mod load;
mod submit;
mod translated;

pub use load::Load;

use submit::Pending;

/// Longest idempotency key, in UTF-16 units.
pub const KEY_LENGTH_MAX: usize = 256;

/// The engine's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// Executions that are not terminal at the same time, at least 1; more are refused with `queue_full`.
    pub max_active_executions: usize,
    /// How long a provider may go on after its abort signal before it is dropped.
    pub cleanup_ms: u64,
    /// Attempts at the same time per provider that was registered without limits of its own, at least 1.
    pub provider_concurrency: usize,
    /// Attempts waiting per such provider.
    pub provider_queue: usize,
    /// How long [`Engine::shutdown`] waits for executions to end.
    pub shutdown_ms: u64,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            max_active_executions: 16,
            cleanup_ms: 5_000,
            provider_concurrency: 16,
            provider_queue: 64,
            shutdown_ms: 10_000,
        }
    }
}

/// The execution engine. Cheap to clone; all clones are the same engine. Its calls belong inside a tokio runtime.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// What the driver and submissions share.
pub(crate) struct Inner {
    pub(crate) options: EngineOptions,
    pub(crate) store: Arc<dyn EventStore>,
    pub(crate) clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    admission: Gate,
    state: Mutex<State>,
    tasks: TaskTracker,
}

/// Everything that must change together. Never held across an await.
struct State {
    stopping: bool,
    registry: Registry,
    provider_gates: HashMap<String, Gate>,
    /// From before the execution is created until its terminal event is durable or given up.
    active: HashMap<ExecutionId, Arc<Stop>>,
    /// Submissions under way, by key hash; later ones with the same key join them.
    pending: HashMap<[u8; 32], Pending>,
}

fn identity(idempotency_key: Option<&str>, fingerprint: [u8; 32]) -> Option<Identity> {
    idempotency_key.map(|key| Identity { key_hash: canonical::key_hash(key), fingerprint })
}

impl Engine {
    /// An engine over `store` with these providers. Nothing runs before the first submit.
    pub fn start(
        options: EngineOptions,
        registry: Registry,
        store: Arc<dyn EventStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Engine {
        Engine::start_observed(options, registry, store, clock, entropy, None)
    }

    /// As [`Engine::start`], and tells `observer` what becomes of every new execution.
    pub fn start_observed(
        options: EngineOptions,
        registry: Registry,
        store: Arc<dyn EventStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Engine {
        let admission = Gate::new(options.max_active_executions, 0);
        let state = State {
            stopping: false,
            registry,
            provider_gates: HashMap::new(),
            active: HashMap::new(),
            pending: HashMap::new(),
        };
        let inner = Inner {
            options,
            store,
            clock,
            entropy,
            observer,
            admission,
            state: Mutex::new(state),
            tasks: TaskTracker::new(),
        };
        Engine { inner: Arc::new(inner) }
    }

    /// Accepts a request (its JSON text), or answers for the key's earlier one. When it returns, the execution
    /// and its first event are durable. Dropping the future does not stop the execution.
    ///
    /// # Errors
    /// Shutting down, a bad key, a request outside the schema, a key used for another request, no admission slot,
    /// or a store that cannot take it.
    pub async fn submit(
        &self,
        body: &[u8],
        idempotency_key: Option<&str>,
    ) -> Result<Submission, PublicError> {
        let (request, identity) = self.read(body, idempotency_key)?;
        let accepted = submit::submit(&self.inner, request, identity, false).await?;
        Ok(accepted.submission)
    }

    /// As [`Engine::submit`], with the execution's events from the first one on. It is kept at least as long as they are
    /// watched, also where it ends at once and everything else presses.
    ///
    /// # Errors
    /// As [`Engine::submit`]; the store failed.
    pub async fn submit_watching(
        &self,
        body: &[u8],
        idempotency_key: Option<&str>,
    ) -> Result<(Submission, Box<dyn Watch>), PublicError> {
        let (request, identity) = self.read(body, idempotency_key)?;
        self.watched(request, identity).await
    }

    async fn watched(
        &self,
        request: Arc<ExecutionRequest>,
        identity: Option<Identity>,
    ) -> Result<(Submission, Box<dyn Watch>), PublicError> {
        loop {
            let accepted = submit::submit(&self.inner, Arc::clone(&request), identity, true).await?;
            let submit::Accepted { submission, watch } = accepted;
            let watch = match watch {
                Some(watch) => Some(watch),
                None => self.watch(submission.execution_id, 0).await?,
            };
            if let Some(watch) = watch {
                return Ok((submission, watch));
            }
            // An earlier execution of the key that was let go just now: the key is free, as if asked a moment later.
        }
    }

    fn read(
        &self,
        body: &[u8],
        idempotency_key: Option<&str>,
    ) -> Result<(Arc<ExecutionRequest>, Option<Identity>), PublicError> {
        self.check_entry(idempotency_key)?;
        let ParsedRequest { request, fingerprint } = ExecutionRequest::parse(body)?;
        Ok((Arc::new(request), identity(idempotency_key, fingerprint)))
    }

    /// What is judged before anything of a request is looked at.
    fn check_entry(&self, idempotency_key: Option<&str>) -> Result<(), PublicError> {
        if self.inner.state().stopping {
            return Err(PublicError::shutting_down());
        }
        match idempotency_key {
            Some(key)
                if !(1..=KEY_LENGTH_MAX).contains(&key.encode_utf16().take(KEY_LENGTH_MAX + 1).count()) =>
            {
                Err(PublicError::bad_key())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Asks an active execution to stop. `false` for one that is unknown, has ended, or belongs to an earlier
    /// process. A provider that completes nevertheless still wins.
    ///
    /// # Errors
    /// None today; a store that records cancellations may fail to.
    pub async fn cancel(&self, id: ExecutionId) -> Result<bool, PublicError> {
        if self.inner.store.read_only() {
            return Err(PublicError::read_only());
        }
        let stop = self.inner.state().active.get(&id).cloned();
        let known = stop.is_some();
        if let Some(stop) = stop {
            stop.fire(StopCause::Cancelled);
        } else if self.inner.store.fenced() && self.inner.store.brief(id).await?.is_none() {
            return Err(PublicError::fenced());
        }
        Ok(known)
    }

    /// What is known about an execution; `None` if it is unknown or no longer kept.
    ///
    /// # Errors
    /// The store failed.
    pub async fn snapshot(&self, id: ExecutionId) -> Result<Option<Snapshot>, PublicError> {
        self.inner.known(self.inner.store.snapshot(id).await?)
    }

    /// A page of the executions that `filter` takes, created before `before`, the youngest first.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(
        &self,
        filter: Filter,
        before: Option<ListPosition>,
        limit: usize,
    ) -> Result<Listing, PublicError> {
        Ok(listing::list(&*self.inner.store, filter, before, limit).await?)
    }

    /// Follows an execution's durable events above `after`; `None` if it is unknown or no longer kept.
    ///
    /// # Errors
    /// The store failed.
    pub async fn watch(&self, id: ExecutionId, after: u64) -> Result<Option<Box<dyn Watch>>, PublicError> {
        self.inner.known(self.inner.store.watch(id, after).await?)
    }

    pub fn runtime_info(&self) -> RuntimeInfo {
        let (stopping, provider_count) = {
            let state = self.inner.state();
            (state.stopping, state.registry.len())
        };
        let takes_work = self.inner.store.available() && !self.fenced();
        let state = match (stopping, takes_work) {
            (true, _) => RuntimeState::Stopping,
            (false, false) => RuntimeState::Unavailable,
            (false, true) => RuntimeState::Ready,
        };
        RuntimeInfo {
            name: "sealog",
            protocol_version: PROTOCOL_VERSION,
            provider_count,
            state,
            features: Features::CURRENT,
        }
    }

    /// Made from another journal and not unfenced: work that is not known here is refused, because the original may have
    /// done it.
    pub fn fenced(&self) -> bool {
        self.inner.store.fenced()
    }

    /// What every provider declares now, in registration order.
    ///
    /// # Errors
    /// A manifest call failed, or a manifest names another provider.
    pub fn providers(&self) -> Result<Vec<ProviderManifest>, PublicError> {
        let mut manifests = catalog::read(&self.inner.providers())?;
        let state = self.inner.state();
        for manifest in &mut manifests {
            // What the gates keep, not what the provider says.
            manifest.limits = Some(state.limits(&manifest.provider, self.inner.options));
        }
        Ok(manifests)
    }

    /// Adds a provider.
    ///
    /// # Errors
    /// Shutting down, or an identity that is taken or not one.
    pub fn register(&self, provider: Arc<dyn ModelProvider>) -> Result<(), PublicError> {
        let mut state = self.inner.state();
        if state.stopping {
            return Err(PublicError::shutting_down());
        }
        state.registry.register(provider).map_err(|_| PublicError::internal())
    }

    /// Refuses new work, cancels everything active and waits, at most `shutdown_ms`, until every execution has
    /// ended. Returns whether all did. May be called again, and from several places. The store stays open, so
    /// that subscribers still receive the last events.
    pub async fn shutdown(&self) -> bool {
        let mut stops: Vec<(ExecutionId, Arc<Stop>)> = {
            let mut state = self.inner.state();
            state.stopping = true;
            state.active.iter().map(|(id, stop)| (*id, Arc::clone(stop))).collect()
        };
        // In an order that does not depend on the map's.
        stops.sort_unstable_by_key(|(id, _)| *id);
        for (_, stop) in stops {
            stop.fire(StopCause::Cancelled);
        }
        self.inner.tasks.close();
        let limit = Duration::from_millis(self.inner.options.shutdown_ms);
        let drained = tokio::time::timeout(limit, self.inner.tasks.wait()).await.is_ok();
        if !drained {
            tracing::warn!("executions were still running when the shutdown wait ended");
        }
        drained
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every critical section leaves the maps consistent between its statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer that says that something is not here: a fenced copy does not know.
    fn known<T>(&self, found: Option<T>) -> Result<Option<T>, PublicError> {
        match found {
            None if self.store.fenced() => Err(PublicError::fenced()),
            found => Ok(found),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.wall_ms())
    }

    pub(crate) fn providers(&self) -> Vec<Arc<dyn ModelProvider>> {
        self.state().registry.providers().to_vec()
    }

    /// The provider of this identity.
    ///
    /// # Errors
    /// It is not registered, or says that it is not available.
    pub(crate) fn provider(&self, id: &str) -> Result<Arc<dyn ModelProvider>, LookupError> {
        self.state().registry.lookup(id)
    }

    /// The gate of a provider, made at its first use.
    pub(crate) fn provider_gate(&self, provider: &str) -> Gate {
        let mut state = self.state();
        let ProviderLimits { max_concurrency, max_queue_depth } = state.limits(provider, self.options);
        let count = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let gates = &mut state.provider_gates;
        gates
            .entry(provider.to_owned())
            .or_insert_with(|| Gate::new(count(max_concurrency), count(max_queue_depth)))
            .clone()
    }
}

impl State {
    fn limits(&self, provider: &str, options: EngineOptions) -> ProviderLimits {
        let count = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
        self.registry.limits(provider).unwrap_or(ProviderLimits {
            max_concurrency: count(options.provider_concurrency).max(1),
            max_queue_depth: count(options.provider_queue),
        })
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("info", &self.runtime_info()).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
