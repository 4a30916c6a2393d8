//! What the server counts: connections, answers, refusals and open event streams.
//!
//! Every count is one relaxed addition. It must never count by anything a caller chooses.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::header;

use crate::guard::Refused;
use crate::options::ServerOptions;

/// The counters of one server.
#[derive(Debug, Default)]
pub struct ServerStats {
    connections: AtomicU64,
    connections_open: AtomicU64,
    streams: AtomicU64,
    streams_open: AtomicU64,
    /// By the first digit of the status, from 1.
    answers: [AtomicU64; 5],
    refused: [AtomicU64; 4],
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerCounts {
    pub connections: u64,
    pub connections_open: u64,
    /// Event streams that were begun.
    pub streams: u64,
    pub streams_open: u64,
    /// By the first digit of the status, from 1.
    pub answers: [u64; 5],
    /// Requests that the guard refused, with the word for the rule.
    pub refused: [(&'static str, u64); 4],
}

/// Something that is counted as open while this lives.
#[derive(Debug)]
pub(crate) struct Open {
    stats: Arc<ServerStats>,
    gauge: fn(&ServerStats) -> &AtomicU64,
}

impl Drop for Open {
    fn drop(&mut self) {
        (self.gauge)(&self.stats).fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerStats {
    /// The counts now.
    pub fn view(&self) -> ServerCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let words = Refused::ALL.map(|refused| (refused.word(), read(&self.refused[refused as usize])));
        ServerCounts {
            connections: read(&self.connections),
            connections_open: read(&self.connections_open),
            streams: read(&self.streams),
            streams_open: read(&self.streams_open),
            answers: self.answers.each_ref().map(read),
            refused: words,
        }
    }

    pub(crate) fn refused(&self, refused: Refused) {
        self.refused[refused as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection(self: &Arc<Self>) -> Open {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.open(|stats| &stats.connections_open)
    }

    fn stream(self: &Arc<Self>) -> Open {
        self.streams.fetch_add(1, Ordering::Relaxed);
        self.open(|stats| &stats.streams_open)
    }

    fn open(self: &Arc<Self>, gauge: fn(&ServerStats) -> &AtomicU64) -> Open {
        gauge(self).fetch_add(1, Ordering::Relaxed);
        Open { stats: Arc::clone(self), gauge }
    }
}

/// The layer around everything else: an event stream of whatever dialect counts as open until its body is gone.
pub(crate) async fn counted(
    State(options): State<Arc<ServerOptions>>,
    request: Request,
    next: Next,
) -> Response {
    const EVENTS: &[u8] = b"text/event-stream";
    let response = next.run(request).await;
    let class = usize::from(response.status().as_u16() / 100).saturating_sub(1);
    if let Some(count) = options.stats.answers.get(class) {
        count.fetch_add(1, Ordering::Relaxed);
    }
    let content = response.headers().get(header::CONTENT_TYPE);
    if !content.is_some_and(|content| content.as_bytes().starts_with(EVENTS)) {
        return response;
    }
    let open = options.stats.stream();
    response.map(|inner| Body::new(CountedBody { inner, _open: open }))
}

#[derive(Debug)]
struct CountedBody {
    inner: Body,
    _open: Open,
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}
