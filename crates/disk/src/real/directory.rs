//! A data directory of the host: opening, checking, and everything done to its entries.
//!
//! The directory and its folders are opened once; every file is reached from those descriptors, by one checked
//! component, never through a link. A path is used again only to ask whether it still leads to the same place.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, fstat, fsync, lstat, mkdirat, open, openat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::errno::{failed, failed_io, refused};
use super::file::RealFile;
use super::lock::Claim;
use super::{file_system, lock, uncached};
use crate::{
    Disk, DiskError, DiskLock, Entry, ErrorKind, FileId, FileKind, Folder, LogFile, Name, Operation, Space,
};

type Result<T> = std::result::Result<T, DiskError>;

const OPEN_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How to open a data directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Make the directory (0700) and what is missing above it, durably.
    pub create: bool,
    /// Accept NFS, SMB, 9p, FUSE and the like, with a warning. Locks and syncs may not hold there.
    pub allow_network_fs: bool,
}

/// A data directory on a real file system.
pub struct RealDisk {
    path: PathBuf,
    root: OwnedFd,
    folders: [OnceLock<OwnedFd>; 2],
    warnings: Vec<file_system::Warning>,
    /// Where the lock is held for longer than one use.
    claim: Option<Arc<Claim>>,
}

impl RealDisk {
    /// Opens a directory that is real (no link), ours, closed to group and others, and on a local file system.
    ///
    /// # Errors
    /// `NotFound` without `create`; `Unsafe` with a detail for everything that is not as above.
    pub fn open(path: &Path, options: OpenOptions) -> Result<RealDisk> {
        let absolute = std::path::absolute(path).map_err(|error| failed_io(Operation::Open, &error, None))?;
        // Rebuilt from its components: behind a trailing slash the kernel would follow a link after all.
        let path: PathBuf = absolute.components().collect();
        if options.create {
            super::outside::make_directories(&path)?;
        }
        let root = open(&path, OPEN_FOLDER, Mode::empty()).map_err(|errno| not_a_directory(errno, None))?;
        let stat = fstat(&root).map_err(|errno| failed(Operation::Stat, errno, None))?;
        check_private(&stat)?;
        let warnings = file_system::judge(&root, options.allow_network_fs)?;
        Ok(RealDisk { path, root, folders: Default::default(), warnings, claim: None })
    }

    /// What the operator should be told about the file system.
    pub fn warnings(&self) -> &[file_system::Warning] {
        &self.warnings
    }

    /// What its file system is called, `unknown` where that is not known.
    pub fn file_system(&self) -> &'static str {
        file_system::name(&self.root)
    }

    fn folder(&self, folder: Folder, op: Operation) -> Result<&OwnedFd> {
        let cell = match folder {
            Folder::Root => return Ok(&self.root),
            Folder::Segments => &self.folders[0],
            Folder::Quarantine => &self.folders[1],
        };
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let found = openat(&self.root, folder.as_str(), OPEN_FOLDER, Mode::empty())
            .map_err(|errno| DiskError { op, ..not_a_directory(errno, None) })?;
        let stat = fstat(&found).map_err(|errno| failed(Operation::Stat, errno, None))?;
        check_private(&stat)?;
        if stat.st_dev != self.identity()?.0 {
            return Err(refused(op, "a folder of the data directory is on another file system", None));
        }
        // Another thread may have been faster; then its descriptor stays and this one is closed.
        Ok(cell.get_or_init(|| found))
    }

    /// Holds the lock from now on, for as long as this disk or the claim lives.
    pub(super) fn claim(&mut self) -> Result<Arc<Claim>> {
        let claim = Claim::take(&self.root)?;
        self.claim = Some(Arc::clone(&claim));
        Ok(claim)
    }

    fn identity(&self) -> Result<(u64, u64)> {
        fstat(&self.root).map(|stat| place(&stat)).map_err(|errno| failed(Operation::Stat, errno, None))
    }

    fn open_file(&self, name: &Name, flags: OFlags, op: Operation) -> Result<OwnedFd> {
        let folder = self.folder(name.folder(), op)?;
        // Non-blocking: a named pipe under that name must be refused, not waited for.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(folder, name.file(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| failed(op, errno, Some(name)))?;
        let stat = fstat(&file).map_err(|errno| failed(Operation::Stat, errno, Some(name)))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused(op, "not a regular file", Some(name)));
        }
        Ok(file)
    }

    fn open_handle(&self, name: &Name, flags: OFlags, op: Operation) -> Result<Arc<dyn LogFile>> {
        let file = self.open_file(name, flags, op)?;
        Ok(Arc::new(RealFile::new(name, file, None)))
    }

    fn rename_with(&self, from: &Name, to: &Name, flags: RenameFlags) -> Result<()> {
        if from.folder() != to.folder() {
            let error = DiskError::new(Operation::Rename, ErrorKind::Unsupported, Some(from));
            return Err(DiskError { detail: Some("a rename stays within its folder"), ..error });
        }
        let folder = self.folder(from.folder(), Operation::Rename)?;
        let renamed = match flags.is_empty() {
            true => renameat(folder, from.file(), folder, to.file()),
            false => renameat_with(folder, from.file(), folder, to.file(), flags),
        };
        renamed.map_err(|errno| failed(Operation::Rename, errno, Some(from)))
    }
}

impl Disk for RealDisk {
    fn lock(&self) -> Result<Box<dyn DiskLock>> {
        match &self.claim {
            Some(claim) => claim.lend(),
            None => lock::take(&self.root),
        }
    }

    fn is_locked(&self) -> Result<bool> {
        match &self.claim {
            Some(claim) => Ok(claim.is_lent()),
            None => lock::is_held(&self.root),
        }
    }

    fn check_identity(&self, files: &[(Name, FileId)]) -> Result<()> {
        let moved = |_| refused(Operation::Stat, "the path no longer leads to the opened directory", None);
        let now = lstat(&self.path).map_err(moved)?;
        if place(&now) != self.identity()? {
            return Err(moved(Errno::NOENT));
        }
        for (cell, folder) in self.folders.iter().zip([Folder::Segments, Folder::Quarantine]) {
            let Some(known) = cell.get() else { continue };
            let known = fstat(known).map_err(|errno| failed(Operation::Stat, errno, None))?;
            let now = statat(&self.root, folder.as_str(), AtFlags::SYMLINK_NOFOLLOW).map_err(moved)?;
            if place(&now) != place(&known) {
                return Err(moved(Errno::NOENT));
            }
        }
        for (name, id) in files {
            let folder = self.folder(name.folder(), Operation::Stat)?;
            let gone =
                |_| refused(Operation::Stat, "the name no longer leads to the opened file", Some(name));
            let now = statat(folder, name.file(), AtFlags::SYMLINK_NOFOLLOW).map_err(gone)?;
            if place(&now) != (id.device, id.inode) {
                return Err(gone(Errno::NOENT));
            }
        }
        Ok(())
    }

    fn make_folder(&self, folder: Folder) -> Result<()> {
        if folder == Folder::Root {
            return Ok(());
        }
        match mkdirat(&self.root, folder.as_str(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.folder(folder, Operation::Create).map(|_| ()),
            Err(errno) => Err(failed(Operation::Create, errno, None)),
        }
    }

    fn list(&self, folder: Folder) -> Result<Vec<Entry>> {
        let directory = self.folder(folder, Operation::List)?;
        let fail = |errno| failed(Operation::List, errno, None);
        let mut entries = Vec::new();
        for entry in Dir::read_from(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let file = entry.file_name();
            if matches!(file.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = match statat(directory, file, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // Removed since the folder was read.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(fail(errno)),
            };
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => FileKind::File,
                FileType::Directory => FileKind::Directory,
                _ => FileKind::Other,
            };
            let length = if kind == FileKind::File { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
            entries.push(Entry { file: file.to_string_lossy().into_owned(), kind, length });
        }
        entries.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(entries)
    }

    fn open(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.open_handle(name, OFlags::RDONLY, Operation::Open)
    }

    fn open_for_write(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.open_handle(name, OFlags::RDWR, Operation::Open)
    }

    fn create(&self, name: &Name) -> Result<Arc<dyn LogFile>> {
        self.open_handle(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, Operation::Create)
    }

    fn open_direct(&self, name: &Name) -> Result<Option<Arc<dyn LogFile>>> {
        let buffered = self.open_file(name, OFlags::RDONLY, Operation::Open)?;
        if !uncached::direct_works(&buffered) {
            return Ok(None);
        }
        let direct = match self.open_file(name, OFlags::RDWR | OFlags::DIRECT, Operation::Open) {
            Ok(direct) => direct,
            Err(error) if error.kind == ErrorKind::Unsupported => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Arc::new(RealFile::new(name, buffered, Some(direct)))))
    }

    fn rename(&self, from: &Name, to: &Name) -> Result<()> {
        self.rename_with(from, to, RenameFlags::empty())
    }

    fn rename_new(&self, from: &Name, to: &Name) -> Result<()> {
        self.rename_with(from, to, RenameFlags::NOREPLACE)
    }

    fn remove(&self, name: &Name) -> Result<()> {
        let folder = self.folder(name.folder(), Operation::Remove)?;
        unlinkat(folder, name.file(), AtFlags::empty())
            .map_err(|errno| failed(Operation::Remove, errno, Some(name)))
    }

    fn sync_folder(&self, folder: Folder) -> Result<()> {
        let directory = self.folder(folder, Operation::SyncDirectory)?;
        fsync(directory).map_err(|errno| failed(Operation::SyncDirectory, errno, None))
    }

    fn space(&self) -> Result<Space> {
        file_system::space(&self.root)
    }
}

impl std::fmt::Debug for RealDisk {
    /// Without the path: this may end up in a message that leaves the machine.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RealDisk").field("warnings", &self.warnings).finish_non_exhaustive()
    }
}

/// The detail of a directory that is not ours.
pub const FOREIGN_OWNER: &str = "the directory belongs to another user";
/// The detail of a directory that is ours, but not ours alone.
pub const OPEN_TO_OTHERS: &str = "the directory is open to its group or to others";

fn check_private(stat: &Stat) -> Result<()> {
    if stat.st_uid != geteuid().as_raw() {
        return Err(refused(Operation::Open, FOREIGN_OWNER, None));
    }
    if !(Mode::from_raw_mode(stat.st_mode) & (Mode::RWXG | Mode::RWXO)).is_empty() {
        return Err(refused(Operation::Open, OPEN_TO_OTHERS, None));
    }
    Ok(())
}

fn place(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn not_a_directory(errno: Errno, file: Option<&Name>) -> DiskError {
    match errno {
        Errno::LOOP | Errno::NOTDIR => refused(Operation::Open, "a link, or not a directory", file),
        other => failed(Operation::Open, other, file),
    }
}
