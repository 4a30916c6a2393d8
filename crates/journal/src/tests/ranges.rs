//! The decision table for compacted segments, and files beside their replacement.

use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::{Disk, Folder, Name};
use sealog_journal_format::limits::{DATA_START, FRAME_HEADER_BYTES};

use super::crash_judge::read_only;
use super::crash_workloads::forget;
use super::setup::{Bench, closing, record, stream};
use crate::{Audit, JournalError, Record, Unit};

fn named(file: &str) -> Name {
    Name::new(Folder::Segments, file).unwrap()
}

/// A journal with a compacted segment of several frames, then log segments; and the disk just before it was compacted.
struct Image {
    disk: SimDisk,
    before: SimDisk,
    compacted: String,
    records: Vec<Record>,
}

fn image() -> Image {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    for n in 1..=20_u8 {
        opened.commit(Unit::one(record(n, 1, &[n; 900]))).unwrap();
        opened.commit(Unit { records: vec![record(n, 2, &[n; 900]), closing(n, 3)] }).unwrap();
        opened.commit(Unit::one(record(200, u64::from(n), b"odd and open"))).unwrap();
    }
    opened.commit(Unit::one(forget(&[stream(2), stream(5), stream(6), stream(7), stream(8)]))).unwrap();
    for number in 1..=14 {
        opened.commit(Unit::one(record(100, number, &[9; 1500]))).unwrap();
    }
    let before = bench.disk.fork();
    bench.clock.advance(std::time::Duration::from_secs(700));
    while opened.journal.tend() {}
    opened.journal.close().unwrap();
    let disk = bench.disk.fork();
    let (found, records) = read_only(&Bench::on(disk.clone(), 1)).unwrap();
    assert_eq!(found.problems, []);
    let compacted = found.segments[0].clone();
    assert!(compacted.generation > 0 && compacted.frames > 2 && found.segments.len() > 1);
    let compacted = compacted.file.trim_start_matches("segments/").to_owned();
    Image { disk, before, compacted, records }
}

/// JR-4: the same verdict from the audit and from a start, and a start changes nothing.
#[track_caller]
fn refused(disk: &SimDisk, segment: u64, row: u8) -> (Audit, Vec<Record>) {
    let before = disk.fingerprint();
    let (found, records) = read_only(&Bench::on(disk.fork(), 1)).unwrap();
    let first = found.problems.first().unwrap_or_else(|| panic!("the damage was not noticed"));
    assert_eq!((first.place.segment, first.row), (segment, row), "{first:?}");
    match Bench::on(disk.clone(), 2).open() {
        Err(JournalError::Corrupt { place, row: there, .. }) => {
            assert_eq!((place, there), (first.place, first.row));
        }
        other => panic!("{:?}", other.map(|opened| opened.report)),
    }
    let lock = disk.fork();
    assert!(before == lock.fingerprint() || disk.list(Folder::Segments).is_ok());
    (found, records)
}

fn bytes(disk: &SimDisk, file: &str) -> Vec<u8> {
    let file = disk.open(&named(file)).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    sealog_disk::io::read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn rewritten(image: &Image, change: impl FnOnce(&mut Vec<u8>)) -> SimDisk {
    let disk = image.disk.fork();
    let mut contents = bytes(&disk, &image.compacted);
    change(&mut contents);
    put(&disk, &image.compacted, &contents);
    disk
}

fn put(disk: &SimDisk, file: &str, contents: &[u8]) {
    let name = named(file);
    let _ = disk.remove(&name);
    let file = disk.create(&name).unwrap();
    sealog_disk::io::write_all_at(&*file, contents, 0).unwrap();
    file.sync_all().unwrap();
    disk.sync_folder(Folder::Segments).unwrap();
}

/// Offsets of the frames.
fn frames(contents: &[u8]) -> Vec<usize> {
    let mut at = DATA_START as usize;
    let mut offsets = Vec::new();
    while at < contents.len() {
        offsets.push(at);
        let length = u32::from_le_bytes(contents[at + 4..at + 8].try_into().unwrap());
        at += FRAME_HEADER_BYTES + length as usize;
    }
    offsets
}

/// JR-3 rows 1 to 3, R03, R18: a compacted segment ends at its own seal and the end of the file, or it is damaged.
#[test]
fn a_compacted_segment_is_whole_or_damaged() {
    let image = image();
    let contents = bytes(&image.disk, &image.compacted);
    let offsets = frames(&contents);
    refused(&rewritten(&image, |bytes| bytes.extend([0; 32])), 1, 3);
    refused(&rewritten(&image, |bytes| bytes.extend([1; 32])), 1, 3);
    for offset in &offsets {
        refused(&rewritten(&image, |bytes| bytes.truncate(*offset)), 1, 3);
        refused(&rewritten(&image, |bytes| bytes.truncate(offset + 100)), 1, 3);
        for within in [0, 20, 60, 80, 94, 100, 150] {
            let (_, shown) = refused(&rewritten(&image, |bytes| bytes[offset + within] ^= 1), 1, 3);
            assert!(shown.iter().all(|record| image.records.contains(record)), "nothing that was not there");
        }
    }
    refused(&rewritten(&image, |bytes| bytes[300] ^= 1), 1, 1);
    refused(&rewritten(&image, |bytes| bytes[4096 + 300] ^= 1), 1, 1);
    // A frame that is missing, twice, or in another place.
    let part = |at: usize| contents[offsets[at]..*offsets.get(at + 1).unwrap_or(&contents.len())].to_vec();
    let of = |order: &[usize]| {
        let mut bytes = contents[..DATA_START as usize].to_vec();
        order.iter().for_each(|at| bytes.extend(part(*at)));
        bytes
    };
    let last = offsets.len() - 1;
    let whole: Vec<usize> = (0..=last).collect();
    let mut without = whole.clone();
    without.remove(1);
    let mut swapped = whole.clone();
    swapped.swap(1, 2);
    let mut twice = whole.clone();
    twice.insert(1, 1);
    for order in [without, swapped, twice, vec![0, last]] {
        refused(&rewritten(&image, |bytes| *bytes = of(&order)), 1, 3);
    }
}

/// JR-5, R21: damage in the middle costs what was there and leaves one gap.
#[test]
fn what_lies_behind_damage_is_still_shown() {
    let image = image();
    let contents = bytes(&image.disk, &image.compacted);
    let second = frames(&contents)[1];
    let disk = rewritten(&image, |bytes| bytes[second + 200] ^= 1);
    let (found, shown) = refused(&disk, 1, 3);
    assert_eq!(found.gaps.len(), 1);
    assert!(
        shown.len() < image.records.len() && shown.iter().any(|record| record.stream == Some(stream(100)))
    );
    let gap = found.gaps[0];
    let lost = image.records.iter().filter(|record| !shown.contains(record));
    assert!(lost.into_iter().all(|record| {
        record.sequence >= gap.first_sequence && gap.last_sequence.is_none_or(|last| record.sequence <= last)
    }));
}

/// Puts what was compacted beside what it became.
fn with_sources(image: &Image, disk: &SimDisk) {
    for entry in image.before.list(Folder::Segments).unwrap() {
        if disk.open(&named(&entry.file)).is_err() && entry.file.ends_with(".seg") {
            put(disk, &entry.file, &bytes(&image.before, &entry.file));
        }
    }
}

fn quarantined(disk: &SimDisk) -> Vec<String> {
    let entries = disk.list(Folder::Quarantine).unwrap_or_default();
    entries.into_iter().map(|entry| entry.file).collect()
}

/// JR-15, R23: sources beside their replacement go at the next start.
#[test]
fn replaced_files_go_behind_a_sound_replacement() {
    let image = image();
    let with_sources = |disk: &SimDisk| with_sources(&image, disk);
    let disk = image.disk.fork();
    put(&disk, "compact.tmp", b"half a file");
    with_sources(&disk);
    let count = disk.list(Folder::Segments).unwrap().len();
    let (found, shown) = read_only(&Bench::on(disk.clone(), 1)).unwrap();
    assert_eq!((found.problems.as_slice(), &shown), (&[][..], &image.records));
    let opened = Bench::on(disk.clone(), 2).open().unwrap();
    assert_eq!(opened.records, image.records);
    assert!(opened.report.repairs.superseded_removed > 1);
    assert_eq!(
        disk.list(Folder::Segments).unwrap().len(),
        count - 1 - opened.report.repairs.superseded_removed
    );
}

/// A damaged replacement beside all of its sources.
fn bad_beside_sources(image: &Image) -> SimDisk {
    let second = frames(&bytes(&image.disk, &image.compacted))[1];
    let disk = rewritten(image, |bytes| bytes[second + 200] ^= 1);
    with_sources(image, &disk);
    disk
}

/// JR-15, JR-5, R23: beside a damaged replacement the sources stay, it goes to quarantine, the verdict is corruption; the
/// next start goes on with the sources.
#[test]
fn a_damaged_replacement_is_set_aside() {
    let image = image();
    let disk = bad_beside_sources(&image);
    let damaged = bytes(&disk, &image.compacted);
    let before = disk.fork();
    refused(&disk, 1, 3);
    let stem = image.compacted.trim_end_matches(".seg");
    assert_eq!(quarantined(&disk), [format!("{stem}.seg"), format!("{stem}.txt")]);
    let aside = disk.bytes(&Name::new(Folder::Quarantine, &image.compacted).unwrap()).unwrap();
    assert!(aside == damaged, "as it was found");
    let left = |disk: &SimDisk| {
        let entries = disk.list(Folder::Segments).unwrap().into_iter();
        entries.map(|entry| (entry.file, entry.length)).collect::<Vec<_>>()
    };
    let mut expected = left(&before);
    expected.retain(|(file, _)| *file != image.compacted);
    assert_eq!(left(&disk), expected, "nothing else went");
    let opened = Bench::on(disk.clone(), 3).open().unwrap();
    let shown: Vec<&Record> = image.records.iter().filter(|record| record.sequence > 0).collect();
    assert!(shown.iter().all(|record| opened.records.contains(record)), "all that the replacement held");
    assert!(opened.records.len() > shown.len(), "and what it had dropped");
    drop(opened);
    // JR-9: it goes after the time that copies are kept.
    let bench = Bench::on(disk.clone(), 4);
    bench.clock.advance(bench.config.tuning.quarantine_keep * 2);
    drop(bench.open().unwrap());
    assert_eq!(quarantined(&disk), Vec::<String>::new());
}

/// JR-15, JR-20: a replacement beside what it replaced is read to the last byte, however good its summary is.
#[test]
fn no_summary_stands_for_a_replacement_beside_its_sources() {
    let image = image();
    let bench = super::summaries::bench_on(image.disk.clone(), 11);
    let opened = bench.open().unwrap();
    while opened.journal.tend() {}
    opened.journal.close().unwrap();
    drop(opened);
    let summary = named(&image.compacted.replace(".seg", ".idx"));
    assert!(image.disk.bytes(&summary).is_some());
    let disk = bad_beside_sources(&image);
    let start = |disk: &SimDisk| {
        let mut bench = super::summaries::bench_on(disk.clone(), 12);
        bench.config.tuning.boot_check_bytes = 0;
        super::digests::start(&bench, true).map(|started| started.report)
    };
    match start(&disk) {
        Err(JournalError::Corrupt { place, row: 3, .. }) => assert_eq!(place.segment, 1),
        other => panic!("{other:?}"),
    }
    assert_eq!(quarantined(&disk).len(), 2);
    assert_eq!(disk.bytes(&summary), None, "it spoke of what was set aside");
    start(&disk).unwrap();
    // Without sources beside it the summary stands: the scrub finds the damage.
    let second = frames(&bytes(&image.disk, &image.compacted))[1];
    let alone = rewritten(&image, |bytes| bytes[second + 200] ^= 1);
    assert!(start(&alone).unwrap().unchecked.iter().any(|unchecked| unchecked.segment == 1));
}

/// JR-15: where the sources are not all there, or not sound, nothing is moved.
#[test]
fn a_damaged_replacement_that_nothing_stands_in_for_stays() {
    let image = image();
    let source = named("000000000002.seg");
    let changes: [fn(&SimDisk, &Name); 2] =
        [|disk, name| disk.remove(name).unwrap(), |disk, name| disk.flip_bit(name, 8192 + 300, 1)];
    for change in changes {
        let disk = bad_beside_sources(&image);
        change(&disk, &source);
        disk.sync_folder(Folder::Segments).unwrap();
        let files = disk.list(Folder::Segments).unwrap();
        refused(&disk, 1, 3);
        assert_eq!(disk.list(Folder::Segments).unwrap(), files, "nothing was removed");
        assert_eq!(quarantined(&disk), Vec::<String>::new());
    }
}

/// JR-15, R23: a crash at any step of it leaves the same refusal or the sources by themselves.
#[test]
fn setting_aside_may_be_cut_anywhere() {
    let image = image();
    let disk = bad_beside_sources(&image);
    for folder in Folder::ALL {
        let _ = disk.sync_folder(folder);
    }
    let disk = disk.crash_point().image(Choice::Nothing);
    let whole = {
        let disk = disk.fork();
        refused(&disk, 1, 3);
        Bench::on(disk, 3).open().unwrap().records
    };
    disk.record_crash_points();
    assert!(Bench::on(disk.clone(), 2).open().is_err());
    let points = disk.take_crash_points();
    assert!(points.len() > 8, "{}", points.len());
    for point in points {
        for choice in [Choice::Nothing, Choice::Everything] {
            let cut = point.image(choice);
            let opened = match Bench::on(cut.clone(), 4).open() {
                Err(JournalError::Corrupt { row: 3, .. }) => Bench::on(cut, 5).open().unwrap(),
                other => other.unwrap(),
            };
            assert_eq!(opened.records, whole);
        }
    }
}

/// JR-15, JR-3: a range that is missing, crosses, or claims another generation or range than its header.
#[test]
fn ranges_are_what_their_names_say() {
    let image = image();
    let contents = bytes(&image.disk, &image.compacted);
    let (range, _) = image.compacted.split_once('.').unwrap();
    let last: u64 = range.split_once('-').unwrap().1.parse().unwrap();
    let renamed = |file: String| {
        let disk = image.disk.fork();
        disk.remove(&named(&image.compacted)).unwrap();
        put(&disk, &file, &contents);
        disk
    };
    refused(&renamed(format!("{range}.000000000009.seg")), 1, 1);
    refused(&renamed(format!("000000000001-{:012}.000000000001.seg", last - 1)), last, 11);
    let disk = image.disk.fork();
    put(&disk, &format!("{last:012}-{:012}.000000000001.seg", last + 1), &contents);
    refused(&disk, last, 3);
    let disk = image.disk.fork();
    disk.remove(&named(&image.compacted)).unwrap();
    disk.sync_folder(Folder::Segments).unwrap();
    refused(&disk, 1, 11);
    // Without its successor nothing names its end.
    let disk = image.disk.fork();
    for entry in disk.list(Folder::Segments).unwrap() {
        if entry.file.ends_with(".seg") && entry.file != image.compacted {
            disk.remove(&named(&entry.file)).unwrap();
        }
    }
    refused(&disk, last + 1, 11);
}
