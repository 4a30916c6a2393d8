//! What the journal asks of a file system, one trait method per system call that can fail on its own.
//!
//! Nothing here retries, loops or syncs by itself: short writes, EINTR and every failure are visible to the
//! caller, because the journal's rules (a failed sync is final, a short write is continued at the same place)
//! live above this seam. Exceptions are the free functions [`crate::io`] that state their loop.

use std::sync::Arc;

use crate::{DiskError, Folder, Name};

pub type Result<T> = std::result::Result<T, DiskError>;

/// What a directory entry is. Anything but `File` in the data directory is refused by the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    Other,
}

/// One entry of a folder; `length` in bytes, 0 for anything but a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub file: String,
    pub kind: FileKind,
    pub length: u64,
}

/// Free and total bytes as an unprivileged writer sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub available: u64,
    pub total: u64,
}

/// Which file a handle or a name leads to: equal for equal files of one disk, whatever they are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// How what a [`Disk`] shows stands to the files themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The files.
    Themselves,
    /// A copy of files that may have gone on since.
    Copy,
    /// One of the files is lost, and another one that was made from the rest is shown in its place.
    MadeUp,
}

/// Held while it lives; dropping it releases the lock. Close-on-exec, on the data directory itself.
pub trait DiskLock: Send + Sync + std::fmt::Debug {}

/// One data directory.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Takes the exclusive lock of the data directory without waiting. `Contended` if somebody holds it.
    fn lock(&self) -> Result<Box<dyn DiskLock>>;

    /// Whether anybody holds the exclusive lock just now, this process included. Never blocks a writer that is
    /// starting for longer than the call.
    fn is_locked(&self) -> Result<bool>;

    /// Fails with `Unsafe` when the path no longer leads to the directory that was opened (moved, replaced,
    /// unmounted), a known folder no longer is the one that was opened, or one of `files` is not under its name.
    fn check_identity(&self, files: &[(Name, FileId)]) -> Result<()>;

    /// Makes a folder (0700) if it is absent. Not durable before `sync_folder(Folder::Root)`.
    fn make_folder(&self, folder: Folder) -> Result<()>;

    /// The folder's entries in name order; `NotFound` if the folder is absent.
    fn list(&self, folder: Folder) -> Result<Vec<Entry>>;

    /// Opens an existing regular file for reading, following no link.
    fn open(&self, name: &Name) -> Result<Arc<dyn LogFile>>;

    /// Opens an existing regular file for reading and writing, following no link.
    fn open_for_write(&self, name: &Name) -> Result<Arc<dyn LogFile>>;

    /// Creates a file (0600) that must not exist. Its entry is not durable before `sync_folder`.
    fn create(&self, name: &Name) -> Result<Arc<dyn LogFile>>;

    /// A second handle of an existing file for block-aligned writes past the page cache, or `None` where the
    /// file system refuses it. Only [`LogFile::write_durable_at`] and reads are called on it.
    fn open_direct(&self, name: &Name) -> Result<Option<Arc<dyn LogFile>>>;

    /// Renames within a folder, replacing the target. Not durable before `sync_folder`.
    fn rename(&self, from: &Name, to: &Name) -> Result<()>;

    /// Renames within a folder; `AlreadyExists` if the target exists.
    fn rename_new(&self, from: &Name, to: &Name) -> Result<()>;

    /// Removes a file. Not durable before `sync_folder`.
    fn remove(&self, name: &Name) -> Result<()>;

    /// Makes creations, renames and removals in this folder durable.
    fn sync_folder(&self, folder: Folder) -> Result<()>;

    fn space(&self) -> Result<Space>;

    /// A view says here what it is one of.
    fn shows(&self) -> Shows {
        Shows::Themselves
    }
}

/// An open file. Every method is positional; handles are shared between the writer and readers.
pub trait LogFile: Send + Sync + std::fmt::Debug {
    fn length(&self) -> Result<u64>;

    /// One read call. May read fewer bytes than asked for; 0 means the end of the file. [`crate::io`] has the loops.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// One write call. May write fewer bytes than given.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize>;

    /// One write call that is durable when it returns (RWF_DSYNC); may write fewer bytes than given. On a
    /// handle of `open_direct`, `buf`'s address, length and `offset` are multiples of [`crate::DIRECT_ALIGN`].
    fn write_durable_at(&self, buf: &[u8], offset: u64) -> Result<usize>;

    /// fdatasync.
    fn sync_data(&self) -> Result<()>;

    /// fsync.
    fn sync_all(&self) -> Result<()>;

    /// Truncates or extends with zeros.
    fn set_length(&self, length: u64) -> Result<()>;

    /// Which file this is.
    fn identity(&self) -> Result<FileId>;

    /// Number of directory entries that lead to this file; 0 once it was unlinked.
    fn links(&self) -> Result<u64>;

    /// Reads the whole range from the device rather than the page cache where that is possible, so that what a
    /// failed earlier writer left only in memory is not taken for durable. Returns whether the device was read
    /// (`false`: the cache was judged). `ShortRead` if the file ends inside the range.
    fn read_uncached(&self, buf: &mut [u8], offset: u64) -> Result<bool>;

    /// Closes this handle and reports what close said. Later calls on the handle fail.
    fn close(&self) -> Result<()>;
}
