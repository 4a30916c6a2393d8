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

impl Operation {
    fn words(self) -> &'static str {
        match self {
            Operation::Open => "opening",
            Operation::Create => "creating",
            Operation::Read => "reading",
            Operation::Write => "writing",
            Operation::Sync => "syncing",
            Operation::SetLength => "setting a length",
            Operation::Stat => "looking at a file",
            Operation::List => "listing a directory",
            Operation::Rename => "renaming",
            Operation::Remove => "removing",
            Operation::SyncDirectory => "syncing a directory",
            Operation::Lock => "locking",
            Operation::Space => "asking for the free space",
            Operation::Close => "closing",
        }
    }
}

/// Told apart by error number, never by text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    NotFound,
    AlreadyExists,
    PermissionDenied,
    /// ENOSPC, EDQUOT or EFBIG.
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

impl ErrorKind {
    fn words(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "it is not there",
            ErrorKind::AlreadyExists => "the name is taken",
            ErrorKind::PermissionDenied => "permission denied",
            ErrorKind::Full => "no space is left",
            ErrorKind::Descriptors => "too many files are open",
            ErrorKind::ReadOnly => "the file system is read-only",
            ErrorKind::Interrupted => "it was interrupted",
            ErrorKind::Io => "an I/O error",
            ErrorKind::Contended => "another process has it",
            ErrorKind::Unsafe => "it is not as a private file or directory must be",
            ErrorKind::Unsupported => "this file system does not support it",
            ErrorKind::ShortRead => "there are fewer bytes than there must be",
        }
    }
}

/// A failed storage call. `file` is a name below the data directory, never an absolute path.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} failed: {}{}", .op.words(), .kind.words(), file_text(.file.as_ref()))]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_speaks_in_words() {
        let name = Name::new(crate::Folder::Root, "head").unwrap();
        let error = DiskError::new(Operation::Open, ErrorKind::NotFound, Some(&name));
        assert_eq!(error.to_string(), "opening failed: it is not there: head");
        let error = DiskError::new(Operation::SyncDirectory, ErrorKind::Full, None);
        assert_eq!(error.to_string(), "syncing a directory failed: no space is left");
    }
}
