//! The cursor of an event stream: text from the query or from `Last-Event-ID` to a sequence.
//!
//! Clients of the public protocol were written against a server that reads the cursor with ECMAScript's
//! conversion of a string to a number, so its harmless forms (`5.0`, ` 5 `, `0x10`, `1e2`) are read too.

/// The largest cursor: 2^53 - 1, the last integer every client can name exactly.
pub const CURSOR_MAX: u64 = (1 << 53) - 1;

/// The text is no sequence: negative, a fraction, no number, or above [`CURSOR_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadCursor;

/// Reads a cursor; empty text is 0.
///
/// # Errors
/// [`BadCursor`], without a detail: the text is the caller's.
pub fn parse_cursor(text: &str) -> Result<u64, BadCursor> {
    // ECMAScript's white space: with the byte order mark, without NEL.
    let text = text.trim_matches(|c: char| c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}'));
    if text.is_empty() {
        return Ok(0);
    }
    let value = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => radix(&text[2..], 16)?,
        [b'0', b'o' | b'O', ..] => radix(&text[2..], 8)?,
        [b'0', b'b' | b'B', ..] => radix(&text[2..], 2)?,
        digits if digits.iter().all(u8::is_ascii_digit) => radix(text, 10)?,
        _ => decimal(text)?,
    };
    if value <= CURSOR_MAX { Ok(value) } else { Err(BadCursor) }
}

/// Overflow reads as the largest value, which the caller refuses as too large.
fn radix(digits: &str, radix: u32) -> Result<u64, BadCursor> {
    if digits.is_empty() {
        return Err(BadCursor);
    }
    let mut value = 0u64;
    for digit in digits.chars() {
        let digit = digit.to_digit(radix).ok_or(BadCursor)?;
        value = value.saturating_mul(u64::from(radix)).saturating_add(u64::from(digit));
    }
    Ok(value)
}

/// A signed decimal with fraction or exponent. The grammar is checked first because Rust's parser also
/// reads `inf` and `nan`.
fn decimal(text: &str) -> Result<u64, BadCursor> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) || !exponent_fits {
        return Err(BadCursor);
    }
    let value: f64 = text.parse().map_err(|_| BadCursor)?;
    if !(0.0..=CURSOR_MAX as f64).contains(&value) || value.fract() != 0.0 {
        return Err(BadCursor);
    }
    Ok(value as u64)
}

/// The cursor of a query string: its first `after`, form-decoded. `None` when there is none.
///
/// # Errors
/// [`BadCursor`] when there is one and it is no cursor.
pub fn query_cursor(query: &str) -> Result<Option<u64>, BadCursor> {
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if form_decoded(name).as_deref() == Some("after") {
            return parse_cursor(&form_decoded(value).ok_or(BadCursor)?).map(Some);
        }
    }
    Ok(None)
}

/// `None` when the text is no UTF-8 after decoding. A stray percent sign stays as it is, as in a browser.
pub(crate) fn form_decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |offset: usize| bytes.get(at + offset).and_then(|&byte| (byte as char).to_digit(16));
        match (bytes[at], hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            (b'+', ..) => {
                decoded.push(b' ');
                at += 1;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(parse_cursor(text).ok(), expected, "{text:?}");
    }

    /// PA-26.
    #[test]
    fn decimal_and_harmless_forms() {
        check("", Some(0));
        check("   ", Some(0));
        check("0", Some(0));
        check("7", Some(7));
        check("007", Some(7));
        check(" 5 ", Some(5));
        check("\u{feff}\u{a0}5\u{2028}", Some(5));
        check("+5", Some(5));
        check("5.0", Some(5));
        check("5.", Some(5));
        check("-0", Some(0));
        check("1e2", Some(100));
        check("0x10", Some(16));
        check("0b11", Some(3));
        check("9007199254740991", Some(CURSOR_MAX));
    }

    #[test]
    fn refused() {
        for text in [
            "-1",
            "1.5",
            ".5",
            ".",
            "abc",
            "5a",
            "1_0",
            "e5",
            "\u{85}5",
            "1e",
            "1e+",
            "--1",
            "inf",
            "NaN",
            "infinity",
            "Infinity",
            "0x",
            "0xg",
            "-0x10",
            "9007199254740992",
            "9007199254740993",
            "9007199254740992.0",
            "18446744073709551616",
            "99999999999999999999999999",
            "1e400",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn the_first_after_of_the_query_counts() {
        assert_eq!(query_cursor(""), Ok(None));
        assert_eq!(query_cursor("before=3"), Ok(None));
        assert_eq!(query_cursor("after"), Ok(Some(0)));
        assert_eq!(query_cursor("after="), Ok(Some(0)));
        assert_eq!(query_cursor("x=1&after=3&after=9"), Ok(Some(3)));
        assert_eq!(query_cursor("%61fter=3"), Ok(Some(3)));
        assert_eq!(query_cursor("after=+3"), Ok(Some(3)));
        assert_eq!(query_cursor("after=%33"), Ok(Some(3)));
        assert_eq!(query_cursor("after=%"), Err(BadCursor));
        assert_eq!(query_cursor("after=%FF"), Err(BadCursor));
    }
}
