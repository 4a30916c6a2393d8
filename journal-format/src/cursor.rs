//! Bounds-checked reading, varints, and access to fields at fixed places. Never allocates on the reading side; never
//! reads past what it was given.

use crate::error::{FormatError, Why};
use crate::limits::VARINT_BYTES_MAX;

/// Reads a slice front to back. After an error its position is unspecified; callers stop there.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub(crate) fn byte(&mut self, field: &'static str) -> Result<u8, FormatError> {
        let Some(&byte) = self.bytes.get(self.at) else { return Err(Why::Short.of(field, self.at)) };
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize, field: &'static str) -> Result<&'a [u8], FormatError> {
        let rest = &self.bytes[self.at..];
        if length > rest.len() {
            return Err(Why::Short.of(field, self.at));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FormatError> {
        Ok(array_at(self.take(N, field)?, 0))
    }

    /// LEB128 in shortest form, at most ten bytes.
    #[inline]
    pub(crate) fn varint(&mut self, field: &'static str) -> Result<u64, FormatError> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            Some(&low) => match self.bytes.get(self.at + 1) {
                Some(&high @ 1..0x80) => {
                    self.at += 2;
                    Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
                }
                Some(_) | None => self.long_varint(field),
            },
            None => Err(Why::Short.of(field, self.at)),
        }
    }

    fn long_varint(&mut self, field: &'static str) -> Result<u64, FormatError> {
        let rest = &self.bytes[self.at..];
        let mut value = 0_u64;
        for (index, &byte) in rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            // The tenth byte holds bit 63 alone.
            if index == VARINT_BYTES_MAX - 1 && byte > 1 {
                let why = if byte & 0x80 == 0 { Why::OutOfRange } else { Why::TooLong };
                return Err(why.of(field, self.at));
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                if byte == 0 && index > 0 {
                    return Err(Why::NotMinimal.of(field, self.at));
                }
                self.at += index + 1;
                return Ok(value);
            }
        }
        // Ten bytes always end above, so there were fewer.
        Err(Why::Short.of(field, self.bytes.len()))
    }

    /// A varint that counts things of at least `bytes_each` bytes which follow: more than the rest can hold is
    /// refused here, before anything is allocated for them.
    pub(crate) fn count(&mut self, bytes_each: usize, field: &'static str) -> Result<usize, FormatError> {
        let start = self.at;
        let count = self.varint(field)?;
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() / bytes_each => Ok(count),
            _ => Err(Why::Short.of(field, start)),
        }
    }

    /// A varint length of at most `max`, and that many bytes.
    #[inline]
    pub(crate) fn sized(&mut self, max: usize, field: &'static str) -> Result<&'a [u8], FormatError> {
        let start = self.at;
        let length = self.varint(field)?;
        match usize::try_from(length) {
            Ok(length) if length <= max => self.take(length, field),
            _ => Err(Why::TooLong.of(field, start)),
        }
    }

    /// What is left must be fewer than `align` zeros.
    pub(crate) fn padding(&self, align: usize) -> Result<(), FormatError> {
        if self.remaining() >= align {
            return Err(Why::Trailing.of("padding", self.at));
        }
        check_zero(self.bytes, self.at, self.bytes.len(), "padding")
    }

    pub(crate) fn end(&self, field: &'static str) -> Result<(), FormatError> {
        if self.remaining() == 0 { Ok(()) } else { Err(Why::Trailing.of(field, self.at)) }
    }
}

/// `bytes` holds exactly `length` bytes.
pub(crate) fn check_length(bytes: &[u8], length: usize, field: &'static str) -> Result<(), FormatError> {
    check_least(bytes, length, field)?;
    if bytes.len() > length { Err(Why::Trailing.of(field, length)) } else { Ok(()) }
}

/// `bytes` holds at least `length` bytes.
pub(crate) fn check_least(bytes: &[u8], length: usize, field: &'static str) -> Result<(), FormatError> {
    if bytes.len() < length { Err(Why::Short.of(field, bytes.len())) } else { Ok(()) }
}

/// Bytes `from..to` are zero; the error names the first that is not.
pub(crate) fn check_zero(
    bytes: &[u8],
    from: usize,
    to: usize,
    field: &'static str,
) -> Result<(), FormatError> {
    match bytes[from..to].iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => Err(Why::NotZero.of(field, from + at)),
    }
}

/// The `N` bytes at `at`. The caller has checked the length.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// Writes `value` at `at`.
pub(crate) fn put<const N: usize>(into: &mut [u8], at: usize, value: [u8; N]) {
    into[at..at + N].copy_from_slice(&value);
}

/// Writes `value` as a varint to the front of `out` and returns its length.
#[inline]
pub(crate) fn put_varint(out: &mut [u8], mut value: u64) -> usize {
    let mut length = 0;
    while value >= 0x80 {
        out[length] = (value & 0x7f) as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    out[length] = value as u8;
    length + 1
}

pub(crate) fn push_varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; VARINT_BYTES_MAX];
    let length = put_varint(&mut bytes, value);
    out.extend_from_slice(&bytes[..length]);
}

#[cfg(test)]
mod tests;
