//! Summaries: they save a start the bodies and change nothing else, whatever is done to them (R15, JF-20 to JF-22, JR-20).

use sealog_disk::sim::{Choice, Fault, FaultKind, SimDisk};
use sealog_disk::testing::SeededEntropy;
use sealog_disk::{FileKind, Folder, Name, Operation};
use sealog_journal_format::journal_records::{KIND_RESTORED, Restored};

use super::crash_workloads::forget;
use super::damage_image::{CANARY, look, noise, segment};
use super::digests::{Sums, start};
use super::setup::{Bench, Opened, START_MS, closing, record, stream};
use crate::{Class, Health, JournalError, NewRecord, Sink, Unit, audit};

pub(crate) fn summary(number: u64) -> Name {
    Name::new(Folder::Segments, &format!("{number:012}.idx")).unwrap()
}

/// A bench whose background writes summaries and scrubs, and does nothing else.
pub(crate) fn bench_on(disk: SimDisk, seed: u64) -> Bench {
    let mut bench = Bench::on(disk, seed);
    bench.config.tuning.summarise = true;
    bench.config.tuning.compact = false;
    bench
}

fn restored() -> NewRecord {
    let end = sealog_journal_format::EndRecord::NONE;
    let body = Restored { from: end, restored_ms: START_MS, fenced: false }.encode().to_vec();
    NewRecord {
        kind: KIND_RESTORED,
        stream: None,
        class: Class::NONE,
        event_number: 0,
        time_ms: START_MS + 77,
        logical_size: 0,
        body,
    }
}

fn write(opened: &Opened, n: u8, seed: u64) {
    let draws = SeededEntropy::new(seed);
    for event in 1..=u64::from(5 + n % 4) {
        let len = draws.draw() as usize % 700;
        opened.commit(Unit::one(record(n, event, &CANARY.repeat(30)[..len]))).unwrap();
    }
}

/// Six segments: streams that span several, that ended, that were forgotten, that came again after being forgotten, a
/// restore in between.
fn journal() -> Bench {
    let bench = bench_on(SimDisk::new(), 7);
    bench.create();
    for round in 0..5_u8 {
        let opened = bench.open().unwrap();
        for n in round * 3..round * 3 + 5 {
            write(&opened, n + 1, u64::from(round) * 100 + u64::from(n));
            if n % 2 == 0 {
                opened
                    .commit(Unit { records: vec![record(n + 1, 50, b"result"), closing(n + 1, 51)] })
                    .unwrap();
            }
        }
        if round > 0 {
            opened.commit(Unit::one(forget(&[stream(round * 3), stream(200), stream(round)]))).unwrap();
            write(&opened, round, 9);
        }
        if round == 2 {
            opened.commit(Unit::one(restored())).unwrap();
            write(&opened, 8, 10);
        }
        match round % 2 {
            0 => opened.journal.close().unwrap(),
            _ => drop(opened),
        }
    }
    bench
}

/// The same with a summary of every ended segment, stopped; the numbers of those.
pub(crate) fn summarised() -> (SimDisk, Vec<u64>) {
    let bench = journal();
    let opened = bench.open().unwrap();
    while opened.journal.tend() {}
    drop(opened);
    let disk = bench.disk.crash_point().image(Choice::Everything);
    let numbers: Vec<u64> = (1..20).filter(|number| disk.bytes(&summary(*number)).is_some()).collect();
    let segments = (1..20).filter(|number| disk.bytes(&segment(*number)).is_some()).count();
    assert!(segments >= 6 && numbers.len() == segments - 1, "{segments} segments, summaries {numbers:?}");
    (disk, numbers)
}

/// R15 for one change: the start gives the same answers as one that reads everything; how many summaries it used.
#[track_caller]
fn same_answers(disk: &SimDisk) -> usize {
    let plain = start(&bench_on(disk.fork(), 20), false).unwrap();
    assert_eq!((plain.owner.digests, plain.report.unchecked.len()), (0, 0));
    let fast = start(&bench_on(disk.fork(), 20), true).unwrap();
    assert_eq!(fast.report.segments, plain.report.segments);
    assert_eq!(fast.answers(), plain.answers());
    assert_eq!(fast.owner.digests > 0, !fast.report.unchecked.is_empty());
    assert_eq!(fast.journal.health(), Health::Ready);
    fast.report.unchecked.len()
}

/// JR-20: with its summaries a start opens no body of an ended segment and knows the same.
#[test]
fn a_start_with_summaries_knows_what_one_without_knows() {
    let (disk, numbers) = summarised();
    assert_eq!(same_answers(&disk), numbers.len());
    let fast = start(&bench_on(disk.fork(), 20), true).unwrap();
    let plain = start(&bench_on(disk, 20), false).unwrap();
    assert!(fast.owner.records * 4 < plain.owner.records, "{} records", fast.owner.records);
    assert!(fast.report.unchecked.iter().all(|unchecked| unchecked.read && unchecked.bytes > 0));
}

/// R15: a summary that is gone, cut, overlong, another segment's, another journal's, or no file at all.
#[test]
fn whatever_becomes_of_a_summary_the_answers_stay() {
    let (disk, numbers) = summarised();
    let all = numbers.len();
    let changed = |used: usize, change: &dyn Fn(&SimDisk)| {
        let disk = disk.fork();
        change(&disk);
        assert_eq!(same_answers(&disk), used);
    };
    let bytes = |number: u64| disk.bytes(&summary(number)).unwrap();
    for number in &numbers {
        let name = summary(*number);
        let length = bytes(*number).len() as u64;
        changed(all - 1, &|disk| disk.delete(&name));
        for cut in [0, 1, 255, 256, 257, length / 2, length - 1] {
            changed(all - 1, &|disk| disk.truncate(&name, cut));
        }
        changed(all - 1, &|disk| disk.put(&name, &noise(*number, length as usize)));
        changed(all - 1, &|disk| disk.put(&name, &[bytes(*number), vec![0; 64]].concat()));
        changed(all - 1, &|disk| {
            disk.delete(&name);
            disk.put_foreign(Folder::Segments, name.file(), FileKind::Directory);
        });
        for other in numbers.iter().filter(|other| *other != number) {
            changed(all - 1, &|disk| disk.put(&name, &bytes(*other)));
        }
    }
    changed(0, &|disk| numbers.iter().for_each(|number| disk.delete(&summary(*number))));
    changed(all - 2, &|disk| {
        disk.put(&summary(numbers[0]), &bytes(numbers[1]));
        disk.put(&summary(numbers[1]), &bytes(numbers[0]));
    });
    // The same history in another journal: equal numbers, equal places, other keys and chain values.
    let (foreign, _) = {
        let bench = bench_on(SimDisk::new(), 8);
        bench.create();
        let opened = bench.open().unwrap();
        write(&opened, 1, 1);
        opened.journal.close().unwrap();
        let opened = bench.open().unwrap();
        write(&opened, 2, 1);
        while opened.journal.tend() {}
        (bench.disk.bytes(&summary(1)).unwrap(), opened)
    };
    changed(all - 1, &|disk| disk.put(&summary(1), &foreign));
}

/// R15, JF-20: no bit of a summary can be changed and still be believed.
#[test]
fn a_flipped_bit_anywhere_makes_a_summary_worth_nothing() {
    let (disk, numbers) = summarised();
    let number = numbers[1];
    let length = disk.bytes(&summary(number)).unwrap().len();
    super::crash::in_parallel(length, |at| {
        let disk = disk.fork();
        disk.flip_bit(&summary(number), at as u64, (at % 8) as u8);
        let fast = start(&bench_on(disk, 20), true).unwrap();
        assert_eq!(fast.report.unchecked.len(), numbers.len() - 1, "byte {at}");
    });
}

/// R15: an older summary is one of other digests, or of a segment that went on after it; both count as absent.
#[test]
fn a_summary_of_an_older_codec_is_made_again() {
    let (disk, numbers) = summarised();
    let mut bench = bench_on(disk.fork(), 21);
    bench.config.codec = std::sync::Arc::new(Sums { version: 2 });
    let newer = start(&bench, true).unwrap();
    assert_eq!((newer.owner.digests, newer.report.unchecked.len()), (0, 0));
    while newer.journal.tend() {}
    drop(newer);
    let newer = start(&bench, true).unwrap();
    assert_eq!(newer.report.unchecked.len(), numbers.len());
    drop(newer);
    for number in &numbers {
        bench.disk.put(&summary(*number), &disk.bytes(&summary(*number)).unwrap());
    }
    assert_eq!(start(&bench, true).unwrap().owner.digests, 0);
}

/// JK-15, JK-13: a summary that is written again has another key, and no plaintext of records.
#[test]
fn a_summary_that_is_written_again_is_sealed_anew() {
    let (disk, numbers) = summarised();
    let bytes = disk.bytes(&summary(numbers[0])).unwrap();
    disk.delete(&summary(numbers[0]));
    let opened = bench_on(disk.clone(), 31).open().unwrap();
    while opened.journal.tend() {}
    let again = disk.bytes(&summary(numbers[0])).unwrap();
    assert_eq!(again.len(), bytes.len());
    assert_ne!(again[128..160], bytes[128..160], "another salt");
    assert_ne!(again[256..], bytes[256..], "another key");
    for (file, bytes) in disk.files() {
        assert!(!bytes.windows(12).any(|window| window == &CANARY[..12]), "{file}");
    }
}

/// What is found in a folder that no segment owns goes; anything else stays.
#[test]
fn summaries_of_segments_that_are_gone_are_removed() {
    let (disk, numbers) = summarised();
    let bytes = disk.bytes(&summary(numbers[0])).unwrap();
    let orphan = Name::new(Folder::Segments, "000000000001-000000000002.000000000001.idx").unwrap();
    disk.put(&summary(77), &bytes);
    disk.put(&orphan, &bytes);
    disk.put_foreign(Folder::Segments, "000000000078.idx", FileKind::Directory);
    let opened = bench_on(disk.clone(), 22).open().unwrap();
    while opened.journal.tend() {}
    assert!(disk.bytes(&summary(77)).is_none() && disk.bytes(&orphan).is_none());
    assert!(disk.bytes(&summary(numbers[0])).is_some());
}

/// JC-7: each call of a step fails once and for ever, in every way: the journal goes on, and the next start with it.
#[test]
fn a_failure_while_a_summary_is_written_costs_the_summary() {
    let (disk, numbers) = summarised();
    disk.delete(&summary(numbers[0]));
    let disk = disk.crash_point().image(Choice::Everything);
    let run = |fault: Option<Fault>| {
        let disk = disk.fork();
        let opened = bench_on(disk.clone(), 40).open().unwrap();
        disk.start_trace();
        fault.into_iter().for_each(|fault| disk.inject(fault));
        while opened.journal.tend() {}
        let calls = disk.take_trace();
        disk.clear_faults();
        assert_eq!(opened.journal.health(), Health::Ready);
        opened.commit(Unit::one(record(9, 90, b"goes on"))).unwrap();
        opened.journal.close().unwrap();
        let leftover = Name::new(Folder::Segments, "summary.tmp").unwrap();
        drop(opened);
        let again = bench_on(disk.clone(), 41).open().unwrap();
        assert!(disk.bytes(&leftover).is_none());
        drop(again);
        same_answers(&disk);
        (calls, disk)
    };
    let (calls, whole) = run(None);
    assert!(whole.bytes(&summary(numbers[0])).is_some());
    let mut lost = 0;
    for at in 0..calls.len() as u64 {
        for kind in [FaultKind::Io, FaultKind::Full, FaultKind::Interrupted, FaultKind::FsyncLies] {
            for fault in [Fault::call(at, kind), Fault::call(at, kind).forever()] {
                lost += usize::from(run(Some(fault)).1.bytes(&summary(numbers[0])).is_none());
            }
        }
    }
    assert!(lost > 20, "{lost}");
    let written = calls.iter().filter(|call| call.op.is_some());
    assert!(written.count() >= 4);
    assert!(
        calls.iter().all(|call| call.call.operation() != Operation::SyncDirectory),
        "not this one's to sync"
    );
}

/// JR-20: within its bytes a start notices every change of an ended segment that a CRC shows; beyond them it says what it
/// has not looked at; a start that reads everything refuses.
#[test]
fn beyond_its_bytes_a_start_checks_the_ends_and_says_so() {
    let (disk, numbers) = summarised();
    let limited = |disk: &SimDisk, bytes: u64| {
        let mut bench = bench_on(disk.fork(), 20);
        bench.config.tuning.boot_check_bytes = bytes;
        start(&bench, true)
    };
    let whole = limited(&disk, u64::MAX).unwrap();
    let newest = whole.report.unchecked.last().unwrap().bytes;
    for (bytes, read) in [(0, 0), (newest, 1), (u64::MAX, numbers.len())] {
        let found = limited(&disk, bytes).unwrap();
        assert_eq!(found.report.unchecked.iter().filter(|unchecked| unchecked.read).count(), read);
        assert_eq!(found.report.unchecked.len(), numbers.len());
        assert!(found.report.unchecked.iter().rev().take(read).all(|unchecked| unchecked.read));
        assert_eq!(found.answers(), whole.answers());
    }
    let first = numbers[0];
    let end = disk.bytes(&segment(first)).unwrap().len() as u64;
    for (offset, ends) in [
        (8192 + 40, true),
        (8192 + 100, true),
        (8192 + 160 + 200, false),
        (end - 100, true),
        (end - 20, true),
    ] {
        let damaged = disk.fork();
        damaged.flip_bit(&segment(first), offset, 3);
        assert!(!look(&damaged).0.is_sound());
        let refused = |bytes| match limited(&damaged, bytes) {
            Ok(found) => {
                let unchecked = found.report.unchecked[0];
                assert_eq!((unchecked.segment, unchecked.read), (first, false));
                false
            }
            Err(JournalError::Corrupt { place, row: 3, .. }) => {
                assert_eq!(place.segment, first);
                true
            }
            Err(e) => panic!("{e}"),
        };
        assert!(refused(u64::MAX), "offset {offset}");
        assert_eq!(refused(0), ends, "offset {offset}");
        damaged.delete(&summary(first));
        assert!(matches!(limited(&damaged, 0), Err(JournalError::Corrupt { row: 3, .. })), "offset {offset}");
    }
    // A file that is too short is seen without being read.
    let short = disk.fork();
    short.truncate(&segment(first), end - 32);
    assert!(matches!(limited(&short, 0), Err(JournalError::Corrupt { row: 3, .. })));
}

/// JR-20: the cores share the work, the result is the same.
#[test]
fn several_threads_find_the_same() {
    let (disk, numbers) = summarised();
    let alone = start(&bench_on(disk.fork(), 20), true).unwrap().answers();
    for threads in [2, 3, 8] {
        let mut bench = bench_on(disk.fork(), 20);
        bench.config.tuning.check_threads = threads;
        let found = start(&bench, true).unwrap();
        assert_eq!(found.report.unchecked.len(), numbers.len());
        assert_eq!(found.answers(), alone);
        let damaged = disk.fork();
        damaged.flip_bit(&segment(numbers[2]), 8192 + 160 + 200, 1);
        bench.config.disk = std::sync::Arc::new(damaged);
        match start(&bench, true) {
            Err(JournalError::Corrupt { place, row: 3, .. }) => assert_eq!(place.segment, numbers[2]),
            other => panic!("{:?}", other.map(|found| found.report)),
        }
    }
}

/// The same journal compacted, with summaries of what came of that; their names.
pub(crate) fn compacted() -> (SimDisk, Vec<Name>) {
    let (disk, _) = summarised();
    let opened = bench_on(disk.clone(), 50).open().unwrap();
    opened.journal.compact_all(&mut |_| {}).unwrap();
    while opened.journal.tend() {}
    drop(opened);
    let disk = disk.crash_point().image(Choice::Everything);
    let files = disk.files();
    let names = files.keys().filter_map(|file| file.strip_prefix("segments/"));
    let ranges = names.filter(|name| name.ends_with(".idx") && name.contains('-'));
    let ranges: Vec<Name> = ranges.map(|name| Name::new(Folder::Segments, name).unwrap()).collect();
    (disk, ranges)
}

/// R15, JF-20, JF-22: a compacted segment has a summary as well, and whatever becomes of it the answers stay.
#[test]
fn summaries_of_compacted_segments_change_no_answer() {
    let (disk, ranges) = compacted();
    assert!(!ranges.is_empty());
    let all = same_answers(&disk);
    assert!(all >= ranges.len(), "{all} summaries used, {} of ranges", ranges.len());
    let read = start(&bench_on(disk.fork(), 20), true).unwrap();
    assert!(read.report.unchecked.iter().all(|unchecked| unchecked.read && unchecked.bytes > 0));
    for name in &ranges {
        let bytes = disk.bytes(name).unwrap();
        let changed = |change: &dyn Fn(&SimDisk)| {
            let disk = disk.fork();
            change(&disk);
            assert_eq!(same_answers(&disk), all - 1);
        };
        changed(&|disk| disk.delete(name));
        changed(&|disk| disk.truncate(name, bytes.len() as u64 - 64));
        changed(&|disk| disk.put(name, &noise(3, bytes.len())));
        for at in (0..bytes.len()).step_by(61) {
            changed(&|disk| disk.flip_bit(name, at as u64, (at % 8) as u8));
        }
    }
}

/// JR-20: a start and the scrub find damage of a compacted segment behind a good summary.
#[test]
fn damage_of_a_summarised_range_is_found() {
    let (disk, ranges) = compacted();
    let segment = Name::new(Folder::Segments, &ranges[0].file().replace(".idx", ".seg")).unwrap();
    let end = disk.bytes(&segment).unwrap().len() as u64;
    for (offset, ends) in [(8192 + 40, true), (end / 2 / 32 * 32, false), (end - 20, true)] {
        let damaged = disk.fork();
        damaged.flip_bit(&segment, offset, 3);
        for bytes in [0, u64::MAX] {
            let mut bench = bench_on(damaged.fork(), 20);
            bench.config.tuning.boot_check_bytes = bytes;
            match start(&bench, true) {
                Err(JournalError::Corrupt { row: 3, .. }) => assert!(ends || bytes > 0, "offset {offset}"),
                Err(error) => panic!("{error}"),
                Ok(found) => {
                    assert!(!ends && bytes == 0, "offset {offset}");
                    while found.journal.tend() {}
                    assert!(found.journal.damage().is_some(), "the scrub has read it");
                }
            }
        }
    }
}

/// JR-4: a verdict that is asked for alone, on however many cores, is that of a scan which hands out everything.
#[test]
fn a_verdict_alone_is_the_same_verdict() {
    struct Taking(bool);
    impl Sink for Taking {
        fn wants_contents(&self) -> bool {
            self.0
        }
    }
    let same = |disk: &SimDisk, threads: usize| {
        let mut bench = bench_on(disk.fork(), 60);
        bench.config.tuning.check_threads = threads;
        let [all, alone] =
            [true, false].map(|contents| audit(&bench.config, &mut || Taking(contents)).unwrap().0);
        assert_eq!(alone.segments, all.segments);
        assert_eq!((&alone.problems, &alone.gaps), (&all.problems, &all.gaps));
        assert_eq!((&alone.tail, alone.last_sequence), (&all.tail, all.last_sequence));
        alone.problems.len()
    };
    let mut damaged = 0;
    for disk in [summarised().0, compacted().0] {
        let files = disk.files();
        let names = files.keys().filter_map(|file| file.strip_prefix("segments/"));
        assert_eq!(same(&disk, 2), 0);
        for name in names.filter(|name| name.ends_with(".seg")) {
            let name = Name::new(Folder::Segments, name).unwrap();
            let length = disk.bytes(&name).unwrap().len() as u64;
            for (at, offset) in [9, 8192 + 40, 8192 + 170, length / 2, length - 20].into_iter().enumerate() {
                let disk = disk.fork();
                disk.flip_bit(&name, offset, 5);
                damaged += same(&disk, 1 + at % 2).min(1);
            }
        }
    }
    assert!(damaged > 20, "{damaged}");
}
