//! Closing a descriptor and hearing what that said.
//!
//! Dropping an `OwnedFd` throws close's error away, and neither std nor rustix has a safe call that returns it.
//! Ext4, XFS and btrfs never fail here; FUSE, NFS and SMB (allowed only on request) report lost writes by it.

use std::os::fd::{IntoRawFd, OwnedFd};

use rustix::io::Errno;

/// The descriptor is gone afterwards, also on an error: Linux frees the number before it flushes.
#[expect(unsafe_code, reason = "close takes a number; the only unsafe call of this crate")]
pub(super) fn close(descriptor: OwnedFd) -> Result<(), Errno> {
    let number = descriptor.into_raw_fd();
    // SAFETY: the number was valid and owned by `descriptor`, which `into_raw_fd` consumed; nobody else can
    // close it before this call and nothing uses it after.
    unsafe { rustix::io::try_close(number) }
}
