//! The lock of a data directory: flock on the directory itself, so that no deleted file frees it.
//!
//! The only user of fs2, and only of `try_lock_exclusive` and `lock_contended_error`: fs2's other lock methods
//! are shadowed by std, its `allocate` and `duplicate` are wrong.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    Ok(Box::new(held(root)?))
}

fn held(root: &OwnedFd) -> Result<HeldLock, DiskError> {
    let directory = File::from(description(root)?);
    match directory.try_lock_exclusive() {
        Ok(()) => Ok(HeldLock { _directory: directory }),
        Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => Err(contended()),
        Err(error) => Err(failed_io(Operation::Lock, &error, None)),
    }
}

fn contended() -> DiskError {
    DiskError::new(Operation::Lock, ErrorKind::Contended, None)
}

/// The lock of a directory, held over more than one use of it: who uses the directory meanwhile borrows it, one after the
/// other, and nobody else comes between two of them.
#[derive(Debug)]
pub(super) struct Claim {
    _held: HeldLock,
    lent: AtomicBool,
}

#[derive(Debug)]
struct LentLock {
    claim: Arc<Claim>,
}

impl DiskLock for LentLock {}

impl Drop for LentLock {
    fn drop(&mut self) {
        self.claim.lent.store(false, Ordering::Release);
    }
}

impl Claim {
    pub fn take(root: &OwnedFd) -> Result<Arc<Claim>, DiskError> {
        Ok(Arc::new(Claim { _held: held(root)?, lent: AtomicBool::new(false) }))
    }

    pub fn lend(self: &Arc<Self>) -> Result<Box<dyn DiskLock>, DiskError> {
        if self.lent.swap(true, Ordering::Acquire) {
            return Err(contended());
        }
        Ok(Box::new(LentLock { claim: Arc::clone(self) }))
    }

    pub fn is_lent(&self) -> bool {
        self.lent.load(Ordering::Acquire)
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
