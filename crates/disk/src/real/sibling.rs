//! A directory that is built beside its place and gets its name in one step.
//!
//! Owns the hidden directory's name and the order of rename and sync. Must never replace anything but an empty
//! directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, open, rename, unlinkat};
use rustix::io::Errno;

use super::directory::{OpenOptions, RealDisk};
use super::errno::{failed, refused};
use super::lock::Claim;
use super::outside::{make_directories, sync_directory};
use crate::{Disk, DiskError, ErrorKind, Folder, Operation};

type Result<T> = std::result::Result<T, DiskError>;

/// Why a directory that was built has no name that lasts.
#[derive(Debug)]
pub struct NotCommitted {
    pub error: DiskError,
    /// It stands at its place, whole; only whether it still does after a crash is not known.
    pub stands: bool,
}

impl From<DiskError> for NotCommitted {
    fn from(error: DiskError) -> NotCommitted {
        NotCommitted { error, stands: false }
    }
}

/// `.<name>.building` beside `<name>`. Its lock is held until it has its name or is gone: whoever else builds the same must
/// not clear what is being built, and least of all what has its name by then.
#[derive(Debug)]
pub struct Sibling {
    hidden: PathBuf,
    place: PathBuf,
    _claim: Arc<Claim>,
}

impl Sibling {
    /// The place must be absent or an empty directory. What is missing above it is made. An earlier try's leftovers
    /// stay in the hidden directory for the caller to clear.
    ///
    /// # Errors
    /// `AlreadyExists` if there is something at the place, `Contended` while another process builds it; otherwise as
    /// [`RealDisk::open`].
    pub fn open(place: &Path, allow_network_fs: bool) -> Result<(Sibling, RealDisk)> {
        let fail = |error: std::io::Error| super::errno::failed_io(Operation::Open, &error, None);
        let place: PathBuf = std::path::absolute(place).map_err(fail)?.components().collect();
        let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(refused(Operation::Create, "the path names no directory that can be made", None));
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".building");
        let hidden = parent.join(hidden);
        loop {
            if !is_free(&place)? {
                return Err(failed(Operation::Create, Errno::EXIST, None));
            }
            make_directories(parent)?;
            let options = OpenOptions { create: true, allow_network_fs };
            let opened = RealDisk::open(&hidden, options).and_then(|mut disk| Ok((disk.claim()?, disk)));
            let (claim, disk) = match opened {
                // It was made, and went or got its name before it was open.
                Err(error) if error.kind == ErrorKind::NotFound => continue,
                other => other?,
            };
            // Whoever had the lock before may have given this directory its name since it was opened, or removed it.
            if disk.check_identity(&[]).is_ok() && is_free(&place)? {
                return Ok((Sibling { hidden, place, _claim: claim }, disk));
            }
        }
    }

    /// Gives the directory its name, durably. Everything in it must be durable already.
    ///
    /// # Errors
    /// Something has come to stand at the place meanwhile; whatever the calls said. A name that could not be synced is
    /// taken away again, so that whoever is told of a failure may do the same once more; the directory is hidden then, for
    /// the next try to clear. A crash may find either name, never a part of the content.
    pub fn commit(self) -> std::result::Result<(), NotCommitted> {
        rename(&self.hidden, &self.place).map_err(|errno| match errno {
            Errno::NOTEMPTY | Errno::NOTDIR => failed(Operation::Rename, Errno::EXIST, None),
            errno => failed(Operation::Rename, errno, None),
        })?;
        // Nobody has begun to use it: the lock is still held.
        self.place.parent().map_or(Ok(()), sync_directory).map_err(|error| {
            let stands = rename(&self.place, &self.hidden).is_err();
            NotCommitted { error, stands }
        })
    }

    /// Removes the hidden directory once its files are gone. What cannot be removed is found by the next try.
    pub fn discard(self) {
        remove_emptied(&self.hidden);
    }
}

/// Removes a data directory whose files are gone; one that holds anything stays, with what holds it.
pub fn remove_emptied(directory: &Path) {
    for folder in [Folder::Segments, Folder::Quarantine] {
        let _ = unlinkat(CWD, directory.join(folder.as_str()), AtFlags::REMOVEDIR);
    }
    let _ = unlinkat(CWD, directory, AtFlags::REMOVEDIR);
}

/// Nothing, or a directory without an entry.
fn is_free(place: &Path) -> Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match open(place, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(true),
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(false),
        Err(errno) => return Err(failed(Operation::Open, errno, None)),
    };
    let fail = |errno| failed(Operation::List, errno, None);
    let mut free = true;
    for entry in Dir::read_from(&directory).map_err(fail)? {
        free &= matches!(entry.map_err(fail)?.file_name().to_bytes(), b"." | b"..");
    }
    Ok(free)
}
