//! A small file that exists in memory only, for a view that shows it beside real ones. Never written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sealog_disk::{DiskError, ErrorKind, FileId, LogFile, Operation};

type Result<T> = std::result::Result<T, DiskError>;

#[derive(Debug)]
pub(crate) struct MemoryFile {
    bytes: Arc<[u8]>,
    closed: AtomicBool,
}

impl MemoryFile {
    pub fn new(bytes: Arc<[u8]>) -> MemoryFile {
        MemoryFile { bytes, closed: AtomicBool::new(false) }
    }

    fn open(&self, op: Operation) -> Result<()> {
        match self.closed.load(Ordering::Relaxed) {
            true => Err(DiskError::new(op, ErrorKind::Io, None)),
            false => Ok(()),
        }
    }
}

pub(crate) fn read_only(op: Operation) -> DiskError {
    DiskError::new(op, ErrorKind::ReadOnly, None)
}

/// The half of `Disk` that a view over other files refuses: whatever would change something, or hold it. `DiskResult` and
/// the types of `sealog_disk` are in scope where it is used.
macro_rules! refuses_changes {
    () => {
        fn lock(&self) -> DiskResult<Box<dyn DiskLock>> {
            Err(read_only(Operation::Lock))
        }

        fn make_folder(&self, _folder: Folder) -> DiskResult<()> {
            Err(read_only(Operation::Create))
        }

        fn open_for_write(&self, _name: &Name) -> DiskResult<Arc<dyn LogFile>> {
            Err(read_only(Operation::Open))
        }

        fn create(&self, _name: &Name) -> DiskResult<Arc<dyn LogFile>> {
            Err(read_only(Operation::Create))
        }

        fn open_direct(&self, _name: &Name) -> DiskResult<Option<Arc<dyn LogFile>>> {
            Err(read_only(Operation::Open))
        }

        fn rename(&self, _from: &Name, _to: &Name) -> DiskResult<()> {
            Err(read_only(Operation::Rename))
        }

        fn rename_new(&self, _from: &Name, _to: &Name) -> DiskResult<()> {
            Err(read_only(Operation::Rename))
        }

        fn remove(&self, _name: &Name) -> DiskResult<()> {
            Err(read_only(Operation::Remove))
        }

        fn sync_folder(&self, _folder: Folder) -> DiskResult<()> {
            Err(read_only(Operation::SyncDirectory))
        }
    };
}

pub(crate) use refuses_changes;

impl LogFile for MemoryFile {
    fn length(&self) -> Result<u64> {
        self.open(Operation::Stat)?;
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.open(Operation::Read)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let count = buf.len().min(self.bytes.len() - from);
        buf[..count].copy_from_slice(&self.bytes[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, _buf: &[u8], _offset: u64) -> Result<usize> {
        Err(read_only(Operation::Write))
    }

    fn write_durable_at(&self, _buf: &[u8], _offset: u64) -> Result<usize> {
        Err(read_only(Operation::Write))
    }

    fn sync_data(&self) -> Result<()> {
        Err(read_only(Operation::Sync))
    }

    fn sync_all(&self) -> Result<()> {
        Err(read_only(Operation::Sync))
    }

    fn set_length(&self, _length: u64) -> Result<()> {
        Err(read_only(Operation::SetLength))
    }

    fn identity(&self) -> Result<FileId> {
        Ok(FileId { device: 0, inode: self.bytes.as_ptr() as u64 })
    }

    fn links(&self) -> Result<u64> {
        Ok(1)
    }

    fn read_uncached(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        let read = self.read_at(buf, offset)?;
        if read < buf.len() {
            return Err(DiskError::new(Operation::Read, ErrorKind::ShortRead, None));
        }
        Ok(true)
    }

    fn close(&self) -> Result<()> {
        self.open(Operation::Close)?;
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}
