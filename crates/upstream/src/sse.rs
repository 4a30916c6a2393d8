//! Server-sent events as an upstream sends them, with a bound on each event.
//!
//! The decoder below us neither bounds an event nor tells a clean end from one in the middle of an event, so the
//! bytes pass a [`Meter`] first, which knows just enough of the format for both: where lines end, which lines
//! are comments and which line is blank. It never looks at a field.

use std::error::Error as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use sse_stream::SseByteStream;

use crate::UpstreamError;

/// Largest event: id, event name and data together, in UTF-8 bytes.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// Largest event as it is sent, with field names and line ends but without comments. Twice the event's own
/// bound leaves room for data in short lines and keeps what the decoder buffers bounded.
const BLOCK_BYTES_MAX: usize = 2 * EVENT_BYTES_MAX;

/// One event. Blocks without data (retry times, keep-alive comments) are not events.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_debug_implementations, reason = "the data is the upstream's content")]
pub struct ServerEvent {
    pub event: Option<String>,
    pub id: Option<String>,
    pub data: String,
}

/// Pieces of a body.
pub type Pieces = BoxStream<'static, Result<Bytes, UpstreamError>>;

/// A stream of events that ends after the first error.
#[expect(missing_debug_implementations, reason = "buffers the upstream's content")]
pub struct EventStream {
    inner: SseByteStream<Metered>,
    over: bool,
}

impl EventStream {
    pub fn new(pieces: Pieces) -> EventStream {
        let metered = Metered { pieces, meter: Meter::default(), pending: None, over: false };
        EventStream { inner: SseByteStream::new(metered), over: false }
    }
}

impl Stream for EventStream {
    type Item = Result<ServerEvent, UpstreamError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.over {
                return Poll::Ready(None);
            }
            let item = match ready!(self.inner.poll_next_unpin(cx)) {
                None => None,
                Some(Err(error)) => Some(Err(from_decoder(&error))),
                Some(Ok(block)) => {
                    // A block of metadata alone is dispatched by no reader of the format.
                    let Some(data) = block.data else { continue };
                    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                    if data.len() + length(&block.event) + length(&block.id) > EVENT_BYTES_MAX {
                        Some(Err(UpstreamError::EventTooLarge))
                    } else {
                        Some(Ok(ServerEvent { event: block.event, id: block.id, data }))
                    }
                }
            };
            self.over = !matches!(item, Some(Ok(_)));
            return Poll::Ready(item);
        }
    }
}

fn from_decoder(error: &sse_stream::Error) -> UpstreamError {
    let cause = error.source().and_then(|source| source.downcast_ref::<UpstreamError>());
    // The decoder has no failure of its own but text that is not UTF-8.
    cause.copied().unwrap_or(UpstreamError::NotUtf8)
}

/// The body behind the meter.
struct Metered {
    pieces: Pieces,
    meter: Meter,
    /// What follows the part of a piece that was already handed on.
    pending: Option<UpstreamError>,
    over: bool,
}

impl Stream for Metered {
    type Item = Result<Bytes, UpstreamError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let item = if let Some(error) = self.pending.take() {
            Some(Err(error))
        } else {
            match ready!(self.pieces.poll_next_unpin(cx)) {
                Some(Ok(mut piece)) => {
                    if let Some(fits) = self.meter.read(&piece) {
                        // Events that ended before the oversized one are still delivered.
                        piece.truncate(fits);
                        self.pending = Some(UpstreamError::EventTooLarge);
                    }
                    return Poll::Ready(Some(Ok(piece)));
                }
                Some(Err(error)) => Some(Err(error)),
                None => self.meter.inside_event().then_some(Err(UpstreamError::Truncated)),
            }
        };
        self.over = true;
        // Closes the connection now: the decoder may live on for a while.
        self.pieces = Box::pin(futures_util::stream::empty());
        Poll::Ready(item)
    }
}

const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Line structure of the bytes so far.
#[derive(Default)]
struct Meter {
    /// Bytes of the current block's lines, comments left out.
    block_bytes: usize,
    line: Line,
    /// The previous byte was a CR, so an LF now belongs to it.
    after_cr: bool,
    /// How much of a leading byte order mark was seen; it is no content of the first line.
    mark: usize,
    begun: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Blank,
    Comment,
    Content,
}

impl Meter {
    /// Reads on. `Some(n)`: the block became too large at byte `n`.
    fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        for (position, &byte) in bytes.iter().enumerate() {
            if !self.begun {
                if self.mark < BYTE_ORDER_MARK.len() && byte == BYTE_ORDER_MARK[self.mark] {
                    self.mark += 1;
                    continue;
                }
                self.begun = true;
                if self.mark > 0 && self.mark < BYTE_ORDER_MARK.len() {
                    self.line = Line::Content;
                }
            }
            self.byte(byte);
            if self.block_bytes > BLOCK_BYTES_MAX {
                return Some(position);
            }
        }
        None
    }

    fn byte(&mut self, byte: u8) {
        let completes_crlf = std::mem::replace(&mut self.after_cr, byte == b'\r') && byte == b'\n';
        match byte {
            b'\n' if completes_crlf => {}
            b'\r' | b'\n' => {
                match self.line {
                    Line::Blank => self.block_bytes = 0,
                    Line::Comment => {}
                    Line::Content => self.block_bytes += 1,
                }
                self.line = Line::Blank;
            }
            _ => {
                self.line = match (self.line, byte) {
                    (Line::Blank, b':') | (Line::Comment, _) => Line::Comment,
                    (Line::Blank | Line::Content, _) => Line::Content,
                };
                if self.line == Line::Content {
                    self.block_bytes += 1;
                }
            }
        }
    }

    /// Whether something of an event was sent and not its end.
    fn inside_event(&self) -> bool {
        self.block_bytes > 0
    }
}

#[cfg(test)]
mod tests;
