//! What only takes room: what a start leaves for later and what it does not (JR-7), and how much is prepared when.

use std::time::Duration;

use sealog_disk::sim::Choice;
use sealog_disk::{Folder, Name};
use sealog_journal_format::limits;

use super::damage_image::segment;
use super::setup::{Bench, Opened, record};
use crate::Unit;
use crate::writer::prepare::Identity;

fn next() -> Name {
    Name::new(Folder::Segments, "next").unwrap()
}

fn length(bench: &Bench, name: &Name) -> u64 {
    bench.disk.bytes(name).unwrap_or_else(|| panic!("no {name}")).len() as u64
}

fn commit(opened: &Opened, event: u64) {
    opened.commit(Unit::one(record(1, event, &[event as u8; 900]))).unwrap();
}

/// Segments long enough that the reserve (JC-7) asks for nothing.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.config.tuning.first_segment_bytes = 128 << 10;
    bench.config.tuning.segment_bytes_max = 512 << 10;
    bench
}

/// A killed journal: one segment, zeros behind its frames, and `next` beside it.
fn killed() -> (Bench, u64) {
    let bench = bench();
    let opened = bench.open().unwrap();
    (1..=10).for_each(|event| commit(&opened, event));
    while opened.journal.maintain() {}
    let end = opened.journal.shared_for_tests().read().durable.end.end_offset;
    drop(opened);
    assert!(end < length(&bench, &segment(1)) && length(&bench, &next()) > 0);
    (bench, end)
}

#[test]
fn zeros_and_next_go_once_the_journal_is_open() {
    for closes in [false, true] {
        let (bench, end) = killed();
        let before = length(&bench, &segment(1));
        let opened = bench.open().unwrap();
        assert_eq!((length(&bench, &segment(1)), bench.disk.bytes(&next()).is_some()), (before, true));
        match closes {
            true => opened.journal.close().unwrap(),
            false => drop(opened.journal.maintain()),
        }
        assert_eq!((length(&bench, &segment(1)), bench.disk.bytes(&next())), (end, None));
        let records = opened.records.clone();
        drop(opened);
        assert_eq!(bench.open().unwrap().records, records);
    }
}

/// JR-8: whether they went, went and were not made durable, or stayed, the next start finds the same, with a segment behind
/// the zeros, too.
#[test]
fn a_crash_between_changes_no_record() {
    for writes in [false, true] {
        let (bench, _) = killed();
        let opened = bench.open().unwrap();
        let stayed = bench.disk.crash_point().image(Choice::Everything);
        opened.journal.maintain();
        let mut records = opened.records.len();
        if writes {
            commit(&opened, 11);
            records += 1;
        }
        let images =
            [Choice::Everything, Choice::Nothing].map(|choice| bench.disk.crash_point().image(choice));
        let all = [(stayed, 10), (images[0].clone(), records), (images[1].clone(), records)];
        for (disk, records) in all {
            let again = Bench::on(disk, 5).open().unwrap();
            assert_eq!((again.records.len(), again.report.tail.is_some()), (records, false));
        }
    }
    // A segment is published while the zeros still stand.
    let (bench, end) = killed();
    let opened = bench.open().unwrap();
    commit(&opened, 11);
    assert!(length(&bench, &segment(1)) > end);
    drop(opened);
    assert_eq!(bench.open().unwrap().records.len(), 11);
}

/// A torn tail is cut before anything is written behind it, and `next` is gone by then: it may be all the room there is.
#[test]
fn what_has_to_be_written_first_waits_for_neither() {
    let (bench, end) = killed();
    let mut bytes = bench.disk.bytes(&segment(1)).unwrap();
    bytes[end as usize + 40] = 7;
    bench.disk.put(&segment(1), &bytes);
    let opened = bench.open().unwrap();
    assert!(opened.report.tail.is_some());
    assert_eq!((length(&bench, &segment(1)), bench.disk.bytes(&next())), (end, None));
}

/// JC-1: what was prepared here and is about to be published is not what an earlier writer left, whenever that goes.
#[test]
fn a_segment_on_its_way_to_its_name_is_not_what_was_left() {
    let (bench, _) = killed();
    let opened = bench.open().unwrap();
    let shared = opened.journal.shared_for_tests();
    let identity = Identity { number: 2, lineage: [1; 16], predecessor_lineage: [1; 16], epoch: 2 };
    shared.preparation.lock().finish(&shared, identity, 64 << 10, 64 << 10).unwrap();
    assert!(shared.preparation.lock().take_ready().is_some());
    opened.journal.maintain();
    assert_eq!(length(&bench, &next()), 64 << 10);
}

/// What units wait for is filled as far as the first segment is long, however long it was to become; what the helper has
/// time for, to its whole length.
#[test]
fn a_segment_that_is_waited_for_is_short_and_the_next_one_is_not() {
    let bench = bench();
    let opened = bench.open().unwrap();
    let first = bench.config.tuning.first_segment_bytes;
    let mut event = 0;
    let mut until = |segments: u64, helped: bool| {
        while bench.disk.bytes(&segment(segments)).is_none() {
            event += 1;
            commit(&opened, event);
            while helped && opened.journal.maintain() {}
        }
    };
    until(4, false);
    assert_eq!([1, 2, 3].map(|number| length(&bench, &segment(number)) <= first), [true; 3]);
    until(7, true);
    assert_eq!(length(&bench, &segment(7)), bench.config.tuning.segment_bytes_max);
}

/// The next segment is asked for when half of this one is used; where it will not last a second, when it has begun.
#[test]
fn a_segment_that_will_not_last_has_its_successor_early() {
    for (pause, early) in [(Duration::ZERO, true), (Duration::from_secs(1), false)] {
        let bench = bench();
        let opened = bench.open().unwrap();
        let mut asked = None;
        for event in 1..=80 {
            commit(&opened, event);
            bench.clock.advance(pause);
            while opened.journal.maintain() {}
            if asked.is_none() && bench.disk.bytes(&next()).is_some() {
                asked = Some(opened.journal.shared_for_tests().read().durable.end.end_offset);
            }
        }
        let half = (bench.config.tuning.first_segment_bytes + limits::DATA_START) / 2;
        let asked = asked.unwrap();
        assert!(asked > limits::DATA_START && (asked < half + 1200) && (asked < half) == early, "{asked}");
    }
}
