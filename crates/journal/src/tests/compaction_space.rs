//! Growth: a disk that stays small over many cycles (R25), and compaction on a full one (R26).

use std::time::Duration;

use sealog_disk::{Disk, Folder, Name};
use sealog_journal_format::limits::DATA_START;

use super::crash_judge::read_only;
use super::crash_workloads::forget;
use super::setup::{Bench, Opened, closing, record, stream};
use crate::{NewRecord, StreamId, Unit, plan_compaction};

const SEGMENT_BYTES: u64 = 64 << 10;
/// Executions that are kept.
const KEPT: u64 = 40;
/// Bytes of bodies of one.
const EACH_BYTES: usize = 2 * 400;

fn id(number: u64) -> StreamId {
    let mut id = [0xa7; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    StreamId(id)
}

fn of(number: u64, record: NewRecord) -> NewRecord {
    NewRecord { stream: Some(id(number)), ..record }
}

fn cycle(opened: &Opened, number: u64) {
    cycle_kept(opened, number);
    if number > KEPT {
        opened.commit(Unit::one(forget(&[id(number - KEPT)]))).unwrap();
    }
}

fn cycle_kept(opened: &Opened, number: u64) {
    opened.commit(Unit::one(of(number, record(1, 1, &[number as u8; EACH_BYTES / 2])))).unwrap();
    let end = vec![of(number, record(1, 2, &[number as u8; EACH_BYTES / 2])), of(number, closing(1, 3))];
    opened.commit(Unit { records: end }).unwrap();
}

fn disk_bytes(bench: &Bench) -> u64 {
    bench.disk.list(Folder::Segments).unwrap().iter().map(|entry| entry.length).sum()
}

/// R25: finish-and-expire cycles keep the disk under three times what lives and four segments.
/// `SEALOG_GROWTH_CYCLES` asks for more of them.
#[test]
fn the_disk_stays_small_over_many_cycles() {
    let asked = std::env::var("SEALOG_GROWTH_CYCLES").ok().and_then(|text| text.parse().ok());
    let cycles: u64 = asked.unwrap_or(10_000);
    let mut bench = Bench::new();
    bench.config.tuning.first_segment_bytes = SEGMENT_BYTES;
    let mut opened = bench.open().unwrap();
    // Two frames for each that lives, with headers and padding.
    let live = KEPT * (EACH_BYTES as u64 + 2 * 96 + 4 * 64);
    let (mut largest, mut files) = (0, 0);
    for number in 1..=cycles {
        cycle(&opened, number);
        bench.clock.advance(Duration::from_millis(50));
        opened.journal.maintain();
        while opened.journal.tend() {}
        if number % 50 == 0 {
            largest = largest.max(disk_bytes(&bench));
            files = files.max(bench.disk.list(Folder::Segments).unwrap().len());
        }
        if number % (cycles / 4) == 0 {
            opened.journal.close().unwrap();
            drop(opened);
            opened = bench.open().unwrap();
            assert_eq!(opened.journal.streams() as u64, KEPT.min(number), "after {number}");
        }
    }
    let bound = 3 * live + 4 * SEGMENT_BYTES;
    println!("{cycles} cycles, at most {largest} bytes where {bound} are allowed, at most {files} files");
    assert!(largest < bound, "{largest} bytes of at most {bound}");
    assert!(files < 24, "{files} files");
    for number in cycles - KEPT + 1..=cycles {
        assert_eq!(opened.journal.read_stream(id(number), 1).count(), 3, "{number} of {cycles}");
    }
}

fn segments(bench: &Bench) -> Vec<String> {
    bench.disk.list(Folder::Segments).unwrap().into_iter().map(|entry| entry.file).collect()
}

fn worth_it(bench: &Bench) -> Opened {
    let opened = bench.open().unwrap();
    for n in 1..=60 {
        opened.commit(Unit::one(record(n, 1, &[n; 1500]))).unwrap();
        opened.commit(Unit::one(closing(n, 2))).unwrap();
    }
    opened.commit(Unit::one(forget(&(1..=30).map(stream).collect::<Vec<_>>()))).unwrap();
    opened.commit(Unit::one(record(99, 1, &[9; 900]))).unwrap();
    opened
}

/// R26; JD-5, JD-8: on a full disk the reserve is given up, comes back, and nothing is left over.
#[test]
fn a_full_disk_is_compacted_with_the_reserve() {
    let mut bench = Bench::new();
    bench.config.tuning.reserve_bytes = 128 << 10;
    bench.config.tuning.compact = false;
    let opened = worth_it(&bench);
    while opened.journal.tend() {}
    assert!(segments(&bench).contains(&"reserve".to_owned()));
    let shown: Vec<_> = opened.journal.read_from(1).map(Result::unwrap).collect();
    drop(opened);
    bench.config.tuning.compact = true;
    let opened = bench.open().unwrap();
    let used: u64 = bench.disk.files().values().map(|bytes| bytes.len() as u64).sum();
    bench.disk.set_capacity(Some(used.next_multiple_of(4096)));
    bench.clock.advance(Duration::from_secs(5));
    assert!(opened.journal.tend(), "the reserve made room");
    while opened.journal.tend() {}
    let files = segments(&bench);
    assert!(!files.iter().any(|file| file.ends_with(".tmp")), "{files:?}");
    assert!(files.iter().any(|file| file.contains('-')), "{files:?}");
    bench.disk.set_capacity(None);
    bench.clock.advance(Duration::from_secs(60));
    while opened.journal.tend() {}
    assert!(segments(&bench).contains(&"reserve".to_owned()), "it is there again");
    let left: Vec<_> = opened.journal.read_from(1).map(Result::unwrap).collect();
    assert!(left.len() < shown.len() && left.iter().all(|record| shown.contains(record)));
}

/// JD-8: the reserve is as long as what there is to rewrite, grows with it, and is never longer than a segment may be.
#[test]
fn the_reserve_follows_the_journal() {
    let mut bench = Bench::new();
    bench.config.tuning.reserve_bytes = 64 << 20;
    bench.config.tuning.compact = false;
    let opened = bench.open().unwrap();
    let mut seen = Vec::new();
    for n in 0..120 {
        opened.commit(Unit::one(record(n, 1, &[n; 2000]))).unwrap();
        bench.clock.advance(Duration::from_secs(31));
        while opened.journal.tend() {}
        let list = bench.disk.list(Folder::Segments).unwrap();
        let length = list.iter().find(|entry| entry.file == "reserve").map_or(0, |entry| entry.length);
        if seen.last() != Some(&length) {
            seen.push(length);
        }
    }
    assert!(seen.is_sorted() && seen.iter().all(|bytes| *bytes == 0 || bytes.is_power_of_two()), "{seen:?}");
    assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&(64 << 10))), "{seen:?}");
    assert!(seen.len() > 2, "{seen:?}");
    opened.journal.close().unwrap();
    drop(opened);
    // A budget bounds it as it bounds a segment.
    bench.disk.remove(&Name::new(Folder::Segments, "reserve").unwrap()).unwrap();
    bench.config.tuning.disk_bytes_max = 16 * (20 << 10);
    let opened = bench.open().unwrap();
    while opened.journal.tend() {}
    let list = bench.disk.list(Folder::Segments).unwrap();
    let length = list.iter().find(|entry| entry.file == "reserve").map(|entry| entry.length);
    assert_eq!(length, Some(20 << 10));
}

/// JC-10, JD-6: what compaction writes is no longer than a segment may be, also where a budget bounds that; so the files stay
/// within the budget and four segments while they are rewritten.
#[test]
fn a_budget_bounds_what_compaction_writes() {
    const LONGEST: u64 = 20 << 10;
    let mut bench = Bench::new();
    bench.config.tuning.disk_bytes_max = 16 * LONGEST;
    let opened = bench.open().unwrap();
    for number in 1..=KEPT * 5 {
        cycle_kept(&opened, number);
    }
    bench.clock.advance(Duration::from_secs(660));
    let mut rewritten = 0;
    while opened.journal.tend() {
        rewritten += 1;
        for entry in bench.disk.list(Folder::Segments).unwrap() {
            assert!(entry.length <= LONGEST + DATA_START, "{entry:?}");
        }
    }
    assert!(rewritten > 3, "{rewritten}");
    opened.journal.close().unwrap();
    drop(opened);
    assert_eq!(bench.open().unwrap().records.len() as u64, 3 * 5 * KEPT, "nothing went");
}

/// R26, JC-7: without room nothing changes and nothing is left; with room it goes on by itself.
#[test]
fn a_compaction_without_room_leaves_nothing() {
    let bench = Bench::new();
    let opened = worth_it(&bench);
    let used: u64 = bench.disk.files().values().map(|bytes| bytes.len() as u64).sum();
    bench.disk.set_capacity(Some(used.next_multiple_of(4096) + 8192));
    let before = segments(&bench);
    assert!(!opened.journal.tend());
    assert_eq!(segments(&bench), before);
    assert_eq!(opened.journal.health(), crate::Health::Ready);
    bench.disk.set_capacity(None);
    assert!(!opened.journal.tend(), "it rests");
    bench.clock.advance(Duration::from_secs(6));
    assert!(opened.journal.tend());
    assert_ne!(segments(&bench), before);
}

/// R26: the verb's work: everything, the newest segment included, and beforehand what it would be.
#[test]
fn everything_is_compacted_once() {
    let bench = Bench::new();
    let opened = worth_it(&bench);
    for n in 1..=30 {
        opened.commit(Unit::one(record(100 + n, 1, b"short"))).unwrap();
        opened.commit(Unit::one(closing(100 + n, 2))).unwrap();
    }
    opened.commit(Unit::one(forget(&[stream(101), stream(102)]))).unwrap();
    let streams = opened.journal.streams();
    opened.journal.close().unwrap();
    drop(opened);
    let before = bench.disk.fingerprint();
    let (_, plan) = plan_compaction(&bench.config).unwrap();
    assert_eq!(bench.disk.fingerprint(), before, "a dry run writes nothing");
    assert!(plan.publishes && plan.segments.iter().all(|segment| segment.rewritten), "{plan:#?}");
    let opened = bench.open().unwrap();
    let mut told = Vec::new();
    let totals = opened.journal.compact_all(&mut |progress| told.push(progress)).unwrap();
    assert_eq!(totals.records_dropped, 30 * 2 + 2 * 2 + 2, "streams and what forgot them");
    assert!(totals.bytes_after < totals.bytes_before && totals.files_after < totals.files_before);
    assert_eq!(told.last().map(|progress| progress.done), told.last().map(|progress| progress.total));
    assert_eq!(opened.journal.streams(), streams);
    opened.journal.close().unwrap();
    drop(opened);
    let (found, shown) = read_only(&bench).unwrap();
    assert_eq!(found.problems, []);
    let (_, plan) = plan_compaction(&bench.config).unwrap();
    assert!(!plan.publishes && plan.segments.iter().all(|segment| !segment.rewritten), "{plan:#?}");
    let (newest, older) = plan.segments.split_last().unwrap();
    assert_eq!(newest.why, "the newest one, with nothing to fold or drop");
    assert!(older.iter().all(|segment| segment.why == "compacted already"), "{plan:#?}");
    let opened = bench.open().unwrap();
    assert_eq!(opened.records, shown);
    let again = opened.journal.compact_all(&mut |_| {}).unwrap();
    assert_eq!((again.rewrites, again.records_dropped), (0, 0));
    opened.journal.close().unwrap();
}

/// JD-5: a source that does not read back is not compacted, and the writer stops.
#[test]
fn a_damaged_source_is_not_compacted() {
    let bench = Bench::new();
    let opened = worth_it(&bench);
    let first = Name::new(Folder::Segments, "000000000001.seg").unwrap();
    bench.disk.flip_bit(&first, 8192 + 160 + 120, 3);
    bench.disk.drop_caches();
    let before = segments(&bench);
    assert!(!opened.journal.tend());
    assert_eq!(segments(&bench), before);
    assert!(matches!(opened.journal.health(), crate::Health::Poisoned { .. }));
}

/// R26, JD-8: offline too, what finds no room as a whole is rewritten in parts, which make room for the rest and for the new
/// segment behind the newest one. What fails leaves everything as it reads.
#[test]
fn what_has_no_room_at_once_is_compacted_in_parts() {
    let compacted_with = |spare: u64| {
        let bench = Bench::new();
        let opened = worth_it(&bench);
        opened.journal.close().unwrap();
        drop(opened);
        let opened = bench.open().unwrap();
        let shown = opened.journal.read_stream(stream(31), 1).map(Result::unwrap).collect::<Vec<_>>();
        let (_, plan) = plan_compaction(&bench.config).unwrap();
        let files: Vec<u64> = plan.segments.iter().map(|segment| segment.bytes).collect();
        let used: u64 =
            bench.disk.files().values().map(|bytes| bytes.len().next_multiple_of(4096) as u64).sum();
        bench.disk.set_capacity(Some(used + spare));
        let done = opened.journal.compact_all(&mut |_| {});
        assert_eq!(opened.journal.read_stream(stream(31), 1).map(Result::unwrap).collect::<Vec<_>>(), shown);
        assert!(!segments(&bench).iter().any(|file| file.ends_with(".tmp")), "{:?}", segments(&bench));
        bench.disk.set_capacity(None);
        opened.journal.close().unwrap();
        drop(opened);
        assert_eq!(read_only(&bench).unwrap().0.problems, []);
        (done, files)
    };
    let mut spare = 0;
    let files = loop {
        let (done, files) = compacted_with(spare);
        match done {
            Ok(_) => break files,
            Err(error) => assert!(error.is_temporary(), "{spare}: {error}"),
        }
        spare += 4096;
    };
    let (all, largest) = (files.iter().sum::<u64>(), *files.iter().max().unwrap());
    assert!(spare <= 2 * largest && spare < all / 4, "{spare} of {all}, {files:?}");
}
