//! A successful response, read piece by piece.
//!
//! Every read ends at the next piece, at the end, at the abort signal or at the idle timeout, whichever comes
//! first; after any end but the last piece's the connection is closed at once, not when somebody drops us.

use std::time::Duration;

use bytes::Bytes;
use futures_core::stream::BoxStream;
use http::header::CONTENT_TYPE;
use sealog_execution::AbortSignal;

use crate::lines::lines;
use crate::sse::Pieces;
use crate::{EventStream, ServerEvent, UpstreamError};

/// Largest body that is read whole, in bytes.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A response whose status was 2xx.
#[expect(missing_debug_implementations, reason = "headers and body are the upstream's content")]
pub struct Response {
    /// `None` once the body ended or was given up.
    inner: Option<reqwest::Response>,
    abort: AbortSignal,
    idle: Duration,
}

impl Response {
    pub(crate) fn new(inner: reqwest::Response, abort: AbortSignal, idle: Duration) -> Response {
        Response { inner: Some(inner), abort, idle }
    }

    /// Whether the content type is `expected`, parameters aside.
    fn has_content_type(&self, expected: &str) -> bool {
        let value = self.inner.as_ref().and_then(|inner| inner.headers().get(CONTENT_TYPE));
        let essence = value.and_then(|value| value.to_str().ok()).and_then(|text| text.split(';').next());
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(expected))
    }

    /// The next piece of the body; `None` at its regular end, and ever after.
    ///
    /// # Errors
    /// `Aborted`, `Silent` or `Broken`; the body is over then.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        let Some(inner) = self.inner.as_mut() else { return Ok(None) };
        let piece = tokio::select! {
            biased;
            () = self.abort.cancelled() => Err(UpstreamError::Aborted),
            piece = tokio::time::timeout(self.idle, inner.chunk()) => match piece {
                Err(_elapsed) => Err(UpstreamError::Silent),
                Ok(Err(error)) => {
                    tracing::debug!(body = error.is_body(), decode = error.is_decode(), "upstream body failed");
                    Err(UpstreamError::Broken)
                }
                Ok(Ok(piece)) => Ok(piece),
            },
        };
        if !matches!(piece, Ok(Some(_))) {
            self.inner = None;
        }
        piece
    }

    /// The whole body, for answers that are one JSON document.
    ///
    /// # Errors
    /// `ContentType` unless it is `application/json`, `BodyTooLarge` past [`BODY_BYTES_MAX`] whether announced or
    /// not, and what [`Response::chunk`] reports.
    pub async fn json_bytes(mut self) -> Result<Vec<u8>, UpstreamError> {
        if !self.has_content_type("application/json") {
            return Err(UpstreamError::ContentType);
        }
        let announced = self.inner.as_ref().and_then(reqwest::Response::content_length);
        if announced.is_some_and(|length| length > BODY_BYTES_MAX as u64) {
            return Err(UpstreamError::BodyTooLarge);
        }
        let mut body = Vec::new();
        while let Some(piece) = self.chunk().await? {
            if body.len() + piece.len() > BODY_BYTES_MAX {
                return Err(UpstreamError::BodyTooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The body as server-sent events.
    ///
    /// # Errors
    /// `ContentType` unless it is `text/event-stream`.
    pub fn events(self) -> Result<EventStream, UpstreamError> {
        if !self.has_content_type("text/event-stream") {
            return Err(UpstreamError::ContentType);
        }
        Ok(EventStream::new(self.pieces()))
    }

    /// The body as lines of `media_type`.
    ///
    /// # Errors
    /// `ContentType` unless it is that media type.
    pub fn lines(
        self,
        media_type: &str,
    ) -> Result<BoxStream<'static, Result<ServerEvent, UpstreamError>>, UpstreamError> {
        if !self.has_content_type(media_type) {
            return Err(UpstreamError::ContentType);
        }
        Ok(lines(self.pieces()))
    }

    fn pieces(self) -> Pieces {
        let pieces = futures_util::stream::try_unfold(self, |mut response| async move {
            Ok(response.chunk().await?.map(|piece| (piece, response)))
        });
        Box::pin(pieces)
    }
}
