//! Cursors of event streams, from a header and from a query.

use sealog_http::cursor::{CURSOR_MAX, parse_cursor, query_cursor};

/// The text as a cursor, as a query, and as a cursor inside a query.
pub(super) fn sse_cursor(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = parse_cursor(text);
    if let Ok(value) = parsed {
        assert!(value <= CURSOR_MAX);
        assert_eq!(parse_cursor(&value.to_string()), Ok(value), "its own digits mean the same");
        assert_eq!(parse_cursor(&format!(" {text}\t")), Ok(value), "white space around it means nothing");
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let exact = text.trim_start_matches('0').parse::<u64>().ok().filter(|value| *value <= CURSOR_MAX);
        let zero = text.bytes().all(|byte| byte == b'0');
        assert_eq!(parsed.ok(), if zero { Some(0) } else { exact }, "digits are a decimal number");
    }
    let encoded: String = data.iter().map(|byte| format!("%{byte:02X}")).collect();
    assert_eq!(query_cursor(&format!("a=b&%61fter={encoded}&after=1")), parsed.map(Some));
    match query_cursor(text) {
        Ok(Some(value)) => assert!(value <= CURSOR_MAX && (value == 0 || text.contains('='))),
        // Only a query that names a cursor can name a bad one.
        Ok(None) => assert_eq!(query_cursor(&format!("{text}&after=3")), Ok(Some(3))),
        Err(error) => assert_eq!(query_cursor(&format!("{text}&after=3")), Err(error)),
    }
}
