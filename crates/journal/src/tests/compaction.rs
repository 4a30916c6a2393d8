//! What a compaction keeps, drops and folds, and that nobody who reads notices.

use std::time::Duration;

use sealog_disk::{Disk, Folder};
use sealog_journal_format::journal_records::KIND_FORGET;

use super::crash_judge::read_only;
use super::crash_workloads::forget;
use super::setup::{Bench, Opened, closing, record, stream};
use crate::{Record, Unit};

/// One stream from its first record to its last, 3 KiB.
fn finished(opened: &Opened, n: u8) {
    let body = |number: u64| if n.is_multiple_of(5) { b"odd".to_vec() } else { vec![n ^ number as u8; 700] };
    for number in 1..=4 {
        opened.commit(Unit::one(record(n, number, &body(number)))).unwrap();
    }
    opened.commit(Unit::one(closing(n, 5))).unwrap();
}

fn all(opened: &Opened) -> Vec<Record> {
    opened.journal.read_from(1).collect::<Result<_, _>>().unwrap()
}

fn of_stream(opened: &Opened, n: u8, from_event: u64) -> Vec<Record> {
    opened.journal.read_stream(stream(n), from_event).collect::<Result<_, _>>().unwrap()
}

fn segments(bench: &Bench) -> Vec<String> {
    let files = bench.disk.list(Folder::Segments).unwrap().into_iter().map(|entry| entry.file);
    files.filter(|file| file != "next").collect()
}

fn bytes(bench: &Bench) -> u64 {
    let entries = bench.disk.list(Folder::Segments).unwrap();
    entries.iter().filter(|entry| entry.file.ends_with(".seg")).map(|entry| entry.length).sum()
}

fn compact(opened: &Opened) {
    while opened.journal.tend() {}
}

/// JD-5, JD-6, JF-14, R02: what was forgotten is gone, everything else reads as before, by stream and by sequence, now
/// and after the next start.
#[test]
fn what_is_kept_reads_as_before() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    for n in 1..=40 {
        finished(&opened, n);
    }
    opened.commit(Unit::one(record(99, 1, b"goes on"))).unwrap();
    let gone: Vec<_> = (1..=40).filter(|n| n % 3 == 0).map(stream).collect();
    opened.commit(Unit::one(forget(&gone))).unwrap();
    for n in 41..=48 {
        finished(&opened, n);
    }
    let before = all(&opened);
    let expected: Vec<Record> = before
        .iter()
        .filter(|record| !record.stream.is_some_and(|stream| gone.contains(&stream)))
        .cloned()
        .collect();
    let (files, size) = (segments(&bench).len(), bytes(&bench));
    bench.clock.advance(Duration::from_secs(601));
    compact(&opened);
    assert!(segments(&bench).len() < files, "{:?}", segments(&bench));
    assert!(bytes(&bench) < size);
    let kept = |records: &[Record]| -> Vec<Record> {
        records.iter().filter(|record| record.kind != KIND_FORGET).cloned().collect()
    };
    let check = |opened: &Opened| {
        assert_eq!(kept(&all(opened)), kept(&expected));
        for n in (1..=48).chain([99]) {
            for from in 1..=6 {
                let wanted = |r: &&Record| r.stream == Some(stream(n)) && r.event_number >= from;
                let wanted: Vec<Record> = expected.iter().filter(wanted).cloned().collect();
                assert_eq!(of_stream(opened, n, from), wanted, "stream {n} from {from}");
            }
        }
        for from in [1, 2, 77, 110, 180, before.len() as u64] {
            let read: Vec<Record> = opened.journal.read_from(from).collect::<Result<_, _>>().unwrap();
            assert!(read.iter().eq(all(opened).iter().filter(|record| record.sequence >= from)), "{from}");
        }
    };
    check(&opened);
    opened.commit(Unit::one(record(99, 2, b"and on"))).unwrap();
    assert_eq!(of_stream(&opened, 99, 1).len(), 2);
    let shown = all(&opened);
    opened.journal.close().unwrap();
    drop(opened);
    let (found, records) = read_only(&bench).unwrap();
    assert_eq!(found.problems, []);
    assert_eq!(records, shown);
    assert!(found.segments.iter().any(|segment| segment.generation > 0));
    let again = bench.open().unwrap();
    assert_eq!(again.records, shown);
    assert!(again.report.segments.iter().any(|segment| segment.last_number > segment.number));
    assert_eq!(all(&again), shown);
    assert_eq!(of_stream(&again, 99, 1).len(), 2);
}

/// JD-7: readers from before go on where they are.
#[test]
fn readers_go_on_over_a_compaction() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    for n in 1..=30 {
        finished(&opened, n);
    }
    opened.commit(Unit::one(forget(&(1..=20).map(stream).collect::<Vec<_>>()))).unwrap();
    finished(&opened, 31);
    finished(&opened, 32);
    let expected = of_stream(&opened, 25, 1);
    let rest: Vec<Record> = all(&opened).into_iter().filter(|record| record.sequence > 130).collect();
    for read in 0..5 {
        let mut streaming = opened.journal.read_stream(stream(25), 1);
        let mut sequential = opened.journal.read_from(131);
        let mut seen: Vec<Record> = streaming.by_ref().take(read).map(Result::unwrap).collect();
        let mut passed: Vec<Record> = sequential.by_ref().take(read * 3).map(Result::unwrap).collect();
        if read == 2 {
            bench.clock.advance(Duration::from_secs(601));
            compact(&opened);
            assert!(segments(&bench)[0].contains('-'), "{:?}", segments(&bench));
        }
        seen.extend(streaming.map(Result::unwrap));
        assert_eq!(seen, expected);
        passed.extend(sequential.map(Result::unwrap));
        let known = |records: &[Record]| -> Vec<Record> {
            records.iter().filter(|record| record.kind != KIND_FORGET).cloned().collect()
        };
        assert_eq!(known(&passed), known(&rest));
    }
}

/// JD-6: a range of which nothing is left becomes an empty segment, and ranges nest.
#[test]
fn a_dead_range_is_empty_and_ranges_nest() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    let mut names = Vec::new();
    for round in 0..4_u8 {
        for n in 1..=20 {
            finished(&opened, round * 20 + n);
        }
        let gone: Vec<_> = (1..=20).map(|n| stream(round * 20 + n)).collect();
        opened.commit(Unit::one(forget(&gone))).unwrap();
        finished(&opened, 100 + round);
        finished(&opened, 110 + round);
        compact(&opened);
        names.push(segments(&bench)[0].clone());
        assert!(segments(&bench).len() <= 4, "{:?}", segments(&bench));
    }
    assert!(names.iter().all(|name| name.starts_with("000000000001-")), "{names:?}");
    assert!(names.windows(2).any(|pair| pair[0] != pair[1]));
    let shown = all(&opened);
    // Less than a third of a segment is not worth a rewrite.
    let dead = shown.iter().filter(|record| record.stream.is_some_and(|stream| stream.0[0] < 100)).count();
    assert!(dead < 30, "{dead} of 400");
    drop(opened);
    let again = bench.open().unwrap();
    assert_eq!(again.records, shown);
}

/// R42: what a forget record names does not come back, also when the record itself has gone.
#[test]
fn forgotten_streams_do_not_come_back() {
    let bench = Bench::new();
    for round in 0..6_u8 {
        let opened = bench.open().unwrap();
        assert!(opened.records.iter().all(|record| record.kind == KIND_FORGET
            || opened.journal.stream(record.stream.unwrap()).is_some()
            || round > 0));
        for n in 1..=12 {
            finished(&opened, n);
        }
        opened.commit(Unit::one(forget(&(1..=12).map(stream).collect::<Vec<_>>()))).unwrap();
        finished(&opened, 50);
        opened.commit(Unit::one(forget(&[stream(50)]))).unwrap();
        compact(&opened);
        assert_eq!(opened.journal.streams(), 0);
        opened.journal.close().unwrap();
    }
    let opened = bench.open().unwrap();
    assert_eq!(opened.journal.streams(), 0, "nothing came back");
    for n in 1..=12 {
        assert_eq!(of_stream(&opened, n, 1), []);
    }
}

/// A node that only ever starts and stops leaves no crowd of small files.
#[test]
fn small_segments_are_joined() {
    let bench = Bench::new();
    for n in 1..=30 {
        let opened = bench.open().unwrap();
        opened.commit(Unit::one(record(n, 1, b"one"))).unwrap();
        compact(&opened);
        opened.journal.close().unwrap();
    }
    assert!(segments(&bench).len() < 10, "{:?}", segments(&bench));
    let opened = bench.open().unwrap();
    assert_eq!(opened.records.len(), 30);
    let epochs: Vec<u64> = opened.records.iter().map(|record| record.epoch).collect();
    assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "each record keeps its writer: {epochs:?}");
    assert_eq!(opened.report.interrupted.len(), 30);
}

/// JD-5: the active segment is ended by age if it holds what was forgotten, and only then.
#[test]
fn an_active_segment_that_holds_dead_streams_is_ended_by_age() {
    for dead in [false, true] {
        let bench = Bench::new();
        let opened = bench.open().unwrap();
        opened.commit(Unit::one(record(1, 1, b"short"))).unwrap();
        opened.commit(Unit::one(closing(1, 2))).unwrap();
        if dead {
            opened.commit(Unit::one(forget(&[stream(1)]))).unwrap();
        }
        compact(&opened);
        opened.commit(Unit::one(record(2, 1, b"early"))).unwrap();
        assert_eq!(segments(&bench).len(), 1);
        bench.clock.advance(Duration::from_secs(601));
        compact(&opened);
        opened.commit(Unit::one(record(2, 2, b"late"))).unwrap();
        compact(&opened);
        let compacted = segments(&bench)[0].contains('-');
        assert_eq!((segments(&bench).len(), compacted), if dead { (2, true) } else { (1, false) });
        assert_eq!(all(&opened).iter().any(|record| record.stream == Some(stream(1))), !dead);
        assert_eq!(of_stream(&opened, 2, 1).len(), 2);
    }
}
