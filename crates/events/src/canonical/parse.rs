//! A strict JSON reader that writes the canonical text as it goes.
//!
//! Owns the grammar of RFC 8259, nothing more lenient. Recursion is bounded by the nesting bound; every length is
//! bounded by the input's. Must never build a tree of what it reads.

use core::ops::Range;

use super::{CanonicalError, number};
use crate::json;
use crate::limits;

pub(super) fn canonical(text: &[u8]) -> Result<String, CanonicalError> {
    if text.len() > limits::CANONICAL_BYTES_MAX {
        return Err(CanonicalError::TooLong);
    }
    let text = core::str::from_utf8(text).map_err(|_| CanonicalError::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(CanonicalError::ByteOrderMark);
    }
    let mut reader = Reader { text, at: 0, out: String::with_capacity(text.len()) };
    reader.value(limits::JSON_DEPTH_MAX)?;
    reader.white_space();
    if reader.at < text.len() {
        return Err(CanonicalError::Syntax);
    }
    reader.check_length()?;
    Ok(reader.out)
}

struct Reader<'a> {
    text: &'a str,
    /// Place of the next byte; always between two characters.
    at: usize,
    out: String,
}

/// A member of the object being read: its decoded name, and where its canonical text stands in the output.
struct Member {
    name: String,
    text: Range<usize>,
}

impl Reader<'_> {
    fn value(&mut self, depth_left: usize) -> Result<(), CanonicalError> {
        self.white_space();
        match self.peek() {
            Some(b'{') => self.object(depth_left),
            Some(b'[') => self.array(depth_left),
            Some(b'"') => {
                let text = self.string()?;
                json::put_string(&mut self.out, &text);
                Ok(())
            }
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(CanonicalError::Syntax),
        }
    }

    fn object(&mut self, depth_left: usize) -> Result<(), CanonicalError> {
        let depth_left = depth_left.checked_sub(1).ok_or(CanonicalError::TooDeep)?;
        self.at += 1;
        self.out.push('{');
        let members_start = self.out.len();
        let mut members: Vec<Member> = Vec::new();
        self.white_space();
        if !self.take(b'}') {
            loop {
                self.white_space();
                if self.peek() != Some(b'"') {
                    return Err(CanonicalError::Syntax);
                }
                let name = self.string()?;
                self.white_space();
                self.expect(b':')?;
                let start = self.out.len();
                json::put_string(&mut self.out, &name);
                self.out.push(':');
                self.value(depth_left)?;
                members.push(Member { name, text: start..self.out.len() });
                self.out.push(',');
                self.white_space();
                if self.take(b'}') {
                    break;
                }
                self.expect(b',')?;
            }
            self.out.pop();
        }
        self.sort_members(members_start, &mut members)?;
        self.out.push('}');
        self.check_length()
    }

    /// Brings the members, which stand in the output from `start` on, into their order.
    fn sort_members(&mut self, start: usize, members: &mut [Member]) -> Result<(), CanonicalError> {
        let in_order = |members: &[Member]| members.is_sorted_by(|a, b| utf16_order(a, b).is_lt());
        if in_order(members) {
            return Ok(());
        }
        members.sort_by(utf16_order);
        if !in_order(members) {
            return Err(CanonicalError::DuplicateMember);
        }
        let mut sorted = String::with_capacity(self.out.len() - start);
        for (place, member) in members.iter().enumerate() {
            if place > 0 {
                sorted.push(',');
            }
            sorted.push_str(&self.out[member.text.clone()]);
        }
        self.out.truncate(start);
        self.out.push_str(&sorted);
        Ok(())
    }

    fn array(&mut self, depth_left: usize) -> Result<(), CanonicalError> {
        let depth_left = depth_left.checked_sub(1).ok_or(CanonicalError::TooDeep)?;
        self.at += 1;
        self.out.push('[');
        self.white_space();
        if !self.take(b']') {
            loop {
                self.value(depth_left)?;
                self.white_space();
                if self.take(b']') {
                    break;
                }
                self.expect(b',')?;
                self.out.push(',');
            }
        }
        self.out.push(']');
        self.check_length()
    }

    /// Decodes the string that begins here.
    fn string(&mut self) -> Result<String, CanonicalError> {
        self.at += 1;
        let mut decoded = String::new();
        let mut plain_from = self.at;
        loop {
            match self.peek() {
                None | Some(0..=0x1f) => return Err(CanonicalError::Syntax),
                Some(b'"') => {
                    decoded.push_str(&self.text[plain_from..self.at]);
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => {
                    decoded.push_str(&self.text[plain_from..self.at]);
                    self.at += 1;
                    decoded.push(self.escape()?);
                    plain_from = self.at;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, CanonicalError> {
        let letter = self.peek().ok_or(CanonicalError::Syntax)?;
        let simple = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(CanonicalError::Syntax),
        };
        self.at += 1;
        Ok(simple)
    }

    /// The character of `XXXX`, or of `XXXX\uXXXX` where the first is the high half of a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char, CanonicalError> {
        let first = self.hex_unit()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or(CanonicalError::LoneSurrogate);
        }
        if !(self.take(b'\\') && self.take(b'u')) {
            return Err(CanonicalError::LoneSurrogate);
        }
        let second = self.hex_unit()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(CanonicalError::LoneSurrogate);
        }
        let scalar = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        char::from_u32(scalar).ok_or(CanonicalError::LoneSurrogate)
    }

    fn hex_unit(&mut self) -> Result<u32, CanonicalError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit << 4 | digit.ok_or(CanonicalError::Syntax)?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), CanonicalError> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        number::put_canonical(&mut self.out, &self.text[start..self.at])
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<(), CanonicalError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(CanonicalError::Syntax) } else { Ok(()) }
    }

    fn word(&mut self, word: &str) -> Result<(), CanonicalError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(CanonicalError::Syntax);
        }
        self.at += word.len();
        self.out.push_str(word);
        Ok(())
    }

    fn white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), CanonicalError> {
        if self.take(byte) { Ok(()) } else { Err(CanonicalError::Syntax) }
    }

    /// Numbers such as `1e20` grow; the output is bounded like the input.
    fn check_length(&self) -> Result<(), CanonicalError> {
        if self.out.len() > limits::CANONICAL_BYTES_MAX { Err(CanonicalError::TooLong) } else { Ok(()) }
    }
}

/// By UTF-16 code units, as ECMAScript compares strings: a character above U+FFFF stands before U+E000 to U+FFFF.
fn utf16_order(a: &Member, b: &Member) -> core::cmp::Ordering {
    a.name.encode_utf16().cmp(b.name.encode_utf16())
}
