//! A reader in another process while segments are compacted under it, several times (JR-13).

use std::sync::{Arc, Mutex};

use super::crash_judge::Taken;
use super::crash_workloads::forget;
use super::readers_disk::Between;
use super::setup::{Bench, Opened, closing, record, stream};
use crate::{Record, Unit, audit};

/// Streams that fill a segment or two each; the odd ones are forgotten one after the other.
const STREAMS: u8 = 12;

fn filled(bench: &Bench) -> Opened {
    let opened = bench.open().unwrap();
    for n in 1..=STREAMS {
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
fn compact(bench: &Bench, opened: &Opened, next: &mut u8) -> bool {
    if *next > STREAMS {
        return false;
    }
    opened.commit(Unit::one(forget(&[stream(*next)]))).unwrap();
    bench.clock.advance(std::time::Duration::from_secs(10));
    while opened.journal.tend() {}
    while opened.journal.maintain() {}
    *next += 2;
    true
}

/// How often a reader began while a compaction ran at every `stride`-th of its calls.
fn overtaken(stride: usize) -> usize {
    let bench = Bench::new();
    let opened = filled(&bench);
    let kept = |records: &[Record]| -> Vec<Record> {
        let even = |record: &&Record| record.stream.is_some_and(|stream| stream.0[0].is_multiple_of(2));
        records.iter().filter(even).cloned().collect()
    };
    let before: Vec<Record> = opened.journal.read_from(1).map(Result::unwrap).collect();
    let state = Arc::new(Mutex::new((opened, 1_u8, 0_usize)));
    let (writer, moving) = (bench.clone(), Arc::clone(&state));
    let between = Between::new(&bench.disk, move || {
        let mut state = moving.lock().unwrap();
        let (opened, next, moment) = &mut *state;
        *moment += 1;
        if moment.is_multiple_of(stride) {
            compact(&writer, opened, next);
        }
    });
    let mut config = Bench::on(bench.disk.clone(), 61).config;
    config.disk = Arc::new(between);
    let mut passes = 0;
    let found = audit(&config, &mut || {
        passes += 1;
        Taken::default()
    });
    let (found, shown) = found.unwrap_or_else(|e| panic!("stride {stride}, {passes} passes: {e:?}"));
    assert!(found.live && found.is_sound(), "stride {stride}, {passes} passes: {:?}", found.problems);
    assert_eq!(kept(&shown.0), kept(&before), "stride {stride}");
    assert!(state.lock().unwrap().1 > 1, "nothing was compacted at stride {stride}");
    passes
}

/// JR-13: however often segments go while a reader reads, that is no damage, and it comes to an end.
#[test]
fn several_compactions_under_a_reader_are_no_damage() {
    let passes: Vec<usize> = (2..10).map(|at| overtaken(at * 8)).collect();
    assert!(passes.iter().any(|passes| *passes > 2), "no reader was disturbed twice: {passes:?}");
    assert!(passes.iter().all(|passes| *passes <= 8), "{passes:?}");
}
