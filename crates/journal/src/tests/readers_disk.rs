//! A disk that lets a test act between any two calls, and that counts open handles. It passes everything on unchanged.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sealog_disk::sim::SimDisk;
use sealog_disk::{Disk, DiskError, DiskLock, Entry, FileId, Folder, LogFile, Name, Space};

type Result<T> = std::result::Result<T, DiskError>;
type Act = Box<dyn FnMut() + Send>;

#[derive(Clone)]
pub(crate) struct Between {
    disk: SimDisk,
    shared: Arc<Shared>,
}

struct Shared {
    act: Mutex<Option<Act>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

impl fmt::Debug for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Between").finish_non_exhaustive()
    }
}

impl Between {
    /// `act` is called before and after every call.
    pub fn new(disk: &SimDisk, act: impl FnMut() + Send + 'static) -> Between {
        let act: Act = Box::new(act);
        let shared =
            Shared { act: Mutex::new(Some(act)), open: AtomicUsize::new(0), most_open: AtomicUsize::new(0) };
        Between { disk: disk.clone(), shared: Arc::new(shared) }
    }

    /// Handles that were open at once.
    pub fn most_open(&self) -> usize {
        self.shared.most_open.load(Ordering::Relaxed)
    }

    fn call<T>(&self, call: impl FnOnce(&SimDisk) -> Result<T>) -> Result<T> {
        self.shared.act();
        let result = call(&self.disk);
        self.shared.act();
        result
    }

    fn handle(&self, file: Arc<dyn LogFile>) -> Arc<dyn LogFile> {
        let open = self.shared.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.shared.most_open.fetch_max(open, Ordering::Relaxed);
        Arc::new(Handle { file, shared: Arc::clone(&self.shared) })
    }
}

impl Shared {
    /// What the action itself calls is not acted upon again.
    fn act(&self) {
        let taken = self.act.lock().unwrap().take();
        if let Some(mut act) = taken {
            act();
            *self.act.lock().unwrap() = Some(act);
        }
    }
}

impl Disk for Between {
    fn lock(&self) -> Result<Box<dyn DiskLock>> {
        self.call(|disk| disk.lock())
    }

    fn is_locked(&self) -> Result<bool> {
        self.call(|disk| disk.is_locked())
    }

    fn check_identity(&self, files: &[(Name, FileId)]) -> Result<()> {
        self.call(|disk| disk.check_identity(files))
    }

    fn make_folder(&self, folder: Folder) -> Result<()> {
        self.call(|disk| disk.make_folder(folder))
    }

    fn list(&self, folder: Folder) -> Result<Vec<Entry>> {
        self.call(|disk| disk.list(folder))
    }

    fn open(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.call(|disk| disk.open(name)).map(|file| self.handle(file))
    }

    fn open_for_write(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.call(|disk| disk.open_for_write(name)).map(|file| self.handle(file))
    }

    fn create(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.call(|disk| disk.create(name)).map(|file| self.handle(file))
    }

    fn open_direct(&self, name: &Name) -> Result<Option<Arc<dyn LogFile>>> {
        Ok(self.call(|disk| disk.open_direct(name))?.map(|file| self.handle(file)))
    }

    fn rename(&self, from: &Name, to: &Name) -> Result<()> {
        self.call(|disk| disk.rename(from, to))
    }

    fn rename_new(&self, from: &Name, to: &Name) -> Result<()> {
        self.call(|disk| disk.rename_new(from, to))
    }

    fn remove(&self, name: &Name) -> Result<()> {
        self.call(|disk| disk.remove(name))
    }

    fn sync_folder(&self, folder: Folder) -> Result<()> {
        self.call(|disk| disk.sync_folder(folder))
    }

    fn space(&self) -> Result<Space> {
        self.call(|disk| disk.space())
    }
}

struct Handle {
    file: Arc<dyn LogFile>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Handle {
    fn call<T>(&self, call: impl FnOnce(&dyn LogFile) -> Result<T>) -> Result<T> {
        self.shared.act();
        let result = call(&*self.file);
        self.shared.act();
        result
    }
}

impl LogFile for Handle {
    fn length(&self) -> Result<u64> {
        self.call(|file| file.length())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.call(|file| file.read_at(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.call(|file| file.write_at(buf, offset))
    }

    fn write_durable_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.call(|file| file.write_durable_at(buf, offset))
    }

    fn sync_data(&self) -> Result<()> {
        self.call(|file| file.sync_data())
    }

    fn sync_all(&self) -> Result<()> {
        self.call(|file| file.sync_all())
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.call(|file| file.set_length(length))
    }

    fn identity(&self) -> Result<FileId> {
        self.call(|file| file.identity())
    }

    fn links(&self) -> Result<u64> {
        self.call(|file| file.links())
    }

    fn read_uncached(&self, buf: &mut [u8], offset: u64) -> Result<bool> {
        self.call(|file| file.read_uncached(buf, offset))
    }

    fn close(&self) -> Result<()> {
        self.call(|file| file.close())
    }
}
