//! Clients of the HTTP projection: in process, through the router, polled by the scheduler one after the other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use sealog_events::{ExecutionId, Status};
use sealog_http::SSE_HEARTBEAT;
use serde_json::Value;
use tower::ServiceExt;

use super::class::Class;
use super::pages::{self, Wrong};
use super::plan::Manner;
use super::script::request_body;
use super::world::{World, key_text};

/// Set when the client's future asks to be polled.
#[derive(Debug)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Where a reader that stalls waits.
#[derive(Debug, Default)]
struct Gate {
    open: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Gate {
    async fn passed(&self) {
        poll_fn(|cx| {
            if self.open.get() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn open(&self) {
        self.open.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

pub(super) struct Client {
    number: u64,
    future: Pin<Box<dyn Future<Output = ()>>>,
    flag: Arc<Flag>,
    gate: Rc<Gate>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new<F: Future<Output = ()> + 'static>(
        number: u64,
        make: impl FnOnce(Asking) -> F,
        ask: Ask,
    ) -> Client {
        let gate = Rc::new(Gate::default());
        let asking = Asking { ask, number, gate: Rc::clone(&gate) };
        let future = Box::pin(make(asking));
        Client { number, future, flag: Arc::new(Flag(AtomicBool::new(true))), gate }
    }

    /// Polls the client if it asked for it. `true` once it is done.
    pub(super) fn poll(&mut self) -> bool {
        if !self.flag.0.swap(false, Ordering::Relaxed) {
            return false;
        }
        let waker = Waker::from(Arc::clone(&self.flag));
        self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
    }

    pub(super) fn resume(&self) {
        self.gate.open();
    }

    pub(super) fn is_woken(&self) -> bool {
        self.flag.0.load(Ordering::Relaxed)
    }
}

/// What every client needs.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) router: Router,
}

#[derive(Debug)]
pub(super) struct Asking {
    ask: Ask,
    number: u64,
    gate: Rc<Gate>,
}

impl Ask {
    pub(super) async fn send(&self, request: http::request::Builder, body: String) -> Response<Body> {
        let request = request.header("host", "localhost").body(Body::from(body)).unwrap_or_default();
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    pub(super) async fn get(&self, path: &str) -> Response<Body> {
        self.send(Request::get(path), String::new()).await
    }
}

pub(super) async fn text(response: Response<Body>) -> String {
    match response.into_body().collect().await {
        Ok(whole) => String::from_utf8_lossy(&whole.to_bytes()).into_owned(),
        Err(_) => String::new(),
    }
}

pub(super) fn error_code(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    value["error"]["code"].as_str().unwrap_or_default().to_owned()
}

impl Asking {
    fn note(&self, what: &str) {
        let line = format!("  client {} {what}", self.number);
        self.ask.world.borrow_mut().note(line);
    }

    pub(super) async fn submit(self, key: Option<u8>, request: u32, stream: Option<Manner>) {
        let (seed, submission) = {
            let mut world = self.ask.world.borrow_mut();
            (world.seed, world.submitted(key, request))
        };
        let mut builder = Request::post("/v1/executions").header("content-type", "application/json");
        if let Some(key) = key {
            builder = builder.header("idempotency-key", key_text(key));
        }
        if stream.is_some() {
            builder = builder.header("accept", "text/event-stream");
        }
        let response = self.ask.send(builder, request_body(seed, request)).await;
        let status = response.status().as_u16();
        match (status, stream) {
            (200, Some(manner)) => self.follow(response, None, 0, manner, Some(submission)).await,
            (200 | 202, None) => {
                let body: Value = serde_json::from_str(&text(response).await).unwrap_or_default();
                let id = body["execution_id"].as_str().and_then(ExecutionId::parse);
                let replay = body["idempotent_replay"].as_bool();
                self.note(&format!("{status} {id:?} {replay:?}"));
                let mut world = self.ask.world.borrow_mut();
                match (id, replay) {
                    (Some(id), Some(replay)) if replay == (status == 200) => {
                        world.acknowledged(submission, id, replay);
                    }
                    _other => world.violated("an acknowledgement that names no execution"),
                }
            }
            _refused => {
                let code = error_code(&text(response).await);
                self.note(&format!("{status} {code}"));
                self.ask.world.borrow_mut().refused(submission, status, &code, stream.is_some());
            }
        }
    }

    pub(super) async fn watch(self, id: ExecutionId, cursor: u64, manner: Manner) {
        let path = format!("/v1/executions/{id}/events");
        // Both ways to name a cursor.
        let request = match cursor % 2 {
            0 => Request::get(format!("{path}?after={cursor}")),
            _ => Request::get(path).header("last-event-id", cursor.to_string()),
        };
        let response = self.ask.send(request, String::new()).await;
        match response.status().as_u16() {
            200 => self.follow(response, Some(id), cursor, manner, None).await,
            400 if self.ask.world.borrow().diverged(id, cursor) => self.note("diverged"),
            status => self.missed(id, status, &error_code(&text(response).await)),
        }
    }

    /// Reads a stream. Of a submission's own stream the first event says which execution it is.
    async fn follow(
        &self,
        response: Response<Body>,
        mut id: Option<ExecutionId>,
        cursor: u64,
        manner: Manner,
        mut submission: Option<usize>,
    ) {
        if let Some(id) = id {
            self.ask.world.borrow_mut().readers.insert(self.number, id);
        }
        let mut body = response.into_body();
        let mut next = cursor + 1;
        let mut terminal = false;
        for taken in 0.. {
            match manner {
                Manner::Stalls(after) if taken == u64::from(after) => self.gate.passed().await,
                Manner::Leaves(after) if taken == u64::from(after) => {
                    self.ask.world.borrow_mut().readers.remove(&self.number);
                    return self.note("left");
                }
                Manner::Stalls(_) | Manner::Leaves(_) | Manner::ToTheEnd => {}
            }
            let frame = body.frame().await;
            let mut world = self.ask.world.borrow_mut();
            let frame = match frame {
                None => break,
                Some(Err(_)) => {
                    world.readers.remove(&self.number);
                    world.note(format!("  client {} broken", self.number));
                    if !world.in_trouble && !world.stopping {
                        world.violated("a stream broke although nothing was done to the node");
                    }
                    return;
                }
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            let frame = String::from_utf8_lossy(&frame).into_owned();
            if frame == SSE_HEARTBEAT {
                continue;
            }
            let named = frame_id(&frame);
            if let (Some(number), Some(named)) = (submission.take(), named) {
                id = Some(named);
                world.readers.insert(self.number, named);
                world.streamed(number, named);
            }
            terminal = frame.contains("\nevent: execution.completed\n")
                || frame.contains("\nevent: execution.failed\n");
            if terminal {
                // The node let the execution go together with this frame.
                world.readers.remove(&self.number);
            }
            world.note(format!("  client {} event {next} {}", self.number, frame.len()));
            match id {
                Some(id) if frame.starts_with(&format!("id: {next}\n")) && named == Some(id) => {
                    world.delivered(id, next, frame, terminal);
                }
                _other => world.violated(format!("a frame is not event {next} of its execution")),
            }
            next += 1;
        }
        let mut world = self.ask.world.borrow_mut();
        world.readers.remove(&self.number);
        world.note(format!("  client {} end", self.number));
        if let Some(id) = id.filter(|_| !terminal) {
            world.ended_without_terminal(id, cursor);
        }
    }

    fn missed(&self, id: ExecutionId, status: u16, code: &str) {
        self.note(&format!("{id} {status} {code}"));
        let mut world = self.ask.world.borrow_mut();
        match status {
            404 => world.absent(id),
            500 | 503 if world.in_trouble || world.stopping => {}
            // What a fenced copy does not know it does not call unknown.
            503 if world.log.fenced => world.absent(id),
            _other => world.violated(format!("a read of {id} was answered with {status} {code}")),
        }
    }

    pub(super) async fn read(self, id: ExecutionId, result: bool) {
        let path = format!("/v1/executions/{id}{}", if result { "/result" } else { "" });
        let response = self.ask.get(&path).await;
        let status = response.status().as_u16();
        let body = text(response).await;
        if status != 200 && status != 409 {
            return self.missed(id, status, &error_code(&body));
        }
        self.note(&format!("{id} {status} {}", body.len()));
        let value: Value = serde_json::from_str(&body).unwrap_or_default();
        let mut world = self.ask.world.borrow_mut();
        // What has no result yet says its status only.
        if status == 200 && value["execution_id"].as_str() != Some(&id.to_string()) {
            world.violated(format!("the answer for {id} names another execution"));
        }
        if let Some(sequence) = value["last_sequence"].as_u64() {
            world.reached(id, sequence);
        }
    }

    pub(super) async fn list(self, limit: u8, status: Option<Status>) {
        let (sure, began) = self.ask.world.borrow().sure_to_be_listed(status);
        let listed = match pages::all(&self.ask, limit, status).await {
            Ok(listed) => listed,
            Err(Wrong::Answer { status, code }) => {
                self.note(&format!("list {status} {code}"));
                let mut world = self.ask.world.borrow_mut();
                if status < 500 || !(world.in_trouble || world.stopping) {
                    world.violated(format!("a list was answered with {status} {code}"));
                }
                return;
            }
            Err(wrong) => return self.ask.world.borrow_mut().violated(format!("a list: {wrong}")),
        };
        self.note(&format!("list {}", listed.len()));
        let mut world = self.ask.world.borrow_mut();
        if listed.len() > usize::from(limit) {
            world.met(Class::ListPages);
        }
        let ids: BTreeSet<ExecutionId> = listed.iter().map(|entry| entry.id).collect();
        for entry in listed {
            world.listed(&entry, began);
        }
        for id in sure.difference(&ids) {
            world.absent(*id);
        }
    }

    pub(super) async fn cancel(self, id: ExecutionId) {
        let response =
            self.ask.send(Request::post(format!("/v1/executions/{id}/cancel")), String::new()).await;
        let status = response.status().as_u16();
        self.note(&format!("cancel {id} {status}"));
        let fenced = status == 503 && self.ask.world.borrow().log.fenced;
        if status != 202 && status != 404 && !fenced {
            self.ask.world.borrow_mut().violated(format!("a cancel was answered with {status}"));
        }
    }
}

fn frame_id(frame: &str) -> Option<ExecutionId> {
    let data = frame.split_once("\ndata: ")?.1;
    let value: Value = serde_json::from_str(data.trim_end()).ok()?;
    ExecutionId::parse(value["execution_id"].as_str()?)
}
