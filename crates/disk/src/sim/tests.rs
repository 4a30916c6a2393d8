//! What the simulated disk can lose, tear and reorder, and that nothing else is lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::io::{publish, read_exact_at, write_all_at, write_all_durable_at};
use crate::{AlignedBuf, DIRECT_ALIGN, contract, scramble::ScrambleDisk};

fn root(file: &str) -> Name {
    Name::new(Folder::Root, file).unwrap()
}

/// A disk with one durable file.
fn with_file(bytes: &[u8]) -> (SimDisk, Arc<dyn LogFile>) {
    let disk = SimDisk::new();
    disk.put(&root("f"), bytes);
    let file = disk.open_for_write(&root("f")).unwrap();
    (disk, file)
}

/// The contents of `f` over all subsets of what is undecided now; `None` where the file is gone.
fn outcomes(disk: &SimDisk) -> BTreeSet<Option<Vec<u8>>> {
    let point = disk.crash_point();
    assert!(point.len() <= EXHAUSTIVE_MAX, "{:?}", point.undecided());
    point.choices(0, 0).into_iter().map(|choice| point.image(choice).bytes(&root("f"))).collect()
}

fn set<const N: usize>(contents: [&[u8]; N]) -> BTreeSet<Option<Vec<u8>>> {
    contents.into_iter().map(|bytes| Some(bytes.to_vec())).collect()
}

#[test]
fn keeps_the_contract() {
    contract::check(&|| Arc::new(SimDisk::new()));
    contract::check(&|| {
        let disk = SimDisk::new();
        disk.set_direct(false);
        disk.set_uncached(false);
        Arc::new(disk)
    });
    for seed in 0..20 {
        contract::check(&|| Arc::new(ScrambleDisk::new(Arc::new(SimDisk::new()), seed)));
    }
}

#[test]
fn two_unsynced_writes_may_be_reordered() {
    let (disk, file) = with_file(&[0; 1024]);
    write_all_at(&*file, &[1; 512], 0).unwrap();
    write_all_at(&*file, &[2; 512], 512).unwrap();
    let both = [[1; 512], [2; 512]].concat();
    let second_only = [[0; 512], [2; 512]].concat();
    let first_only = [[1; 512], [0; 512]].concat();
    assert_eq!(outcomes(&disk), set([&[0; 1024], &first_only, &second_only, &both]));
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk), set([&both]));
}

#[test]
fn one_write_is_torn_at_sectors_and_only_there() {
    let (disk, file) = with_file(&[0; 1024]);
    write_all_at(&*file, &[3; 300], 400).unwrap();
    let mut first = vec![0; 1024];
    first[400..512].fill(3);
    let mut second = vec![0; 1024];
    second[512..700].fill(3);
    let mut both = first.clone();
    both[512..700].fill(3);
    assert_eq!(outcomes(&disk), set([&[0; 1024], &first, &second, &both]));
}

#[test]
fn every_generation_of_a_sector_may_survive() {
    let (disk, file) = with_file(&[0; 512]);
    write_all_at(&*file, &[1; 100], 0).unwrap();
    write_all_at(&*file, &[2; 100], 100).unwrap();
    let mut older = vec![0; 512];
    older[..100].fill(1);
    let mut newer = older.clone();
    newer[100..200].fill(2);
    // The page cache holds one version: the second without the first never existed.
    assert_eq!(outcomes(&disk), set([&[0; 512], &older, &newer]));
}

#[test]
fn equal_bytes_are_no_change_and_zeros_over_a_hole_neither() {
    let (disk, file) = with_file(&[5; 512]);
    write_all_at(&*file, &[5; 512], 0).unwrap();
    assert!(disk.crash_point().is_empty());
    file.set_length(1 << 20).unwrap();
    write_all_at(&*file, &[0; 1 << 19], 512).unwrap();
    assert_eq!(disk.crash_point().len(), 1, "only the length");
    assert_eq!(
        disk.space().unwrap().total - disk.space().unwrap().available,
        4096 * 129,
        "but the space is taken"
    );
}

#[test]
fn lengths_and_data_are_lost_apart() {
    let (disk, file) = with_file(b"");
    write_all_at(&*file, &[1; 512], 0).unwrap();
    assert_eq!(outcomes(&disk), set([b"", &[0; 512], &[1; 512]]));
    file.sync_all().unwrap();
    file.set_length(0).unwrap();
    assert_eq!(outcomes(&disk), set([b"", &[1; 512]]));
    // What was cut does not come back when the file grows again.
    write_all_at(&*file, &[2; 1], 600).unwrap();
    let point = disk.crash_point();
    let kept = point.image(Choice::Everything).bytes(&root("f")).unwrap();
    assert!(kept.len() == 601 && kept[..600].iter().all(|byte| *byte == 0) && kept[600] == 2);
}

#[test]
fn a_created_file_is_lost_without_its_folder() {
    let disk = SimDisk::new();
    let file = disk.create(&root("f")).unwrap();
    write_all_at(&*file, b"x", 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(outcomes(&disk), [None, Some(b"x".to_vec())].into_iter().collect());
    disk.sync_folder(Folder::Root).unwrap();
    assert_eq!(outcomes(&disk), set([b"x"]));
    disk.remove(&root("f")).unwrap();
    assert_eq!(outcomes(&disk), [None, Some(b"x".to_vec())].into_iter().collect());
    disk.sync_folder(Folder::Root).unwrap();
    assert_eq!(outcomes(&disk), [None].into_iter().collect());
}

#[test]
fn a_lost_folder_takes_its_files_along() {
    let disk = SimDisk::new();
    let name = Name::new(Folder::Segments, "f").unwrap();
    disk.make_folder(Folder::Segments).unwrap();
    disk.create(&name).unwrap();
    disk.sync_folder(Folder::Segments).unwrap();
    let point = disk.crash_point();
    assert_eq!(point.undecided()[0].what, UndecidedWhat::MakeFolder { folder: Folder::Segments });
    let lost = point.image(Choice::Nothing);
    assert_eq!(lost.list(Folder::Segments).unwrap_err().kind, ErrorKind::NotFound);
    assert!(lost.files().is_empty());
    assert_eq!(point.image(Choice::Everything).list(Folder::Segments).unwrap().len(), 1);
}

#[test]
fn a_rename_is_old_or_new() {
    let (disk, _file) = with_file(b"old");
    disk.put(&root("g"), b"new");
    disk.rename(&root("g"), &root("f")).unwrap();
    assert_eq!(outcomes(&disk), set([b"old", b"new"]));
    let names: Vec<Vec<String>> = [Choice::Nothing, Choice::Everything]
        .map(|choice| disk.crash_point().image(choice).files().into_keys().collect())
        .to_vec();
    assert_eq!(names, [vec!["f".to_owned(), "g".to_owned()], vec!["f".to_owned()]]);
}

#[test]
fn directory_operations_are_lost_each_on_its_own() {
    let (disk, _file) = with_file(b"f");
    disk.create(&root("a")).unwrap();
    disk.remove(&root("f")).unwrap();
    let point = disk.crash_point();
    let seen: BTreeSet<Vec<String>> = point
        .choices(0, 0)
        .into_iter()
        .map(|choice| point.image(choice).files().into_keys().collect())
        .collect();
    let expected: [&[&str]; 4] = [&[], &["a"], &["a", "f"], &["f"]];
    let expected: BTreeSet<Vec<String>> =
        expected.into_iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect();
    assert_eq!(seen, expected);
    assert_eq!(point.image(Choice::Prefix(1)).files().into_keys().collect::<Vec<_>>(), ["a", "f"]);
}

#[test]
fn a_prefix_runs_across_files_and_folders() {
    let (disk, file) = with_file(&[0; 512]);
    let other = disk.create(&root("g")).unwrap();
    write_all_at(&*other, &[1; 512], 0).unwrap();
    write_all_at(&*file, &[2; 512], 0).unwrap();
    write_all_at(&*other, &[3; 512], 0).unwrap();
    let shapes: Vec<(u8, Option<u8>)> = (0..=disk.dirty())
        .map(|count| disk.crash_image(Choice::Prefix(count)))
        .map(|image| {
            let first = |name| image.bytes(&root(name)).map(|bytes| bytes.first().copied().unwrap_or(9));
            (first("f").unwrap(), first("g"))
        })
        .collect();
    let expected = [(0, None), (0, Some(9)), (0, Some(9)), (0, Some(1)), (2, Some(1)), (2, Some(3))];
    assert_eq!(shapes, expected);
}

#[test]
fn publication_is_never_half() {
    let whole = SimDisk::new();
    whole.put(&root("f"), &[1; 3000]);
    let expected = set([&[1; 3000], &[2; 5000]]);
    let mut seen = BTreeSet::new();
    whole.record_crash_points();
    publish(&whole, &root("tmp"), &root("f"), &[2; 5000]).unwrap();
    let mut points = whole.take_crash_points();
    points.push(whole.crash_point());
    for (op, point) in points.iter().enumerate() {
        for choice in point.choices(50, op as u64) {
            seen.insert(point.image(choice).bytes(&root("f")));
        }
    }
    assert_eq!(seen, expected);
    assert_eq!(whole.crash_point().len(), 0);
}

#[test]
fn a_cut_freezes_the_disk_and_tears_a_durable_write() {
    let (disk, file) = with_file(&[0; 1024]);
    write_all_durable_at(&*file, &[1; 512], 0).unwrap();
    let at = disk.op_count();
    disk.cut_at(at);
    assert_eq!(write_all_durable_at(&*file, &[2; 1024], 0).unwrap_err().kind, ErrorKind::Io);
    assert!(disk.is_off());
    assert!(file.read_at(&mut [0], 0).is_err() && file.sync_all().is_err() && disk.lock().is_err());
    let before = [[1; 512], [0; 512]].concat();
    let first = [[2; 512], [0; 512]].concat();
    let second = [[1; 512], [2; 512]].concat();
    assert_eq!(outcomes(&disk), set([&before, &first, &second, &[2; 1024]]));
    assert!(disk.fork().open(&root("f")).is_ok(), "a fork has power");
}

#[test]
fn recorded_points_are_those_of_a_cut() {
    let work = |disk: &SimDisk| -> Result<()> {
        let file = disk.create(&root("f"))?;
        write_all_at(&*file, &[1; 2000], 0)?;
        file.sync_data()?;
        write_all_durable_at(&*file, &[2; 600], 100)?;
        disk.sync_folder(Folder::Root)
    };
    let recorded = SimDisk::new();
    recorded.record_crash_points();
    work(&recorded).unwrap();
    let points = recorded.take_crash_points();
    assert_eq!(points.len() as u64, recorded.op_count());
    for (op, point) in points.iter().enumerate() {
        let cut = SimDisk::new();
        cut.cut_at(op as u64);
        work(&cut).unwrap_err();
        assert_eq!(cut.crash_point().undecided(), point.undecided());
        for choice in point.choices(0, 0) {
            assert!(cut.crash_point().image(choice).same_durable(&point.image(choice)), "{op} {choice:?}");
        }
    }
}

#[test]
fn a_lying_sync_loses_what_the_next_sync_confirms() {
    let (disk, file) = with_file(&[0; 1024]);
    disk.inject(Fault::site(Operation::Sync, "f", 0, FaultKind::FsyncLies));
    write_all_at(&*file, &[1; 512], 0).unwrap();
    assert_eq!(file.sync_data().unwrap_err().kind, ErrorKind::Io);
    write_all_at(&*file, &[2; 512], 512).unwrap();
    file.sync_data().unwrap();
    let lost = [[0; 512], [2; 512]].concat();
    assert_eq!(outcomes(&disk), set([&lost]));
    let mut seen = [0; 1024];
    read_exact_at(&*file, &mut seen, 0).unwrap();
    assert_eq!(seen[0], 1, "the cache still shows it");
    assert!(file.read_uncached(&mut seen, 0).unwrap());
    assert_eq!(seen.to_vec(), lost, "the device does not");
    // Writing equal bytes again makes them dirty again.
    write_all_at(&*file, &[1; 512], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk), set([&[[1; 512], [2; 512]].concat()]));
}

#[test]
fn a_lying_folder_sync_loses_entries() {
    let disk = SimDisk::new();
    disk.inject(Fault::site(Operation::SyncDirectory, "./", 0, FaultKind::FsyncLies));
    disk.create(&root("f")).unwrap();
    disk.sync_folder(Folder::Root).unwrap_err();
    disk.sync_folder(Folder::Root).unwrap();
    assert!(disk.open(&root("f")).is_ok());
    assert_eq!(outcomes(&disk), [None].into_iter().collect());
}

#[test]
fn a_durable_write_decides_its_range_only() {
    let (disk, file) = with_file(&[0; 1024]);
    write_all_at(&*file, &[1; 512], 0).unwrap();
    write_all_durable_at(&*file, &[2; 512], 512).unwrap();
    assert_eq!(outcomes(&disk), set([&[[0; 512], [2; 512]].concat(), &[[1; 512], [2; 512]].concat()]));
    write_all_durable_at(&*file, &[3; 512], 1024).unwrap();
    assert_eq!(disk.crash_point().len(), 1, "a longer file is part of the promise");
}

#[test]
fn a_full_disk_takes_what_fits() {
    let disk = SimDisk::new();
    disk.set_capacity(Some(4 * 4096));
    let file = disk.create(&root("f")).unwrap();
    write_all_at(&*file, &[0; 2 * 4096], 0).unwrap();
    assert_eq!(file.write_at(&[1; 3 * 4096], 4096).unwrap(), 3 * 4096, "one page was there already");
    assert_eq!(disk.space().unwrap(), Space { available: 0, total: 4 * 4096 });
    assert_eq!(file.write_at(&[1], 4 * 4096).unwrap_err().kind, ErrorKind::Full);
    assert_eq!(file.write_at(&[1; 9000], 3 * 4096 + 96).unwrap(), 4000, "a short write up to the limit");
    file.set_length(1 << 30).unwrap();
    assert_eq!(file.write_at(&[2; 100], 0).unwrap(), 100, "overwriting needs no space");
    disk.remove(&root("f")).unwrap();
    assert_eq!(disk.space().unwrap().available, 0, "the handle keeps it");
    file.close().unwrap();
    assert_eq!(disk.space().unwrap().available, 4 * 4096);
    let direct = disk.create(&root("f")).unwrap();
    write_all_durable_at(&*direct, &[0; 2 * 4096], 0).unwrap();
    disk.sync_folder(Folder::Root).unwrap();
    write_all_at(&*direct, &[1], 0).unwrap();
    assert_eq!(
        disk.crash_image(Choice::Nothing).space().unwrap().available,
        2 * 4096,
        "prepared zeros stay allocated"
    );
}

#[test]
fn faults_hit_their_call_and_change_nothing() {
    let (disk, file) = with_file(&[0; 512]);
    for (kind, expected) in [
        (FaultKind::Io, ErrorKind::Io),
        (FaultKind::Full, ErrorKind::Full),
        (FaultKind::Descriptors, ErrorKind::Descriptors),
        (FaultKind::ReadOnly, ErrorKind::ReadOnly),
        (FaultKind::Interrupted, ErrorKind::Interrupted),
    ] {
        disk.inject(Fault::site(Operation::Write, "f", 0, kind));
        assert_eq!(file.write_at(&[1; 512], 0).unwrap_err().kind, expected);
        assert!(disk.crash_point().is_empty());
        disk.inject(Fault::call(1, kind));
        disk.list(Folder::Root).unwrap();
        assert_eq!(disk.create(&root("g")).unwrap_err().kind, expected);
        disk.inject(Fault::site(Operation::Open, "f", 0, kind).forever());
        assert_eq!(disk.open(&root("f")).unwrap_err().kind, expected);
        assert_eq!(disk.open(&root("f")).unwrap_err().kind, expected);
        disk.clear_faults();
    }
    disk.inject(Fault::site(Operation::Write, "f", 0, FaultKind::ShortWrite(7)));
    assert_eq!(file.write_at(&[1; 512], 0).unwrap(), 7);
    disk.inject(Fault::site(Operation::Write, "f", 0, FaultKind::ShortWrite(0)));
    assert_eq!(write_all_at(&*file, b"x", 0).unwrap_err().kind, ErrorKind::Io);
}

#[test]
fn interruptions_are_bounded() {
    let (disk, file) = with_file(&[0; 4]);
    disk.inject(Fault::site(Operation::Write, "f", 0, FaultKind::Interrupted));
    disk.inject(Fault::site(Operation::Read, "f", 0, FaultKind::Interrupted));
    write_all_at(&*file, b"abcd", 0).unwrap();
    read_exact_at(&*file, &mut [0; 4], 0).unwrap();
    disk.clear_faults();
    disk.inject(Fault::site(Operation::Write, "f", 0, FaultKind::Interrupted).forever());
    let before = disk.call_count();
    assert_eq!(write_all_at(&*file, b"abcd", 0).unwrap_err().kind, ErrorKind::Interrupted);
    assert_eq!(disk.call_count() - before, u64::from(crate::io::INTERRUPTIONS_MAX) + 1);
    assert_eq!(write_all_durable_at(&*file, b"abcd", 0).unwrap_err().kind, ErrorKind::Interrupted);
    assert_eq!(disk.call_count() - before, u64::from(crate::io::INTERRUPTIONS_MAX) + 2, "never repeated");
}

#[test]
fn a_short_direct_write_goes_on_at_a_block() {
    let (disk, _) = with_file(&[0; 4 * DIRECT_ALIGN]);
    let file = disk.open_direct(&root("f")).unwrap().unwrap();
    let mut bytes = AlignedBuf::zeroed(3 * DIRECT_ALIGN);
    bytes.fill(9);
    disk.start_trace();
    disk.inject(Fault::site(Operation::Write, "f", 0, FaultKind::ShortWrite(DIRECT_ALIGN + 512)));
    write_all_durable_at(&*file, &bytes, 4096).unwrap();
    let writes: Vec<(u64, u64)> = disk.take_trace().iter().map(|entry| (entry.offset, entry.len)).collect();
    assert_eq!(writes, [(4096, 3 * 4096), (8192, 2 * 4096)]);
    assert_eq!(file.write_durable_at(&bytes[1..4097], 0).unwrap_err().kind, ErrorKind::Unsupported);
}

#[test]
fn the_trace_tells_order_and_outcome() {
    let disk = SimDisk::new();
    disk.start_trace();
    publish(&disk, &root("tmp"), &root("f"), b"abc").unwrap();
    let trace = disk.take_trace();
    let calls: Vec<(Call, &str)> = trace.iter().map(|entry| (entry.call, entry.file.as_str())).collect();
    assert_eq!(
        calls,
        [
            (Call::Remove, "tmp"),
            (Call::Create, "tmp"),
            (Call::Write, "tmp"),
            (Call::SyncAll, "tmp"),
            (Call::Close, "tmp"),
            (Call::Rename, "tmp -> f"),
            (Call::SyncFolder, "./"),
        ]
    );
    assert_eq!((trace[0].error, trace[0].op), (Some(ErrorKind::NotFound), Some(0)));
    assert_eq!((trace[2].len, trace[4].op, trace[6].op), (3, None, Some(5)));
}

#[test]
fn damage_is_durable_and_seen() {
    let (disk, file) = with_file(b"abc");
    let twin = disk.fork();
    assert!(disk.same_durable(&twin) && disk.same_durable(&disk) && disk.fingerprint() == twin.fingerprint());
    disk.flip_bit(&root("f"), 1, 0);
    disk.overwrite(&root("f"), 4, b"z");
    disk.copy(&root("f"), &root("g"));
    disk.truncate(&root("f"), 2);
    assert_eq!(disk.bytes(&root("g")).unwrap(), b"acc\0z");
    assert_eq!(disk.durable_files()["f"], b"ac");
    assert_eq!(twin.bytes(&root("f")).unwrap(), b"abc", "a fork is another disk");
    assert!(!disk.same_durable(&twin) && disk.fingerprint() != twin.fingerprint());
    disk.delete(&root("f"));
    assert_eq!(file.links().unwrap(), 0);
    disk.put_foreign(Folder::Root, "link", FileKind::Other);
    assert_eq!(disk.open(&root("link")).unwrap_err().kind, ErrorKind::Unsafe);
    assert_eq!(disk.list(Folder::Root).unwrap()[1].kind, FileKind::Other);
    disk.move_away();
    assert_eq!(disk.check_identity(&[]).unwrap_err().kind, ErrorKind::Unsafe);
}

#[test]
fn a_restart_frees_the_lock() {
    let disk = SimDisk::new();
    let _held = disk.lock().unwrap();
    assert_eq!(disk.clone().lock().unwrap_err().kind, ErrorKind::Contended);
    assert!(disk.fork().lock().is_ok());
    assert!(disk.crash_point().image(Choice::Everything).lock().is_ok());
}

#[test]
fn seeds_repeat_and_cover_more_than_prefixes() {
    let (disk, file) = with_file(&[0; 64 * 512]);
    for sector in 0..64 {
        write_all_at(&*file, &[1; 512], sector * 512).unwrap();
    }
    let point = disk.crash_point();
    let images = |seed| -> Vec<u64> {
        point.choices(60, seed).into_iter().map(|choice| point.image(choice).fingerprint()).collect()
    };
    assert_eq!(images(1), images(1));
    assert_ne!(images(1), images(2));
    let distinct: BTreeSet<u64> = images(1).into_iter().collect();
    assert!(distinct.len() > 30, "{}", distinct.len());
}

#[test]
fn a_crash_image_of_a_large_file_is_cheap() {
    // No time is measured: the pages themselves show that an image copies only what it must.
    let (disk, file) = with_file(&vec![7; 4 << 20]);
    write_all_at(&*file, &[1; 512], 0).unwrap();
    let image = disk.crash_point().image(Choice::Everything);
    let (ours, theirs) = (disk.shared.lock(), image.shared.lock());
    let pages = |state: &State, page| match state.content.inodes.values().next().unwrap().durable.page(page) {
        pages::Page::Data(bytes) => Arc::as_ptr(bytes).addr(),
        pages::Page::Hole | pages::Page::Zero => 0,
    };
    let shared = (0..1024).filter(|page| pages(&ours, *page) == pages(&theirs, *page)).count();
    assert_eq!(shared, 1023);
}
