//! A node for tests: engine, mock provider, memory store with faults, and a server on a port of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Body;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_engine::store::listing::{Filter, Page};
use sealog_engine::store::memory::MemoryStore;
use sealog_engine::store::{
    Brief, Claim, EventStore, Identity, ListPosition, NewExecution, StoreError, StoreFuture, StoreLimits,
    StoredEvent, Watch,
};
use sealog_engine::{Engine, EngineOptions};
use sealog_events::{AttemptEvidence, Event, ExecutionId, Origin, Snapshot};
use sealog_execution::Registry;
use sealog_providers_mock::MockProvider;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use super::documented;
use crate::testing::{Head, Raw};
use crate::{ListenerBroke, Operation, Server, ServerOptions, Shutdown, router};

pub(super) const PLAIN: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"hi"}]}"#;
/// Two deltas and then silence until it is cancelled.
pub(super) const STALLING: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"hi"}],"extensions":{"mock":{"stall_after":2}}}"#;

/// A memory store that fails when told to.
#[derive(Debug)]
pub(super) struct FaultyStore {
    inner: MemoryStore,
    /// Everything fails and the store says so.
    pub broken: AtomicBool,
    /// What is not known here may be known elsewhere.
    pub fenced: AtomicBool,
    /// Watches fail after this many events each.
    pub watch_events_max: AtomicUsize,
    /// Told of every watch that was dropped.
    watch_dropped: mpsc::UnboundedSender<()>,
}

impl FaultyStore {
    fn checked<'a, T>(&self, call: StoreFuture<'a, T>) -> StoreFuture<'a, T>
    where
        T: Send + 'a,
    {
        if self.broken.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Failed) });
        }
        call
    }
}

impl EventStore for FaultyStore {
    fn create(&self, new: NewExecution) -> StoreFuture<'_, Claim> {
        self.checked(self.inner.create(new))
    }

    fn find(&self, identity: Identity) -> StoreFuture<'_, Option<Claim>> {
        self.checked(self.inner.find(identity))
    }

    fn append(&self, id: ExecutionId, event: Event) -> StoreFuture<'_, ()> {
        self.checked(self.inner.append(id, event))
    }

    fn note(&self, id: ExecutionId, evidence: AttemptEvidence) {
        self.inner.note(id, evidence);
    }

    fn brief(&self, id: ExecutionId) -> StoreFuture<'_, Option<Brief>> {
        self.checked(self.inner.brief(id))
    }

    fn origin(&self, id: ExecutionId) -> StoreFuture<'_, Option<Origin>> {
        self.checked(self.inner.origin(id))
    }

    fn snapshot(&self, id: ExecutionId) -> StoreFuture<'_, Option<Snapshot>> {
        self.checked(self.inner.snapshot(id))
    }

    fn watch(&self, id: ExecutionId, after: u64) -> StoreFuture<'_, Option<Box<dyn Watch>>> {
        let watch = self.inner.watch(id, after);
        let left = self.watch_events_max.load(Ordering::SeqCst);
        let dropped = self.watch_dropped.clone();
        self.checked(Box::pin(async move {
            let inner = watch.await?;
            Ok(inner.map(|inner| Box::new(FaultyWatch { inner, left, dropped }) as Box<dyn Watch>))
        }))
    }

    fn list(&self, after: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Vec<Brief>> {
        self.checked(self.inner.list(after, limit))
    }

    fn page(&self, filter: Filter, before: Option<ListPosition>, limit: usize) -> StoreFuture<'_, Page> {
        self.checked(self.inner.page(filter, before, limit))
    }

    fn sweep(&self) -> StoreFuture<'_, ()> {
        self.checked(self.inner.sweep())
    }

    fn available(&self) -> bool {
        !self.broken.load(Ordering::SeqCst) && self.inner.available()
    }

    fn fenced(&self) -> bool {
        self.fenced.load(Ordering::SeqCst)
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.inner.close()
    }
}

struct FaultyWatch {
    inner: Box<dyn Watch>,
    left: usize,
    dropped: mpsc::UnboundedSender<()>,
}

impl Watch for FaultyWatch {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Arc<StoredEvent>, StoreError>>> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.inner.next()
            }
            None => Box::pin(async { Some(Err(StoreError::Failed)) }),
        }
    }
}

impl Drop for FaultyWatch {
    fn drop(&mut self) {
        // Nobody may be listening any more.
        let _ = self.dropped.send(());
    }
}

/// Nothing to say beyond the engine.
#[derive(Debug)]
struct Counting;

impl Operation for Counting {
    fn unready(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn metrics(&self) -> String {
        "# EOF\n".to_owned()
    }
}

/// What a node is made of.
#[derive(Debug, Clone, Default)]
pub(super) struct Setup {
    pub server: ServerOptions,
    pub engine: EngineOptions,
    pub store: StoreLimits,
}

pub(super) struct Node {
    pub engine: Engine,
    pub store: Arc<FaultyStore>,
    pub watch_dropped: mpsc::UnboundedReceiver<()>,
    options: Arc<ServerOptions>,
}

impl Node {
    pub fn new(setup: Setup) -> Self {
        let clock = Arc::new(ManualClock::new(1_767_225_600_000));
        let (sender, watch_dropped) = mpsc::unbounded_channel();
        let store = Arc::new(FaultyStore {
            inner: MemoryStore::new(setup.store, clock.clone()),
            broken: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            watch_events_max: AtomicUsize::new(usize::MAX),
            watch_dropped: sender,
        });
        let mut registry = Registry::new();
        registry.register(Arc::new(MockProvider::default())).unwrap();
        let entropy = Arc::new(SeededEntropy::new(7));
        let engine = Engine::start(setup.engine, registry, store.clone(), clock, entropy);
        let operation: Arc<dyn Operation> = Arc::new(Counting);
        let server = ServerOptions { operation: Some(operation), ..setup.server };
        Self { engine, store, watch_dropped, options: Arc::new(server) }
    }

    /// One request without a socket.
    pub async fn call(&self, mut request: Request<Body>) -> (StatusCode, HeaderMap, String) {
        let headers = request.headers_mut();
        headers.entry(http::header::HOST).or_insert(http::HeaderValue::from_static("localhost"));
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = router(self.engine.clone(), Arc::clone(&self.options)).oneshot(request).await.unwrap();
        documented::check(method.as_str(), &path, response.status().as_u16());
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    pub async fn get(&self, path: &str) -> (StatusCode, HeaderMap, String) {
        self.call(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (StatusCode, HeaderMap, String) {
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.call(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub async fn submit(&self, body: &str) -> ExecutionId {
        self.engine.submit(body.as_bytes(), None).await.unwrap().execution_id
    }

    /// Returns once the execution has its terminal event.
    pub async fn finished(&self, id: ExecutionId) {
        let mut watch = self.engine.watch(id, 0).await.unwrap().unwrap();
        while let Some(event) = watch.next().await {
            event.unwrap();
        }
    }

    /// Serves on a socket.
    pub async fn listen(self) -> Listening {
        let loopback = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(loopback, (*self.options).clone()).await.unwrap();
        let address = server.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let engine = self.engine.clone();
        let ended = tokio::spawn(async move {
            server
                .run(engine, async move {
                    // A dropped sender stops as well.
                    let _ = stopped.await;
                })
                .await
        });
        Listening { node: self, address, stop: Some(stop), ended }
    }
}

pub(super) struct Listening {
    pub node: Node,
    pub address: std::net::SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<Shutdown, ListenerBroke>>,
}

impl Listening {
    pub async fn connect(&self) -> Raw<TcpStream> {
        Raw::new(TcpStream::connect(self.address).await.unwrap())
    }

    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub async fn ended(self) -> Shutdown {
        self.ended.await.unwrap().unwrap()
    }
}

/// A request with the usual headers.
pub(super) fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = match body {
        "" => String::new(),
        body => format!("content-length: {}\r\n", body.len()),
    };
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}{length}\r\n{body}")
}

pub(super) fn get(path: &str) -> String {
    request("GET", path, "", "")
}

pub(super) fn post_json(body: &str) -> String {
    request("POST", "/v1/executions", "content-type: application/json\r\n", body)
}

/// The id in a submission.
pub(super) fn id_in(body: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    value["execution_id"].as_str().unwrap().to_owned()
}

#[track_caller]
pub(super) fn check_error(head: &Head, body: &str, status: u16, code: &str) {
    head.check_fixed_headers();
    assert_eq!(head.status, status, "{body}");
    assert_eq!(head.header("content-type"), Some("application/json; charset=utf-8"));
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(value["error"]["code"], code, "{body}");
    assert_eq!(value.as_object().unwrap().len(), 1, "{body}");
}
