//! The lock of a data directory: flock on the directory itself, so that no deleted file frees it.
//!
//! The only user of fs2, and only of `try_lock_exclusive` and `lock_contended_error`: fs2's other lock methods
//! are shadowed by std, its `allocate` and `duplicate` are wrong.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use fs2::FileExt;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

use super::errno::{failed, failed_io};
use crate::{DiskError, DiskLock, ErrorKind, Operation};

/// Held by the open file description, which no child inherits (close-on-exec).
#[derive(Debug)]
struct HeldLock {
    _directory: File,
}

impl DiskLock for HeldLock {}

pub(super) fn take(root: &OwnedFd) -> Result<Box<dyn DiskLock>, DiskError> {
    let directory = File::from(description(root)?);
    match directory.try_lock_exclusive() {
        Ok(()) => Ok(Box::new(HeldLock { _directory: directory })),
        Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
            Err(DiskError::new(Operation::Lock, ErrorKind::Contended, None))
        }
        Err(error) => Err(failed_io(Operation::Lock, &error, None)),
    }
}

/// Asks with a shared lock, so that two askers do not take each other for a writer.
pub(super) fn is_held(root: &OwnedFd) -> Result<bool, DiskError> {
    let directory = description(root)?;
    match flock(directory.as_fd(), FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(errno) => Err(failed(Operation::Lock, errno, None)),
    }
}

/// An open file description of its own: a lock belongs to the description, not to the directory's descriptor.
fn description(root: &OwnedFd) -> Result<OwnedFd, DiskError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(root, ".", flags, Mode::empty()).map_err(|errno| failed(Operation::Lock, errno, None))
}
