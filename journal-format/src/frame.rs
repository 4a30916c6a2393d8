//! The frame header (section 5.1). Tags are bytes here; what index, sequence and previous chain value must be is for
//! the journal to judge, which knows the frames before.

use crate::checksum::crc32;
use crate::cursor::{array_at, check_least, check_zero, put, u32_at, u64_at};
use crate::error::{FormatError, Why};
use crate::limits::{
    BODY_ALIGN, BODY_BYTES_MAX, BODY_CONTEXT_BYTES, END_RECORD_BYTES, FRAME_HEADER_BYTES, FRAME_TAGGED_BYTES,
    RECORDS_MAX,
};

pub const FRAME_MAGIC: [u8; 4] = [0x53, 0x4c, 0xf7, 0x01];

const CRC_AT: usize = FRAME_HEADER_BYTES - 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Records of commit units.
    Group,
    /// Frame 0 of a log segment: the predecessor's end.
    Link,
    /// The last frame: this segment's end before it.
    Seal,
    /// Finished streams in columns; compacted segments only.
    Folded,
    /// Frame 0 of a compacted segment: what it replaces.
    Sources,
}

impl FrameKind {
    /// The kind's number on disk.
    pub const fn number(self) -> u8 {
        match self {
            Self::Group => 1,
            Self::Link => 2,
            Self::Seal => 3,
            Self::Folded => 4,
            Self::Sources => 5,
        }
    }

    const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Group),
            2 => Some(Self::Link),
            3 => Some(Self::Seal),
            4 => Some(Self::Folded),
            5 => Some(Self::Sources),
            _ => None,
        }
    }

    const fn holds_records(self) -> bool {
        match self {
            Self::Group | Self::Folded => true,
            Self::Link | Self::Seal | Self::Sources => false,
        }
    }

    const fn is_first(self) -> bool {
        match self {
            Self::Link | Self::Sources => true,
            Self::Group | Self::Seal | Self::Folded => false,
        }
    }

    const fn holds_one_end_record(self) -> bool {
        match self {
            Self::Link | Self::Seal => true,
            Self::Group | Self::Folded | Self::Sources => false,
        }
    }
}

/// 96 bytes before each body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the body as stored; a multiple of 64.
    pub body_length: u32,
    /// From 0; also the body's nonce.
    pub index: u32,
    pub kind: FrameKind,
    /// Sequence of the first record; without records the next sequence.
    pub first_sequence: u64,
    pub record_count: u32,
    /// The last sequence that was durable before this frame was written.
    pub synced_through: u64,
    pub previous_chain: [u8; 16],
    /// CRC-32 of the body as stored.
    pub body_crc: u32,
    pub body_tag: [u8; 16],
    /// HMAC-SHA256 of [`Self::tagged_bytes`] under the header key, first 16 bytes.
    pub header_tag: [u8; 16],
}

impl FrameHeader {
    /// The whole header with its CRC.
    pub fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        debug_assert_eq!(self.check(), Ok(()));
        let mut out = [0; FRAME_HEADER_BYTES];
        put(&mut out, 0, self.tagged_bytes());
        put(&mut out, 72, self.header_tag);
        let crc = crc32(&out[..CRC_AT]);
        put(&mut out, CRC_AT, crc.to_le_bytes());
        out
    }

    /// Bytes 0..72: what the header tag is computed over. The tag itself may still be unset.
    pub fn tagged_bytes(&self) -> [u8; FRAME_TAGGED_BYTES] {
        let mut out = [0; FRAME_TAGGED_BYTES];
        put(&mut out, 0, FRAME_MAGIC);
        put(&mut out, 4, self.body_length.to_le_bytes());
        put(&mut out, 8, self.index.to_le_bytes());
        out[12] = self.kind.number();
        put(&mut out, 16, self.first_sequence.to_le_bytes());
        put(&mut out, 24, self.record_count.to_le_bytes());
        put(&mut out, 28, self.body_crc.to_le_bytes());
        put(&mut out, 32, self.synced_through.to_le_bytes());
        put(&mut out, 40, self.previous_chain);
        put(&mut out, 56, self.body_tag);
        out
    }

    /// Associated data of the body (JF-7): store id, segment number, index, kind, flags, first sequence, record
    /// count, body length. CRC, tags, chain and synced-through may still be unset.
    pub fn body_context(&self, store_id: &[u8; 16], segment: u64) -> [u8; BODY_CONTEXT_BYTES] {
        let mut out = [0; BODY_CONTEXT_BYTES];
        put(&mut out, 0, *store_id);
        put(&mut out, 16, segment.to_le_bytes());
        put(&mut out, 24, self.index.to_le_bytes());
        out[28] = self.kind.number();
        // Byte 29 is the flags, zero in this version.
        put(&mut out, 30, self.first_sequence.to_le_bytes());
        put(&mut out, 38, self.record_count.to_le_bytes());
        put(&mut out, 42, self.body_length.to_le_bytes());
        out
    }

    /// Reads the first 96 bytes of `bytes`. Any error but `Short`, `Magic` and `Crc` means that magic and CRC hold:
    /// for the decision table such bytes are a header that is forged, foreign or wrong (row 7), never a torn one.
    ///
    /// # Errors
    /// Magic, CRC, zeros, kind, then the limits of JF-11 and the rules of JF-9, in this order.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        check_least(bytes, FRAME_HEADER_BYTES, "frame header")?;
        if bytes[..4] != FRAME_MAGIC {
            return Err(Why::Magic.of("frame magic", 0));
        }
        if u32_at(bytes, CRC_AT) != crc32(&bytes[..CRC_AT]) {
            return Err(Why::Crc.of("frame header crc", CRC_AT));
        }
        check_zero(bytes, 13, 16, "flags")?;
        check_zero(bytes, 88, CRC_AT, "frame header")?;
        let Some(kind) = FrameKind::from_number(bytes[12]) else {
            return Err(Why::OutOfRange.of("frame kind", 12));
        };
        let header = Self {
            body_length: u32_at(bytes, 4),
            index: u32_at(bytes, 8),
            kind,
            first_sequence: u64_at(bytes, 16),
            record_count: u32_at(bytes, 24),
            synced_through: u64_at(bytes, 32),
            previous_chain: array_at(bytes, 40),
            body_crc: u32_at(bytes, 28),
            body_tag: array_at(bytes, 56),
            header_tag: array_at(bytes, 72),
        };
        header.check()?;
        Ok(header)
    }

    /// Limits and the rules between the fields.
    ///
    /// # Errors
    /// The field that breaks one.
    pub fn check(&self) -> Result<(), FormatError> {
        let length = self.body_length as usize;
        if length > BODY_BYTES_MAX {
            return Err(Why::TooLong.of("body length", 4));
        }
        if length == 0 || !length.is_multiple_of(BODY_ALIGN) {
            return Err(Why::OutOfRange.of("body length", 4));
        }
        if self.record_count > RECORDS_MAX {
            return Err(Why::TooLong.of("record count", 24));
        }
        if self.first_sequence == 0 || self.first_sequence.checked_add(u64::from(self.record_count)).is_none()
        {
            return Err(Why::OutOfRange.of("first sequence", 16));
        }
        if (self.index == 0) != self.kind.is_first() {
            return Err(Why::Mismatch.of("frame index", 8));
        }
        if (self.record_count > 0) != self.kind.holds_records() {
            return Err(Why::Mismatch.of("record count", 24));
        }
        if self.kind.holds_one_end_record() && length != END_RECORD_BYTES {
            return Err(Why::Mismatch.of("body length", 4));
        }
        Ok(())
    }

    /// JF-10, for log segments: synced-through is first sequence - 1.
    ///
    /// # Errors
    /// `Mismatch` of `synced through`.
    pub fn check_synced_through(&self) -> Result<(), FormatError> {
        if self.first_sequence.checked_sub(1) == Some(self.synced_through) {
            Ok(())
        } else {
            Err(Why::Mismatch.of("synced through", 32))
        }
    }

    /// The sequence behind this frame's last record; without records its own first sequence.
    pub fn next_sequence(&self) -> u64 {
        self.first_sequence + u64::from(self.record_count)
    }

    /// Bytes of the whole frame, header and body.
    pub fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.body_length)
    }
}

/// Bytes 0..72 of an encoded header, as the header tag covers them.
pub fn tagged_part(header: &[u8; FRAME_HEADER_BYTES]) -> &[u8; FRAME_TAGGED_BYTES] {
    header.first_chunk().expect("96 bytes hold 72")
}

/// The header tag of an encoded header: to be compared before anything else of it is believed.
pub fn header_tag(header: &[u8; FRAME_HEADER_BYTES]) -> [u8; 16] {
    array_at(header, FRAME_TAGGED_BYTES)
}

/// What a frame's chain value is the SHA-256 of, cut to 16 bytes (JF-8).
pub fn chain_input(previous: &[u8; 16], header: &[u8; FRAME_HEADER_BYTES]) -> [u8; 16 + FRAME_HEADER_BYTES] {
    let mut out = [0; 16 + FRAME_HEADER_BYTES];
    put(&mut out, 0, *previous);
    put(&mut out, 16, *header);
    out
}

/// Whether magic and CRC of a header stand at the front of `bytes`: the cheap test of a scan that resynchronises.
/// The magic is compared first, so that almost every place costs one comparison.
#[inline]
pub fn looks_like_header(bytes: &[u8]) -> bool {
    bytes.starts_with(&FRAME_MAGIC)
        && bytes.len() >= FRAME_HEADER_BYTES
        && u32_at(bytes, CRC_AT) == crc32(&bytes[..CRC_AT])
}

#[cfg(test)]
mod tests;
