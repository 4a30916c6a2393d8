//! A reader in another process while segments are compacted under it, several times (JR-13).

use std::sync::{Arc, Mutex};

use sealog_disk::Disk;
use sealog_disk::sim::SimDisk;

use super::crash_judge::Taken;
use super::crash_workloads::forget;
use super::readers_disk::Between;
use super::setup::{Bench, Opened, closing, record, stream};
use crate::{Config, Record, Unit, audit, backup};

/// Streams that fill a segment or two each; the odd ones are forgotten one after the other.
fn filled(bench: &Bench, streams: u8) -> Opened {
    let opened = bench.open().unwrap();
    for n in 1..=streams {
        for event in 1..=9 {
            opened.commit(Unit::one(record(n, event, &[n; 1800]))).unwrap();
        }
        opened.commit(Unit::one(closing(n, 10))).unwrap();
    }
    opened.commit(Unit::one(record(99, 1, &[9; 100]))).unwrap();
    bench.clock.advance(std::time::Duration::from_millis(300));
    while opened.journal.maintain() {}
    opened
}

/// Forgets the next odd stream and compacts what that makes worth it. Whether there was one.
fn compact(bench: &Bench, opened: &Opened, next: &mut u8, streams: u8) -> bool {
    if *next > streams {
        return false;
    }
    opened.commit(Unit::one(forget(&[stream(*next)]))).unwrap();
    bench.clock.advance(std::time::Duration::from_secs(10));
    while opened.journal.tend() {}
    while opened.journal.maintain() {}
    *next += 2;
    true
}

/// A writer, the stream that it forgets next, and how many calls a reader has made.
type Writer = Arc<Mutex<(Opened, u8, usize)>>;

/// A reader's view of the journal, compacted at every `stride`-th of its calls.
fn overtaken_by(bench: &Bench, opened: Opened, streams: u8, stride: usize) -> (Config, Writer) {
    let state = Arc::new(Mutex::new((opened, 1_u8, 0_usize)));
    let (writer, moving) = (bench.clone(), Arc::clone(&state));
    let between = Between::new(&bench.disk, move || {
        let mut state = moving.lock().unwrap();
        let (opened, next, moment) = &mut *state;
        *moment += 1;
        if moment.is_multiple_of(stride) {
            compact(&writer, opened, next, streams);
        }
    });
    let mut config = Bench::on(bench.disk.clone(), 61).config;
    config.disk = Arc::new(between);
    (config, state)
}

/// How often a reader began while a compaction ran at every `stride`-th of its calls, and whether it was the last one.
fn overtaken(streams: u8, stride: usize) -> (usize, bool) {
    let bench = Bench::new();
    let opened = filled(&bench, streams);
    let kept = |records: &[Record]| -> Vec<Record> {
        let even = |record: &&Record| record.stream.is_some_and(|stream| stream.0[0].is_multiple_of(2));
        records.iter().filter(even).cloned().collect()
    };
    let before: Vec<Record> = opened.journal.read_from(1).map(Result::unwrap).collect();
    let (config, state) = overtaken_by(&bench, opened, streams, stride);
    let mut passes = 0;
    let found = audit(&config, &mut || {
        passes += 1;
        Taken::default()
    });
    let (found, shown) = found.unwrap_or_else(|e| panic!("stride {stride}, {passes} passes: {e:?}"));
    assert!(found.live && found.is_sound(), "stride {stride}, {passes} passes: {:?}", found.problems);
    assert_eq!(kept(&shown.0), kept(&before), "stride {stride}");
    let next = state.lock().unwrap().1;
    assert!(next > 1, "nothing was compacted at stride {stride}");
    (passes, next > streams)
}

/// JR-13: however often segments go while a reader reads, that is no damage, and it comes to an end.
#[test]
fn several_compactions_under_a_reader_are_no_damage() {
    let passes: Vec<usize> = (2..10).map(|at| overtaken(12, at * 8).0).collect();
    assert!(passes.iter().any(|passes| *passes > 1), "no reader was disturbed: {passes:?}");
    assert!(passes.iter().all(|passes| *passes <= 8), "{passes:?}");
}

/// JR-13: nor is it where every pass is overtaken: what was listed stays open while it is read.
#[test]
fn compactions_without_end_under_a_reader_are_no_damage() {
    for stride in [300, 450, 600] {
        let (passes, last) = overtaken(90, stride);
        assert!(passes <= 3 && !last, "stride {stride}: {passes} passes, over: {last}");
    }
}

/// JR-13: a backup copies what it has read, whatever is removed meanwhile.
#[test]
fn compactions_without_end_under_a_backup_do_not_stop_it() {
    for stride in [300, 450, 600] {
        let bench = Bench::new();
        let opened = filled(&bench, 90);
        let (config, state) = overtaken_by(&bench, opened, 90, stride);
        let target: Arc<dyn Disk> = Arc::new(SimDisk::new());
        let taken = backup(&config, &target).unwrap_or_else(|e| panic!("stride {stride}: {e:?}"));
        assert!(taken.files > 10 && taken.files == taken.copied_files, "stride {stride}: {taken:?}");
        let next = state.lock().unwrap().1;
        assert!((3..90).contains(&next), "stride {stride}: {next}");
    }
}
