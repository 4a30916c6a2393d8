//! What the tests of this crate share: a client that speaks raw bytes, and watches that do as they are told.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use sealog_engine::store::{StoreError, StoredEvent, Watch};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;

/// An HTTP/1.1 client that hides nothing.
#[derive(Debug)]
pub(crate) struct Raw<S> {
    pub io: S,
    buffer: Vec<u8>,
}

/// An answer's head.
#[derive(Debug)]
pub(crate) struct Head {
    pub status: u16,
    lines: Vec<String>,
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.lines.iter().filter_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        let value = values.next();
        assert!(values.next().is_none(), "{name} stands twice");
        value
    }

    /// What is true of every answer.
    #[track_caller]
    pub fn check_fixed_headers(&self) {
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"), "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"), "{self:?}");
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub fn new(io: S) -> Self {
        Self { io, buffer: Vec::new() }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.io.write_all(bytes.as_ref()).await.unwrap();
    }

    /// `false` at the end of the stream.
    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.io.read_buf(&mut self.buffer).await? > 0)
    }

    /// Text up to and without `end`, which is consumed.
    pub async fn until(&mut self, end: &str) -> io::Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end.as_bytes()) {
                let text = String::from_utf8(self.buffer[..at].to_vec()).unwrap();
                self.buffer.drain(..at + end.len());
                return Ok(text);
            }
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    pub async fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..count).collect())
    }

    pub async fn head(&mut self) -> Head {
        let text = self.until("\r\n\r\n").await.unwrap();
        let mut lines = text.split("\r\n").map(str::to_owned);
        let status_line = lines.next().unwrap();
        let status = status_line.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
        Head { status, lines: lines.collect() }
    }

    /// One chunk of a chunked body; empty for the last one.
    pub async fn chunk(&mut self) -> io::Result<String> {
        let size = usize::from_str_radix(&self.until("\r\n").await?, 16).unwrap();
        let chunk = self.exactly(size).await?;
        assert_eq!(self.exactly(2).await?, b"\r\n");
        Ok(String::from_utf8(chunk).unwrap())
    }

    /// A whole chunked body.
    ///
    /// # Errors
    /// The transfer broke.
    pub async fn chunks(&mut self) -> io::Result<String> {
        let mut body = String::new();
        loop {
            let chunk = self.chunk().await?;
            if chunk.is_empty() {
                return Ok(body);
            }
            body.push_str(&chunk);
        }
    }

    /// A whole answer of known length.
    pub async fn answer(&mut self) -> (Head, String) {
        let head = self.head().await;
        let length = head.header("content-length").expect("an answer that is no stream has a length");
        let body = self.exactly(length.parse().unwrap()).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    pub async fn ask(&mut self, request: impl AsRef<[u8]>) -> (Head, String) {
        self.send(request).await;
        self.answer().await
    }

    /// Waits until the other side is gone; what it still sent is returned.
    pub async fn closed(mut self) -> Vec<u8> {
        while self.more().await.unwrap_or(false) {}
        self.buffer
    }
}

/// What a watch does when it is asked.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Event(u64, usize),
    Terminal(u64),
    Fail,
    /// Never answers.
    Wait,
}

/// A watch that follows a script; without a step left it says that nothing follows.
#[derive(Debug)]
pub(crate) struct Scripted {
    steps: VecDeque<Step>,
    pulled: Arc<AtomicUsize>,
    _alive: oneshot::Sender<()>,
}

/// The other end of a script.
#[derive(Debug)]
pub(crate) struct Observed {
    pub pulled: Arc<AtomicUsize>,
    alive: oneshot::Receiver<()>,
}

impl Observed {
    pub fn pulled(&self) -> usize {
        self.pulled.load(Ordering::SeqCst)
    }

    /// Returns once the watch was dropped.
    pub async fn dropped(self) {
        assert!(self.alive.await.is_err());
    }
}

pub(crate) fn scripted(steps: impl IntoIterator<Item = Step>) -> (Box<dyn Watch>, Observed) {
    let (sender, alive) = oneshot::channel();
    let pulled = Arc::new(AtomicUsize::new(0));
    let steps = steps.into_iter().collect();
    let watch = Scripted { steps, pulled: Arc::clone(&pulled), _alive: sender };
    (Box::new(watch), Observed { pulled, alive })
}

impl Watch for Scripted {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Arc<StoredEvent>, StoreError>>> {
        Box::pin(async move {
            let event = |sequence, type_name, terminal, padding| {
                let data = format!("{{\"pad\":\"{}\"}}", "x".repeat(padding));
                Some(Ok(Arc::new(StoredEvent { sequence, type_name, terminal, data })))
            };
            match self.steps.front().cloned()? {
                Step::Wait => std::future::pending().await,
                step => {
                    self.steps.pop_front();
                    self.pulled.fetch_add(1, Ordering::SeqCst);
                    match step {
                        Step::Event(sequence, padding) => event(sequence, "output.delta", false, padding),
                        Step::Terminal(sequence) => event(sequence, "execution.completed", true, 0),
                        Step::Fail | Step::Wait => Some(Err(StoreError::Failed)),
                    }
                }
            }
        })
    }
}
