//! One slot of the file `head` (section 4, JF-2, JF-3). The MAC is bytes here; which slot counts is for the journal.

use crate::checksum::crc32;
use crate::cursor::{array_at, check_length, check_zero, put, u16_at, u32_at, u64_at};
use crate::error::{FormatError, Why};
use crate::limits::{HEAD_SEALED_BYTES, HEAD_SLOT_BYTES, HEAD_WRITE_BYTES, SEQUENCE_MAX};
use crate::version::{FORMAT_VERSION, check_version};

pub const HEAD_MAGIC: [u8; 8] = *b"SEALOGHD";

const CRC_AT: usize = 160;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadState {
    /// A writer holds the journal, or went without closing it.
    Open,
    Closed,
}

/// What one slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadSlot {
    /// From 1, one more with each rewrite; its parity chooses the slot.
    pub counter: u64,
    pub key_id: [u8; 16],
    pub store_id: [u8; 16],
    /// Zero while no segment was published.
    pub lineage: [u8; 16],
    pub epoch: u64,
    /// The newest published segment; 0 = none yet.
    pub segment: u64,
    /// Synced frames of that segment.
    pub frames: u64,
    pub last_sequence: u64,
    /// Chain value after that frame; for count 0 at the predecessor's end.
    pub chain: [u8; 16],
    pub state: HeadState,
}

impl HeadSlot {
    /// Bytes 0..128, which the MAC covers.
    pub fn encode_unsealed(&self) -> [u8; HEAD_SEALED_BYTES] {
        debug_assert_eq!(self.check(), Ok(()));
        let mut out = [0; HEAD_SEALED_BYTES];
        put(&mut out, 0, HEAD_MAGIC);
        put(&mut out, 8, FORMAT_VERSION.to_le_bytes());
        put(&mut out, 10, (HEAD_WRITE_BYTES as u16).to_le_bytes());
        put(&mut out, 16, self.counter.to_le_bytes());
        put(&mut out, 24, self.key_id);
        put(&mut out, 40, self.store_id);
        put(&mut out, 56, self.lineage);
        put(&mut out, 72, self.epoch.to_le_bytes());
        put(&mut out, 80, self.segment.to_le_bytes());
        put(&mut out, 88, self.frames.to_le_bytes());
        put(&mut out, 96, self.last_sequence.to_le_bytes());
        put(&mut out, 104, self.chain);
        out[120] = match self.state {
            HeadState::Open => 1,
            HeadState::Closed => 2,
        };
        out
    }

    /// The 512 bytes that one rewrite writes at [`slot_offset`]; the rest of the slot stays zero.
    pub fn encode(&self, mac: &[u8; 32]) -> [u8; HEAD_WRITE_BYTES] {
        let mut out = [0; HEAD_WRITE_BYTES];
        put(&mut out, 0, self.encode_unsealed());
        put(&mut out, HEAD_SEALED_BYTES, *mac);
        let crc = crc32(&out[..CRC_AT]);
        put(&mut out, CRC_AT, crc.to_le_bytes());
        out
    }

    /// Reads the slot that stands at file offset `offset` (0 or 4096): exactly 4096 bytes. Returns its MAC too; the
    /// caller compares store id and MAC, which end the tests of JF-2.
    ///
    /// # Errors
    /// CRC, magic, version, zeros, then the fields, in this order.
    pub fn decode(bytes: &[u8], offset: u64) -> Result<(Self, [u8; 32]), FormatError> {
        check_length(bytes, HEAD_SLOT_BYTES, "head slot")?;
        if u32_at(bytes, CRC_AT) != crc32(&bytes[..CRC_AT]) {
            return Err(Why::Crc.of("head crc", CRC_AT));
        }
        if bytes[..8] != HEAD_MAGIC {
            return Err(Why::Magic.of("magic", 0));
        }
        check_version(u16_at(bytes, 8), 8)?;
        for (from, to) in [(12, 16), (121, 128), (164, HEAD_SLOT_BYTES)] {
            check_zero(bytes, from, to, "head slot")?;
        }
        if usize::from(u16_at(bytes, 10)) != HEAD_WRITE_BYTES {
            return Err(Why::OutOfRange.of("slot length", 10));
        }
        let state = match bytes[120] {
            1 => HeadState::Open,
            2 => HeadState::Closed,
            _ => return Err(Why::OutOfRange.of("head state", 120)),
        };
        let slot = Self {
            counter: u64_at(bytes, 16),
            key_id: array_at(bytes, 24),
            store_id: array_at(bytes, 40),
            lineage: array_at(bytes, 56),
            epoch: u64_at(bytes, 72),
            segment: u64_at(bytes, 80),
            frames: u64_at(bytes, 88),
            last_sequence: u64_at(bytes, 96),
            chain: array_at(bytes, 104),
            state,
        };
        if slot_offset(slot.counter) != offset {
            return Err(Why::Mismatch.of("counter", 16));
        }
        slot.check()?;
        Ok((slot, array_at(bytes, HEAD_SEALED_BYTES)))
    }

    /// The rules between the fields: without a segment there is nothing behind it either.
    ///
    /// # Errors
    /// The field that breaks one.
    pub fn check(&self) -> Result<(), FormatError> {
        if self.counter == 0 {
            return Err(Why::OutOfRange.of("counter", 16));
        }
        if self.last_sequence > SEQUENCE_MAX {
            return Err(Why::OutOfRange.of("last sequence", 96));
        }
        if self.segment > 0 {
            return Ok(());
        }
        if self.frames > 0 {
            return Err(Why::NotZero.of("frame count", 88));
        }
        if self.last_sequence > 0 {
            return Err(Why::NotZero.of("last sequence", 96));
        }
        if self.chain != [0; 16] {
            return Err(Why::NotZero.of("chain value", 104));
        }
        Ok(())
    }
}

/// Where the slot with this counter lives: even counters in slot A at 0, odd ones in slot B at 4096.
pub const fn slot_offset(counter: u64) -> u64 {
    (counter & 1) * HEAD_SLOT_BYTES as u64
}

#[cfg(test)]
mod tests;
