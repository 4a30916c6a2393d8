//! Summaries of segments that were taken up while they were written: they say what one made from the files says, and are
//! there as soon as their segment has ended.

use sealog_disk::Operation;
use sealog_disk::sim::{Choice, Fault, FaultKind, SimDisk};

use super::crash_workloads::forget;
use super::digests::start;
use super::setup::{Bench, Opened, closing, record, stream};
use super::summaries::{bench_on, summary};
use crate::recovery::scan::peek_link;
use crate::recovery::sweep;
use crate::{Health, Journal, Unit, summary as summaries};

/// Everything that the summaries of ended segments say, in words.
fn said(journal: &Journal) -> Vec<String> {
    let shared = journal.shared_for_tests();
    let catalog = shared.read();
    let (disk, codec) = (&*shared.store.disk, &*shared.store.codec);
    let pairs = catalog.segments.values().zip(catalog.segments.values().skip(1));
    let each = pairs.map(|(segment, successor)| {
        let [start, named] = [segment, successor].map(|s| peek_link(s, false, codec).unwrap().unwrap());
        let end = sweep::own_end(segment, &start, &named, codec).unwrap().unwrap();
        let summary = summaries::load(disk, segment, &end, codec.digest_version());
        let summary = summary.unwrap_or_else(|| panic!("no summary of segment {}", segment.number));
        let reader = summary.read().unwrap();
        let pieces: Vec<_> =
            reader.pieces().map(|p| format!("{p:?} {:?}", p.offsets.iter().collect::<Vec<_>>())).collect();
        format!("{:?} {:?} {pieces:?}", reader.own, reader.marks)
    });
    each.collect()
}

/// Several segments of streams that span them, end and are forgotten; `between` is called after each commit.
fn write(opened: &Opened, between: &mut dyn FnMut(&Opened)) {
    for event in 1..=40_u64 {
        for n in 1..=6_u8 {
            let body = vec![n; 200 + usize::from(n) * 40];
            let unit = match (event, n) {
                (20, 3) => Unit { records: vec![record(n, event, &body), closing(n, event + 1)] },
                (25, 4) => Unit::one(forget(&[stream(3), stream(9)])),
                _ => Unit::one(record(n, event, &body)),
            };
            opened.commit(unit).unwrap();
            between(opened);
        }
    }
}

fn bench(disk: SimDisk, cache_bytes: usize) -> Bench {
    let mut bench = bench_on(disk, 61);
    bench.config.tuning.cache_bytes_max = cache_bytes;
    bench.create();
    bench
}

/// JF-22: followed from memory, followed with nothing in memory, followed now and then, and made from the files: all the same.
#[test]
fn however_a_segment_was_taken_up_its_summary_says_the_same() {
    let all = [(64 << 20, 1), (0, 1), (8 << 10, 1), (64 << 20, 7), (8 << 10, 31), (0, u64::MAX)];
    let made = all.map(|(cache_bytes, every)| {
        let bench = bench(SimDisk::new(), cache_bytes);
        let opened = bench.open().unwrap();
        let mut commits = 0_u64;
        write(&opened, &mut |opened| {
            commits += 1;
            if commits.is_multiple_of(every) {
                opened.journal.tend();
            }
        });
        while opened.journal.tend() {}
        assert_eq!(opened.journal.health(), Health::Ready);
        let said = said(&opened.journal);
        assert!(said.len() >= 3, "{} ended segments", said.len());
        drop(opened);
        let disk = bench.disk.crash_point().image(Choice::Everything);
        let answers =
            [true, false].map(|digests| start(&bench_on(disk.fork(), 62), digests).unwrap().answers());
        assert_eq!(answers[0], answers[1]);
        said
    });
    made.iter().for_each(|said| assert_eq!(*said, made[0]));
}

/// One step behind the roll writes the summary, and reads of the segment no more than how it begins and ends.
#[test]
fn what_was_followed_is_not_read_again() {
    let (bench, mut reads) = (bench(SimDisk::new(), 64 << 20), Vec::new());
    let opened = bench.open().unwrap();
    let mut ended = 0;
    write(&opened, &mut |opened| {
        let newest = opened.journal.shared_for_tests().read().durable.end.segment;
        bench.disk.start_trace();
        let done = opened.journal.tend();
        let trace = bench.disk.take_trace();
        let read = trace.iter().filter(|call| call.call.operation() == Operation::Read).count();
        if newest > ended + 1 {
            ended += 1;
            assert!(done && bench.disk.bytes(&summary(ended)).is_some(), "segment {ended}");
        }
        reads.push(read);
    });
    assert!(ended >= 3);
    // At each roll the beginnings of two segments, and the end of the older one; else nothing.
    assert!(reads.iter().filter(|read| **read > 0).count() as u64 <= 2 * ended + 1, "{reads:?}");
    assert!(reads.iter().all(|read| *read < 16), "{reads:?}");
}

/// JC-7: a call that fails while a segment is followed costs a summary at most.
#[test]
fn a_failure_while_following_costs_a_summary_at_most() {
    let run = |fault: Option<Fault>| {
        let bench = bench(SimDisk::new(), 0);
        let opened = bench.open().unwrap();
        (1..=12).for_each(|event| opened.commit(Unit::one(record(1, event, &[7; 300]))).unwrap());
        bench.disk.start_trace();
        fault.into_iter().for_each(|fault| bench.disk.inject(fault));
        assert!(!opened.journal.tend(), "no segment has ended");
        bench.disk.clear_faults();
        let calls = bench.disk.take_trace().len() as u64;
        assert_eq!(opened.journal.health(), Health::Ready);
        write(&opened, &mut |opened| {
            opened.journal.tend();
        });
        opened.journal.close().unwrap();
        drop(opened);
        let answers =
            [true, false].map(|digests| start(&bench_on(bench.disk.fork(), 63), digests).unwrap().answers());
        assert_eq!(answers[0], answers[1]);
        calls
    };
    let calls = run(None);
    assert!(calls > 3, "{calls}");
    for at in 0..calls {
        for kind in [FaultKind::Io, FaultKind::Interrupted] {
            run(Some(Fault::call(at, kind)));
            run(Some(Fault::call(at, kind).forever()));
        }
    }
}
