//! Summaries of ended segments (section 11): the header of the file, and the opened body. What a digest means is for
//! the journal's codec; nothing here is ever needed to read a segment.

mod body;

pub use body::{Mark, Offsets, OwnRecord, Piece, Pieces, SummaryReader, SummaryWriter};

use crate::checksum::crc32;
use crate::cursor::{array_at, check_length, check_zero, put, u16_at, u32_at, u64_at};
use crate::end::EndRecord;
use crate::error::{FormatError, Why};
use crate::limits::{BODY_ALIGN, END_RECORD_BYTES, SUMMARY_BODY_BYTES_MAX, SUMMARY_HEADER_BYTES};
use crate::version::{FORMAT_VERSION, SUITE, check_version};

const SUMMARY_MAGIC: [u8; 8] = *b"SEALOGIX";
const END_AT: usize = 56;
const SALT_AT: usize = 128;
const CHECK_AT: usize = 160;
const TAG_AT: usize = 192;
const ZERO_AT: usize = 208;
const CRC_AT: usize = 252;

/// The first 256 bytes of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryHeader {
    pub store_id: [u8; 16],
    /// Range of the segment: a log segment's number twice.
    pub first: u64,
    pub last: u64,
    /// 0 of a log segment.
    pub generation: u64,
    /// How the segment ends.
    pub end: EndRecord,
    /// Which digests the body holds; whoever made them numbers them.
    pub digest_version: u32,
    /// Of the body, padding included.
    pub body_length: u32,
    pub salt: [u8; 32],
    pub check: [u8; 32],
    pub tag: [u8; 16],
}

impl SummaryHeader {
    pub fn encode(&self) -> [u8; SUMMARY_HEADER_BYTES] {
        debug_assert_eq!(self.check_values(), Ok(()));
        let mut out = self.layout();
        put(&mut out, TAG_AT, self.tag);
        let crc = crc32(&out[..CRC_AT]);
        put(&mut out, CRC_AT, crc.to_le_bytes());
        out
    }

    /// Associated data of the body: the header with tag and CRC as zero (JF-21).
    pub fn context(&self) -> [u8; SUMMARY_HEADER_BYTES] {
        self.layout()
    }

    /// Reads exactly 256 bytes.
    ///
    /// # Errors
    /// In this order: length, CRC, magic, version, suite, zeros, values.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        check_length(bytes, SUMMARY_HEADER_BYTES, "summary header")?;
        if u32_at(bytes, CRC_AT) != crc32(&bytes[..CRC_AT]) {
            return Err(Why::Crc.of("summary crc", CRC_AT));
        }
        if bytes[..8] != SUMMARY_MAGIC {
            return Err(Why::Magic.of("magic", 0));
        }
        check_version(u16_at(bytes, 8), 8)?;
        let suite = u16_at(bytes, 12);
        if suite != SUITE {
            return Err(Why::Unsupported(suite).of("suite", 12));
        }
        check_zero(bytes, 14, 16, "summary header")?;
        check_zero(bytes, ZERO_AT, CRC_AT, "summary header")?;
        if usize::from(u16_at(bytes, 10)) != SUMMARY_HEADER_BYTES {
            return Err(Why::OutOfRange.of("header length", 10));
        }
        let end = EndRecord::decode(&bytes[END_AT..END_AT + END_RECORD_BYTES]);
        let header = Self {
            store_id: array_at(bytes, 16),
            first: u64_at(bytes, 32),
            last: u64_at(bytes, 40),
            generation: u64_at(bytes, 48),
            end: end.map_err(|error| error.shifted(END_AT))?,
            digest_version: u32_at(bytes, 120),
            body_length: u32_at(bytes, 124),
            salt: array_at(bytes, SALT_AT),
            check: array_at(bytes, CHECK_AT),
            tag: array_at(bytes, TAG_AT),
        };
        header.check_values()?;
        Ok(header)
    }

    fn check_values(&self) -> Result<(), FormatError> {
        if self.first == 0 || self.last < self.first {
            return Err(Why::OutOfRange.of("range", 32));
        }
        // A log segment has generation 0 and is a range of one; a compacted one counts from 1.
        if self.generation == 0 && self.first != self.last {
            return Err(Why::Mismatch.of("generation", 48));
        }
        if self.end.is_none() {
            return Err(Why::OutOfRange.of("end record", END_AT));
        }
        if self.body_length as usize > SUMMARY_BODY_BYTES_MAX {
            return Err(Why::TooLong.of("body length", 124));
        }
        if self.body_length == 0 || !(self.body_length as usize).is_multiple_of(BODY_ALIGN) {
            return Err(Why::OutOfRange.of("body length", 124));
        }
        Ok(())
    }

    fn layout(&self) -> [u8; SUMMARY_HEADER_BYTES] {
        let mut out = [0; SUMMARY_HEADER_BYTES];
        put(&mut out, 0, SUMMARY_MAGIC);
        put(&mut out, 8, FORMAT_VERSION.to_le_bytes());
        put(&mut out, 10, (SUMMARY_HEADER_BYTES as u16).to_le_bytes());
        put(&mut out, 12, SUITE.to_le_bytes());
        put(&mut out, 16, self.store_id);
        put(&mut out, 32, self.first.to_le_bytes());
        put(&mut out, 40, self.last.to_le_bytes());
        put(&mut out, 48, self.generation.to_le_bytes());
        put(&mut out, END_AT, self.end.encode());
        put(&mut out, 120, self.digest_version.to_le_bytes());
        put(&mut out, 124, self.body_length.to_le_bytes());
        put(&mut out, SALT_AT, self.salt);
        put(&mut out, CHECK_AT, self.check);
        out
    }
}

#[cfg(test)]
mod tests;
