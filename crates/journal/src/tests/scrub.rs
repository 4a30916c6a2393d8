//! What a start left unread is read afterwards, and damage there stops the writer (JR-21).

use super::damage_forge::forged_body;
use super::damage_image::{look, segment};
use super::digests::{Start, start};
use super::setup::record;
use super::summaries::{bench_on, summarised};
use crate::{Admission, Health, JournalError, Refusal, Unit};

fn tend(started: &Start) {
    while started.journal.tend() {}
}

/// Everything is read once, and then there is nothing left.
#[test]
fn the_scrub_reads_what_the_start_did_not() {
    let (disk, _) = summarised();
    for bytes in [0, u64::MAX] {
        let mut bench = bench_on(disk.fork(), 20);
        bench.config.tuning.boot_check_bytes = bytes;
        let started = start(&bench, true).unwrap();
        let unchecked: u64 = started.report.unchecked.iter().map(|unchecked| unchecked.bytes).sum();
        assert!(unchecked > 10_000);
        assert_eq!(started.journal.counters().unchecked_bytes, unchecked);
        tend(&started);
        assert_eq!(started.journal.counters().unchecked_bytes, 0);
        assert_eq!((started.journal.health(), started.journal.damage().is_none()), (Health::Ready, true));
    }
    // A start that read everything leaves nothing.
    let started = start(&bench_on(disk, 20), false).unwrap();
    assert_eq!(started.journal.counters().unchecked_bytes, 0);
}

/// A body whose CRC was made right is for the scrub to find; other damage too, where the start did not look. The rest
/// reads on, nothing on disk changes, and the next full start refuses with the same place.
#[test]
fn damage_that_the_start_did_not_see_stops_the_writer() {
    let (disk, numbers) = summarised();
    let number = numbers[1];
    let at = look(&disk).1.frames.into_iter().find(|f| f.segment == number && f.header.index == 2).unwrap();
    let forged = disk.fork();
    forged_body(&forged, number, at.offset, at.header.body_length);
    let flipped = disk.fork();
    flipped.flip_bit(&segment(number), at.offset + 120, 2);
    for (damaged, bytes) in [(forged, u64::MAX), (flipped, 0)] {
        let verdict = look(&damaged).0.problems[0].clone();
        assert_eq!((verdict.place.segment, verdict.place.offset), (number, at.offset));
        let mut bench = bench_on(damaged.fork(), 20);
        bench.config.tuning.boot_check_bytes = bytes;
        let started = start(&bench, true).unwrap();
        started.journal.maintain();
        let before = bench.disk.files();
        tend(&started);
        assert_eq!(bench.disk.files(), before, "nothing on disk changed");
        assert!(matches!(started.journal.health(), Health::Poisoned { .. }));
        let named = |error: Option<JournalError>| match error {
            Some(JournalError::Corrupt { place, row, what }) => {
                assert_eq!((place, row, what), (verdict.place, verdict.row, verdict.what));
            }
            other => panic!("{other:?}"),
        };
        named(started.journal.damage());
        let refused = started.journal.submit(Unit::one(record(250, 1, b"new")), Admission::Reserved);
        assert!(matches!(refused, Err(Refusal::Ended(_))));
        let next = started.report.segments.iter().find(|facts| facts.number == number + 1).unwrap();
        let behind: Result<Vec<_>, _> = started.journal.read_from(next.first_sequence).collect();
        assert!(behind.unwrap().len() > 10, "what is sound can be read");
        assert!(started.journal.close().is_err());
        drop(started);
        named(start(&bench, false).err());
    }
}

/// A segment of which even the link is gone.
#[test]
fn a_segment_that_is_cut_while_the_journal_is_open_is_noticed() {
    let (disk, numbers) = summarised();
    let bench = bench_on(disk, 20);
    let started = start(&bench, true).unwrap();
    bench.disk.truncate(&segment(numbers[0]), 8192 + 64);
    tend(&started);
    assert!(matches!(started.journal.damage(), Some(JournalError::Corrupt { row: 3, .. })));
}
