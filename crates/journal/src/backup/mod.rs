//! Copies of a journal: taking one beside a running node, reading it as it is, and making a journal of it again
//! (`spec/backup.md`). What is damaged is the scan's verdict here as everywhere; nothing in this module judges frames.

mod ends;
mod fence;
mod files;
mod memory;
mod restore;
mod take;
mod view;

pub use fence::{Fence, Unfencing, unfence};
pub use files::discard_built;
pub use restore::{Restored, restore};
pub use take::{Backup, backup};
pub use view::BackupDisk;

pub(crate) use ends::Ends;
pub(crate) use fence::write_one;
pub(crate) use files::copy_exactly;
pub(crate) use memory::{MemoryFile, read_only, refuses_changes};
pub(crate) use restore::{begin, finish};
pub(crate) use take::writer_of;
