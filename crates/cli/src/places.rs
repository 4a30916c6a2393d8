//! Where things are unless told otherwise, and what may be a data directory.
//!
//! Owns the environment variables that name folders. Must never write.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, open, stat};
use rustix::process::geteuid;
use sealog_disk::real::{OpenOptions, RealDisk};
use sealog_disk::{Disk, DiskError, ErrorKind, Folder};
use sealog_seal::StoreId;

use crate::args::PlaceArgs;
use crate::failure::{Failure, Result, shown};
use crate::render::Render;

/// The variable that [`data_dir`] goes by.
pub fn data_dir_variable() -> &'static str {
    if absolute(std::env::var_os("XDG_STATE_HOME")).is_some() { "XDG_STATE_HOME" } else { "HOME" }
}

/// The node's data directory where none is named: `$XDG_STATE_HOME/sealog`, else `~/.local/state/sealog`.
///
/// # Errors
/// Exit 2: neither variable is set to an absolute path.
pub fn data_dir() -> Result<PathBuf> {
    base("XDG_STATE_HOME", ".local/state").map(|base| base.join("sealog")).ok_or_else(|| {
        Failure::usage("no_data_dir", "neither XDG_STATE_HOME nor HOME says where the journal is")
            .next("run the same command with --data-dir DIR")
    })
}

/// The key file of a store: `sealog/<store id>.key` under `$XDG_CONFIG_HOME`, else `~/.config`.
pub fn key_path(store_id: StoreId) -> Option<PathBuf> {
    base("XDG_CONFIG_HOME", ".config").map(|base| base.join("sealog").join(format!("{store_id}.key")))
}

/// The service manager's credential.
pub fn credential_path() -> Option<PathBuf> {
    absolute(std::env::var_os("CREDENTIALS_DIRECTORY")).map(|folder| folder.join("sealog.key"))
}

fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let home = || absolute(std::env::var_os("HOME")).map(|home| home.join(below_home));
    absolute(std::env::var_os(variable)).or_else(home)
}

/// The XDG rules: an empty or relative value counts as unset.
fn absolute(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether a journal was made there, as far as its last file tells.
pub fn holds_store(dir: &Path) -> bool {
    stat(dir.join("store")).is_ok()
}

/// What is made of a journal never stands in the journal's own directory: a backup or an export there is lost with it,
/// and a key goes wherever a copy of it goes.
///
/// # Errors
/// Exit 2: `target` is the directory of the journal or lies in it. Neither need exist yet.
pub fn outside(dir: &Path, target: &Path) -> Result<()> {
    if !lies_in(target, dir) {
        return Ok(());
    }
    let what = format!("{} lies in the directory of the journal", shown(target));
    Err(Failure::usage("bad_argument", what).next(format!("name a place outside of {}", shown(dir))))
}

/// Links and `..` count as what they lead to.
fn lies_in(target: &Path, dir: &Path) -> bool {
    let same = |a: &Stat, b: &Stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    let directory = |path: &Path| {
        stat(path).ok().filter(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    };
    let Ok(target) = std::path::absolute(target) else { return false };
    let Some(sought) = directory(dir) else {
        // It is about to be made, and so is whatever it leads over.
        return std::path::absolute(dir).is_ok_and(|dir| target.starts_with(dir));
    };
    let Some(mut at) = target.ancestors().find(|path| directory(path).is_some()).map(Path::to_path_buf)
    else {
        return false;
    };
    let mut here = directory(&at);
    while let Some(now) = here {
        if same(&now, &sought) {
            return true;
        }
        at.push("..");
        // The root is above itself.
        here = directory(&at).filter(|above| !same(above, &now));
    }
    false
}

/// Opens an existing data directory.
///
/// # Errors
/// Exit 10 if there is none, 1 if it is not private to this user or on a network file system.
pub fn open_existing(dir: &Path, args: PlaceArgs, render: Render) -> Result<RealDisk> {
    let options = OpenOptions { create: false, allow_network_fs: args.allow_network_fs };
    let disk = RealDisk::open(dir, options).map_err(|error| Failure::directory(error, dir))?;
    warn(&disk, render);
    Ok(disk)
}

/// As [`open_existing`]; `None` if there is no such directory. An empty directory of ours that its group or others
/// may look into is closed to them: nothing in it can be theirs.
///
/// # Errors
/// As [`open_existing`], but for its absence.
pub fn open_if_there(dir: &Path, args: PlaceArgs, render: Render) -> Result<Option<RealDisk>> {
    let options = OpenOptions { create: false, allow_network_fs: args.allow_network_fs };
    let disk = match RealDisk::open(dir, options) {
        Err(error) if error.kind == ErrorKind::Unsafe && close_if_empty(dir) => RealDisk::open(dir, options),
        other => other,
    };
    match disk {
        Ok(disk) => {
            warn(&disk, render);
            Ok(Some(disk))
        }
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::directory(error, dir)),
    }
}

/// Makes the directory and what is missing above it.
///
/// # Errors
/// As the storage calls say.
pub fn make(dir: &Path, args: PlaceArgs, render: Render) -> Result<RealDisk> {
    let options = OpenOptions { create: true, allow_network_fs: args.allow_network_fs };
    let disk = RealDisk::open(dir, options).map_err(|error| Failure::directory(error, dir))?;
    warn(&disk, render);
    Ok(disk)
}

fn warn(disk: &RealDisk, render: Render) {
    for warning in disk.warnings() {
        render.note(&format!("warning: {warning}"));
    }
}

/// Whether the directory is ours and empty and now closed to everybody else. The descriptor that was judged is the
/// one that is changed, and a link is not followed.
fn close_if_empty(dir: &Path) -> bool {
    ours_and_empty(dir).is_some_and(|directory| fchmod(&directory, Mode::RWXU).is_ok())
}

/// Whether a directory that is open to others is one that the first start closes and takes.
pub fn is_closed_by_start(dir: &Path) -> bool {
    ours_and_empty(dir).is_some()
}

fn ours_and_empty(dir: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(dir, flags, Mode::empty()).ok()?;
    let ours = fstat(&directory).is_ok_and(|stat| stat.st_uid == geteuid().as_raw());
    let empty = Dir::read_from(&directory).ok()?.all(|entry| {
        entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".." | b"lost+found"))
    });
    (ours && empty).then_some(directory)
}

/// Something in the directory that no journal put there.
///
/// # Errors
/// The directory cannot be listed.
pub fn holds_other_files(disk: &RealDisk) -> std::result::Result<bool, DiskError> {
    const OURS: [&str; 8] =
        ["LOCK", "store.tmp", "keyring.0", "keyring.1", "keyring.tmp", "head", "head.tmp", "lost+found"];
    let entries = disk.list(Folder::Root)?;
    let folder = |file: &str| Folder::ALL.iter().any(|known| known.as_str() == file);
    Ok(entries.iter().any(|entry| !OURS.contains(&entry.file.as_str()) && !folder(&entry.file)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const RENDER: Render = Render { json: false };

    #[expect(clippy::disallowed_methods, reason = "a test prepares a directory from outside")]
    fn open_up(path: &Path) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn only_an_empty_directory_is_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        open_up(dir.path());
        let disk = open_if_there(dir.path(), PlaceArgs::default(), RENDER).unwrap().unwrap();
        assert!(!holds_other_files(&disk).unwrap());
        open_up(dir.path());
        let other = tempfile::NamedTempFile::new_in(dir.path()).unwrap();
        assert!(holds_other_files(&disk).unwrap());
        let failure = open_if_there(dir.path(), PlaceArgs::default(), RENDER).unwrap_err();
        assert_eq!(failure.code, "unsafe_directory");
        drop(other);
        assert!(open_if_there(&dir.path().join("absent"), PlaceArgs::default(), RENDER).unwrap().is_none());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test makes directories from outside")]
    fn what_lies_in_a_directory_is_told_whatever_the_way_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("data/segments")).unwrap();
        std::fs::create_dir(at("database")).unwrap();
        std::os::unix::fs::symlink(at("data"), at("link")).unwrap();
        for inside in ["data", "data/", "data/new", "data/segments/a/b", "link/new", "database/../data/new"] {
            assert!(lies_in(&at(inside), &at("data")), "{inside}");
            assert_eq!(outside(&at("link"), &at(inside)).unwrap_err().code, "bad_argument", "{inside}");
        }
        for beside in ["", "copy", "database", "database/new", "data/../copy", "link/../copy"] {
            assert!(!lies_in(&at(beside), &at("data")), "{beside}");
        }
        assert!(!lies_in(&at("data"), &at("absent")));
        assert!(lies_in(&at("absent/key"), &at("absent")) && !lies_in(&at("absent.key"), &at("absent")));
    }

    #[test]
    fn relative_and_empty_variables_count_as_unset() {
        assert_eq!(absolute(Some("".into())), None);
        assert_eq!(absolute(Some("relative".into())), None);
        assert_eq!(absolute(Some("/abs".into())), Some(PathBuf::from("/abs")));
        assert_eq!(absolute(None), None);
    }
}
