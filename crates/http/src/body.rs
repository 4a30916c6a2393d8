//! Request bodies: read within bounds, and read to their end when they are refused.
//!
//! A client that is still sending when its connection is closed sees a reset instead of the answer, so what
//! the handlers leave unread is thrown away first, up to a bound.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::options::ServerOptions;

/// The largest request body that is read as one.
pub(crate) const REQUEST_BYTES_MAX: usize = 1_048_576;

/// Why a body is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyRefused {
    TooLarge,
    Broken,
    TooSlow,
}

/// Reads the whole body, at most [`REQUEST_BYTES_MAX`] bytes of it.
pub(crate) async fn read_whole(mut body: Body, within: Duration) -> Result<Bytes, BodyRefused> {
    if http_body::Body::size_hint(&body).lower() > REQUEST_BYTES_MAX as u64 {
        return Err(BodyRefused::TooLarge);
    }
    let reading = async {
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| BodyRefused::Broken)?.into_data() else { continue };
            if whole.len() + data.len() > REQUEST_BYTES_MAX {
                return Err(BodyRefused::TooLarge);
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    };
    timeout(within, reading).await.unwrap_or(Err(BodyRefused::TooSlow))
}

/// A body that the handler reads and that can be read on after the handler is done.
#[derive(Debug, Clone)]
pub(crate) struct SharedBody {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    body: Body,
    polled: bool,
    ended: bool,
}

impl SharedBody {
    pub fn new(body: Body) -> Self {
        Self { state: Arc::new(Mutex::new(State { body, polled: false, ended: false })) }
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether anybody asked for its first byte; only then was a waiting client told to go on.
    pub fn polled(&self) -> bool {
        self.with(|state| state.polled)
    }

    /// Throws away what is left. `false` when something still is.
    pub async fn discard(&self, options: &ServerOptions) -> bool {
        let mut left = options.discard_bytes_max;
        let discarding = async {
            loop {
                match poll_fn(|cx| self.poll(cx)).await {
                    None | Some(Err(_)) => return true,
                    Some(Ok(frame)) => {
                        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                        if bytes > left {
                            return false;
                        }
                        left -= bytes;
                    }
                }
            }
        };
        timeout(options.discard_time(), discarding).await.unwrap_or(false)
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with(|state| {
            if state.ended {
                return Poll::Ready(None);
            }
            state.polled = true;
            let frame = http_body::Body::poll_frame(Pin::new(&mut state.body), cx);
            if let Poll::Ready(None | Some(Err(_))) = frame {
                state.ended = true;
            }
            frame
        })
    }
}

impl http_body::Body for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.with(|state| state.ended || http_body::Body::is_end_stream(&state.body))
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|state| http_body::Body::size_hint(&state.body))
    }
}
