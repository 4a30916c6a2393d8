//! The real disk on this machine's temporary directory.

use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::io::{read_to_vec, write_all_at, write_all_durable_at};
use crate::scramble::ScrambleDisk;
use crate::{AlignedBuf, DIRECT_ALIGN, Disk, DiskError, ErrorKind, FileKind, Folder, Name, contract};

const CREATE: OpenOptions = OpenOptions { create: true, allow_network_fs: false };
const EXISTING: OpenOptions = OpenOptions { create: false, allow_network_fs: false };

/// A place beside the test binary, which is on a disk even where `/tmp` is memory.
fn scratch() -> tempfile::TempDir {
    let binary = std::env::current_exe().unwrap();
    tempfile::Builder::new().prefix("sealog-disk-").tempdir_in(binary.parent().unwrap()).unwrap()
}

/// Until its exec is through a child holds a copy of every descriptor of ours, locks included, and `spawn` returns a
/// moment before that. Tests that start a child write-lock this until the child has shown that it runs; tests that
/// see a lock released read-lock it.
static CHILDREN: RwLock<()> = RwLock::new(());

fn no_child_starts() -> RwLockReadGuard<'static, ()> {
    CHILDREN.read().unwrap_or_else(PoisonError::into_inner)
}

fn child_starts() -> RwLockWriteGuard<'static, ()> {
    CHILDREN.write().unwrap_or_else(PoisonError::into_inner)
}

fn root(file: &str) -> Name {
    Name::new(Folder::Root, file).unwrap()
}

#[track_caller]
fn refused(path: &Path, options: OpenOptions) -> DiskError {
    let error = RealDisk::open(path, options).expect_err("must be refused");
    assert!(!format!("{error:?} {error}").contains(path.to_str().unwrap()), "no path in errors");
    error
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn keeps_the_contract() {
    let _quiet = no_child_starts();
    let scratch = scratch();
    let count = std::cell::Cell::new(0);
    let fresh = || -> PathBuf {
        count.set(count.get() + 1);
        scratch.path().join(count.get().to_string())
    };
    contract::check(&|| Arc::new(RealDisk::open(&fresh(), CREATE).unwrap()));
    contract::check(&|| {
        let disk = RealDisk::open(&fresh(), CREATE).unwrap();
        Arc::new(ScrambleDisk::new(Arc::new(disk), 5))
    });
}

#[test]
fn keeps_the_contract_in_memory() {
    let _quiet = no_child_starts();
    let Ok(scratch) = tempfile::tempdir_in("/dev/shm") else { return };
    let count = std::cell::Cell::new(0);
    contract::check(&|| {
        count.set(count.get() + 1);
        Arc::new(RealDisk::open(&scratch.path().join(count.get().to_string()), CREATE).unwrap())
    });
}

#[test]
fn creates_private_directories() {
    let scratch = scratch();
    let path = scratch.path().join("a/b/data");
    assert_eq!(refused(&path, EXISTING).kind, ErrorKind::NotFound);
    let disk = RealDisk::open(&path, CREATE).unwrap();
    disk.make_folder(Folder::Segments).unwrap();
    disk.create(&root("f")).unwrap();
    for (inside, mode) in [("a", 0o700), ("a/b", 0o700), ("a/b/data", 0o700), ("a/b/data/segments", 0o700)] {
        let found = std::fs::metadata(scratch.path().join(inside)).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{inside}");
    }
    assert_eq!(std::fs::metadata(path.join("f")).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(RealDisk::open(&path, EXISTING).is_ok());
}

#[test]
fn refuses_what_is_not_a_private_directory() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    RealDisk::open(&data, CREATE).unwrap();
    let link = scratch.path().join("link");
    symlink(&data, &link).unwrap();
    let slashed = PathBuf::from(format!("{}/", link.display()));
    let file = scratch.path().join("file");
    std::fs::write(&file, b"").unwrap();
    for path in [&link, &slashed, &file, &link.join(".")] {
        for options in [CREATE, EXISTING] {
            assert_eq!(refused(path, options).kind, ErrorKind::Unsafe, "{path:?}");
        }
    }
    for mode in [0o755, 0o750, 0o701, 0o720] {
        set_mode(&data, mode);
        assert_eq!(refused(&data, EXISTING).kind, ErrorKind::Unsafe);
    }
    set_mode(&data, 0o700);
    std::fs::create_dir(data.join("segments")).unwrap();
    set_mode(&data.join("segments"), 0o755);
    let disk = RealDisk::open(&data, EXISTING).unwrap();
    assert_eq!(disk.list(Folder::Segments).unwrap_err().kind, ErrorKind::Unsafe);
    symlink(&data, data.join("quarantine")).unwrap();
    assert_eq!(disk.list(Folder::Quarantine).unwrap_err().kind, ErrorKind::Unsafe);
}

#[test]
fn refuses_entries_that_are_not_regular_files() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let disk = RealDisk::open(&data, CREATE).unwrap();
    std::fs::write(scratch.path().join("outside"), b"secret").unwrap();
    symlink(scratch.path().join("outside"), data.join("link")).unwrap();
    symlink("nowhere", data.join("dangling")).unwrap();
    std::fs::create_dir(data.join("directory")).unwrap();
    mknodat(CWD, data.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for file in ["link", "dangling", "directory", "pipe"] {
        assert_eq!(disk.open(&root(file)).unwrap_err().kind, ErrorKind::Unsafe, "{file}");
        assert_eq!(disk.open_for_write(&root(file)).unwrap_err().kind, ErrorKind::Unsafe, "{file}");
        assert_eq!(disk.create(&root(file)).unwrap_err().kind, ErrorKind::AlreadyExists, "{file}");
    }
    let kinds: Vec<FileKind> = disk.list(Folder::Root).unwrap().iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds[..2], [FileKind::Other, FileKind::Directory]);
    assert!(kinds[2..].iter().all(|kind| *kind == FileKind::Other));
}

#[test]
fn deleting_everything_does_not_free_the_lock() {
    let _quiet = no_child_starts();
    let scratch = scratch();
    let data = scratch.path().join("data");
    let disk = RealDisk::open(&data, CREATE).unwrap();
    disk.create(&root("LOCK")).unwrap();
    let held = disk.lock().unwrap();
    for entry in disk.list(Folder::Root).unwrap() {
        std::fs::remove_file(data.join(entry.file)).unwrap();
    }
    let second = RealDisk::open(&data, EXISTING).unwrap();
    assert_eq!(second.lock().unwrap_err().kind, ErrorKind::Contended);
    assert!(second.is_locked().unwrap());
    // Asking twice at once is not contention.
    assert!(second.is_locked().unwrap() && disk.is_locked().unwrap());
    drop(held);
    assert!(!second.is_locked().unwrap());
    assert!(second.lock().is_ok());
}

#[test]
fn no_child_inherits_the_lock() {
    let scratch = scratch();
    let disk = RealDisk::open(&scratch.path().join("data"), CREATE).unwrap();
    let held = disk.lock().unwrap();
    let started = child_starts();
    let piped = std::process::Stdio::piped;
    let mut child = std::process::Command::new("cat").stdin(piped()).stdout(piped()).spawn().unwrap();
    let (input, output) = (child.stdin.as_mut().unwrap(), child.stdout.as_mut().unwrap());
    std::io::Write::write_all(input, b"x").unwrap();
    std::io::Read::read_exact(output, &mut [0]).unwrap();
    drop(started);
    let _quiet = no_child_starts();
    drop(held);
    let free = disk.lock().is_ok();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(free);
}

#[test]
fn a_replaced_directory_is_noticed() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let disk = RealDisk::open(&data, CREATE).unwrap();
    disk.make_folder(Folder::Segments).unwrap();
    disk.check_identity(&[]).unwrap();
    std::fs::rename(data.join("segments"), data.join("gone")).unwrap();
    assert_eq!(disk.check_identity(&[]).unwrap_err().kind, ErrorKind::Unsafe);
    std::fs::create_dir(data.join("segments")).unwrap();
    assert_eq!(disk.check_identity(&[]).unwrap_err().kind, ErrorKind::Unsafe);
    std::fs::remove_dir(data.join("segments")).unwrap();
    std::fs::rename(data.join("gone"), data.join("segments")).unwrap();
    disk.check_identity(&[]).unwrap();
    std::fs::rename(&data, scratch.path().join("moved")).unwrap();
    assert_eq!(disk.check_identity(&[]).unwrap_err().kind, ErrorKind::Unsafe);
    symlink(scratch.path().join("moved"), &data).unwrap();
    assert_eq!(disk.check_identity(&[]).unwrap_err().kind, ErrorKind::Unsafe, "a link is not the directory");
}

#[test]
fn writes_past_the_cache() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    let disk = RealDisk::open(&data, CREATE).unwrap();
    let file = disk.create(&root("f")).unwrap();
    write_all_at(&*file, &vec![0; 1 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let Some(direct) = disk.open_direct(&root("f")).unwrap() else {
        assert!(!disk.warnings().is_empty(), "a disk file system has O_DIRECT");
        return;
    };
    let mut block = AlignedBuf::zeroed(64 * 1024);
    block.fill(0xA5);
    write_all_durable_at(&*direct, &block, 8192).unwrap();
    let mut got = vec![0; block.len()];
    assert!(direct.read_uncached(&mut got, 8192).unwrap(), "the device was read");
    assert!(got == block[..]);
    // Memory has no blocks.
    if !matches!(disk.warnings(), [Warning::Memory(_)]) {
        let outside = direct.write_durable_at(&block[1..DIRECT_ALIGN], 8192).unwrap_err();
        assert_eq!(outside.kind, ErrorKind::Unsupported);
    }
    assert!(std::fs::read(data.join("f")).unwrap()[8192..8192 + block.len()] == block[..]);
}

#[test]
fn secrets_are_created_whole_private_and_once() {
    let scratch = scratch();
    let key = scratch.path().join("config/sealog/key");
    create_secret_file(&key, b"0123456789").unwrap();
    let read = read_file(&key, 10).unwrap();
    assert_eq!(
        (&read.bytes[..], read.regular, read.mode, read.ours),
        (&b"0123456789"[..], true, 0o600, true)
    );
    assert!(!read.open_to_others() && !format!("{read:?}").contains("48"));
    assert_eq!(create_secret_file(&key, b"other").unwrap_err().kind, ErrorKind::AlreadyExists);
    assert_eq!(read_file(&key, 10).unwrap().bytes, b"0123456789");
    let parent = key.parent().unwrap();
    assert_eq!(std::fs::metadata(parent).unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(std::fs::read_dir(parent).unwrap().count(), 1, "no temporary stays");
    replace_secret_file(&key, b"12345").unwrap();
    let read = read_file(&key, 10).unwrap();
    assert_eq!((&read.bytes[..], read.mode), (&b"12345"[..], 0o600));
    assert_eq!(std::fs::read_dir(parent).unwrap().count(), 1, "no temporary stays");
    assert_eq!(read_file(&key, 4).unwrap_err().kind, ErrorKind::Unsupported);
    assert_eq!(read_file(parent, 9).unwrap_err().kind, ErrorKind::Unsafe);
    assert_eq!(read_file(&scratch.path().join("none"), 9).unwrap_err().kind, ErrorKind::NotFound);
    set_mode(&key, 0o640);
    assert!(read_file(&key, 10).unwrap().open_to_others());
}

#[test]
fn what_is_built_beside_its_place_is_built_by_one() {
    let _quiet = no_child_starts();
    let scratch = scratch();
    let place = scratch.path().join("place");
    let kind = |place: &Path| Sibling::open(place, false).map(drop).unwrap_err().kind;
    let (sibling, disk) = Sibling::open(&place, false).unwrap();
    assert_eq!(kind(&place), ErrorKind::Contended);
    disk.create(&root("f")).unwrap();
    // Its own users take turns, as on any other disk.
    assert!(!disk.is_locked().unwrap());
    let held = disk.lock().unwrap();
    assert!(disk.is_locked().unwrap());
    assert_eq!(disk.lock().map(drop).unwrap_err().kind, ErrorKind::Contended);
    drop(held);
    assert!(disk.lock().is_ok() && !disk.is_locked().unwrap());
    assert_eq!(kind(&place), ErrorKind::Contended);
    drop(disk);
    assert_eq!(kind(&place), ErrorKind::Contended, "until it has its name");
    sibling.commit().unwrap();
    assert!(!RealDisk::open(&place, EXISTING).unwrap().is_locked().unwrap());
    assert_eq!(kind(&place), ErrorKind::AlreadyExists);
    let gone = scratch.path().join("gone");
    let (sibling, _disk) = Sibling::open(&gone, false).unwrap();
    sibling.discard();
    assert!(Sibling::open(&gone, false).is_ok());
}

/// Whoever waited for the directory finds that it has its name by now, and leaves it alone.
#[test]
fn builders_at_the_same_time_leave_one_whole_result() {
    let _quiet = no_child_starts();
    let scratch = scratch();
    for round in 0..40 {
        let place = scratch.path().join(round.to_string());
        let built = std::thread::scope(|scope| {
            let build = || {
                let (sibling, disk) = match Sibling::open(&place, false) {
                    Ok(opened) => opened,
                    // There it is, or somebody has been at it for longer than anybody waits.
                    Err(error) if [ErrorKind::AlreadyExists, ErrorKind::Contended].contains(&error.kind) => {
                        return None;
                    }
                    Err(error) => panic!("{error}"),
                };
                for entry in disk.list(Folder::Root).unwrap() {
                    disk.remove(&root(&entry.file)).unwrap();
                }
                let file = disk.create(&root("f")).unwrap();
                write_all_at(&*file, b"whole", 0).unwrap();
                sibling.commit().ok()
            };
            let building: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
            building.into_iter().filter_map(|built| built.join().unwrap()).count()
        });
        assert_eq!(built, 1, "round {round}");
        let file = RealDisk::open(&place, EXISTING).unwrap().open(&root("f")).unwrap();
        assert_eq!(read_to_vec(&*file, 10).unwrap(), b"whole");
    }
}

#[test]
fn what_is_not_regular_is_said_to_be_so_and_never_waited_for() {
    let scratch = scratch();
    let pipe = scratch.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for path in [pipe.as_path(), Path::new("/dev/zero"), scratch.path()] {
        let read = read_regular(path, 9).unwrap();
        assert!(!read.regular && read.bytes.is_empty(), "{path:?}");
        assert_eq!(open_regular(path).unwrap_err().kind, ErrorKind::Unsupported);
    }
    let file = scratch.path().join("file");
    create_secret_file(&file, b"0123456789").unwrap();
    let read = read_regular(&file, 10).unwrap();
    assert_eq!((&read.bytes[..], read.regular, read.mode), (&b"0123456789"[..], true, 0o600));
    assert_eq!(read_regular(&file, 9).unwrap_err().kind, ErrorKind::Unsupported);
    assert_eq!(read_regular(&scratch.path().join("none"), 9).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn whoever_changes_a_file_in_turn_loses_no_change() {
    const EACH: usize = 8;
    let _quiet = no_child_starts();
    let scratch = scratch();
    let file = scratch.path().join("made/list");
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c", "d"] {
            let file = &file;
            scope.spawn(move || {
                for _ in 0..EACH {
                    let _turn = take_turn(file).unwrap();
                    let before = read_regular(file, 1000).map_or(Vec::new(), |read| read.bytes);
                    replace_secret_file(file, &[&before, letter.as_bytes()].concat()).unwrap();
                }
            });
        }
    });
    let list = read_regular(&file, 1000).unwrap().bytes;
    for letter in b"abcd" {
        assert_eq!(list.iter().filter(|byte| *byte == letter).count(), EACH);
    }
}

/// Nobody may open a file there, so that the system's number is seen to come through.
#[test]
fn a_new_file_that_cannot_be_made_says_why() {
    let nowhere = Path::new("/proc/self/new");
    for error in [create_secret_file(nowhere, b"x"), replace_secret_file(nowhere, b"x")] {
        assert!(error.unwrap_err().errno.is_some());
    }
}

#[test]
fn descriptors_are_read_to_their_end() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"passphrase").unwrap();
    drop(writer);
    let number = u32::try_from(reader.as_raw_fd()).unwrap();
    let read = read_fd(number, 10).unwrap();
    assert_eq!((&read.bytes[..], read.regular), (&b"passphrase"[..], false));
    assert_eq!(read_fd(1_000_000, 10).unwrap_err().kind, ErrorKind::NotFound);
    // Nobody can open a socket anew, as another user's file cannot be.
    let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut writer, b"handed over").unwrap();
    drop(writer);
    let number = u32::try_from(reader.as_raw_fd()).unwrap();
    assert_eq!(&read_fd(number, 11).unwrap().bytes[..], b"handed over");
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"too long").unwrap();
    let number = u32::try_from(reader.as_raw_fd()).unwrap();
    assert_eq!(read_fd(number, 7).unwrap_err().kind, ErrorKind::Unsupported, "without waiting for the end");
    drop(writer);
}

#[test]
fn a_handle_closed_under_a_reader_fails_cleanly() {
    let scratch = scratch();
    let disk = RealDisk::open(&scratch.path().join("data"), CREATE).unwrap();
    let file = disk.create(&root("f")).unwrap();
    write_all_at(&*file, &[1; 100_000], 0).unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            // Every read is whole or refused; a reused descriptor number would give other bytes.
            while let Ok(bytes) = read_to_vec(&*file, 100_000) {
                assert!(bytes.iter().all(|byte| *byte == 1));
            }
        });
        file.close().unwrap();
        for number in 0..50 {
            let other = disk.create(&root(&format!("g{number}"))).unwrap();
            write_all_at(&*other, &[2; 1000], 0).unwrap();
        }
        reader.join().unwrap();
    });
}

/// Needs the right to mount.
#[cfg(feature = "real")]
/// What is said of a place before a data directory stands there is what the directory says afterwards; and a place that
/// is open to others, or somebody else's, is looked at all the same.
#[test]
fn the_ground_is_that_of_the_directory_on_it() {
    let scratch = scratch();
    let before = ground(scratch.path(), false).unwrap();
    let disk = RealDisk::open(&scratch.path().join("data"), CREATE).unwrap();
    assert_eq!((before.name, before.warning), (disk.file_system(), disk.warnings().first().copied()));
    assert_eq!(before.space.total, disk.space().unwrap().total);
    assert!(before.space.available > 0 && before.space.available <= before.space.total);
    assert!(ground(Path::new("/"), true).is_ok());
    assert_eq!(ground(&scratch.path().join("absent"), false).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_full_file_system_says_full() {
    let scratch = scratch();
    let data = scratch.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let mount = |args: &[&str]| {
        let _started = child_starts();
        let status = std::process::Command::new("mount").args(args).arg(&data).status().unwrap();
        assert!(status.success(), "mount {args:?}: run this as root");
    };
    mount(&["-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs"]);
    let checked = std::panic::catch_unwind(|| {
        let disk = RealDisk::open(&data, EXISTING).unwrap();
        assert_eq!(disk.warnings(), [Warning::Memory("tmpfs")]);
        let file = disk.create(&root("f")).unwrap();
        assert_eq!(write_all_at(&*file, &vec![1; 2 << 20], 0).unwrap_err().kind, ErrorKind::Full);
        assert!(disk.space().unwrap().available < 4096);
        let outside = data.join("key");
        assert_eq!(create_secret_file(&outside, &[1; 9000]).unwrap_err().kind, ErrorKind::Full);
        assert_eq!(replace_secret_file(&outside, &[1; 9000]).unwrap_err().kind, ErrorKind::Full);
        file.close().unwrap();
        mount(&["-o", "remount,ro"]);
        assert_eq!(disk.create(&root("g")).unwrap_err().kind, ErrorKind::ReadOnly);
        assert!(disk.open(&root("f")).is_ok() && disk.lock().is_ok(), "reading and locking go on");
    });
    let _started = child_starts();
    assert!(std::process::Command::new("umount").arg(&data).status().unwrap().success());
    checked.unwrap();
}

#[test]
fn only_what_nobody_writes_any_more_is_swept() {
    let _quiet = no_child_starts();
    let scratch = scratch();
    let at = |file: &str| scratch.path().join(file);
    for left in [".sealog-aB3xYz.tmp", ".sealog-other", "plain.tmp"] {
        std::fs::write(at(left), b"left").unwrap();
    }
    symlink(at("plain.tmp"), at(".sealog-linked.tmp")).unwrap();
    let writing = NewFile::create(&at("new")).unwrap();
    let listed = || {
        let mut names: Vec<String> = std::fs::read_dir(scratch.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(listed().len(), 5);
    assert_eq!(sweep_unnamed(scratch.path()), 1);
    let kept = listed();
    assert!(kept.len() == 4 && !kept.contains(&".sealog-aB3xYz.tmp".to_owned()), "{kept:?}");
    // It gets its name as if nobody had looked.
    writing.publish().unwrap();
    assert_eq!(sweep_unnamed(scratch.path()), 0);
    assert_eq!(listed(), [".sealog-linked.tmp", ".sealog-other", "new", "plain.tmp"]);
    assert_eq!(sweep_unnamed(&at("absent")), 0);
}
