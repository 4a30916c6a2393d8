//! One error type for every storage call; the kind decides what a caller may do next, the text never does.

use crate::Name;

/// Which storage call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Open,
    Create,
    Read,
    Write,
    Sync,
    SetLength,
    Stat,
    List,
    Rename,
    Remove,
    SyncDirectory,
    Lock,
    Space,
    Close,
}

/// Told apart by error number, never by text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    NotFound,
    AlreadyExists,
    PermissionDenied,
    /// ENOSPC or EDQUOT.
    Full,
    /// EMFILE or ENFILE.
    Descriptors,
    /// EROFS.
    ReadOnly,
    /// EINTR.
    Interrupted,
    /// EIO and everything else of the device.
    Io,
    /// The lock is held by another open file description.
    Contended,
    /// Not a regular file, a link, foreign owner, group or other bits, network file system.
    Unsafe,
    /// The call or its flags do not work on this file system.
    Unsupported,
    /// Fewer bytes than asked for.
    ShortRead,
}

/// A failed storage call. `file` is a name below the data directory, never an absolute path.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{op:?} failed ({kind:?}){}", file_text(.file.as_ref()))]
pub struct DiskError {
    pub op: Operation,
    pub kind: ErrorKind,
    pub file: Option<Name>,
    /// What an operator may be told beyond the kind, such as the file system's name.
    pub detail: Option<&'static str>,
    /// The system's error number, where there was one.
    pub errno: Option<i32>,
}

impl DiskError {
    pub fn new(op: Operation, kind: ErrorKind, file: Option<&Name>) -> DiskError {
        DiskError { op, kind, file: file.cloned(), detail: None, errno: None }
    }
}

fn file_text(file: Option<&Name>) -> String {
    file.map(|name| format!(": {name}")).unwrap_or_default()
}
