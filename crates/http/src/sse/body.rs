//! The body of an event stream: pulls the next event only when the frame before is out.
//!
//! It must never end cleanly except after the terminal event (or when there was nothing after the cursor):
//! everything else breaks the transfer, and always between two frames.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http_body::{Body, Frame};
use sealog_engine::store::{StoreError, StoredEvent, Watch};
use tokio::time::{Instant, Sleep, sleep};

use super::frame::{HEARTBEAT, sse_frame};
use crate::connection::{Activity, FrameGate};

/// The stream cannot go on. hyper breaks the transfer; the text goes to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("event stream broken")]
pub(crate) struct Broken;

pub(crate) struct EventStream {
    events: Option<BoxStream<'static, Result<Arc<StoredEvent>, StoreError>>>,
    heartbeat: Pin<Box<Sleep>>,
    interval: Duration,
    gate: Option<FrameGate>,
    sent_any: bool,
}

impl EventStream {
    /// A stream of `watch`. Without a connection (an in-process call) nothing holds frames back.
    pub fn new(watch: Box<dyn Watch>, interval: Duration, activity: Option<Arc<Activity>>) -> Self {
        let events = stream::unfold(watch, |mut watch| async move {
            let event = watch.next().await?;
            Some((event, watch))
        });
        Self {
            events: Some(events.boxed()),
            heartbeat: Box::pin(sleep(interval)),
            interval,
            gate: activity.map(FrameGate::new),
            sent_any: false,
        }
    }

    fn hand(&mut self, frame: Bytes) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.heartbeat.as_mut().reset(Instant::now() + self.interval);
        if let Some(gate) = &mut self.gate {
            gate.handed();
        }
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        if let Some(gate) = &mut this.gate {
            ready!(gate.poll_open(cx));
        }
        let Some(events) = &mut this.events else { return Poll::Ready(None) };
        match events.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(event))) => {
                this.sent_any = true;
                if event.terminal {
                    // Dropping the watch here unpins the record before the reader took the last frame.
                    this.events = None;
                }
                let frame = sse_frame(event.sequence, event.type_name, &event.data);
                this.hand(Bytes::from(frame))
            }
            Poll::Ready(Some(Err(_))) => {
                this.events = None;
                tracing::warn!("the store failed under an event stream");
                Poll::Ready(Some(Err(Broken)))
            }
            Poll::Ready(None) => {
                this.events = None;
                // After a nonterminal event the end would read as truncation anyway; say it on the wire too.
                Poll::Ready(this.sent_any.then_some(Err(Broken)))
            }
            Poll::Pending => {
                ready!(this.heartbeat.as_mut().poll(cx));
                this.hand(Bytes::from_static(HEARTBEAT.as_bytes()))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.events.is_none()
    }
}

#[cfg(test)]
mod tests;
