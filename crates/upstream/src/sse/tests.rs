use futures_util::StreamExt;
use futures_util::stream;

use super::*;

fn decode(pieces: Vec<Vec<u8>>) -> (Vec<(Option<String>, String)>, Option<UpstreamError>) {
    let pieces = stream::iter(pieces.into_iter().map(|piece| Ok(Bytes::from(piece)))).boxed();
    let items: Vec<_> = futures_executor(EventStream::new(pieces));
    let mut events = Vec::new();
    let mut error = None;
    for item in items {
        assert!(error.is_none(), "nothing follows an error");
        match item {
            Ok(event) => events.push((event.event, event.data)),
            Err(failed) => error = Some(failed),
        }
    }
    (events, error)
}

fn futures_executor<S: Stream + Unpin>(stream: S) -> Vec<S::Item> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(stream.collect())
}

fn data(events: &[(Option<String>, String)]) -> Vec<&str> {
    events.iter().map(|(_, data)| data.as_str()).collect()
}

/// Decodes the bytes whole, byte by byte, and cut in two at every place; all must agree.
#[track_caller]
fn check(bytes: &[u8], expected: &[&str], error: Option<UpstreamError>) {
    let mut cuts = vec![vec![bytes.to_vec()], bytes.iter().map(|byte| vec![*byte]).collect()];
    cuts.extend((1..bytes.len()).map(|at| vec![bytes[..at].to_vec(), bytes[at..].to_vec()]));
    for pieces in cuts {
        let lengths: Vec<usize> = pieces.iter().map(Vec::len).collect();
        let (events, failed) = decode(pieces);
        assert_eq!((data(&events), failed), (expected.to_vec(), error), "cut {lengths:?}");
    }
}

#[test]
fn line_ends_may_be_lf_cr_crlf_or_all_of_them() {
    check(b"data: a\n\ndata: b\n\n", &["a", "b"], None);
    check(b"data: a\r\rdata: b\r\r", &["a", "b"], None);
    check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"], None);
    check(b"data: a\r\n\rdata: b\n\r\ndata: c\r\r\n", &["a", "b", "c"], None);
    check(b"data: a\ndata: b\rdata: c\r\n\n", &["a\nb\nc"], None);
}

#[test]
fn characters_may_be_split_anywhere() {
    check("data: h\u{e9}\u{1f600}\u{ff5e}\n\n".as_bytes(), &["h\u{e9}\u{1f600}\u{ff5e}"], None);
}

#[test]
fn comments_metadata_unknown_fields_and_the_mark_are_no_events() {
    check(b": ping\n\n:\n\ndata:x\n: inside\n\n", &["x"], None);
    check(b"retry: 10\n\nid: 7\n\nevent: e\n\ndata\n\n", &[""], None);
    check(b"unknown: 1\ndata: x\n\n", &["x"], None);
    check(b"\xef\xbb\xbfdata: x\n\n", &["x"], None);
    check(b"\xef\xbb\xbf: only a comment", &[], None);
    check(b"\xef\xbb\xbf", &[], None);
    check(b"", &[], None);
    check(b"\n\r\n\r", &[], None);
}

#[test]
fn name_and_id_are_kept() {
    let (events, error) = decode(vec![b"event: delta\nid: 4\ndata: {}\n\n".to_vec()]);
    assert_eq!((events, error), (vec![(Some("delta".to_owned()), "{}".to_owned())], None));
}

#[test]
fn an_end_inside_an_event_is_truncation_and_one_between_events_is_not() {
    let truncated = Some(UpstreamError::Truncated);
    check(b"data: a\n\ndata: b", &["a"], truncated);
    check(b"data: a\n\ndata: b\n", &["a"], truncated);
    check(b"data: a\n\nd", &["a"], truncated);
    check(b"data: a\r\n\r\ndata: b\r\n", &["a"], truncated);
    check(b"data: a\n\n: partial comment", &["a"], None);
    check(b"data: a\n\ndata: b\n: comment\n", &["a"], truncated);
    check(b"\xef\xbb", &[], None);
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    check(b"data: a\n\ndata: \xff\n\ndata: b\n\n", &["a"], Some(UpstreamError::NotUtf8));
    check(b"data: \xc3\n\n", &[], Some(UpstreamError::NotUtf8));
    check(b"event: \xff\ndata: x\n\n", &[], Some(UpstreamError::NotUtf8));
}

#[test]
fn an_event_may_be_one_mebibyte_and_no_more() {
    let event = |bytes: usize| format!("data: {}\n\n", "x".repeat(bytes)).into_bytes();
    let (events, error) = decode(vec![event(EVENT_BYTES_MAX)]);
    assert_eq!((events[0].1.len(), error), (EVENT_BYTES_MAX, None));
    let (events, error) = decode(vec![b"data: first\n\n".to_vec(), event(EVENT_BYTES_MAX + 1)]);
    assert_eq!((data(&events), error), (vec!["first"], Some(UpstreamError::EventTooLarge)));
    let named = format!("event: e\nid: i\ndata: {}\n\n", "x".repeat(EVENT_BYTES_MAX - 1)).into_bytes();
    assert_eq!(decode(vec![named]).1, Some(UpstreamError::EventTooLarge));
}

#[test]
fn an_endless_event_stops_being_read() {
    let pulled = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&pulled);
    let endless = stream::repeat_with(move || {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Bytes::from(vec![b'x'; 64 * 1024]))
    });
    let first = stream::iter([Ok(Bytes::from_static(b"data: a\n\ndata: "))]);
    let items = futures_executor(EventStream::new(first.chain(endless).boxed()));
    assert_eq!(items.len(), 2);
    assert_eq!(items[1].as_ref().err(), Some(&UpstreamError::EventTooLarge));
    let pieces_max = BLOCK_BYTES_MAX / (64 * 1024) + 1;
    assert!(pulled.load(std::sync::atomic::Ordering::Relaxed) <= pieces_max);
}

#[test]
fn events_before_an_oversized_one_in_the_same_piece_are_delivered() {
    let mut piece = b"data: a\n\ndata: b\n\ndata: ".to_vec();
    piece.extend(std::iter::repeat_n(b'x', BLOCK_BYTES_MAX + 1));
    let (events, error) = decode(vec![piece]);
    assert_eq!((data(&events), error), (vec!["a", "b"], Some(UpstreamError::EventTooLarge)));
}

#[test]
fn comments_do_not_count_towards_an_event() {
    let mut pieces = vec![b"data: a\n".to_vec()];
    pieces
        .extend(std::iter::repeat_n(b": keep-alive keep-alive keep-alive\n".to_vec(), BLOCK_BYTES_MAX / 32));
    pieces.push(b"\n".to_vec());
    let (events, error) = decode(pieces);
    assert_eq!((data(&events), error), (vec!["a"], None));
}

#[test]
fn a_failure_of_the_body_comes_through_as_it_is() {
    let pieces =
        stream::iter([Ok(Bytes::from_static(b"data: a\n\ndat")), Err(UpstreamError::Silent)]).boxed();
    let items = futures_executor(EventStream::new(pieces));
    assert_eq!(items.len(), 2);
    assert_eq!(items[1].as_ref().err(), Some(&UpstreamError::Silent));
}
