//! The body of an event stream: pulls the next event only when the frame before is out.
//!
//! It must never end cleanly except after the terminal event (or when there was nothing after the cursor):
//! everything else breaks the transfer, and always between two frames.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body::Body;
use sealog_engine::store::Watch;

use super::frame::sse_frame;
use super::pace::{Broken, Events, Handed, Pace, events};
use crate::connection::Activity;

pub(crate) struct EventStream {
    events: Option<Events>,
    pace: Pace,
    sent_any: bool,
}

impl EventStream {
    /// A stream of `watch`. Without a connection (an in-process call) nothing holds frames back.
    pub fn new(watch: Box<dyn Watch>, interval: Duration, activity: Option<Arc<Activity>>) -> Self {
        Self { events: Some(events(watch)), pace: Pace::new(interval, activity), sent_any: false }
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Handed {
        let this = self.get_mut();
        ready!(this.pace.poll_open(cx));
        let Some(events) = &mut this.events else { return Poll::Ready(None) };
        match events.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(event))) => {
                this.sent_any = true;
                if event.terminal {
                    // Dropping the watch here unpins the record before the reader took the last frame.
                    this.events = None;
                }
                let frame = sse_frame(event.sequence, event.type_name, &event.data);
                this.pace.hand(Bytes::from(frame))
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
            Poll::Pending => this.pace.poll_heartbeat(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.events.is_none()
    }
}

#[cfg(test)]
mod tests;
