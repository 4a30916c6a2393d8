//! Which file systems a journal may live on. Owns the table of magic numbers.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstatfs, fstatvfs, open};

use super::errno::{failed, refused};
use crate::{DiskError, Operation, Space};

/// What an operator should know about the data directory's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Kept in memory: nothing survives a reboot.
    Memory(&'static str),
    /// A union of directories, as containers have: it goes when the container goes.
    Overlay,
    /// Allowed on request. Locks and syncs may not mean what they say.
    Network(&'static str),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Memory(name) => write!(f, "the data directory is on {name}: a reboot empties it"),
            Warning::Overlay => {
                f.write_str("the data directory is on overlayfs: it may vanish with its container")
            }
            Warning::Network(name) => {
                write!(
                    f,
                    "the data directory is on {name}, a network file system: locks and syncs may not hold"
                )
            }
        }
    }
}

/// `statfs` magic numbers that mean: another machine, or another process, decides what a sync does.
const NETWORK: [(u32, &str); 19] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "kAFS"),
    (0x7375_7245, "Coda"),
    (0x564C, "NCP"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x786F_4256, "vboxsf"),
    (0xBACB_ACBC, "vmhgfs"),
    (0xAAD7_AAEA, "PanFS"),
];

const MEMORY: [(u32, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58F6, "ramfs")];

const OVERLAY: u32 = 0x794C_7630;

/// Local ones that are known by name.
const LOCAL: [(u32, &str); 8] = [
    (0xEF53, "ext4"),
    (0x5846_5342, "XFS"),
    (0x9123_683E, "Btrfs"),
    (0x2FC1_2FC1, "ZFS"),
    (0xF2F5_2010, "F2FS"),
    (0xCA45_1A4E, "bcachefs"),
    (0x4D44, "FAT"),
    (OVERLAY, "overlayfs"),
];

/// What the file system under a directory is called, as far as it is known.
pub(super) fn name(directory: &OwnedFd) -> &'static str {
    let magic = fstatfs(directory).map(|found| found.f_type as u32).unwrap_or_default();
    let tables = NETWORK.iter().chain(&MEMORY).chain(&LOCAL);
    tables.into_iter().find(|row| row.0 == magic).map_or("unknown", |row| row.1)
}

/// What a data directory would stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// As [`super::RealDisk::file_system`].
    pub name: &'static str,
    pub warning: Option<Warning>,
    pub space: Space,
}

/// Looks at the file system of a directory, whoever's it is.
///
/// # Errors
/// `Unsafe`, the file system's name as detail, for a network file system that was not allowed; what the system says.
pub fn ground(directory: &Path, allow_network: bool) -> Result<Ground, DiskError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory =
        open(directory, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, errno, None))?;
    let warning = judge(&directory, allow_network)?.first().copied();
    Ok(Ground { name: name(&directory), warning, space: space(&directory)? })
}

pub(super) fn space(directory: &OwnedFd) -> Result<Space, DiskError> {
    let found = fstatvfs(directory).map_err(|errno| failed(Operation::Space, errno, None))?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Space { available: bytes(found.f_bavail), total: bytes(found.f_blocks) })
}

/// Whether that is the name of a network file system, as [`DiskError::detail`] gives it.
pub fn is_network(name: &str) -> bool {
    NETWORK.iter().any(|row| row.1 == name)
}

/// # Errors
/// `Unsafe`, the file system's name as detail, for a network file system that was not allowed.
pub(super) fn judge(directory: &OwnedFd, allow_network: bool) -> Result<Vec<Warning>, DiskError> {
    let found = fstatfs(directory).map_err(|errno| failed(Operation::Stat, errno, None))?;
    // Magic numbers have 32 bits; the field's width and sign differ between architectures.
    judge_magic(found.f_type as u32, allow_network)
}

fn judge_magic(magic: u32, allow_network: bool) -> Result<Vec<Warning>, DiskError> {
    let named = |table: &[(u32, &'static str)]| table.iter().find(|row| row.0 == magic).map(|row| row.1);
    match (named(&NETWORK), named(&MEMORY)) {
        (Some(name), _) if allow_network => Ok(vec![Warning::Network(name)]),
        (Some(name), _) => Err(refused(Operation::Open, name, None)),
        (None, Some(name)) => Ok(vec![Warning::Memory(name)]),
        (None, None) if magic == OVERLAY => Ok(vec![Warning::Overlay]),
        (None, None) => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn network_file_systems_are_refused_unless_allowed() {
        for (magic, name) in NETWORK {
            let error = judge_magic(magic, false).expect_err("refused");
            assert_eq!((error.kind, error.detail), (ErrorKind::Unsafe, Some(name)));
            assert!(is_network(name) && !is_network("ext4"));
            assert_eq!(judge_magic(magic, true).unwrap(), [Warning::Network(name)]);
        }
    }

    #[test]
    fn local_file_systems_pass_and_volatile_ones_warn() {
        assert_eq!(judge_magic(0xEF53, false).unwrap(), []);
        assert_eq!(judge_magic(0x5846_5342, false).unwrap(), []);
        assert_eq!(judge_magic(0x0102_1994, false).unwrap(), [Warning::Memory("tmpfs")]);
        assert_eq!(judge_magic(OVERLAY, false).unwrap(), [Warning::Overlay]);
    }
}
