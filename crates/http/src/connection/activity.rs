//! What one connection is doing: the shared notes of its socket, its requests and its event streams.
//!
//! The socket wrapper and the bodies write here, the driver reads its deadlines from here. It must never
//! keep a task asleep that somebody waits for: every note that moves a deadline wakes the driver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Version;
use tokio::time::Instant;

/// Why a connection may not go on waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// No request came.
    Idle,
    /// A request head was begun and not finished.
    Head,
    /// The peer takes none of the bytes waiting for it.
    Reader,
}

/// The waits that end a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    pub idle: Duration,
    pub head: Duration,
    pub reader: Duration,
}

/// What a connection waits for, since when and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub since: Instant,
    pub wait: Duration,
    pub overdue: Overdue,
}

#[derive(Debug)]
pub(crate) struct Activity {
    notes: Mutex<Notes>,
}

#[derive(Debug)]
struct Notes {
    http2: bool,
    /// Requests whose answer's body is not finished.
    in_flight: usize,
    /// A request was taken up and its answer is not wholly on the socket.
    answering: bool,
    idle_since: Instant,
    head_since: Option<Instant>,
    blocked_since: Option<Instant>,
    flushes: u64,
    gate: Option<Waker>,
    driver: Option<Waker>,
    /// HTTP/2 streams with a frame that flow control holds back. There the socket says nothing about a
    /// single reader.
    held: BTreeMap<u64, Instant>,
    next_stream: u64,
}

impl Activity {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            notes: Mutex::new(Notes {
                http2: false,
                in_flight: 0,
                answering: false,
                idle_since: Instant::now(),
                head_since: None,
                blocked_since: None,
                flushes: 0,
                gate: None,
                driver: None,
                held: BTreeMap::new(),
                next_stream: 0,
            }),
        })
    }

    /// The notes are plain numbers and whole after every statement, so a panic elsewhere leaves them usable.
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes came in.
    pub fn received(&self) {
        let mut notes = self.notes();
        if notes.in_flight == 0 && notes.head_since.is_none() {
            notes.head_since = Some(Instant::now());
        }
    }

    /// The socket took bytes, or (`false`) took none and asks to wait.
    pub fn wrote(&self, accepted: bool) {
        let mut notes = self.notes();
        if accepted {
            notes.blocked_since = None;
        } else if notes.blocked_since.is_none() {
            notes.blocked_since = Some(Instant::now());
        }
    }

    /// hyper holds no more bytes for the socket: it flushes only an empty buffer.
    pub fn flushed(&self) {
        let mut notes = self.notes();
        notes.flushes += 1;
        if notes.in_flight == 0 && notes.answering {
            // The answer's last byte, and not some later HTTP/2 ping: those would keep an idle peer for ever.
            notes.answering = false;
            notes.idle_since = Instant::now();
        }
        let waiting = notes.gate.take();
        drop(notes);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// Whether bytes written now belong to no request, that is, hyper answers an unreadable head by itself.
    pub fn answers_unread_head(&self) -> bool {
        let notes = self.notes();
        !notes.http2 && notes.in_flight == 0 && !notes.answering
    }

    /// A request was read. The guard lives until its answer's body is finished or dropped.
    pub fn begin(self: &Arc<Self>, version: Version) -> InFlight {
        let mut notes = self.notes();
        notes.http2 = version == Version::HTTP_2;
        notes.in_flight += 1;
        notes.answering = true;
        notes.head_since = None;
        drop(notes);
        InFlight { activity: Arc::clone(self) }
    }

    fn end(&self) {
        let mut notes = self.notes();
        notes.in_flight -= 1;
        if notes.in_flight > 0 {
            return;
        }
        notes.idle_since = Instant::now();
        let driver = notes.driver.take();
        drop(notes);
        if let Some(waker) = driver {
            waker.wake();
        }
    }

    /// The wait that ends the connection as it is now; `waker` is told when that moves.
    pub fn due(&self, waits: &Waits, waker: &Waker) -> Option<Due> {
        let mut notes = self.notes();
        if !notes.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            notes.driver = Some(waker.clone());
        }
        let held = notes.held.values().min().copied();
        let reader = [notes.blocked_since, held].into_iter().flatten().min();
        if let Some(since) = reader {
            return Some(Due { since, wait: waits.reader, overdue: Overdue::Reader });
        }
        if notes.in_flight > 0 {
            return None;
        }
        Some(match notes.head_since {
            // Between its requests an HTTP/2 peer sends frames that open none.
            Some(since) if !notes.http2 => Due { since, wait: waits.head, overdue: Overdue::Head },
            Some(_) | None => Due { since: notes.idle_since, wait: waits.idle, overdue: Overdue::Idle },
        })
    }

    fn wake_driver(&self) {
        let driver = self.notes().driver.take();
        if let Some(waker) = driver {
            waker.wake();
        }
    }
}

/// One request between its head and the end of its answer.
#[derive(Debug)]
pub(crate) struct InFlight {
    activity: Arc<Activity>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.activity.end();
    }
}

/// Holds an event stream back until the frame before is out, so that a reader who stopped costs one frame.
#[derive(Debug)]
pub(crate) struct FrameGate {
    activity: Arc<Activity>,
    stream: Stream,
}

#[derive(Debug)]
enum Stream {
    /// hyper buffers up to sixteen frames of a body; the gate opens when it flushed.
    Http1 { handed_at: Option<u64> },
    /// Flow control is the gate: hyper asks only when the window is open. Here only the wait is noted.
    Http2 { id: u64 },
}

impl FrameGate {
    /// A gate for one stream of the connection, which knows its version from the request.
    pub fn new(activity: Arc<Activity>) -> Self {
        let mut notes = activity.notes();
        let stream = if notes.http2 {
            notes.next_stream += 1;
            Stream::Http2 { id: notes.next_stream }
        } else {
            Stream::Http1 { handed_at: None }
        };
        drop(notes);
        Self { activity, stream }
    }

    /// Ready when the next frame may be made.
    pub fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut notes = self.activity.notes();
        match &mut self.stream {
            Stream::Http1 { handed_at } => match *handed_at {
                Some(flushes) if flushes == notes.flushes => {
                    notes.gate = Some(cx.waker().clone());
                    Poll::Pending
                }
                Some(_) | None => {
                    *handed_at = None;
                    Poll::Ready(())
                }
            },
            Stream::Http2 { id } => {
                notes.held.remove(id);
                Poll::Ready(())
            }
        }
    }

    /// A frame was handed to hyper.
    pub fn handed(&mut self) {
        let mut notes = self.activity.notes();
        match &mut self.stream {
            Stream::Http1 { handed_at } => *handed_at = Some(notes.flushes),
            Stream::Http2 { id } => {
                notes.held.insert(*id, Instant::now());
                drop(notes);
                self.activity.wake_driver();
            }
        }
    }
}

impl Drop for FrameGate {
    fn drop(&mut self) {
        match self.stream {
            Stream::Http1 { .. } => {}
            Stream::Http2 { id } => {
                self.activity.notes().held.remove(&id);
            }
        }
    }
}
