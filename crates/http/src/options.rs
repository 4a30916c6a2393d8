//! The bounds of the server: every wait and every size a peer could stretch has a number here.
//!
//! It must never read configuration itself: the composition root fills it in.

use std::sync::Arc;
use std::time::Duration;

use crate::guard::Guard;
use crate::operation::Operation;
use crate::request_id::RequestIds;
use crate::stats::ServerStats;
use crate::tls::Tls;

/// The longest silence an event stream may show, whatever the options say: clients time out at 30 s.
pub const HEARTBEAT_MS_CEILING: u64 = 15_000;

/// How the server listens and how long it waits for its peers.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Connections served at once; further ones wait in the kernel's queue.
    pub max_connections: usize,
    /// From the first byte of a request head to its end.
    pub header_read_timeout_ms: u64,
    /// Without a request: before the first byte of a connection and between two requests.
    pub idle_timeout_ms: u64,
    /// From the first to the last byte of a request body.
    pub body_read_timeout_ms: u64,
    /// Header fields of one request.
    pub max_headers: usize,
    /// Bytes of one request head, and of hyper's buffers per connection (at least 8192).
    pub max_buf_bytes: usize,
    /// Streams of one HTTP/2 connection.
    pub max_concurrent_streams: u32,
    /// Silence on an event stream after which a comment is sent; cut to [`HEARTBEAT_MS_CEILING`].
    pub heartbeat_ms: u64,
    /// A connection with bytes to send that accepts none for this long is closed.
    pub reader_stall_ms: u64,
    /// Bytes of a refused request body that are read and thrown away, so that the client reads the answer.
    pub discard_bytes_max: u64,
    /// Time spent on that.
    pub discard_ms_max: u64,
    /// From the shutdown signal until everything still open is dropped.
    pub grace_ms: u64,
    /// Listening beyond loopback hands the journal to the network: only on request.
    pub allow_non_loopback: bool,
    /// Who may ask.
    pub guard: Guard,
    /// What is spoken on TCP; `None`: plain HTTP.
    pub tls: Option<Tls>,
    /// What is known of the node beyond its engine; without it there are no metrics.
    pub operation: Option<Arc<dyn Operation>>,
    /// Where ids of requests without one come from.
    pub request_ids: Arc<RequestIds>,
    /// Where the server counts.
    pub stats: Arc<ServerStats>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            header_read_timeout_ms: 15_000,
            idle_timeout_ms: 60_000,
            body_read_timeout_ms: 30_000,
            max_headers: 100,
            max_buf_bytes: 64 * 1024,
            max_concurrent_streams: 128,
            heartbeat_ms: 10_000,
            reader_stall_ms: 300_000,
            discard_bytes_max: 2 * 1024 * 1024,
            discard_ms_max: 2_000,
            grace_ms: 10_000,
            allow_non_loopback: false,
            guard: Guard::default(),
            tls: None,
            operation: None,
            request_ids: Arc::default(),
            stats: Arc::default(),
        }
    }
}

impl ServerOptions {
    pub(crate) fn header_read_timeout(&self) -> Duration {
        Duration::from_millis(self.header_read_timeout_ms)
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout_ms)
    }

    pub(crate) fn body_read_timeout(&self) -> Duration {
        Duration::from_millis(self.body_read_timeout_ms)
    }

    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.heartbeat_ms.clamp(1, HEARTBEAT_MS_CEILING))
    }

    pub(crate) fn reader_stall(&self) -> Duration {
        Duration::from_millis(self.reader_stall_ms)
    }

    pub(crate) fn discard_time(&self) -> Duration {
        Duration::from_millis(self.discard_ms_max)
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}
