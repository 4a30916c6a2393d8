//! Canonical JSON: one text for equal values, different texts for different ones.

use sealog_events::canonical::{self, CanonicalError};
use sealog_events::limits::CANONICAL_BYTES_MAX;
use serde::de::IgnoredAny;

use super::allocation::within;
use super::decimal::{Decimal, Exact};

/// Between two texts that are compared. It never stands in JSON.
const BETWEEN: u8 = 0;

/// The bytes as one text, and the two texts around the first zero byte against each other.
pub(super) fn canonical_json(data: &[u8]) {
    judge(data);
    let Some(at) = data.iter().position(|byte| *byte == BETWEEN) else { return };
    let (first, second) = (&data[..at], &data[at + 1..]);
    let (Some(a), Some(b)) = (judge(first), judge(second)) else { return };
    let exact = |text: &[u8]| std::str::from_utf8(text).ok().and_then(Exact::of);
    assert_eq!(a == b, exact(first) == exact(second), "equal texts exactly for equal values");
}

/// The canonical text, after its own properties held.
fn judge(text: &[u8]) -> Option<String> {
    let result = within(16 * text.len() + (64 << 10), || canonical::canonical_json(text));
    let lenient = serde_json::from_slice::<IgnoredAny>(text).is_ok();
    let canonical = match result {
        Ok(canonical) => canonical,
        Err(error) => {
            assert!(error != CanonicalError::Syntax || !lenient, "another reader takes it");
            assert!(canonical::fingerprint(text) == Err(error));
            return None;
        }
    };
    assert!(lenient, "no other reader takes it");
    assert!(canonical.len() <= CANONICAL_BYTES_MAX);
    assert_eq!(canonical::canonical_json(canonical.as_bytes()).as_ref(), Ok(&canonical), "it is its own");
    let source = std::str::from_utf8(text).expect("a canonical form exists for UTF-8 alone");
    let exact = Exact::of(source);
    // Exponents that do not fit 64 bits have no double either, so an accepted text always has a value.
    assert!(exact.is_some() && exact == Exact::of(&canonical), "it has the same value");
    number(source, &canonical);
    Some(canonical)
}

/// Where ECMAScript's text denotes exactly the literal's value, it is the canonical text.
fn number(source: &str, canonical: &str) {
    let literal = source.trim_matches([' ', '\t', '\n', '\r']);
    if !literal.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return;
    }
    let nearest: f64 = literal.parse().expect("a JSON number is a number");
    assert!(nearest.is_finite(), "beyond a double");
    let mut buffer = ryu_js::Buffer::new();
    let printed = buffer.format_finite(nearest);
    let same = Decimal::of(printed) == Decimal::of(literal);
    assert_eq!(printed == canonical, same, "{literal}: ECMAScript prints {printed}, here it is {canonical}");
}
