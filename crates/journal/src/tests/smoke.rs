//! The plain way: write, close, open, read.

use super::setup::{Bench, closing, record, stream};
use crate::Unit;

#[test]
fn what_was_committed_is_there_after_a_clean_close() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    for event in 1..=40 {
        opened.commit(Unit::one(record(1, event, &[event as u8; 700]))).unwrap();
    }
    opened.commit(Unit::one(closing(1, 41))).unwrap();
    let live: Vec<_> = opened.journal.read_stream(stream(1), 1).map(Result::unwrap).collect();
    assert_eq!(live.len(), 41);
    opened.journal.close().unwrap();
    let again = bench.open().unwrap();
    assert_eq!(again.records, live);
    assert!(again.report.tail.is_none());
    assert!(again.report.segments.len() > 1, "the workload rolls: {:?}", again.report.segments);
    let from: Vec<_> = again.journal.read_from(17).map(Result::unwrap).collect();
    assert_eq!(from, live[16..]);
}

#[test]
fn what_was_committed_is_there_after_a_crash() {
    let bench = Bench::new();
    for round in 0..5 {
        let opened = bench.open().unwrap();
        assert_eq!(opened.records.len(), round * 3);
        for event in 1..=3 {
            opened.commit(Unit::one(record(round as u8 + 1, event, b"text"))).unwrap();
        }
        drop(opened);
    }
}
