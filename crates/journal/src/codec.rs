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

    /// What the owner wants to know at a later open of a stream's records within one segment without reading them:
    /// handed back through [`crate::Replay`]. At most [`DIGEST_BYTES_MAX`].
    fn digest(&self, stream: StreamId, records: &[Record]) -> Vec<u8>;
}

/// Longest digest, in bytes.
pub const DIGEST_BYTES_MAX: usize = 1024;

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

    fn digest(&self, _stream: StreamId, _records: &[Record]) -> Vec<u8> {
        Vec::new()
    }
}
