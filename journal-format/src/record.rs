//! Records and the plaintext of a group (section 5.2, JF-12). Bodies are opaque but for the journal's own kinds.
//!
//! `encoder` builds a plaintext, `reader` walks one without copying, `streams` turns ids into short references.

mod encoder;
mod reader;
mod streams;

pub use encoder::{Checkpoint, GroupEncoder, check_unit, unit_bytes};
pub use reader::GroupReader;
pub(crate) use streams::StreamTable;

use crate::error::{FormatError, Why};
use crate::journal_records::{
    Forget, KIND_FORGET, KIND_JOURNAL_MAX, KIND_RESTORED, KIND_UNFENCED, Restored, Unfenced,
};
use crate::limits::{RECORD_BYTES_MAX, TIME_MS_MAX};

/// What a record does to its stream, as bits. Only known bits can be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class(u8);

impl Class {
    pub const NONE: Self = Self(0);
    /// The first record of its stream.
    pub const OPENS: Self = Self(1);
    /// The last event of its stream.
    pub const CLOSES: Self = Self(2);
    /// A `forget` record; no other kind has it.
    pub const FORGETS: Self = Self(4);
    /// Carries an identity (key hash and fingerprint).
    pub const IDENTITY: Self = Self(8);

    const ALL: u8 = 15;

    pub const fn bits(self) -> u8 {
        self.0
    }

    /// `None` when an unknown bit is set.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits & !Self::ALL == 0 { Some(Self(bits)) } else { None }
    }

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Class {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

/// One record: the envelope and a borrowed body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// 1..=63 belong to the journal, of which 1..=3 exist; others are opaque.
    pub kind: u16,
    pub class: Class,
    pub stream: Option<[u8; 16]>,
    /// 0 = not an event.
    pub event_number: u64,
    /// Milliseconds since the epoch, at most [`TIME_MS_MAX`].
    pub time_ms: u64,
    pub logical_size: u64,
    /// At most [`RECORD_BYTES_MAX`].
    pub body: &'a [u8],
}

impl RecordRef<'_> {
    /// The rules of JF-12 for one record, wherever it stands; the same for writing and reading.
    ///
    /// # Errors
    /// The field that breaks one, at offset 0; an error inside a body of the journal's own.
    #[inline]
    pub fn check(&self) -> Result<(), FormatError> {
        if self.body.len() > RECORD_BYTES_MAX {
            return Err(Why::TooLong.of("body length", 0));
        }
        if self.time_ms > TIME_MS_MAX {
            return Err(Why::OutOfRange.of("time", 0));
        }
        if self.kind > KIND_JOURNAL_MAX && !self.class.contains(Class::FORGETS) {
            return Ok(());
        }
        self.check_journal_kind()
    }

    fn check_journal_kind(&self) -> Result<(), FormatError> {
        let forgets = self.class.contains(Class::FORGETS);
        if forgets != (self.kind == KIND_FORGET) || (forgets && self.class != Class::FORGETS) {
            return Err(Why::Mismatch.of("class", 0));
        }
        match self.kind {
            KIND_FORGET => Forget::ids(self.body).map(drop),
            KIND_RESTORED => Restored::decode(self.body).map(drop),
            KIND_UNFENCED => Unfenced::decode(self.body).map(drop),
            _ => Err(Why::OutOfRange.of("record kind", 0)),
        }
    }
}

#[cfg(test)]
mod tests;
