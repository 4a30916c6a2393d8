//! A socket in the file system: owner only, and a name that a dead process left behind is taken over.
//!
//! Owns the name while the listener lives. Must never remove what is not a socket, or one that somebody serves.

use std::fmt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, chmodat, lstat, rename, unlink};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use super::errno::{failed, failed_io};
use crate::{DiskError, ErrorKind, Operation};

/// Connections that wait in the kernel.
const BACKLOG: i32 = 1024;

/// A listening socket under its name. The name goes when this is dropped, unless somebody else took it.
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// Listens at `path`, which only this user may then connect to. A socket nobody serves any more is replaced.
    ///
    /// # Errors
    /// `AlreadyExists`: something that is no socket has the name. `Contended`: somebody serves it. Otherwise what the
    /// system said.
    pub fn listen(path: &Path) -> Result<(SocketFile, UnixListener), DiskError> {
        let create = |errno: Errno| failed(Operation::Create, errno, None);
        let path = std::path::absolute(path).map_err(|error| failed_io(Operation::Create, &error, None))?;
        is_free(&path)?;
        // Bound beside its place and closed to others before anybody can connect; the rename takes a stale one's place.
        let mut beside = path.clone().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let address = SocketAddrUnix::new(&beside).map_err(create)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(create)?;
        match unlink(&beside) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(create(errno)),
        }
        bind(&socket, &address).map_err(create)?;
        let named = (|| {
            chmodat(CWD, &beside, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
            listen(&socket, BACKLOG)?;
            let stat = lstat(&beside)?;
            rename(&beside, &path)?;
            Ok(stat)
        })();
        match named {
            Ok(stat) => {
                let file = SocketFile { path, device: stat.st_dev, inode: stat.st_ino };
                Ok((file, UnixListener::from(socket)))
            }
            Err(errno) => {
                // Best effort: what is left has a name that the next try removes.
                let _ = unlink(&beside);
                Err(create(errno))
            }
        }
    }
}

fn is_free(path: &Path) -> Result<(), DiskError> {
    let refused = |kind| Err(DiskError::new(Operation::Create, kind, None));
    match lstat(path) {
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(failed(Operation::Stat, errno, None)),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Socket => {
            return refused(ErrorKind::AlreadyExists);
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed_io(Operation::Open, &error, None)),
        Ok(_) => refused(ErrorKind::Contended),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours =
            lstat(&self.path).is_ok_and(|stat| stat.st_dev == self.device && stat.st_ino == self.inode);
        if ours {
            // A name that stays is stale, and the next listener takes it.
            let _ = unlink(&self.path);
        }
    }
}

impl fmt::Debug for SocketFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketFile").finish_non_exhaustive()
    }
}
