//! When a stream's next frame may leave: once the one before is out, and a heartbeat where nothing else did for a while.
//!
//! Shared by every event stream. Knows no event.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http_body::Frame;
use sealog_engine::store::{StoreError, StoredEvent, Watch};
use tokio::time::{Instant, Sleep, sleep};

use super::frame::HEARTBEAT;
use crate::connection::{Activity, FrameGate};

/// The stream cannot go on. hyper breaks the transfer; the text goes to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("event stream broken")]
pub(crate) struct Broken;

/// What polling a body gives.
pub(super) type Handed = Poll<Option<Result<Frame<Bytes>, Broken>>>;

/// The events that a watch gives, one by one as they are pulled.
pub(super) type Events = BoxStream<'static, Result<Arc<StoredEvent>, StoreError>>;

pub(super) fn events(watch: Box<dyn Watch>) -> Events {
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((event, watch))
    });
    events.boxed()
}

pub(super) struct Pace {
    heartbeat: Pin<Box<Sleep>>,
    interval: Duration,
    gate: Option<FrameGate>,
}

impl Pace {
    /// Without a connection (an in-process call) nothing holds frames back.
    pub fn new(interval: Duration, activity: Option<Arc<Activity>>) -> Self {
        Self { heartbeat: Box::pin(sleep(interval)), interval, gate: activity.map(FrameGate::new) }
    }

    /// Ready once the frame before is out.
    pub fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.gate.as_mut().map_or(Poll::Ready(()), |gate| gate.poll_open(cx))
    }

    pub fn hand(&mut self, frame: Bytes) -> Handed {
        self.heartbeat.as_mut().reset(Instant::now() + self.interval);
        if let Some(gate) = &mut self.gate {
            gate.handed();
        }
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    /// A heartbeat, once it is due.
    pub fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> Handed {
        ready!(self.heartbeat.as_mut().poll(cx));
        self.hand(Bytes::from_static(HEARTBEAT.as_bytes()))
    }
}
