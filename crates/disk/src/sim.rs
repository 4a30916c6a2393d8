//! A simulated disk: what the page cache shows and what the device holds are two things, per 512-byte sector and
//! per directory entry, and a test decides what a crash leaves of the difference.
//!
//! Model. A write, a new length, a creation, rename or removal is visible at once and undecided until a sync
//! of its file (or folder) makes it durable. A crash image keeps any chosen subset of the undecided changes,
//! so writes are torn at sectors, reordered and dropped, and each directory operation may be lost on its own.
//! Sectors are written whole; a length that was kept without its data reads as zeros; a file that is durable
//! without its entry is gone. Zero-filled pages take space, holes do not.
//!
//! Deterministic and without threads; a mutex makes it shareable. Must never know what the bytes mean.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod crash;
mod fault;
mod file;
mod folder;
mod inode;
mod pages;
mod state;
mod tamper;
mod trace;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use crash::{Choice, CrashPoint, EXHAUSTIVE_MAX, Undecided, UndecidedWhat};
pub use fault::{Fault, FaultAt, FaultKind};
pub use trace::{Call, TraceEntry};

use crate::{
    Disk, DiskError, DiskLock, Entry, ErrorKind, FileId, FileKind, Folder, LogFile, Name, Operation, Space,
};
use fault::Armed;
use file::SimFile;
use folder::{EntryChange, InodeId};
use inode::Inode;
use state::{Content, Fate, Result, Site, State};

struct Shared {
    state: Mutex<State>,
}

impl fmt::Debug for Shared {
    /// Without the content: a failed assertion about a handle must not print megabytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shape = f.debug_struct("SimDisk");
        if let Ok(state) = self.state.try_lock() {
            shape
                .field("operations", &state.operations)
                .field("calls", &state.calls)
                .field("off", &state.off);
        }
        shape.finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of a test inside a call leaves the state as it was between two changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One simulated data directory. A clone is the same disk; [`SimDisk::fork`] is another one.
#[derive(Clone, Debug)]
pub struct SimDisk {
    shared: Arc<Shared>,
}

impl Default for SimDisk {
    fn default() -> SimDisk {
        SimDisk::new()
    }
}

impl SimDisk {
    /// An empty data directory without limit of space.
    pub fn new() -> SimDisk {
        SimDisk::from_state(State::new(Content::empty()))
    }

    fn from_state(state: State) -> SimDisk {
        SimDisk { shared: Arc::new(Shared { state: Mutex::new(state) }) }
    }

    /// How many bytes of file content fit, `None` for no limit. Writes into holes count by pages of 4 KiB.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.shared.lock().content.abilities.capacity = bytes;
    }

    /// Whether `open_direct` gives a handle. Default: yes.
    pub fn set_direct(&self, works: bool) {
        self.shared.lock().content.abilities.direct = works;
    }

    /// Whether `read_uncached` reaches the device. Default: yes.
    pub fn set_uncached(&self, works: bool) {
        self.shared.lock().content.abilities.uncached = works;
    }

    /// Calls so far that may change what a crash leaves ([`Call::changes_the_disk`]).
    pub fn op_count(&self) -> u64 {
        self.shared.lock().operations
    }

    /// All calls so far.
    pub fn call_count(&self) -> u64 {
        self.shared.lock().calls
    }

    /// Lets operations 0 to `op - 1` pass; operation `op` and every later call fail with `Io`, and the state is
    /// frozen. A durable write that is cut has its sectors undecided.
    pub fn cut_at(&self, op: u64) {
        self.shared.lock().cut_at = Some(op);
    }

    /// Cuts the power now.
    pub fn power_off(&self) {
        self.shared.lock().off = true;
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.shared.lock().off
    }

    /// Plans a fault. The first of several that are due counts.
    pub fn inject(&self, fault: Fault) {
        self.shared.lock().faults.push(Armed { fault, seen: 0 });
    }

    /// Forgets all planned faults.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// From now on the state just before every operation is kept, so that one run gives all crash points.
    pub fn record_crash_points(&self) {
        self.shared.lock().points = Some(Vec::new());
    }

    /// The points kept since [`SimDisk::record_crash_points`]: element `k` is what a crash at the `k`-th operation
    /// since then leaves undecided, the sectors of a durable write among them. Recording goes on.
    pub fn take_crash_points(&self) -> Vec<CrashPoint> {
        self.shared.lock().points.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Starts a new trace.
    pub fn start_trace(&self) {
        self.shared.lock().trace = Some(Vec::new());
    }

    /// The calls since the trace was started or last taken.
    pub fn take_trace(&self) -> Vec<TraceEntry> {
        self.shared.lock().trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn handle(&self, state: &mut State, inode: InodeId, writable: bool, direct: bool) -> Arc<dyn LogFile> {
        *state.handles.entry(inode).or_default() += 1;
        let shared = Arc::clone(&self.shared);
        Arc::new(SimFile { shared, inode, writable, direct, closed: AtomicBool::new(false) })
    }

    fn open_handle(&self, call: Call, name: &Name, writable: bool) -> Result<Arc<dyn LogFile>> {
        self.shared.lock().plain(call, &Site::File(Some(name.clone())), |state| {
            let inode = find(state, name, call.operation())?;
            Ok(self.handle(state, inode, writable, false))
        })
    }

    fn rename_with(&self, call: Call, from: &Name, to: &Name) -> Result<()> {
        self.shared.lock().plain(call, &Site::Two(from.clone(), to.clone()), |state| {
            let fail = |kind| Err(DiskError::new(Operation::Rename, kind, Some(from)));
            if from.folder() != to.folder() {
                return fail(ErrorKind::Unsupported);
            }
            let inode = find(state, from, Operation::Rename)?;
            let target = state.content.lookup(to);
            if call == Call::RenameNew && target.is_some() {
                return fail(ErrorKind::AlreadyExists);
            }
            if target == Some(inode) {
                return Ok(());
            }
            let (from, to_file) = (from.file().to_owned(), to.file().to_owned());
            let at = state.content.tick();
            state.content.folders.change(at, to.folder(), EntryChange::Rename { from, to: to_file, inode });
            if let Some(inode) = state.content.inode_mut(inode) {
                inode.name = Some(to.clone());
            }
            state.collect();
            Ok(())
        })
    }
}

impl Disk for SimDisk {
    fn lock(&self) -> Result<Box<dyn DiskLock>> {
        self.shared.lock().plain(Call::Lock, &Site::Disk, |state| {
            if state.lock.is_some() {
                return Err(DiskError::new(Operation::Lock, ErrorKind::Contended, None));
            }
            let token = state.next_lock;
            state.next_lock += 1;
            state.lock = Some(token);
            Ok(Box::new(SimLock { shared: Arc::clone(&self.shared), token }) as Box<dyn DiskLock>)
        })
    }

    fn is_locked(&self) -> Result<bool> {
        self.shared.lock().plain(Call::IsLocked, &Site::Disk, |state| Ok(state.lock.is_some()))
    }

    fn check_identity(&self, files: &[(Name, FileId)]) -> Result<()> {
        self.shared.lock().plain(Call::CheckIdentity, &Site::Disk, |state| {
            let elsewhere = |(name, id): &&(Name, FileId)| state.content.lookup(name) != Some(id.inode);
            match (state.moved, files.iter().find(elsewhere)) {
                (true, _) => Err(DiskError::new(Operation::Stat, ErrorKind::Unsafe, None)),
                (false, Some((name, _))) => {
                    Err(DiskError::new(Operation::Stat, ErrorKind::Unsafe, Some(name)))
                }
                (false, None) => Ok(()),
            }
        })
    }

    fn make_folder(&self, folder: Folder) -> Result<()> {
        self.shared.lock().plain(Call::MakeFolder, &Site::Folder(folder), |state| {
            if !state.content.folders.of(folder).cached.exists {
                let at = state.content.tick();
                state.content.folders.change(at, Folder::Root, EntryChange::MakeFolder { folder });
            }
            Ok(())
        })
    }

    fn list(&self, folder: Folder) -> Result<Vec<Entry>> {
        self.shared.lock().plain(Call::List, &Site::Folder(folder), |state| {
            let content = &state.content;
            require(state, folder, Operation::List)?;
            let files = content.folders.of(folder).cached.files.iter().map(|(file, id)| Entry {
                file: file.clone(),
                kind: FileKind::File,
                length: content.inode(*id).map_or(0, |inode| inode.cached.length()),
            });
            let plain = |file: &str, kind| Entry { file: file.to_owned(), kind, length: 0 };
            let foreign =
                content.foreign.iter().filter(|one| one.0 == folder).map(|one| plain(&one.1, one.2));
            let folders = [Folder::Segments, Folder::Quarantine]
                .into_iter()
                .filter(|made| folder == Folder::Root && content.folders.of(*made).cached.exists);
            let mut entries: Vec<Entry> = files.chain(foreign).collect();
            entries.extend(folders.map(|made| plain(made.as_str(), FileKind::Directory)));
            entries.sort_by(|a, b| a.file.cmp(&b.file));
            Ok(entries)
        })
    }

    fn open(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.open_handle(Call::Open, name, false)
    }

    fn open_for_write(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.open_handle(Call::OpenForWrite, name, true)
    }

    fn create(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.shared.lock().plain(Call::Create, &Site::File(Some(name.clone())), |state| {
            require(state, name.folder(), Operation::Create)?;
            if state.content.lookup(name).is_some() || is_foreign(state, name).is_some() {
                return Err(DiskError::new(Operation::Create, ErrorKind::AlreadyExists, Some(name)));
            }
            let content = &mut state.content;
            let inode = content.next_inode;
            content.next_inode += 1;
            content.inodes.insert(inode, Arc::new(Inode { name: Some(name.clone()), ..Inode::default() }));
            let at = content.tick();
            let change = EntryChange::Insert { file: name.file().to_owned(), inode };
            content.folders.change(at, name.folder(), change);
            Ok(self.handle(state, inode, true, false))
        })
    }

    fn open_direct(&self, name: &Name) -> Result<Option<Arc<dyn LogFile>>> {
        self.shared.lock().plain(Call::OpenDirect, &Site::File(Some(name.clone())), |state| {
            let inode = find(state, name, Operation::Open)?;
            Ok(state.content.abilities.direct.then(|| self.handle(state, inode, true, true)))
        })
    }

    fn rename(&self, from: &Name, to: &Name) -> Result<()> {
        self.rename_with(Call::Rename, from, to)
    }

    fn rename_new(&self, from: &Name, to: &Name) -> Result<()> {
        self.rename_with(Call::RenameNew, from, to)
    }

    fn remove(&self, name: &Name) -> Result<()> {
        self.shared.lock().plain(Call::Remove, &Site::File(Some(name.clone())), |state| {
            find(state, name, Operation::Remove)?;
            let at = state.content.tick();
            let change = EntryChange::Remove { file: name.file().to_owned() };
            state.content.folders.change(at, name.folder(), change);
            state.collect();
            Ok(())
        })
    }

    fn sync_folder(&self, folder: Folder) -> Result<()> {
        let site = Site::Folder(folder);
        self.shared.lock().call(Call::SyncFolder, &site, (0, 0), |state, fate| {
            if fate == Fate::Fail(FaultKind::FsyncLies) {
                state.content.folders.of_mut(folder).pending.clear();
            }
            State::refuse(fate, Call::SyncFolder, &site)?;
            require(state, folder, Operation::SyncDirectory)?;
            state.content.folders.sync(folder);
            state.collect();
            Ok(())
        })
    }

    fn space(&self) -> Result<Space> {
        self.shared.lock().plain(Call::Space, &Site::Disk, |state| Ok(state.content.space()))
    }
}

fn require(state: &State, folder: Folder, op: Operation) -> Result<()> {
    match state.content.folders.of(folder).cached.exists {
        true => Ok(()),
        false => Err(DiskError::new(op, ErrorKind::NotFound, None)),
    }
}

fn is_foreign(state: &State, name: &Name) -> Option<FileKind> {
    let hit = |one: &&(Folder, String, FileKind)| one.0 == name.folder() && one.1 == name.file();
    state.content.foreign.iter().find(hit).map(|one| one.2)
}

fn find(state: &State, name: &Name, op: Operation) -> Result<InodeId> {
    let kind = match is_foreign(state, name) {
        Some(_) => ErrorKind::Unsafe,
        None => ErrorKind::NotFound,
    };
    state.content.lookup(name).ok_or_else(|| DiskError::new(op, kind, Some(name)))
}

#[derive(Debug)]
struct SimLock {
    shared: Arc<Shared>,
    token: u64,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.lock == Some(self.token) {
            state.lock = None;
        }
    }
}
