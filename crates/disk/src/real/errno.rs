//! Error numbers to error kinds: the one place.

use rustix::io::Errno;

use crate::{DiskError, ErrorKind, Name, Operation};

pub(super) fn failed(op: Operation, errno: Errno, file: Option<&Name>) -> DiskError {
    DiskError { errno: Some(errno.raw_os_error()), ..DiskError::new(op, kind(errno), file) }
}

pub(super) fn failed_io(op: Operation, error: &std::io::Error, file: Option<&Name>) -> DiskError {
    match Errno::from_io_error(error) {
        Some(errno) => failed(op, errno, file),
        // What other code wrapped has lost its number, not its kind.
        None => DiskError::new(op, wrapped(error.kind()), file),
    }
}

fn wrapped(kind: std::io::ErrorKind) -> ErrorKind {
    use std::io::ErrorKind as Io;
    match kind {
        Io::NotFound => ErrorKind::NotFound,
        Io::AlreadyExists => ErrorKind::AlreadyExists,
        Io::PermissionDenied => ErrorKind::PermissionDenied,
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::Full,
        Io::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        _ => ErrorKind::Io,
    }
}

pub(super) fn refused(op: Operation, detail: &'static str, file: Option<&Name>) -> DiskError {
    DiskError { detail: Some(detail), ..DiskError::new(op, ErrorKind::Unsafe, file) }
}

fn kind(errno: Errno) -> ErrorKind {
    match errno {
        Errno::NOENT => ErrorKind::NotFound,
        Errno::EXIST => ErrorKind::AlreadyExists,
        Errno::ACCESS | Errno::PERM => ErrorKind::PermissionDenied,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ErrorKind::Full,
        Errno::MFILE | Errno::NFILE => ErrorKind::Descriptors,
        Errno::ROFS => ErrorKind::ReadOnly,
        Errno::INTR => ErrorKind::Interrupted,
        // What opening a link, a directory or a device as a file, or a file as a directory, says.
        Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => ErrorKind::Unsafe,
        Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::NAMETOOLONG => ErrorKind::Unsupported,
        _ => ErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_the_number() {
        let cases = [
            (Errno::NOSPC, ErrorKind::Full),
            (Errno::DQUOT, ErrorKind::Full),
            (Errno::FBIG, ErrorKind::Full),
            (Errno::MFILE, ErrorKind::Descriptors),
            (Errno::NFILE, ErrorKind::Descriptors),
            (Errno::ROFS, ErrorKind::ReadOnly),
            (Errno::INTR, ErrorKind::Interrupted),
            (Errno::LOOP, ErrorKind::Unsafe),
            (Errno::NAMETOOLONG, ErrorKind::Unsupported),
            (Errno::IO, ErrorKind::Io),
            (Errno::NOMEM, ErrorKind::Io),
        ];
        for (errno, expected) in cases {
            let error = failed(Operation::Write, errno, None);
            assert_eq!((error.kind, error.errno), (expected, Some(errno.raw_os_error())));
        }
    }

    #[test]
    fn a_kind_outlives_its_number() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::ROFS, Errno::ACCESS, Errno::NOENT, Errno::IO] {
            let plain = std::io::Error::from_raw_os_error(errno.raw_os_error());
            let kept = std::io::Error::new(plain.kind(), "wrapped");
            let found = [&plain, &kept].map(|error| failed_io(Operation::Write, error, None).kind);
            assert_eq!(found, [kind(errno); 2], "{errno:?}");
        }
    }
}
