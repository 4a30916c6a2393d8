//! The socket as hyper sees it: every byte in or out leaves a note.
//!
//! One answer is rewritten here: hyper answers a request head it cannot read by itself, without the headers
//! every answer of ours has. It must never touch the bytes of an answer that came from the router.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Activity;
use crate::error::unread_head_answer;

#[derive(Debug)]
pub(crate) struct NotedIo<S> {
    inner: S,
    activity: Arc<Activity>,
    /// What is left of our answer in place of hyper's, whose buffer counts as written once this is empty.
    replacement: Option<Bytes>,
}

impl<S> NotedIo<S> {
    pub fn new(inner: S, activity: Arc<Activity>) -> Self {
        Self { inner, activity, replacement: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for NotedIo<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            this.activity.received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> NotedIo<S> {
    fn noted(&self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &outcome {
            Poll::Ready(Ok(count)) => self.activity.wrote(*count > 0),
            Poll::Pending => self.activity.wrote(false),
            Poll::Ready(Err(_)) => {}
        }
        outcome
    }

    fn poll_replacement(
        &mut self,
        cx: &mut Context<'_>,
        mut left: Bytes,
        replaced: usize,
    ) -> Poll<io::Result<usize>> {
        while left.has_remaining() {
            match Pin::new(&mut self.inner).poll_write(cx, &left) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => left.advance(count),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.replacement = Some(left);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(replaced))
    }

    /// The answer to send instead of `head`, if hyper wrote it on its own account.
    fn replacement_for(&mut self, head: &[u8]) -> Option<Bytes> {
        if let Some(left) = self.replacement.take() {
            return Some(left);
        }
        let status = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?;
        if !status.starts_with(b"4") || !self.activity.answers_unread_head() {
            return None;
        }
        unread_head_answer(status.get(..3)?)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for NotedIo<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = match this.replacement_for(buf) {
            Some(answer) => this.poll_replacement(cx, answer, buf.len()),
            None => Pin::new(&mut this.inner).poll_write(cx, buf),
        };
        this.noted(outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let head: &[u8] = bufs.first().map_or(&[], |first| first);
        let outcome = match this.replacement_for(head) {
            Some(answer) => {
                let replaced = bufs.iter().map(|buf| buf.len()).sum();
                this.poll_replacement(cx, answer, replaced)
            }
            None => Pin::new(&mut this.inner).poll_write_vectored(cx, bufs),
        };
        this.noted(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.inner).poll_flush(cx))?;
        this.activity.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
