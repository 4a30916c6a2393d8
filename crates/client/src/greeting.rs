//! How what comes over a plain connection begins.
//!
//! A server that speaks TLS answers a plain request with an alert. That it read none of the request is known then, and
//! only then: other bytes that are no HTTP may be a node's answer that was damaged on its way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The type of an alert record of TLS, its first byte. No HTTP begins with it.
const ALERT: u8 = 21;

/// The first byte that came; 0 before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greeting(Arc<AtomicU8>);

impl Greeting {
    pub fn of(&self, stream: TcpStream) -> Greeted {
        Greeted { stream, greeting: self.clone() }
    }

    pub fn is_tls(&self) -> bool {
        // Whoever asks was woken by the reader, behind its store.
        self.0.load(Ordering::Relaxed) == ALERT
    }

    fn take(&self, came: &[u8]) {
        if let Some(first) = came.first() {
            let _ = self.0.compare_exchange(0, *first, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// A plain connection whose first byte is kept.
#[derive(Debug)]
pub(crate) struct Greeted {
    stream: TcpStream,
    greeting: Greeting,
}

impl AsyncRead for Greeted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.greeting.take(&buf.filled()[before..]);
        polled
    }
}

impl AsyncWrite for Greeted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
