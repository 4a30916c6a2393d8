use futures_util::StreamExt;
use futures_util::stream;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn decode(pieces: Vec<Vec<u8>>) -> (Vec<(Option<String>, String)>, Option<UpstreamError>) {
    let pieces = stream::iter(pieces.into_iter().map(|piece| Ok(Bytes::from(piece)))).boxed();
    let items: Vec<_> = collect(EventStream::new(pieces));
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

fn collect<S: Stream + Unpin>(stream: S) -> Vec<S::Item> {
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
    let items = collect(EventStream::new(first.chain(endless).boxed()));
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
    let items = collect(EventStream::new(pieces));
    assert_eq!(items.len(), 2);
    assert_eq!(items[1].as_ref().err(), Some(&UpstreamError::Silent));
}

/// The format read the slow way: whole text, line by line. Events' names and data, and whether the end lies inside
/// an event. Only for text without a byte order mark.
fn reference(text: &str) -> (Vec<(Option<String>, String)>, bool) {
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let complete = unified.ends_with('\n') || unified.is_empty();
    let mut lines: Vec<&str> = unified.split('\n').collect();
    let unfinished = lines.pop().unwrap_or_default();
    let (mut events, mut name, mut data, mut begun) = (Vec::new(), None, Vec::new(), false);
    for line in lines {
        if line.is_empty() {
            let name = name.take();
            if !data.is_empty() {
                events.push((name, std::mem::take(&mut data).join("\n")));
            }
            begun = false;
            continue;
        }
        begun |= !line.starts_with(':');
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = Some(value.to_owned()),
            "data" => data.push(value.to_owned()),
            _ => {}
        }
    }
    begun |= !complete && !unfinished.starts_with(':');
    (events, begun)
}

fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "\n",
        "\r",
        "\r\n",
        "data",
        "data:",
        "data: ",
        "event: ",
        "id: 1",
        "retry: 5",
        ": note",
        ":",
        " ",
        "x",
        "\u{e9}",
        "\u{1f600}",
        "{\"a\":1}",
        "[DONE]",
        "unknown: ",
    ])
}

proptest! {
    /// However the bytes are cut, the events and the end are those of the whole text.
    #[test]
    fn any_text_in_any_pieces_reads_as_the_slow_way(
        fragments in vec(fragment(), 0..60),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let text = fragments.concat();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|ends| text.as_bytes()[ends[0]..ends[1]].to_vec()).collect();
        let (events, inside) = reference(&text);
        prop_assert_eq!(decode(pieces), (events, inside.then_some(UpstreamError::Truncated)));
    }

    /// Any bytes at all end in order: no panic, and nothing after an error.
    #[test]
    fn any_bytes_end_in_order(pieces in vec(vec(any::<u8>(), 0..40), 0..8)) {
        let (_, error) = decode(pieces);
        let expected = [None, Some(UpstreamError::Truncated), Some(UpstreamError::NotUtf8)];
        prop_assert!(expected.contains(&error));
    }
}
