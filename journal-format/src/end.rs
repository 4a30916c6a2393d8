//! The end record: how a segment ends. Stands in link and seal frames, in compacted headers, in `sources` and in the
//! `restored` record. Pure layout; whether it is true is for the journal to judge.

use crate::cursor::{array_at, check_length, check_zero, put, u64_at};
use crate::error::{FormatError, Why};
use crate::limits::{DATA_START, END_RECORD_BYTES, FRAME_ALIGN, FRAME_BYTES_MIN, SEQUENCE_MAX};

/// How a segment came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// There is no segment.
    #[default]
    None,
    /// Its writer added a seal.
    Sealed,
    /// A recovery decided where it ends.
    CutAtRecovery,
}

/// 64 bytes (section 5, "End record").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndRecord {
    /// Segment number; 0 = there is no predecessor.
    pub segment: u64,
    /// Frames before the end.
    pub frames: u64,
    /// File offset behind the last of them.
    pub end_offset: u64,
    /// The last sequence that is durable there.
    pub last_sequence: u64,
    /// Chain value of the last frame.
    pub chain: [u8; 16],
    pub how: How,
}

impl EndRecord {
    /// "There is no predecessor": 64 zeros.
    pub const NONE: Self =
        Self { segment: 0, frames: 0, end_offset: 0, last_sequence: 0, chain: [0; 16], how: How::None };

    pub const fn is_none(&self) -> bool {
        self.segment == 0
    }

    /// The record's 64 bytes.
    pub fn encode(&self) -> [u8; END_RECORD_BYTES] {
        debug_assert_eq!(self.check(), Ok(()));
        let mut out = [0; END_RECORD_BYTES];
        put(&mut out, 0, self.segment.to_le_bytes());
        put(&mut out, 8, self.frames.to_le_bytes());
        put(&mut out, 16, self.end_offset.to_le_bytes());
        put(&mut out, 24, self.last_sequence.to_le_bytes());
        put(&mut out, 32, self.chain);
        out[48] = match self.how {
            How::None => 0,
            How::Sealed => 1,
            How::CutAtRecovery => 2,
        };
        out
    }

    /// Reads exactly 64 bytes.
    ///
    /// # Errors
    /// Wrong length, bytes that must be zero, or values that no segment can have.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        check_length(bytes, END_RECORD_BYTES, "end record")?;
        check_zero(bytes, 49, 64, "end record")?;
        let how = match bytes[48] {
            0 => How::None,
            1 => How::Sealed,
            2 => How::CutAtRecovery,
            _ => return Err(Why::OutOfRange.of("how", 48)),
        };
        let end = Self {
            segment: u64_at(bytes, 0),
            frames: u64_at(bytes, 8),
            end_offset: u64_at(bytes, 16),
            last_sequence: u64_at(bytes, 24),
            chain: array_at(bytes, 32),
            how,
        };
        end.check()?;
        Ok(end)
    }

    /// The rules between the fields: "none" is all zero; an offset can hold its frames.
    ///
    /// # Errors
    /// The field that breaks one.
    pub fn check(&self) -> Result<(), FormatError> {
        if self.is_none() != (self.how == How::None) {
            return Err(Why::Mismatch.of("how", 48));
        }
        if self.is_none() {
            return if *self == Self::NONE { Ok(()) } else { Err(Why::NotZero.of("end record", 8)) };
        }
        if self.last_sequence > SEQUENCE_MAX {
            return Err(Why::OutOfRange.of("last sequence", 24));
        }
        if self.end_offset < DATA_START || !self.end_offset.is_multiple_of(FRAME_ALIGN) {
            return Err(Why::OutOfRange.of("end offset", 16));
        }
        if self.frames > (self.end_offset - DATA_START) / FRAME_BYTES_MIN {
            return Err(Why::Mismatch.of("frame count", 8));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
