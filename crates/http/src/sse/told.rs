//! The body of a dialect's stream: each durable event becomes the frames that show it, and the next one is pulled only
//! when those are out.
//!
//! It must never end cleanly except behind the execution's end: everything else breaks the transfer.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body::Body;
use sealog_dialects::{Answer, Told};
use sealog_engine::store::{StoredEvent, Watch};

use super::pace::{Broken, Events, Handed, Pace, events};
use crate::connection::Activity;

/// An answer, and which of its frames the reader has.
pub(crate) struct Telling {
    pub answer: Answer,
    /// Frames up to this number are left out.
    pub after: Option<u64>,
    /// Told and not sent yet.
    ready: VecDeque<Bytes>,
    ended: bool,
}

impl Telling {
    pub fn new(answer: Answer, after: Option<u64>) -> Self {
        Self { answer, after, ready: VecDeque::new(), ended: false }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// Its text is not an event's.
    pub fn tell(&mut self, event: &StoredEvent) -> Result<(), Broken> {
        let told = Told::read(event.sequence, event.type_name, &event.data).ok_or(Broken)?;
        let mut text = String::new();
        for frame in self.answer.tell(&told) {
            if frame.number.is_none() || frame.number > self.after {
                text.push_str(&frame.to_sse());
            }
        }
        if !text.is_empty() {
            self.ready.push_back(Bytes::from(text));
        }
        self.ended |= event.terminal;
        Ok(())
    }

    /// Whether the execution's end was told.
    pub fn ended(&self) -> bool {
        self.ended
    }
}

pub(crate) struct ToldStream {
    telling: Telling,
    events: Option<Events>,
    pace: Pace,
}

impl ToldStream {
    /// What is left of `telling`, whose next events `watch` gives. Without a connection nothing holds frames back.
    pub fn new(
        telling: Telling,
        watch: Box<dyn Watch>,
        interval: Duration,
        activity: Option<Arc<Activity>>,
    ) -> Self {
        let events = (!telling.ended()).then(|| events(watch));
        Self { telling, events, pace: Pace::new(interval, activity) }
    }

    fn broken(&mut self) -> Handed {
        self.events = None;
        tracing::warn!("the store failed under a stream");
        Poll::Ready(Some(Err(Broken)))
    }
}

impl Body for ToldStream {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Handed {
        let this = self.get_mut();
        ready!(this.pace.poll_open(cx));
        loop {
            if let Some(frame) = this.telling.ready.pop_front() {
                return this.pace.hand(frame);
            }
            let Some(events) = &mut this.events else { return Poll::Ready(None) };
            match events.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(event))) => {
                    if this.telling.tell(&event).is_err() {
                        return this.broken();
                    }
                    if event.terminal {
                        // Dropping the watch here unpins the record before the reader took the last frame.
                        this.events = None;
                    }
                }
                Poll::Ready(Some(Err(_)) | None) => return this.broken(),
                Poll::Pending => return this.pace.poll_heartbeat(cx),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.events.is_none() && self.telling.ready.is_empty()
    }
}
