//! A handle of the simulated disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Shared;
use super::fault::FaultKind;
use super::folder::InodeId;
use super::inode::Inode;
use super::pages::PAGE;
use super::state::{Fate, Result, Site, State, power_off};
use super::trace::Call;
use crate::{DIRECT_ALIGN, DiskError, ErrorKind, FileId, LogFile, Operation};

#[derive(Debug)]
pub(super) struct SimFile {
    pub(super) shared: Arc<Shared>,
    pub(super) inode: InodeId,
    pub(super) writable: bool,
    pub(super) direct: bool,
    pub(super) closed: AtomicBool,
}

impl SimFile {
    fn call<T>(
        &self,
        call: Call,
        range: (u64, u64),
        body: impl FnOnce(&mut State, Fate, &Site) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.shared.lock();
        let site = Site::File(state.content.inode(self.inode).and_then(|inode| inode.name.clone()));
        if self.closed.load(Ordering::Relaxed) {
            return Err(error(call.operation(), ErrorKind::Io, "the handle is closed", &site));
        }
        let needs_write = matches!(call, Call::Write | Call::WriteDurable | Call::SetLength);
        if needs_write && !self.writable {
            return Err(error(call.operation(), ErrorKind::Io, "the handle is for reading", &site));
        }
        state.call(call, &site, range, |state, fate| body(state, fate, &site))
    }

    fn sync(&self, call: Call) -> Result<()> {
        self.call(call, (0, 0), |state, fate, site| {
            if fate == Fate::Fail(FaultKind::FsyncLies) {
                self.inode(state)?.lie();
            }
            State::refuse(fate, call, site)?;
            self.inode(state)?.sync();
            Ok(())
        })
    }

    fn inode<'a>(&self, state: &'a mut State) -> Result<&'a mut Inode> {
        // A handle keeps its file, so this is only a dead disk's answer.
        state.content.inode_mut(self.inode).ok_or_else(|| power_off(Operation::Stat, None))
    }

    /// How many of the bytes find room.
    fn room(&self, state: &mut State, offset: u64, len: usize) -> Result<usize> {
        if state.content.abilities.capacity.is_none() {
            return Ok(len);
        }
        let free = state.content.space().available / PAGE as u64;
        let inode = self.inode(state)?;
        if inode.holes(offset, len as u64) <= free {
            return Ok(len);
        }
        let mut end = offset;
        let mut left = free;
        while end < offset + len as u64 {
            let next = (end / PAGE as u64 + 1) * PAGE as u64;
            let holes = inode.holes(end, 1);
            if holes > left {
                break;
            }
            left -= holes;
            end = next;
        }
        Ok(usize::try_from(end - offset).unwrap_or(len).min(len))
    }

    /// Puts the bytes into the cache; `Full` if not even one finds room.
    fn write(&self, state: &mut State, fate: Fate, site: &Site, buf: &[u8], offset: u64) -> Result<usize> {
        let wanted = match fate {
            Fate::Short(max) => buf.len().min(max),
            Fate::Normal | Fate::Fail(_) | Fate::PowerCut => buf.len(),
        };
        let count = self.room(state, offset, wanted)?;
        if count == 0 && wanted > 0 {
            return Err(FaultKind::Full.error(Operation::Write, file_of(site)));
        }
        let at = state.content.tick();
        self.inode(state)?.write(at, offset, &buf[..count]);
        Ok(count)
    }
}

impl LogFile for SimFile {
    fn length(&self) -> Result<u64> {
        self.call(Call::Length, (0, 0), |state, fate, site| {
            State::refuse(fate, Call::Length, site)?;
            Ok(self.inode(state)?.cached.length())
        })
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.call(Call::Read, (offset, buf.len() as u64), |state, fate, site| {
            State::refuse(fate, Call::Read, site)?;
            Ok(self.inode(state)?.cached.read(buf, offset))
        })
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.call(Call::Write, (offset, buf.len() as u64), |state, fate, site| {
            if self.direct {
                let detail = "a direct handle takes durable writes only";
                return Err(error(Operation::Write, ErrorKind::Unsupported, detail, site));
            }
            State::refuse(fate, Call::Write, site)?;
            self.write(state, fate, site, buf, offset)
        })
    }

    /// The cache takes the bytes first, so that a fault or the end of power in the middle leaves any subset of
    /// their sectors.
    fn write_durable_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.call(Call::WriteDurable, (offset, buf.len() as u64), |state, fate, site| {
            let aligned = buf.as_ptr().addr().is_multiple_of(DIRECT_ALIGN)
                && buf.len().is_multiple_of(DIRECT_ALIGN)
                && offset.is_multiple_of(DIRECT_ALIGN as u64);
            if self.direct && !aligned {
                return Err(error(
                    Operation::Write,
                    ErrorKind::Unsupported,
                    "the write is not aligned",
                    site,
                ));
            }
            match fate {
                Fate::Fail(FaultKind::FsyncLies) => {
                    self.write(state, Fate::Normal, site, buf, offset)?;
                    self.inode(state)?.lie();
                    State::refuse(fate, Call::WriteDurable, site)?;
                }
                Fate::Normal | Fate::Short(_) | Fate::PowerCut | Fate::Fail(FaultKind::Io) => {}
                Fate::Fail(_) => State::refuse(fate, Call::WriteDurable, site)?,
            }
            let count = self.write(state, fate, site, buf, offset)?;
            state.replace_last_point();
            State::refuse(fate, Call::WriteDurable, site)?;
            self.inode(state)?.sync_range(offset, count as u64);
            Ok(count)
        })
    }

    fn sync_data(&self) -> Result<()> {
        self.sync(Call::SyncData)
    }

    fn sync_all(&self) -> Result<()> {
        self.sync(Call::SyncAll)
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.call(Call::SetLength, (length, 0), |state, fate, site| {
            State::refuse(fate, Call::SetLength, site)?;
            let at = state.content.tick();
            self.inode(state)?.set_length(at, length);
            Ok(())
        })
    }

    fn identity(&self) -> Result<FileId> {
        Ok(FileId { device: 0, inode: self.inode })
    }

    fn links(&self) -> Result<u64> {
        self.call(Call::Links, (0, 0), |state, fate, site| {
            State::refuse(fate, Call::Links, site)?;
            Ok(state.content.folders.links(self.inode))
        })
    }

    fn read_uncached(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        self.call(Call::ReadUncached, (offset, buf.len() as u64), |state, fate, site| {
            State::refuse(fate, Call::ReadUncached, site)?;
            let from_device = state.content.abilities.uncached;
            let inode = self.inode(state)?;
            let count = match from_device && inode.lied {
                true => inode.device().read(buf, offset),
                false => inode.cached.read(buf, offset),
            };
            if count < buf.len() {
                return Err(DiskError::new(Operation::Read, ErrorKind::ShortRead, file_of(site)));
            }
            Ok(from_device)
        })
    }

    fn close(&self) -> Result<()> {
        self.call(Call::Close, (0, 0), |state, fate, site| {
            // As with the kernel, the handle is gone whatever close says.
            self.closed.store(true, Ordering::Relaxed);
            state.release(self.inode);
            State::refuse(fate, Call::Close, site)
        })
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if !self.closed.load(Ordering::Relaxed) {
            self.shared.lock().release(self.inode);
        }
    }
}

fn file_of(site: &Site) -> Option<&crate::Name> {
    match site {
        Site::File(name) => name.as_ref(),
        Site::Disk | Site::Folder(_) | Site::Two(..) => None,
    }
}

fn error(op: Operation, kind: ErrorKind, detail: &'static str, site: &Site) -> DiskError {
    DiskError { detail: Some(detail), ..DiskError::new(op, kind, file_of(site)) }
}
