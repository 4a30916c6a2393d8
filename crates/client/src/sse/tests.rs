use super::*;

fn frame(id: &str, event: &str, data: &str) -> Frame {
    Frame { id: id.to_owned(), event: event.to_owned(), data: data.to_owned() }
}

fn parsed<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Frame>, ClientError> {
    let mut parser = Parser::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        parser.feed(chunk)?;
        frames.extend(std::iter::from_fn(|| parser.next_frame()));
    }
    Ok(frames)
}

/// However the bytes are cut, the frames are the same.
#[track_caller]
fn check(text: &str, expected: &[Frame]) {
    for size in 1..=text.len().max(1) {
        assert_eq!(parsed(text.as_bytes().chunks(size)).unwrap(), expected, "{text:?} in pieces of {size}");
    }
}

#[test]
fn line_ends_of_every_kind() {
    let expected = [frame("1", "a", "x"), frame("2", "b", "y")];
    check("id: 1\nevent: a\ndata: x\n\nid: 2\nevent: b\ndata: y\n\n", &expected);
    check("id: 1\r\nevent: a\r\ndata: x\r\n\r\nid: 2\r\nevent: b\r\ndata: y\r\n\r\n", &expected);
    check("id: 1\revent: a\rdata: x\r\rid: 2\revent: b\rdata: y\r\r", &expected);
}

#[test]
fn comments_fields_and_spaces() {
    check(": heartbeat\n\ndata:x\n\n", &[frame("", "", "x")]);
    check("data:  two\n\n", &[frame("", "", " two")]);
    check("data\n\n", &[frame("", "", "")]);
    check("retry: 5\nother: y\ndata: x\ndata: y\n\n", &[frame("", "", "x\ny")]);
    check("\u{feff}data: é\n\n", &[frame("", "", "é")]);
    check("id: 3\nevent: e\n\n", &[]);
}

#[test]
fn an_unfinished_frame_is_never_handed_out() {
    check("id: 1\nevent: a\ndata: x\n\nid: 2\nevent: b\ndata: y\n", &[frame("1", "a", "x")]);
    check("id: 1\nevent: a\ndata: x", &[]);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    assert!(matches!(parsed([&b"data: \xff\n\n"[..]]), Err(ClientError::Protocol(_))));
}

#[test]
fn a_frame_has_a_bound_however_it_is_cut() {
    let fits = format!("data: {}\n\n", "x".repeat(FRAME_BYTES_MAX - 6));
    assert_eq!(parsed([fits.as_bytes()]).unwrap().len(), 1);
    assert_eq!(parsed(fits.as_bytes().chunks(1000)).unwrap().len(), 1);
    let too_long = format!("data: {}\n\n", "x".repeat(FRAME_BYTES_MAX - 5));
    assert!(matches!(parsed([too_long.as_bytes()]), Err(ClientError::TooLarge { .. })));
    assert!(matches!(parsed(too_long.as_bytes().chunks(1000)), Err(ClientError::TooLarge { .. })));
    let lines = "data: 0123456789\n".repeat(FRAME_BYTES_MAX / 16 + 1);
    assert!(matches!(parsed([lines.as_bytes()]), Err(ClientError::TooLarge { .. })));
    let comments = ": silence\n\n".repeat(FRAME_BYTES_MAX / 8);
    assert!(parsed([comments.as_bytes()]).unwrap().is_empty());
}
