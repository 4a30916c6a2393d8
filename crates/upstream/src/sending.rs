//! A request on its way: when it was handed to an open connection, and the head of its answer.
//!
//! The first is evidence, so it must not be told early: a request is sent when the connection takes its body, not when
//! somebody asks for it. Whether the peer received it is what nobody on this side can know.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use sealog_events::RequestId;
use tokio::sync::oneshot;

use crate::{Response, UpstreamError};

/// Where providers put the identifier of an answer; the first that is there counts.
const REQUEST_ID_HEADERS: [&str; 3] = ["x-request-id", "request-id", "x-fal-request-id"];

/// A request on its way. Dropping it closes its connection.
pub struct Sending {
    head: BoxFuture<'static, Result<Head, UpstreamError>>,
    /// `None` once it was told, or will not be.
    sent: Option<oneshot::Receiver<()>>,
}

/// What comes of a request.
pub enum Step {
    /// It was handed to an open connection.
    Sent,
    Answered(Head),
}

/// The head of an answer, whatever its status.
pub struct Head {
    pub(crate) accepted: Result<Response, UpstreamError>,
    pub(crate) request_id: Option<RequestId>,
}

impl Sending {
    pub(crate) fn new(
        head: BoxFuture<'static, Result<Head, UpstreamError>>,
        sent: oneshot::Receiver<()>,
    ) -> Sending {
        Sending { head, sent: Some(sent) }
    }

    /// Whether it was handed to an open connection, told or not.
    pub fn was_sent(&mut self) -> bool {
        match &mut self.sent {
            None => true,
            Some(sent) => {
                let told = sent.try_recv().is_ok();
                if told {
                    self.sent = None;
                }
                told
            }
        }
    }

    /// What happens next. [`Step::Sent`] comes at most once; after the head there is nothing to ask for.
    ///
    /// # Errors
    /// No head came. Whether the request was sent is what was told before.
    pub async fn next(&mut self) -> Result<Step, UpstreamError> {
        if let Some(sent) = &mut self.sent {
            let told = tokio::select! {
                biased;
                told = sent => told.is_ok(),
                head = &mut self.head => return Ok(Step::Answered(head?)),
            };
            self.sent = None;
            if told {
                return Ok(Step::Sent);
            }
        }
        Ok(Step::Answered((&mut self.head).await?))
    }
}

impl Head {
    /// The identifier that the provider gave its answer.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.request_id.as_ref()
    }

    /// The answer, if its status is 2xx.
    ///
    /// # Errors
    /// Any other status. The body of a refusal is dropped unread: its connection is closed, not drained.
    pub fn accept(self) -> Result<Response, UpstreamError> {
        self.accepted
    }
}

pub(crate) fn request_id(headers: &HeaderMap) -> Option<RequestId> {
    let named = REQUEST_ID_HEADERS.iter().find_map(|name| headers.get(*name));
    named.and_then(|value| value.to_str().ok()).and_then(RequestId::new)
}

// Nothing of a request or an answer belongs into a log.
impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("told", &self.sent.is_none()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Sent => "Sent",
            Step::Answered(_) => "Answered",
        })
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").field("request_id", &self.request_id).finish_non_exhaustive()
    }
}

/// A body in one piece that tells when the connection takes it.
pub(crate) struct Watched {
    bytes: Option<Bytes>,
    sent: Option<oneshot::Sender<()>>,
}

impl Watched {
    pub(crate) fn new(bytes: Vec<u8>) -> (Watched, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Watched { bytes: Some(bytes.into()), sent: Some(sender) }, receiver)
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(sent) = self.sent.take() {
            // Nobody may be listening any more.
            let _ = sent.send(());
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests;
