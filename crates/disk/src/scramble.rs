//! A disk that stores other bytes than it is given and moves them in odd pieces. Code that reaches a file beside
//! the seam, or takes one call for a whole transfer, breaks on it.
//!
//! The mask keeps zero at zero, so that holes, extensions and prepared files mean the same below and above.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::testing::step;
use crate::{
    AlignedBuf, DIRECT_ALIGN, Disk, DiskError, DiskLock, Entry, FileId, Folder, LogFile, Name, Shows, Space,
};

type Result<T> = std::result::Result<T, DiskError>;

/// Any disk, scrambled. The same seed undoes what it did.
#[derive(Clone, Debug)]
pub struct ScrambleDisk {
    inner: Arc<dyn Disk>,
    seed: u64,
    draws: Arc<AtomicU64>,
}

impl ScrambleDisk {
    pub fn new(inner: Arc<dyn Disk>, seed: u64) -> ScrambleDisk {
        ScrambleDisk { inner, seed, draws: Arc::new(AtomicU64::new(seed)) }
    }

    fn wrap(&self, file: Arc<dyn LogFile>, direct: bool) -> Arc<dyn LogFile> {
        Arc::new(ScrambleFile { file, seed: self.seed, draws: Arc::clone(&self.draws), direct })
    }
}

impl Disk for ScrambleDisk {
    fn lock(&self) -> Result<Box<dyn DiskLock>> {
        self.inner.lock()
    }

    fn is_locked(&self) -> Result<bool> {
        self.inner.is_locked()
    }

    fn check_identity(&self, files: &[(Name, FileId)]) -> Result<()> {
        self.inner.check_identity(files)
    }

    fn make_folder(&self, folder: Folder) -> Result<()> {
        self.inner.make_folder(folder)
    }

    fn list(&self, folder: Folder) -> Result<Vec<Entry>> {
        self.inner.list(folder)
    }

    fn open(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.inner.open(name).map(|file| self.wrap(file, false))
    }

    fn open_for_write(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.inner.open_for_write(name).map(|file| self.wrap(file, false))
    }

    fn create(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.inner.create(name).map(|file| self.wrap(file, false))
    }

    fn open_direct(&self, name: &Name) -> Result<Option<Arc<dyn LogFile>>> {
        self.inner.open_direct(name).map(|found| found.map(|file| self.wrap(file, true)))
    }

    fn rename(&self, from: &Name, to: &Name) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn rename_new(&self, from: &Name, to: &Name) -> Result<()> {
        self.inner.rename_new(from, to)
    }

    fn remove(&self, name: &Name) -> Result<()> {
        self.inner.remove(name)
    }

    fn sync_folder(&self, folder: Folder) -> Result<()> {
        self.inner.sync_folder(folder)
    }

    fn space(&self) -> Result<Space> {
        self.inner.space()
    }

    fn shows(&self) -> Shows {
        self.inner.shows()
    }
}

#[derive(Debug)]
struct ScrambleFile {
    file: Arc<dyn LogFile>,
    seed: u64,
    draws: Arc<AtomicU64>,
    direct: bool,
}

impl ScrambleFile {
    /// How many bytes the next call moves: at least one, seldom all.
    fn piece(&self, len: usize) -> usize {
        let mut state = self.draws.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let draw = step(&mut state);
        let within =
            |from: u64, to: u64| usize::try_from(from + (draw >> 8) % (to - from)).unwrap_or(usize::MAX);
        let size = match draw % 4 {
            0 => within(1, 8),
            1 => within(100, 700),
            2 => within(3_000, 5_000),
            _ => within(30_000, 70_000),
        };
        size.min(len)
    }

    fn mask(&self, offset: u64) -> u16 {
        let mut state = self.seed ^ (offset / 8);
        let word = step(&mut state);
        // 1 to 254: every non-zero byte changes.
        u16::from(word.to_le_bytes()[(offset % 8) as usize]) % 254 + 1
    }

    fn scramble(&self, bytes: &mut [u8], offset: u64) {
        self.turn(bytes, offset, |mask| mask);
    }

    fn unscramble(&self, bytes: &mut [u8], offset: u64) {
        self.turn(bytes, offset, |mask| 255 - mask);
    }

    /// Rotates each non-zero byte within 1 to 255.
    fn turn(&self, bytes: &mut [u8], offset: u64, by: impl Fn(u16) -> u16) {
        for (at, byte) in (offset..).zip(bytes) {
            if *byte != 0 {
                let turned = (u16::from(*byte) - 1 + by(self.mask(at))) % 255 + 1;
                *byte = u8::try_from(turned).unwrap_or(0);
            }
        }
    }
}

impl LogFile for ScrambleFile {
    fn length(&self) -> Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let piece = self.piece(buf.len());
        let count = self.file.read_at(&mut buf[..piece], offset)?;
        self.unscramble(&mut buf[..count], offset);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        let mut piece = buf[..self.piece(buf.len())].to_vec();
        self.scramble(&mut piece, offset);
        self.file.write_at(&piece, offset)
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        let len = self.piece(buf.len());
        let aligned =
            buf.as_ptr().addr().is_multiple_of(DIRECT_ALIGN) && buf.len().is_multiple_of(DIRECT_ALIGN);
        if self.direct && !aligned {
            // Must be refused below, so it goes down as it is.
            return self.file.write_durable_at(buf, offset);
        }
        // A direct handle moves whole blocks.
        let len = if self.direct { len.next_multiple_of(DIRECT_ALIGN).min(buf.len()) } else { len };
        let mut piece = AlignedBuf::zeroed(len);
        piece.copy_from_slice(&buf[..len]);
        self.scramble(&mut piece, offset);
        self.file.write_durable_at(&piece, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> Result<()> {
        self.file.sync_all()
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.file.set_length(length)
    }

    fn identity(&self) -> Result<FileId> {
        self.file.identity()
    }

    fn links(&self) -> Result<u64> {
        self.file.links()
    }

    fn read_uncached(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        let from_device = self.file.read_uncached(buf, offset)?;
        self.unscramble(buf, offset);
        Ok(from_device)
    }

    fn close(&self) -> Result<()> {
        self.file.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{read_to_vec, write_all_at};
    use crate::sim::SimDisk;

    #[test]
    fn no_byte_but_zero_is_stored_as_given() {
        let below = SimDisk::new();
        let above = ScrambleDisk::new(Arc::new(below.clone()), 3);
        let name = Name::new(Folder::Root, "f").unwrap();
        let bytes: Vec<u8> = (0..200_000_u32).map(|i| (i % 256) as u8).collect();
        let file = above.create(&name).unwrap();
        write_all_at(&*file, &bytes, 0).unwrap();
        let stored = below.bytes(&name).unwrap();
        assert_eq!(stored.len(), bytes.len());
        assert!(stored.iter().zip(&bytes).all(|(stored, given)| (stored == given) == (*given == 0)));
        assert!(read_to_vec(&*file, bytes.len()).unwrap() == bytes);
        assert!(below.op_count() > 10, "written in pieces");
    }
}
