//! Execution ids: sixteen bytes in, the usual hyphenated text out.
//!
//! Owns the id's text form. Must never make randomness of its own.

use core::fmt;

/// The id of an execution: a random (version 4) UUID, also the id of its stream in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutionId([u8; 16]);

impl ExecutionId {
    /// An id from sixteen random bytes: the version and variant bits are set, 122 bits stay random.
    #[must_use]
    pub const fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }

    /// The id with exactly these bytes, as read from a record.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The sixteen bytes as stored.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The id with this text: exactly 36 characters, hyphens at 8, 13, 18 and 23, hexadecimal digits of either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0u8; 16];
        let mut digits = 0usize;
        for (at, &byte) in text.iter().enumerate() {
            if is_hyphen_place(at) {
                if byte != b'-' {
                    return None;
                }
                continue;
            }
            let digit = char::from(byte).to_digit(16)?;
            let slot = bytes.get_mut(digits / 2)?;
            *slot = (*slot << 4) | u8::try_from(digit).ok()?;
            digits += 1;
        }
        Some(Self(bytes))
    }
}

const fn is_hyphen_place(at: usize) -> bool {
    matches!(at, 8 | 13 | 18 | 23)
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut nibbles = self.0.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
        for (at, slot) in text.iter_mut().enumerate() {
            if !is_hyphen_place(at)
                && let Some(nibble) = nibbles.next()
            {
                *slot = HEX[usize::from(nibble)];
            }
        }
        f.write_str(core::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecutionId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::ExecutionId;

    #[track_caller]
    fn check_parse(text: &str, expected: Option<&str>) {
        assert_eq!(ExecutionId::parse(text).map(|id| id.to_string()).as_deref(), expected);
    }

    #[test]
    fn text_form() {
        let text = "11111111-2222-4333-8444-5555555555af";
        check_parse(text, Some(text));
        check_parse("11111111-2222-4333-8444-5555555555AF", Some(text));
        check_parse("11111111-2222-4333-8444-5555555555a", None);
        check_parse("11111111-2222-4333-8444-5555555555af0", None);
        check_parse("11111111-2222-4333-84445-555555555af", None);
        check_parse("111111112-222-4333-8444-5555555555af", None);
        check_parse("11111111-2222-4333-8444-5555555555ag", None);
        check_parse("../11111-2222-4333-8444-5555555555af", None);
        check_parse("+1111111-2222-4333-8444-5555555555af", None);
        check_parse("", None);
    }

    #[test]
    fn random_bytes_become_version_four() {
        assert_eq!(ExecutionId::from_random([0xff; 16]).to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(ExecutionId::from_random([0; 16]).to_string(), "00000000-0000-4000-8000-000000000000");
    }
}
