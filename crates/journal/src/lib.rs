//! The sealed journal: one writer, a durable sequence of records, readers that never change a byte.
//!
//! Bytes are `sealog-journal-format`'s, keys are `sealog-seal`'s, files are `sealog-disk`'s; what is decided here is
//! the order of writes and syncs, and what a directory means after a crash. The normative text is
//! `spec/journal.md`. Bodies of records are opaque: this crate knows streams, classes, times and sizes.

mod anchor;
mod audit;
mod background;
mod backup;
mod cache;
mod codec;
mod compact;
mod completion;
mod config;
mod counters;
mod create;
mod error;
mod folding;
mod head;
mod index;
mod journal;
mod keyring_files;
mod lock;
mod read_ahead;
mod reader;
mod record;
mod recovery;
mod rekey;
mod repair;
mod scrub;
mod segment;
mod shared;
mod slots;
mod store;
mod summary;
mod window;
mod writer;

pub use anchor::{Anchor, Anchoring, Standing};
pub use audit::{Audit, HeadFacts, SlotFacts, audit};
pub use backup::{Backup, BackupDisk, Fence, Restored, Unfencing, backup, discard_built, restore, unfence};
pub use codec::{Codec, DIGEST_BYTES_MAX, NotFolded, Opaque};
pub use compact::offline::{CompactionPlan, CompactionTotals, Progress, SegmentPlan, plan_compaction};
pub use completion::{Dispatcher, Ticket};
pub use config::{Config, Tuning};
pub use counters::{Counters, HistogramView};
pub use create::{Contents, Create, look};
pub use error::{JournalError, Place, Result};
pub use index::StreamFacts;
pub use journal::{Journal, RecoveryReport, Refusal, SET_ASIDE, Usage};
pub use reader::{SequenceReader, StreamReader};
pub use record::{Class, Ignore, NewRecord, Record, Replay, StreamDigest, StreamId, Unit};
pub use recovery::apply::Repairs;
pub use recovery::findings::{FrameView, Gap, Part, Parts, Problem, SegmentFacts, Sink, TornTail, Unchecked};
pub use rekey::{
    Imported, KeyFacts, KeyringRefusal, Rekey, Rekeyed, RootFacts, RootUse, export_keyring, import_keyring,
    key_facts,
};
pub use repair::{Loss, Repaired, repair, salvage_view};
pub use shared::Health;
pub use slots::{Slab, SlotTable};
pub use store::{KeyringCopy, examine};
pub use writer::core::Turn;
pub use writer::queue::Admission;

#[cfg(test)]
mod tests;
