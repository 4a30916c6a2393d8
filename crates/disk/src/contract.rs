//! What every disk must do, as one suite. A disk that passes can stand in for another in any test above it.
//!
//! Only behaviour of a running system is judged; what a crash leaves is the simulated disk's own subject.

use std::sync::Arc;

use crate::io::{publish, read_exact_at, read_to_vec, read_up_to, write_all_at, write_all_durable_at};
use crate::{AlignedBuf, DIRECT_ALIGN, Disk, DiskError, Entry, ErrorKind, FileKind, Folder, LogFile, Name};

/// Runs every case on a fresh, empty disk of `make`. Panics at the first broken promise.
pub fn check(make: &dyn Fn() -> Arc<dyn Disk>) {
    let cases: [fn(&dyn Disk); 13] = [
        bytes_come_back,
        writes_beyond_the_end_leave_zeros,
        lengths,
        direct_writes,
        durable_writes,
        uncached_reads,
        entries,
        folders,
        renames,
        unlinked_files_live_on,
        a_file_is_known_under_its_name_only,
        handles_end,
        lock_excludes,
    ];
    for case in cases {
        case(&*make());
    }
}

/// A name in the root folder.
fn name(file: &str) -> Name {
    Name::new(Folder::Root, file).expect("a plain file name")
}

#[track_caller]
fn kind<T: std::fmt::Debug>(result: Result<T, DiskError>) -> ErrorKind {
    result.expect_err("this call must fail").kind
}

fn filled(disk: &dyn Disk, file: &str, bytes: &[u8]) -> Arc<dyn LogFile> {
    let handle = disk.create(&name(file)).expect("create");
    write_all_at(&*handle, bytes, 0).expect("write");
    handle
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 253) as u8).collect()
}

fn bytes_come_back(disk: &dyn Disk) {
    let bytes = pattern(70_001);
    let file = filled(disk, "f", &bytes);
    assert_eq!(file.length().expect("length"), 70_001);
    assert!(read_to_vec(&*file, 70_001).expect("read") == bytes);
    assert_eq!(kind(read_to_vec(&*file, 70_000)), ErrorKind::Unsupported);
    write_all_at(&*file, b"over", 4094).expect("write");
    let mut got = [0; 6];
    read_exact_at(&*file, &mut got, 4093).expect("read");
    assert_eq!(got, [bytes[4093], b'o', b'v', b'e', b'r', bytes[4098]]);
    file.sync_data().expect("sync");
    file.sync_all().expect("sync");
    let again = disk.open(&name("f")).expect("open");
    assert_eq!(read_up_to(&*again, &mut [0; 10], 69_999).expect("read"), 2);
    assert_eq!(read_up_to(&*again, &mut [0; 10], 80_000).expect("read"), 0);
    assert_eq!(kind(read_exact_at(&*again, &mut [0; 10], 69_999)), ErrorKind::ShortRead);
    // Handles of one file see each other at once.
    let writer = disk.open_for_write(&name("f")).expect("open");
    write_all_at(&*writer, b"seen", 0).expect("write");
    let mut got = [0; 4];
    read_exact_at(&*again, &mut got, 0).expect("read");
    assert_eq!(&got, b"seen");
    assert!(again.write_at(b"x", 0).is_err(), "a handle for reading does not write");
    assert_eq!(file.write_at(&[], 0).expect("an empty write"), 0);
}

fn writes_beyond_the_end_leave_zeros(disk: &dyn Disk) {
    let file = filled(disk, "f", b"abc");
    write_all_at(&*file, b"xyz", 10_000).expect("write");
    let bytes = read_to_vec(&*file, 20_000).expect("read");
    assert_eq!((&bytes[..3], &bytes[10_000..]), (&b"abc"[..], &b"xyz"[..]));
    assert!(bytes[3..10_000].iter().all(|byte| *byte == 0));
}

fn lengths(disk: &dyn Disk) {
    let file = filled(disk, "f", &pattern(9_000));
    file.set_length(100).expect("cut");
    file.set_length(9_000).expect("extend");
    let bytes = read_to_vec(&*file, 9_000).expect("read");
    assert!(
        bytes[..100] == pattern(100) && bytes[100..].iter().all(|byte| *byte == 0),
        "cut bytes stay away"
    );
    file.set_length(0).expect("cut");
    assert_eq!(file.length().expect("length"), 0);
    let space = disk.space().expect("space");
    assert!(space.available <= space.total && space.total > 0);
}

fn direct_writes(disk: &dyn Disk) {
    let file = filled(disk, "f", &vec![0; 8 * DIRECT_ALIGN]);
    file.sync_all().expect("sync");
    let Some(direct) = disk.open_direct(&name("f")).expect("open_direct") else { return };
    let mut block = AlignedBuf::zeroed(3 * DIRECT_ALIGN);
    block.copy_from_slice(&pattern(3 * DIRECT_ALIGN));
    write_all_durable_at(&*direct, &block, DIRECT_ALIGN as u64).expect("direct write");
    let mut got = vec![0; 3 * DIRECT_ALIGN];
    for handle in [&file, &direct] {
        read_exact_at(&**handle, &mut got, DIRECT_ALIGN as u64).expect("read");
        assert!(got == pattern(3 * DIRECT_ALIGN), "every handle sees a direct write");
    }
    let mut odd = [0; 5];
    read_exact_at(&*direct, &mut odd, DIRECT_ALIGN as u64 + 3).expect("reads need no alignment");
    assert_eq!(odd.to_vec(), pattern(3 * DIRECT_ALIGN)[3..8]);
    assert_eq!(kind(direct.write_at(&block, 0)), ErrorKind::Unsupported);
    assert_eq!(kind(disk.open_direct(&name("absent"))), ErrorKind::NotFound);
    direct.close().expect("close");
}

fn durable_writes(disk: &dyn Disk) {
    let file = filled(disk, "f", b"");
    write_all_durable_at(&*file, &pattern(10_000), 3).expect("durable write");
    let mut got = vec![0; 10_000];
    read_exact_at(&*file, &mut got, 3).expect("read");
    assert!(got == pattern(10_000));
}

fn uncached_reads(disk: &dyn Disk) {
    let file = filled(disk, "f", &pattern(20_000));
    let mut got = vec![0; 9_999];
    file.read_uncached(&mut got, 5_001).expect("dirty data are read as well");
    assert!(got == pattern(20_000)[5_001..15_000]);
    file.sync_all().expect("sync");
    got.fill(0);
    file.read_uncached(&mut got, 10_001).expect("read up to the very end");
    assert!(got == pattern(20_000)[10_001..]);
    assert_eq!(kind(file.read_uncached(&mut got, 10_002)), ErrorKind::ShortRead);
}

fn entries(disk: &dyn Disk) {
    assert_eq!(kind(disk.open(&name("f"))), ErrorKind::NotFound);
    assert_eq!(kind(disk.open_for_write(&name("f"))), ErrorKind::NotFound);
    assert_eq!(kind(disk.remove(&name("f"))), ErrorKind::NotFound);
    filled(disk, "f", b"12345");
    assert_eq!(kind(disk.create(&name("f"))), ErrorKind::AlreadyExists);
    filled(disk, "a", b"");
    let file = |file: &str, length| Entry { file: file.to_owned(), kind: FileKind::File, length };
    assert_eq!(disk.list(Folder::Root).expect("list"), [file("a", 0), file("f", 5)]);
    disk.remove(&name("f")).expect("remove");
    assert_eq!(disk.list(Folder::Root).expect("list"), [file("a", 0)]);
    disk.sync_folder(Folder::Root).expect("sync");
    disk.check_identity(&[]).expect("nobody moved it");
}

fn folders(disk: &dyn Disk) {
    let inside = Name::new(Folder::Segments, "f").expect("a name");
    assert_eq!(kind(disk.list(Folder::Segments)), ErrorKind::NotFound);
    assert_eq!(kind(disk.create(&inside)), ErrorKind::NotFound);
    disk.make_folder(Folder::Root).expect("it is always there");
    disk.make_folder(Folder::Segments).expect("make");
    disk.make_folder(Folder::Segments).expect("it may exist");
    assert_eq!(disk.list(Folder::Segments).expect("list"), []);
    disk.create(&inside).expect("create");
    disk.sync_folder(Folder::Segments).expect("sync");
    assert_eq!(disk.list(Folder::Segments).expect("list").len(), 1);
    let root = disk.list(Folder::Root).expect("list");
    assert_eq!(root, [Entry { file: "segments".to_owned(), kind: FileKind::Directory, length: 0 }]);
    assert!(disk.open(&name("segments")).is_err(), "a folder is no file");
    assert_eq!(kind(disk.rename(&inside, &name("f"))), ErrorKind::Unsupported);
    disk.check_identity(&[]).expect("nobody moved it");
}

fn renames(disk: &dyn Disk) {
    let file = filled(disk, "a", b"new");
    filled(disk, "b", b"old");
    assert_eq!(kind(disk.rename_new(&name("a"), &name("b"))), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.rename(&name("absent"), &name("b"))), ErrorKind::NotFound);
    disk.rename(&name("b"), &name("b")).expect("a file may be renamed to itself");
    assert_eq!(kind(disk.rename_new(&name("b"), &name("b"))), ErrorKind::AlreadyExists);
    disk.rename(&name("a"), &name("b")).expect("rename");
    assert_eq!(kind(disk.open(&name("a"))), ErrorKind::NotFound);
    let target = disk.open(&name("b")).expect("open");
    assert_eq!(read_to_vec(&*target, 10).expect("read"), b"new");
    // The handle follows the file, not the name.
    write_all_at(&*file, b"NEW", 0).expect("write");
    assert_eq!(read_to_vec(&*target, 10).expect("read"), b"NEW");
    disk.rename_new(&name("b"), &name("c")).expect("rename");
    publish(disk, &name("tmp"), &name("c"), b"published").expect("publish");
    filled(disk, "tmp", b"left over by a crash");
    publish(disk, &name("tmp"), &name("c"), b"again").expect("publish");
    let last = disk.open(&name("c")).expect("open");
    assert_eq!(read_to_vec(&*last, 10).expect("read"), b"again");
    assert_eq!(disk.list(Folder::Root).expect("list").len(), 1);
}

fn unlinked_files_live_on(disk: &dyn Disk) {
    let file = filled(disk, "f", b"abc");
    assert_eq!(file.links().expect("links"), 1);
    disk.remove(&name("f")).expect("remove");
    assert_eq!(file.links().expect("links"), 0);
    write_all_at(&*file, b"def", 3).expect("write");
    assert_eq!(read_to_vec(&*file, 10).expect("read"), b"abcdef");
    let replaced = filled(disk, "f", b"");
    filled(disk, "g", b"");
    disk.rename(&name("g"), &name("f")).expect("rename");
    assert_eq!(replaced.links().expect("links"), 0);
}

fn a_file_is_known_under_its_name_only(disk: &dyn Disk) {
    let file = filled(disk, "f", b"abc");
    let id = file.identity().expect("identity");
    assert_eq!(disk.open(&name("f")).expect("open").identity().expect("identity"), id);
    let as_f = [(name("f"), id)];
    disk.check_identity(&as_f).expect("it is there");
    disk.rename(&name("f"), &name("g")).expect("rename");
    assert_eq!(kind(disk.check_identity(&as_f)), ErrorKind::Unsafe);
    disk.check_identity(&[(name("g"), id)]).expect("it is there now");
    filled(disk, "f", b"abc");
    assert_eq!(kind(disk.check_identity(&as_f)), ErrorKind::Unsafe, "another file of the same bytes");
    disk.remove(&name("f")).expect("remove");
    disk.rename(&name("g"), &name("f")).expect("rename");
    disk.check_identity(&as_f).expect("it is back");
}

fn handles_end(disk: &dyn Disk) {
    let file = filled(disk, "f", b"abc");
    let other = disk.open(&name("f")).expect("open");
    file.close().expect("close");
    assert!(file.close().is_err(), "closed once");
    assert!(
        file.length().is_err() && file.read_at(&mut [0; 3], 0).is_err() && file.write_at(b"x", 0).is_err()
    );
    assert_eq!(read_to_vec(&*other, 10).expect("the other handle lives"), b"abc");
}

fn lock_excludes(disk: &dyn Disk) {
    assert!(!disk.is_locked().expect("is_locked"));
    let held = disk.lock().expect("lock");
    assert!(disk.is_locked().expect("is_locked"));
    assert_eq!(kind(disk.lock()), ErrorKind::Contended);
    drop(held);
    assert!(!disk.is_locked().expect("is_locked"));
    drop(disk.lock().expect("lock again"));
}
