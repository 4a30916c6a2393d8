//! The bodies of the journal's own records, kinds 1..=63 (JF-12). All other kinds are opaque here.

use crate::cursor::{Cursor, array_at, check_length, check_zero, push_varint, put, u64_at};
use crate::end::EndRecord;
use crate::error::{FormatError, Why};
use crate::limits::{END_RECORD_BYTES, RECORD_BYTES_MAX, VARINT_BYTES_MAX};

/// Names streams that are forgotten from here on.
pub const KIND_FORGET: u16 = 1;
/// This journal was restored from a copy.
pub const KIND_RESTORED: u16 = 2;
/// The fence that a restore set up is gone.
pub const KIND_UNFENCED: u16 = 3;
/// Kinds up to here belong to the journal.
pub const KIND_JOURNAL_MAX: u16 = 63;

const RESTORED_BYTES: usize = END_RECORD_BYTES + 16;
const STREAM_BYTES: usize = 16;

/// The body of `forget`: a varint count, then that many stream ids, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forget {
    pub streams: Vec<[u8; 16]>,
}

impl Forget {
    /// How many streams one record can name.
    pub const STREAMS_MAX: usize = (RECORD_BYTES_MAX - VARINT_BYTES_MAX) / STREAM_BYTES;

    /// # Errors
    /// `TooLong` above [`Self::STREAMS_MAX`].
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        if self.streams.len() > Self::STREAMS_MAX {
            return Err(Why::TooLong.of("forget count", 0));
        }
        let mut out = Vec::with_capacity(VARINT_BYTES_MAX + self.streams.len() * STREAM_BYTES);
        push_varint(&mut out, self.streams.len() as u64);
        out.extend(self.streams.iter().flatten());
        Ok(out)
    }

    /// # Errors
    /// A count that is not exactly what follows, or above [`Self::STREAMS_MAX`].
    pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
        Ok(Self { streams: Self::ids(body)?.collect() })
    }

    /// The ids without an allocation.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn ids(body: &[u8]) -> Result<impl ExactSizeIterator<Item = [u8; 16]> + '_, FormatError> {
        let mut cursor = Cursor::new(body);
        let count = cursor.count(STREAM_BYTES, "forget count")?;
        if count > Self::STREAMS_MAX {
            return Err(Why::TooLong.of("forget count", 0));
        }
        let ids = cursor.take(count * STREAM_BYTES, "forget streams")?;
        cursor.end("forget")?;
        Ok(ids.chunks_exact(STREAM_BYTES).map(|id| array_at(id, 0)))
    }
}

/// The body of `restored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The end that the copy's head named.
    pub from: EndRecord,
    /// When it was restored, milliseconds since the epoch.
    pub restored_ms: u64,
    pub fenced: bool,
}

impl Restored {
    pub fn encode(&self) -> [u8; RESTORED_BYTES] {
        let mut out = [0; RESTORED_BYTES];
        put(&mut out, 0, self.from.encode());
        put(&mut out, 64, self.restored_ms.to_le_bytes());
        out[72] = u8::from(self.fenced);
        out
    }

    /// # Errors
    /// Wrong length, a bad end record, a flag that is neither 0 nor 1, bytes that must be zero.
    pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
        check_length(body, RESTORED_BYTES, "restored")?;
        check_zero(body, 73, RESTORED_BYTES, "restored")?;
        let fenced = match body[72] {
            0 => false,
            1 => true,
            _ => return Err(Why::OutOfRange.of("fenced", 72)),
        };
        Ok(Self {
            from: EndRecord::decode(&body[..END_RECORD_BYTES])?,
            restored_ms: u64_at(body, 64),
            fenced,
        })
    }
}

/// The body of `unfenced`: empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfenced;

impl Unfenced {
    pub const fn encode(self) -> [u8; 0] {
        []
    }

    /// # Errors
    /// `Trailing` when there is anything.
    pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
        check_length(body, 0, "unfenced")?;
        Ok(Self)
    }
}

#[cfg(test)]
mod tests;
