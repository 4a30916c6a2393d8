//! One open regular file. Owns its descriptors; each method is one system call.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use rustix::fs::{AtFlags, StatxFlags, fdatasync, fstat, fsync, ftruncate, statx};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2};

use super::close::close;
use super::errno::failed;
use super::longest::within;
use super::uncached;
use crate::{DiskError, ErrorKind, FileId, LogFile, Name, Operation};

type Result<T> = std::result::Result<T, DiskError>;

/// A handle. A direct one has two descriptors: reads need no alignment, so they go through the page cache,
/// which a direct write of the same inode invalidates.
#[derive(Debug)]
pub(super) struct RealFile {
    name: Name,
    /// Behind a lock so that `close` waits for calls that other threads have under way: a descriptor number
    /// must not be reused while one of them still names it.
    open: RwLock<Option<Descriptors>>,
}

#[derive(Debug)]
struct Descriptors {
    buffered: OwnedFd,
    direct: Option<OwnedFd>,
}

impl RealFile {
    pub(super) fn new(name: &Name, buffered: OwnedFd, direct: Option<OwnedFd>) -> RealFile {
        RealFile { name: name.clone(), open: RwLock::new(Some(Descriptors { buffered, direct })) }
    }

    fn with<T>(&self, op: Operation, call: impl FnOnce(&Descriptors) -> rustix::io::Result<T>) -> Result<T> {
        let guard: RwLockReadGuard<'_, _> = self.open.read().unwrap_or_else(PoisonError::into_inner);
        // A closed handle answers as the kernel would for a closed descriptor.
        let descriptors = guard.as_ref().ok_or_else(|| failed(op, Errno::BADF, Some(&self.name)))?;
        call(descriptors).map_err(|errno| failed(op, errno, Some(&self.name)))
    }
}

impl Descriptors {
    /// The descriptor that writes go through.
    fn writing(&self) -> &OwnedFd {
        self.direct.as_ref().unwrap_or(&self.buffered)
    }
}

impl LogFile for RealFile {
    fn length(&self) -> Result<u64> {
        let stat = self.with(Operation::Stat, |open| fstat(&open.buffered))?;
        u64::try_from(stat.st_size)
            .map_err(|_| DiskError::new(Operation::Stat, ErrorKind::Io, Some(&self.name)))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.with(Operation::Read, |open| pread(&open.buffered, buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.with(Operation::Write, |open| match open.direct {
            // Past the cache but not durable: nobody wants that, and it would hide a confusion of handles.
            Some(_) => Err(Errno::OPNOTSUPP),
            None => within(offset + buf.len() as u64).and_then(|()| pwrite(&open.buffered, buf, offset)),
        })
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        let slices = [IoSlice::new(buf)];
        self.with(Operation::Write, |open| {
            within(offset + buf.len() as u64)?;
            pwritev2(open.writing(), &slices, offset, ReadWriteFlags::DSYNC)
        })
    }

    fn sync_data(&self) -> Result<()> {
        self.with(Operation::Sync, |open| fdatasync(open.writing()))
    }

    fn sync_all(&self) -> Result<()> {
        self.with(Operation::Sync, |open| fsync(open.writing()))
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.with(Operation::SetLength, |open| {
            // As the kernel has it: a file that is too long already may be cut, also to what is still too long.
            if fstat(&open.buffered)?.st_size.cast_unsigned() < length {
                within(length)?;
            }
            ftruncate(open.writing(), length)
        })
    }

    fn identity(&self) -> Result<FileId> {
        let stat = self.with(Operation::Stat, |open| fstat(&open.buffered))?;
        Ok(FileId { device: stat.st_dev, inode: stat.st_ino })
    }

    fn links(&self) -> Result<u64> {
        // Not fstat: a file whose times were asked for gets a new, fine-grained time with its next write (Linux
        // 6.13), which is a change of metadata with each frame. This asks for the links alone.
        let links = |open: &Descriptors| {
            match statx(&open.buffered, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK) {
                Ok(stat) => Ok(u64::from(stat.stx_nlink)),
                // A kernel or a sandbox without statx. The field's width differs between architectures.
                Err(Errno::NOSYS | Errno::PERM) => {
                    fstat(&open.buffered).map(|stat| u64::from(stat.st_nlink as u32))
                }
                Err(errno) => Err(errno),
            }
        };
        self.with(Operation::Stat, links)
    }

    fn read_uncached(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        let read = self.with(Operation::Read, |open| uncached::read(&open.buffered, buf, offset))?;
        if read.count < buf.len() {
            return Err(DiskError::new(Operation::Read, ErrorKind::ShortRead, Some(&self.name)));
        }
        Ok(read.from_device)
    }

    fn close(&self) -> Result<()> {
        let taken = self.open.write().unwrap_or_else(PoisonError::into_inner).take();
        let said = match taken {
            None => Err(Errno::BADF),
            Some(Descriptors { buffered, direct }) => {
                // Both are closed whatever the first said.
                let first = direct.map_or(Ok(()), close);
                close(buffered).and(first)
            }
        };
        said.map_err(|errno| failed(Operation::Close, errno, Some(&self.name)))
    }
}
