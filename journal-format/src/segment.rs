//! The segment header (section 5, JF-4 to JF-6). Knows the layout and what is covered by what; the wrapped key, the
//! key check and the tag are bytes to it.

use crate::checksum::crc32;
use crate::cursor::{array_at, check_least, check_length, check_zero, put, u16_at, u32_at, u64_at};
use crate::end::EndRecord;
use crate::error::{FormatError, Why};
use crate::limits::{FIXED_FIELDS_BYTES, FIXED_PART_BYTES, HEADER_BYTES};
use crate::version::{FORMAT_VERSION, RECORD_CODEC, SUITE, check_version};

pub const SEGMENT_MAGIC: [u8; 8] = *b"SEALOGSG";

const FIXED_CRC_AT: usize = 60;
const WHOLE_CRC_AT: usize = HEADER_BYTES - 4;
const SEALED_AT: usize = 168;
const TAG_AT: usize = 200;
const CHECK_AT: usize = 216;
/// Magic word of the purpose under which a segment's data key is wrapped.
const PURPOSE: [u8; 7] = *b"segment";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Written by a writer, frame after frame.
    Log,
    /// Written whole by compaction; replaces a range.
    Compacted,
}

/// How the segment's data key is wrapped under its root key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrapFields {
    pub salt: [u8; 32],
    pub sealed: [u8; 32],
    pub tag: [u8; 16],
    pub check: [u8; 32],
}

/// The first 64 bytes, which keep their place in every version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedPart {
    pub store_id: [u8; 16],
    pub number: u64,
}

/// One header; both copies in a file are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub store_id: [u8; 16],
    /// From 1; of a compacted segment the first of its range.
    pub number: u64,
    /// [`SUITE`].
    pub suite: u16,
    /// [`RECORD_CODEC`].
    pub codec: u16,
    pub kind: SegmentKind,
    /// Lineage id of the writer, never zero.
    pub lineage: [u8; 16],
    /// Lineage id of its predecessor; zero = none.
    pub predecessor_lineage: [u8; 16],
    /// From 1.
    pub epoch: u64,
    /// Milliseconds since the epoch.
    pub created_ms: u64,
    /// Id of the root key.
    pub key_id: [u8; 16],
    pub wrap: WrapFields,
    /// Log: = `number`.
    pub range_last: u64,
    /// Log: 0; compacted: from 1.
    pub generation: u64,
    /// Compacted: the link of the first source. Log: none.
    pub link_in: EndRecord,
    /// Compacted: the end of the last source. Log: none.
    pub link_out: EndRecord,
}

impl FixedPart {
    /// Reads the first 64 bytes of `bytes`; tests CRC, magic and version, in this order (JF-4).
    ///
    /// # Errors
    /// `NewerVersion` only when CRC and magic hold, so it is no damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        check_least(bytes, FIXED_PART_BYTES, "segment header")?;
        if u32_at(bytes, FIXED_CRC_AT) != crc32(&bytes[..FIXED_CRC_AT]) {
            return Err(Why::Crc.of("fixed crc", FIXED_CRC_AT));
        }
        if bytes[..8] != SEGMENT_MAGIC {
            return Err(Why::Magic.of("magic", 0));
        }
        check_version(u16_at(bytes, 8), 8)?;
        Ok(Self { store_id: array_at(bytes, 16), number: u64_at(bytes, 32) })
    }
}

impl SegmentHeader {
    /// One copy of the header, both CRCs in place.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        debug_assert_eq!(self.check(), Ok(()));
        let mut out = self.layout();
        let crc = crc32(&out[..WHOLE_CRC_AT]);
        put(&mut out, WHOLE_CRC_AT, crc.to_le_bytes());
        out
    }

    /// Associated data of the wrap: the header with bytes 168..216 and 4092..4096 as zero (JF-5). The key check is in
    /// it, the wrapped key and its tag are not: they may still be unset.
    pub fn wrap_context(&self) -> [u8; HEADER_BYTES] {
        let mut out = self.layout();
        out[SEALED_AT..CHECK_AT].fill(0);
        out
    }

    /// What is wrapped (JF-5): `segment`, store id, format version, suite.
    pub fn wrap_purpose(&self) -> [u8; 27] {
        let mut out = [0; 27];
        put(&mut out, 0, PURPOSE);
        put(&mut out, 7, self.store_id);
        put(&mut out, 23, FORMAT_VERSION.to_le_bytes());
        put(&mut out, 25, self.suite.to_le_bytes());
        out
    }

    /// The fields before the wrap, which enter the derivation of the data key (JF-5).
    pub fn fixed_fields(&self) -> [u8; FIXED_FIELDS_BYTES] {
        array_at(&self.layout(), 0)
    }

    /// Reads one copy, exactly 4096 bytes, in the order of JF-4 without its tests of store id and key id.
    ///
    /// # Errors
    /// The first test that fails; `NewerVersion` and `Unsupported` are no damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::decode_with(bytes, |_| true, |_| true)
    }

    /// Reads one copy in the order of JF-4, up to the tests that need a key: a store id or key id that its function
    /// does not know is a `Mismatch` of the field `store id` or `key id`, before the CRC of the whole is looked at.
    ///
    /// # Errors
    /// The first test that fails.
    pub fn decode_with(
        bytes: &[u8],
        knows_store: impl FnOnce(&[u8; 16]) -> bool,
        knows_key: impl FnOnce(&[u8; 16]) -> bool,
    ) -> Result<Self, FormatError> {
        let fixed = FixedPart::decode(bytes)?;
        check_length(bytes, HEADER_BYTES, "segment header")?;
        if !knows_store(&fixed.store_id) {
            return Err(Why::Mismatch.of("store id", 16));
        }
        let key_id = array_at(bytes, 120);
        if !knows_key(&key_id) {
            return Err(Why::Mismatch.of("key id", 120));
        }
        let suite = u16_at(bytes, 64);
        if suite != SUITE {
            return Err(Why::Unsupported(suite).of("suite", 64));
        }
        if u32_at(bytes, WHOLE_CRC_AT) != crc32(&bytes[..WHOLE_CRC_AT]) {
            return Err(Why::Crc.of("header crc", WHOLE_CRC_AT));
        }
        for (from, to) in [(12, 16), (40, 60), (69, 72), (400, WHOLE_CRC_AT)] {
            check_zero(bytes, from, to, "segment header")?;
        }
        let header = Self::fields(bytes, fixed, suite)?;
        header.check()?;
        Ok(header)
    }

    /// The fields behind the CRCs; `bytes` is a whole header.
    fn fields(bytes: &[u8], fixed: FixedPart, suite: u16) -> Result<Self, FormatError> {
        if usize::from(u16_at(bytes, 10)) != HEADER_BYTES {
            return Err(Why::OutOfRange.of("header length", 10));
        }
        let kind = match bytes[68] {
            1 => SegmentKind::Log,
            2 => SegmentKind::Compacted,
            _ => return Err(Why::OutOfRange.of("segment kind", 68)),
        };
        if u64_at(bytes, 248) != fixed.number {
            return Err(Why::Mismatch.of("range first", 248));
        }
        Ok(Self {
            store_id: fixed.store_id,
            number: fixed.number,
            suite,
            codec: u16_at(bytes, 66),
            kind,
            lineage: array_at(bytes, 72),
            predecessor_lineage: array_at(bytes, 88),
            epoch: u64_at(bytes, 104),
            created_ms: u64_at(bytes, 112),
            key_id: array_at(bytes, 120),
            wrap: WrapFields {
                salt: array_at(bytes, 136),
                sealed: array_at(bytes, SEALED_AT),
                tag: array_at(bytes, TAG_AT),
                check: array_at(bytes, CHECK_AT),
            },
            range_last: u64_at(bytes, 256),
            generation: u64_at(bytes, 264),
            link_in: EndRecord::decode(&bytes[272..336]).map_err(|error| error.shifted(272))?,
            link_out: EndRecord::decode(&bytes[336..400]).map_err(|error| error.shifted(336))?,
        })
    }

    /// The rules between the fields.
    ///
    /// # Errors
    /// The field that breaks one.
    pub fn check(&self) -> Result<(), FormatError> {
        if self.number == 0 {
            return Err(Why::OutOfRange.of("segment number", 32));
        }
        if self.suite != SUITE {
            return Err(Why::Unsupported(self.suite).of("suite", 64));
        }
        if self.codec != RECORD_CODEC {
            return Err(Why::Unsupported(self.codec).of("record codec", 66));
        }
        if self.lineage == [0; 16] {
            return Err(Why::OutOfRange.of("lineage id", 72));
        }
        if self.epoch == 0 {
            return Err(Why::OutOfRange.of("epoch", 104));
        }
        self.link_in.check().map_err(|error| error.shifted(272))?;
        self.link_out.check().map_err(|error| error.shifted(336))?;
        match self.kind {
            SegmentKind::Log => self.check_log(),
            SegmentKind::Compacted => self.check_compacted(),
        }
    }

    fn check_log(&self) -> Result<(), FormatError> {
        if self.range_last != self.number {
            return Err(Why::Mismatch.of("range last", 256));
        }
        if self.generation != 0 {
            return Err(Why::NotZero.of("generation", 264));
        }
        if !self.link_in.is_none() {
            return Err(Why::NotZero.of("link-in", 272));
        }
        if !self.link_out.is_none() {
            return Err(Why::NotZero.of("link-out", 336));
        }
        Ok(())
    }

    fn check_compacted(&self) -> Result<(), FormatError> {
        if self.range_last < self.number {
            return Err(Why::OutOfRange.of("range last", 256));
        }
        if self.generation == 0 {
            return Err(Why::OutOfRange.of("generation", 264));
        }
        if self.link_in.segment >= self.number {
            return Err(Why::Mismatch.of("link-in", 272));
        }
        if !(self.number..=self.range_last).contains(&self.link_out.segment) {
            return Err(Why::Mismatch.of("link-out", 336));
        }
        Ok(())
    }

    /// Everything but the CRC of the whole.
    fn layout(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        put(&mut out, 0, SEGMENT_MAGIC);
        put(&mut out, 8, FORMAT_VERSION.to_le_bytes());
        put(&mut out, 10, (HEADER_BYTES as u16).to_le_bytes());
        put(&mut out, 16, self.store_id);
        put(&mut out, 32, self.number.to_le_bytes());
        let crc = crc32(&out[..FIXED_CRC_AT]);
        put(&mut out, FIXED_CRC_AT, crc.to_le_bytes());
        put(&mut out, 64, self.suite.to_le_bytes());
        put(&mut out, 66, self.codec.to_le_bytes());
        out[68] = match self.kind {
            SegmentKind::Log => 1,
            SegmentKind::Compacted => 2,
        };
        put(&mut out, 72, self.lineage);
        put(&mut out, 88, self.predecessor_lineage);
        put(&mut out, 104, self.epoch.to_le_bytes());
        put(&mut out, 112, self.created_ms.to_le_bytes());
        put(&mut out, 120, self.key_id);
        put(&mut out, 136, self.wrap.salt);
        put(&mut out, SEALED_AT, self.wrap.sealed);
        put(&mut out, TAG_AT, self.wrap.tag);
        put(&mut out, CHECK_AT, self.wrap.check);
        put(&mut out, 248, self.number.to_le_bytes());
        put(&mut out, 256, self.range_last.to_le_bytes());
        put(&mut out, 264, self.generation.to_le_bytes());
        put(&mut out, 272, self.link_in.encode());
        put(&mut out, 336, self.link_out.encode());
        out
    }
}

#[cfg(test)]
mod tests;
