//! The bytes of the Sealog journal, format 1: a pure codec.
//!
//! The normative text is `spec/journal.md`; clause ids (JF-1 ...) in this crate refer to it. This crate does no I/O,
//! holds no keys, computes no tag, MAC or SHA-256 (they come in as bytes or as a function), reads no clock, and allocates
//! nothing before a length was checked against its limit and against the bytes that are there.
//!
//! Decoders accept exactly what the encoders produce: each value has one spelling. Encoders of fixed layouts take
//! values that satisfy their `check`; they assert it in debug builds.

pub mod checksum;
pub mod compacted;
mod cursor;
pub mod end;
pub mod error;
pub mod frame;
pub mod head;
pub mod journal_records;
pub mod limits;
pub mod manifest;
pub mod names;
pub mod record;
pub mod segment;
pub mod store;
pub mod summary;
pub mod version;

pub use end::{EndRecord, How};
pub use error::{FormatError, Why};
pub use frame::{FrameHeader, FrameKind};
pub use head::{HeadSlot, HeadState};
pub use record::{Checkpoint, Class, GroupEncoder, GroupReader, RecordRef};
pub use segment::{FixedPart, SegmentHeader, SegmentKind, WrapFields};
pub use store::StoreFile;
pub use summary::SummaryHeader;
