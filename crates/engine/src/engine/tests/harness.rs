//! A provider and a store that do as they are told, and write down in which order things happened.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream;
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_events::{
    AttemptEvidence, Event, EventBody, ExecutionId, Identity, Origin, PortableCode, Snapshot,
};
use sealog_execution::manifest::PROTOCOL_VERSION;
use sealog_execution::{
    AbortSignal, ExecutionRequest, Failure, Modality, ModelCall, ModelManifest, ModelProvider, ProviderEvent,
    ProviderLimits, ProviderManifest, ProviderStream, Registry,
};
use tokio::sync::Semaphore;

use crate::store::listing::{Filter, Page};
use crate::store::memory::MemoryStore;
use crate::store::{Brief, Claim, EventStore, ListPosition, NewExecution, StoreFuture, StoreLimits, Watch};
use crate::{Engine, EngineOptions, StoreError, Submission};

pub const BODY: &str = r#"{"ability":"chat","input":[{"type":"text","text":"t"}]}"#;

/// A request with further members.
pub fn body(members: &str) -> String {
    format!(r#"{{"ability":"chat","input":[{{"type":"text","text":"t"}}],{members}}}"#)
}

/// What happened, in order, over provider and store.
pub type Log = Arc<Mutex<Vec<String>>>;

pub fn note(log: &Log, what: impl Into<String>) {
    log.lock().unwrap().push(what.into());
}

pub fn noted(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

/// The announcements and calls of each execution, in order: `selected p` when it is durable, `asked p`.
pub type Trace = Arc<Mutex<Vec<(ExecutionId, String)>>>;

/// One step of a scripted provider.
#[derive(Clone)]
pub enum Step {
    Send(ProviderEvent),
    Fail(Failure),
    /// Waits; an abort cuts it short and fails as cancelled.
    Sleep(u64),
    /// Waits and does not listen.
    SleepDeaf(u64),
    /// Waits for the abort signal and takes so much longer to fail as cancelled.
    Cleanup(u64),
    Yield,
    Panic,
    /// Never ready again.
    Hang,
}

pub fn text(text: &str) -> Step {
    Step::Send(ProviderEvent::OutputDelta { output_index: 0, delta: text.to_owned() })
}

pub fn completed() -> Step {
    Step::Send(ProviderEvent::Completed)
}

/// A provider that plays one script at every call.
pub struct Scripted {
    pub id: &'static str,
    pub manifest: Box<dyn Fn() -> Result<ProviderManifest, Failure> + Send + Sync>,
    pub steps: Vec<Step>,
    pub log: Log,
    pub trace: Trace,
    pub calls: Arc<Mutex<Vec<Arc<ExecutionRequest>>>>,
    /// The executions that were begun.
    pub ids: Arc<Mutex<Vec<ExecutionId>>>,
    pub panic_on_execute: bool,
    pub panic_on_drop: bool,
    /// What lookups are told.
    pub available: bool,
    pub limits: Option<ProviderLimits>,
}

impl Scripted {
    pub fn new(id: &'static str, steps: Vec<Step>) -> Scripted {
        Scripted {
            id,
            manifest: Box::new(move || Ok(manifest(id, |_| {}))),
            steps,
            log: Log::default(),
            trace: Trace::default(),
            calls: Arc::default(),
            ids: Arc::default(),
            panic_on_execute: false,
            panic_on_drop: false,
            available: true,
            limits: None,
        }
    }
}

pub fn manifest(id: &str, change: impl FnOnce(&mut ModelManifest)) -> ProviderManifest {
    let mut model = ModelManifest {
        model: "model".to_owned(),
        abilities: vec!["chat".to_owned()],
        input_modalities: vec![Modality::Text],
        output_modalities: vec![Modality::Text],
        stream: true,
        tools: false,
        structured_output: false,
        asynchronous: false,
        cancel: true,
    };
    change(&mut model);
    ProviderManifest {
        provider: id.to_owned(),
        protocol_version: PROTOCOL_VERSION.to_owned(),
        models: vec![model],
        limits: None,
    }
}

impl ModelProvider for Scripted {
    fn id(&self) -> &str {
        self.id
    }

    fn manifest(&self) -> Result<ProviderManifest, Failure> {
        (self.manifest)()
    }

    fn available(&self) -> bool {
        self.available
    }

    fn execute(&self, call: ModelCall) -> ProviderStream {
        self.calls.lock().unwrap().push(Arc::clone(&call.request));
        self.ids.lock().unwrap().push(call.execution_id);
        note(&self.log, "execute");
        self.trace.lock().unwrap().push((call.execution_id, format!("asked {}", self.id)));
        assert!(!self.panic_on_execute, "told to panic");
        let play = Play {
            steps: self.steps.clone().into(),
            abort: call.abort,
            log: Arc::clone(&self.log),
            panic_on_drop: self.panic_on_drop,
        };
        Box::pin(stream::unfold(play, |mut play| async move {
            note(&play.log, "poll");
            let item = play.next().await?;
            Some((item, play))
        }))
    }
}

struct Play {
    steps: VecDeque<Step>,
    abort: AbortSignal,
    log: Log,
    panic_on_drop: bool,
}

impl Play {
    async fn next(&mut self) -> Option<Result<ProviderEvent, Failure>> {
        loop {
            match self.steps.pop_front()? {
                Step::Send(event) => return Some(Ok(event)),
                Step::Fail(failure) => return Some(Err(failure)),
                Step::Sleep(ms) => tokio::select! {
                    biased;
                    () = self.abort.cancelled() => return Some(Err(Failure::cancelled())),
                    () = tokio::time::sleep(Duration::from_millis(ms)) => {}
                },
                Step::SleepDeaf(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                Step::Cleanup(ms) => {
                    self.abort.cancelled().await;
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    return Some(Err(Failure::cancelled()));
                }
                Step::Yield => tokio::task::yield_now().await,
                Step::Panic => panic!("told to panic"),
                Step::Hang => std::future::pending().await,
            }
        }
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        note(&self.log, if self.abort.is_cancelled() { "dropped aborted" } else { "dropped" });
        assert!(!self.panic_on_drop, "told to panic");
    }
}

/// What happens to one append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Stored { yields: u32, delay_ms: u64 },
    Refused(StoreError),
}

/// Decides each append by its number (from 1) and its event.
pub type Judge = Box<dyn Fn(u32, &EventBody) -> Fate + Send + Sync>;

/// More than any test uses at once; forgetting all of them holds every call.
pub const PERMITS: usize = 1000;

pub const AT_ONCE: Fate = Fate::Stored { yields: 0, delay_ms: 0 };

/// A memory store whose appends can be held and refused.
pub struct TestStore {
    pub inner: MemoryStore,
    pub log: Log,
    pub trace: Trace,
    pub fate: Judge,
    pub count: Mutex<u32>,
    /// Every create takes a permit and gives it back; the same for appends.
    pub creates: Semaphore,
    pub appends: Semaphore,
    pub refuse_create: Mutex<Option<StoreError>>,
}

impl std::fmt::Debug for TestStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl EventStore for TestStore {
    fn create(&self, new: NewExecution) -> StoreFuture<'_, Claim> {
        Box::pin(async move {
            let _permit = self.creates.acquire().await.unwrap();
            if let Some(error) = self.refuse_create.lock().unwrap().take() {
                return Err(error);
            }
            self.inner.create(new).await
        })
    }

    fn find(&self, identity: Identity) -> StoreFuture<'_, Option<Claim>> {
        self.inner.find(identity)
    }

    fn append(&self, id: ExecutionId, event: Event) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let number = {
                let mut count = self.count.lock().unwrap();
                *count += 1;
                *count
            };
            let _permit = self.appends.acquire().await.unwrap();
            match (self.fate)(number, &event.body) {
                Fate::Refused(error) => {
                    note(&self.log, format!("refused {}", event.body.type_name()));
                    Err(error)
                }
                Fate::Stored { yields, delay_ms } => {
                    for _ in 0..yields {
                        tokio::task::yield_now().await;
                    }
                    if delay_ms > 0 {
                        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
                    }
                    let name = event.body.type_name();
                    let selected = match &event.body {
                        EventBody::RouteSelected { target, .. } => Some(target.provider.clone()),
                        _ => None,
                    };
                    self.inner.append(id, event).await?;
                    note(&self.log, format!("stored {name}"));
                    if let Some(provider) = selected {
                        self.trace.lock().unwrap().push((id, format!("selected {provider}")));
                    }
                    Ok(())
                }
            }
        })
    }

    fn note(&self, id: ExecutionId, evidence: AttemptEvidence) {
        note(&self.log, format!("noted {} of {}", evidence.mark.reached(), evidence.attempt));
        self.inner.note(id, evidence);
    }

    fn brief(&self, id: ExecutionId) -> StoreFuture<'_, Option<Brief>> {
        self.inner.brief(id)
    }

    fn origin(&self, id: ExecutionId) -> StoreFuture<'_, Option<Origin>> {
        self.inner.origin(id)
    }

    fn snapshot(&self, id: ExecutionId) -> StoreFuture<'_, Option<Snapshot>> {
        self.inner.snapshot(id)
    }

    fn watch(&self, id: ExecutionId, after: u64) -> StoreFuture<'_, Option<Box<dyn Watch>>> {
        self.inner.watch(id, after)
    }

    fn list(&self, after: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Vec<Brief>> {
        self.inner.list(after, limit)
    }

    fn page(&self, filter: Filter, before: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Page> {
        self.inner.page(filter, before, limit)
    }

    fn sweep(&self) -> StoreFuture<'_, ()> {
        self.inner.sweep()
    }

    fn available(&self) -> bool {
        self.inner.available()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.inner.close()
    }
}

/// An engine with everything around it.
pub struct Bench {
    pub engine: Engine,
    pub store: Arc<TestStore>,
    pub clock: ManualClock,
    pub entropy: SeededEntropy,
    pub log: Log,
    pub trace: Trace,
}

/// What a bench is made from.
pub struct Setup {
    pub options: EngineOptions,
    pub limits: StoreLimits,
    pub providers: Vec<Scripted>,
    pub fate: Judge,
    pub seed: u64,
}

impl Setup {
    pub fn new(providers: Vec<Scripted>) -> Setup {
        Setup {
            options: EngineOptions::default(),
            limits: StoreLimits::default(),
            providers,
            fate: Box::new(|_, _| AT_ONCE),
            seed: 1,
        }
    }

    pub fn start(self) -> Bench {
        let clock = ManualClock::new(1_767_225_600_000);
        let entropy = SeededEntropy::new(self.seed);
        let (log, trace) = (Log::default(), Trace::default());
        let store = Arc::new(TestStore {
            inner: MemoryStore::new(self.limits, Arc::new(clock.clone())),
            log: Arc::clone(&log),
            trace: Arc::clone(&trace),
            fate: self.fate,
            count: Mutex::new(0),
            creates: Semaphore::new(PERMITS),
            appends: Semaphore::new(PERMITS),
            refuse_create: Mutex::new(None),
        });
        let mut registry = Registry::new();
        for mut provider in self.providers {
            provider.log = Arc::clone(&log);
            provider.trace = Arc::clone(&trace);
            match provider.limits {
                Some(limits) => registry.register_limited(Arc::new(provider), limits),
                None => registry.register(Arc::new(provider)),
            }
            .unwrap();
        }
        let engine = Engine::start(
            self.options,
            registry,
            Arc::clone(&store) as Arc<dyn EventStore>,
            Arc::new(clock.clone()),
            Arc::new(entropy.clone()),
        );
        Bench { engine, store, clock, entropy, log, trace }
    }
}

/// A bench with one provider `p` that plays `steps`.
pub fn bench(steps: Vec<Step>) -> Bench {
    Setup::new(vec![Scripted::new("p", steps)]).start()
}

/// A finished execution as its events tell it.
#[derive(Debug)]
pub struct Story {
    pub types: Vec<&'static str>,
    pub texts: Vec<String>,
    pub snapshot: Snapshot,
}

impl Story {
    pub fn code(&self) -> Option<PortableCode> {
        self.snapshot.error.as_ref().map(|error| error.code)
    }

    pub fn retryable(&self) -> Option<bool> {
        self.snapshot.error.as_ref().map(|error| error.retryable)
    }
}

impl Bench {
    pub async fn submit(&self, body: &str) -> Submission {
        self.engine.submit(body.as_bytes(), None).await.unwrap()
    }

    /// Follows an execution to its end and checks that sequences are 1 to n with one terminal, the last.
    pub async fn story(&self, id: ExecutionId) -> Story {
        let mut watch = self.engine.watch(id, 0).await.unwrap().unwrap();
        let (mut types, mut texts) = (Vec::new(), Vec::new());
        let mut ended = false;
        while let Some(event) = watch.next().await {
            let event = event.unwrap();
            assert!(!ended, "an event behind the terminal");
            ended = event.terminal;
            types.push(event.type_name);
            texts.push(event.data.clone());
            assert_eq!(event.sequence, types.len() as u64);
        }
        assert!(ended, "the stream ended without a terminal");
        let snapshot = self.engine.snapshot(id).await.unwrap().unwrap();
        Story { types, texts, snapshot }
    }

    pub async fn run(&self, body: &str) -> Story {
        let submission = self.submit(body).await;
        self.story(submission.execution_id).await
    }
}
