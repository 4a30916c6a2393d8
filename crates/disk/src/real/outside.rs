//! Files outside the data directory: key, credential and configuration files, and inherited descriptors.
//!
//! Owns their bounded reading and the durable creation of a secret. Paths here were chosen by the operator, so
//! links are followed on reading; errors still never carry the path.

use std::fmt;
use std::io::Write;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, SeekFrom, Stat, flock, fstat,
    fsync, mkdir, open, openat, rename, renameat_with, seek, unlinkat,
};
use rustix::io::{Errno, read};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, geteuid, getpid, pidfd_getfd, pidfd_open};

use super::errno::{failed, failed_io};
use super::longest::within;
use crate::{DiskError, ErrorKind, Operation};

type Result<T> = std::result::Result<T, DiskError>;

/// Bytes of a file and what a caller needs to judge whether it may trust them.
pub struct FileContent {
    pub bytes: Vec<u8>,
    /// A regular file rather than a pipe, terminal or device.
    pub regular: bool,
    /// Permission bits, such as `0o600`.
    pub mode: u32,
    /// Owned by the user this process runs as.
    pub ours: bool,
}

impl FileContent {
    /// Whether group or others may do anything with it.
    pub fn open_to_others(&self) -> bool {
        self.mode & 0o077 != 0
    }
}

impl fmt::Debug for FileContent {
    /// Without the bytes: they may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileContent { bytes, regular, mode, ours } = self;
        let mut shape = f.debug_struct("FileContent");
        shape
            .field("len", &bytes.len())
            .field("regular", regular)
            .field("mode", mode)
            .field("ours", ours)
            .finish()
    }
}

/// Reads a whole file, at most `max_bytes`. The buffer is allocated once, so that wiping it wipes every copy.
///
/// # Errors
/// `Unsupported` with a detail if there is more; otherwise what the system said.
pub fn read_file(path: &Path, max_bytes: usize) -> Result<FileContent> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = open(path, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, errno, None))?;
    content(&file, max_bytes)
}

/// Reads an inherited descriptor to its end, at most `max_bytes`. Descriptor 0 is standard input; others are
/// opened anew through `/proc`, so that nothing of them is used up. What this user may not open, or nobody can (a
/// socket), is read as it was handed over.
///
/// # Errors
/// As [`read_file`]; `NotFound` if there is no such descriptor.
pub fn read_fd(descriptor: u32, max_bytes: usize) -> Result<FileContent> {
    if descriptor == 0 {
        return content(std::io::stdin(), max_bytes);
    }
    match read_file(Path::new(&format!("/proc/self/fd/{descriptor}")), max_bytes) {
        Err(error) if [ErrorKind::PermissionDenied, ErrorKind::Unsafe].contains(&error.kind) => {
            content(handed_over(descriptor).map_err(|errno| failed(Operation::Open, errno, None))?, max_bytes)
        }
        other => other,
    }
}

/// A descriptor of our own for what an inherited one leads to. A file stands at its beginning: somebody may have read
/// it before.
fn handed_over(descriptor: u32) -> std::result::Result<OwnedFd, Errno> {
    let number = RawFd::try_from(descriptor).map_err(|_| Errno::BADF)?;
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    let file = pidfd_getfd(&this, number, PidfdGetfdFlags::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile {
        seek(&file, SeekFrom::Start(0))?;
    }
    Ok(file)
}

/// As [`read_file`], for a file that is read while others wait, or read again: what is not regular is opened without
/// waiting for anybody, has no bytes, and says so.
///
/// # Errors
/// As [`read_file`].
pub fn read_regular(path: &Path, max_bytes: usize) -> Result<FileContent> {
    // A pipe that nobody writes to would be waited for. A regular file does not know the flag.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = open(path, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, errno, None))?;
    let stat = fstat(&file).map_err(|errno| failed(Operation::Stat, errno, None))?;
    if is_regular(&stat) { content(&file, max_bytes) } else { Ok(described(&stat, Vec::new())) }
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

fn described(stat: &Stat, bytes: Vec<u8>) -> FileContent {
    let mode = Mode::from_raw_mode(stat.st_mode).bits();
    FileContent { bytes, regular: is_regular(stat), mode, ours: stat.st_uid == geteuid().as_raw() }
}

fn content(file: impl std::os::fd::AsFd, max_bytes: usize) -> Result<FileContent> {
    let stat = fstat(&file).map_err(|errno| failed(Operation::Stat, errno, None))?;
    // One byte more than allowed tells a full file from an overlong one. A regular file needs no more than it has.
    let length = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    let room = if is_regular(&stat) { length.min(max_bytes) } else { max_bytes };
    let mut bytes = vec![0; room.saturating_add(1)];
    let mut done = 0;
    while done < bytes.len() {
        match read(&file, &mut bytes[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(Operation::Read, errno, None)),
        }
    }
    if done > room {
        let error = DiskError::new(Operation::Read, ErrorKind::Unsupported, None);
        return Err(DiskError { detail: Some("there is more than may be read"), ..error });
    }
    bytes.truncate(done);
    Ok(described(&stat, bytes))
}

/// Creates a file (0600) that must not exist, complete and durable, with what is missing of the directories
/// above it (0700). Bytes and sync come before the name, so that a crash never leaves half a key under it.
///
/// # Errors
/// `AlreadyExists` if there is anything under that name; nothing was changed then.
pub fn create_secret_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes).map_err(|error| failed_io(Operation::Create, &error, None))?;
    file.publish()
}

/// As [`create_secret_file`], and in the place of a file of that name if there is one: afterwards there is the old
/// one or the new one, whole.
///
/// # Errors
/// What the system said; the old file is as it was.
pub fn replace_secret_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let (path, parent) = placed(path)?;
    let mut file = unnamed_in(&parent)?;
    file.as_file_mut().write_all(bytes).map_err(|error| failed_io(Operation::Create, &error, None))?;
    fsync(file.as_file()).map_err(|errno| failed(Operation::Sync, errno, None))?;
    rename(file.path(), &path).map_err(|errno| failed(Operation::Rename, errno, None))?;
    // The name is gone; there is nothing left to clean up.
    file.disable_cleanup(true);
    sync_directory(&parent)
}

/// The turn of one process at the files of a directory. It ends when this is dropped, or the process.
#[derive(Debug)]
#[must_use]
pub struct Turn {
    _directory: OwnedFd,
}

/// Waits for the turn at the directory that `path` stands in, with what is missing of the directories above it (0700).
/// Whoever reads a file and puts a changed one in its place holds it meanwhile, so that no change of another is lost.
///
/// # Errors
/// The directory cannot be made or opened. Where a file system has no locks there are no turns.
pub fn take_turn(path: &Path) -> Result<Turn> {
    let (_, parent) = placed(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory =
        open(&parent, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, errno, None))?;
    while flock(&directory, FlockOperation::LockExclusive) == Err(Errno::INTR) {}
    Ok(Turn { _directory: directory })
}

/// A path from the root, and its directory, which is there when this returns.
fn placed(path: &Path) -> Result<(PathBuf, PathBuf)> {
    let path = std::path::absolute(path).map_err(|error| failed_io(Operation::Create, &error, None))?;
    let parent = path.parent().ok_or_else(|| DiskError::new(Operation::Create, ErrorKind::Unsafe, None))?;
    make_directories(parent)?;
    let parent = parent.to_owned();
    Ok((path, parent))
}

/// Between these stands what tempfile draws.
const UNNAMED_PREFIX: &str = ".sealog-";
const UNNAMED_SUFFIX: &str = ".tmp";

/// A locked file that has no name of its own yet.
fn unnamed_in(parent: &Path) -> Result<tempfile::NamedTempFile> {
    let mut unnamed = tempfile::Builder::new();
    unnamed.prefix(UNNAMED_PREFIX).suffix(UNNAMED_SUFFIX);
    loop {
        // What tempfile says of a failure has no number any more.
        let mut refused = None;
        let made = unnamed.make_in(parent, |path| {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = open(path, flags, Mode::RUSR | Mode::WUSR).inspect_err(|errno| refused = Some(*errno));
            Ok(std::fs::File::from(file?))
        });
        let temporary = made.map_err(|error| match refused {
            Some(errno) => failed(Operation::Create, errno, None),
            None => failed_io(Operation::Create, &error, None),
        })?;
        // Where a file system has no locks nothing is ever swept.
        let _ = flock(temporary.as_file(), FlockOperation::NonBlockingLockExclusive);
        // A sweep may have come between the two.
        if fstat(temporary.as_file()).is_ok_and(|stat| stat.st_nlink > 0) {
            return Ok(temporary);
        }
    }
}

/// A file that is being written and has no name yet. Dropped, it leaves nothing; of a process that is killed meanwhile
/// [`sweep_unnamed`] removes it. It is locked as long as it has no name, which tells the two apart.
#[derive(Debug)]
pub struct NewFile {
    // 0600 and never an existing file, both by tempfile's own doing; removed again unless renamed.
    temporary: tempfile::NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Begins one (0600), with what is missing of the directories above it (0700).
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything under that name.
    pub fn create(path: &Path) -> Result<NewFile> {
        let path = std::path::absolute(path).map_err(|error| failed_io(Operation::Create, &error, None))?;
        if path.symlink_metadata().is_ok() {
            return Err(DiskError::new(Operation::Create, ErrorKind::AlreadyExists, None));
        }
        let (path, parent) = placed(&path)?;
        Ok(NewFile { temporary: unnamed_in(&parent)?, path })
    }

    /// Gives it its name, complete and durable: bytes and sync come first.
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything under that name by now; nothing was changed then.
    pub fn publish(mut self) -> Result<()> {
        fsync(self.temporary.as_file()).map_err(|errno| failed(Operation::Sync, errno, None))?;
        match renameat_with(CWD, self.temporary.path(), CWD, &self.path, RenameFlags::NOREPLACE) {
            // The name is gone; there is nothing left to clean up.
            Ok(()) => self.temporary.disable_cleanup(true),
            Err(errno) => return Err(failed(Operation::Create, errno, None)),
        }
        let synced = self.path.parent().map_or(Ok(()), sync_directory);
        if synced.is_err() {
            // Whoever is told of a failure finds nothing under the name: a key without its journal would stand for one
            // that is missing.
            let _ = unlinkat(CWD, &self.path, AtFlags::empty());
        }
        synced
    }
}

impl Write for NewFile {
    // To the file itself: its temporary name is nobody's concern, and what went wrong keeps its number.
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let length = fstat(self.temporary.as_file())?.st_size as u64;
        within(length + buf.len() as u64)?;
        self.temporary.as_file().write(buf)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.temporary.as_file().flush()
    }
}

/// What a write to a [`NewFile`] said.
#[must_use]
pub fn write_failed(error: &std::io::Error) -> DiskError {
    failed_io(Operation::Write, error, None)
}

/// Removes what killed processes left of new files in this directory: ours, regular, and locked by nobody. How many.
/// What cannot be judged or removed stays.
pub fn sweep_unnamed(folder: &Path) -> usize {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = open(folder, flags, Mode::empty()) else { return 0 };
    let Ok(entries) = Dir::read_from(&directory) else { return 0 };
    let unnamed = entries.flatten().filter(|entry| {
        let name = entry.file_name().to_bytes();
        name.starts_with(UNNAMED_PREFIX.as_bytes()) && name.ends_with(UNNAMED_SUFFIX.as_bytes())
    });
    let swept = unnamed.filter(|entry| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(file) = openat(&directory, entry.file_name(), flags, Mode::empty()) else { return false };
        let ours = fstat(&file).is_ok_and(|stat| is_regular(&stat) && stat.st_uid == geteuid().as_raw());
        ours && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            && unlinkat(&directory, entry.file_name(), AtFlags::empty()).is_ok()
    });
    swept.count()
}

/// Opens a regular file that the operator names, for reading in pieces.
///
/// # Errors
/// `Unsupported` for anything that is not a regular file.
pub fn open_regular(path: &Path) -> Result<std::fs::File> {
    // Non-blocking: a pipe that nobody writes to is refused, not waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = open(path, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, errno, None))?;
    let stat = fstat(&file).map_err(|errno| failed(Operation::Stat, errno, None))?;
    if !is_regular(&stat) {
        return Err(DiskError::new(Operation::Open, ErrorKind::Unsupported, None));
    }
    Ok(file.into())
}

/// Makes a directory (0700) and what is missing above it; each new entry is durable on return.
pub(super) fn make_directories(path: &Path) -> Result<()> {
    match mkdir(path, Mode::RWXU) {
        Ok(()) => path.parent().map_or(Ok(()), sync_directory),
        Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => {
            let parent = path.parent().ok_or_else(|| failed(Operation::Create, Errno::NOENT, None))?;
            make_directories(parent)?;
            mkdir(path, Mode::RWXU).map_err(|errno| failed(Operation::Create, errno, None))?;
            sync_directory(parent)
        }
        Err(errno) => Err(failed(Operation::Create, errno, None)),
    }
}

pub(super) fn sync_directory(path: &Path) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory: OwnedFd =
        open(path, flags, Mode::empty()).map_err(|errno| failed(Operation::SyncDirectory, errno, None))?;
    fsync(&directory).map_err(|errno| failed(Operation::SyncDirectory, errno, None))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_file_that_was_handed_over_reads_whole_as_often_as_asked() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"key").unwrap();
        let number = u32::try_from(file.as_raw_fd()).unwrap();
        for _ in 0..2 {
            let read = content(handed_over(number).unwrap(), 3).unwrap();
            assert_eq!((&read.bytes[..], read.regular), (&b"key"[..], true));
        }
        assert_eq!(handed_over(1_000_000).unwrap_err(), Errno::BADF);
        assert_eq!(handed_over(u32::MAX).unwrap_err(), Errno::BADF);
    }
}
