//! Event streams of upstreams, in any pieces.

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use sealog_upstream::{EVENT_BYTES_MAX, EventStream, UpstreamError};

use super::input::Input;

/// Event name, id, data.
type Event = (Option<String>, Option<String>, String);
type Outcome = (Vec<Event>, Option<UpstreamError>);

/// First byte: how many lengths of pieces follow. Then the stream.
pub(super) fn upstream_sse(data: &[u8]) {
    let mut input = Input::new(data);
    let count = usize::from(input.byte() % 16);
    let lengths: Vec<usize> = input.take(count).iter().map(|length| usize::from(*length)).collect();
    let bytes = input.rest();
    let whole = decode(vec![bytes]);
    assert_eq!(decode(cut(bytes, &lengths)), whole, "pieces change nothing");
    if bytes.len() <= 512 {
        assert_eq!(decode(bytes.chunks(1).collect()), whole, "single bytes change nothing");
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let (names_and_data, truncated) = reference(text);
        let read: Vec<_> = whole.0.iter().map(|(name, _, data)| (name.clone(), data.clone())).collect();
        assert_eq!(read, names_and_data);
        assert_eq!(whole.1, truncated.then_some(UpstreamError::Truncated));
    }
}

/// The lengths in turn, again and again; a zero is an empty piece.
fn cut<'a>(bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut left = bytes;
    let mut pieces = Vec::new();
    for length in lengths {
        let (piece, rest) = left.split_at((*length).min(left.len()));
        pieces.push(piece);
        left = rest;
    }
    pieces.push(left);
    pieces
}

fn decode(pieces: Vec<&[u8]>) -> Outcome {
    let pieces: Vec<_> = pieces.into_iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let stream = EventStream::new(stream::iter(pieces).boxed());
    let items: Vec<_> = stream.collect::<Vec<_>>().now_or_never().expect("pieces that are there do not wait");
    let mut events = Vec::new();
    let mut error = None;
    for item in items {
        assert!(error.is_none(), "nothing follows an error");
        match item {
            Ok(event) => {
                assert!(event.data.len() <= EVENT_BYTES_MAX);
                events.push((event.event, event.id, event.data));
            }
            Err(failed) => error = Some(failed),
        }
    }
    (events, error)
}

/// The format read slowly: lines first, then blocks. Also whether the text ends inside an event: something stands
/// in the last block that is not a comment.
fn reference(text: &str) -> (Vec<(Option<String>, String)>, bool) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let normal = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = normal.split('\n').collect();
    // What follows the last line end is no line yet.
    let unfinished = lines.pop().unwrap_or_default();
    let (mut events, mut inside) = (Vec::new(), false);
    let (mut name, mut data): (Option<String>, Option<String>) = (None, None);
    for line in lines {
        if line.is_empty() {
            if let Some(data) = data.take() {
                events.push((name.take(), data));
            }
            (name, data, inside) = (None, None, false);
            continue;
        }
        if line.starts_with(':') {
            continue;
        }
        inside = true;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = Some(value.to_owned()),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            _ => {}
        }
    }
    let unfinished = !unfinished.is_empty() && !unfinished.starts_with(':');
    (events, inside || unfinished)
}
