//! What the journal asks of whoever understands the bodies: to fold finished streams for compaction, and to digest a
//! stream's records for a summary. The journal itself never looks into a body.

use std::fmt;

use crate::record::{Record, StreamId};

/// Pure functions over the bodies of records. The same codec must be given to every open of one journal: what it
/// folded only it can unfold.
pub trait Codec: Send + Sync + fmt::Debug {
    /// The records of one stream within one compacted segment, in sequence order, as bytes of the codec's own.
    /// `None`: they are kept as they are. What is folded must unfold to exactly the same records.
    fn fold(&self, stream: StreamId, records: &[Record]) -> Option<Vec<u8>>;

    /// The records that [`Codec::fold`] was given; `first_sequence` is that of the first one.
    ///
    /// # Errors
    /// The bytes are not what `fold` makes. Bounded: never more memory than a small multiple of `bytes`.
    fn unfold(&self, stream: StreamId, first_sequence: u64, bytes: &[u8]) -> Result<Vec<Record>, NotFolded>;

    /// What the owner wants to know at a later open of a run of one stream's records without reading them, one record
    /// after the other: `earlier` is the digest of those before this one, empty for the first. `newest_ms` is the newest
    /// time among all records of the segment up to this one. Handed back through [`crate::Replay`]. At most
    /// [`DIGEST_BYTES_MAX`]; `None`: of this segment no summary is made.
    fn digest(&self, earlier: &[u8], record: &Record, newest_ms: u64) -> Option<Vec<u8>>;

    /// Whether a record without an event number is a unit of its own, by its kind; else it is one with the event behind
    /// it, and says nothing without that.
    fn stands_alone(&self, _kind: u16) -> bool {
        false
    }

    /// Changes with what [`Codec::digest`] makes: digests of another version are not handed back.
    fn digest_version(&self) -> u32 {
        0
    }
}

pub use sealog_journal_format::limits::DIGEST_BYTES_MAX;

/// Bytes that no fold makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a folded stream does not read back")]
pub struct NotFolded;

/// Knows nothing: folds no stream, digests nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opaque;

impl Codec for Opaque {
    fn fold(&self, _stream: StreamId, _records: &[Record]) -> Option<Vec<u8>> {
        None
    }

    fn unfold(
        &self,
        _stream: StreamId,
        _first_sequence: u64,
        _bytes: &[u8],
    ) -> Result<Vec<Record>, NotFolded> {
        Err(NotFolded)
    }

    fn digest(&self, _earlier: &[u8], _record: &Record, _newest_ms: u64) -> Option<Vec<u8>> {
        Some(Vec::new())
    }
}
