//! Who is taken when there is little room or little budget, in what order others are refused (JC-7, JC-10, R28).

use sealog_disk::sim::SimDisk;
use sealog_journal_format::journal_records::{Forget, KIND_FORGET};
use sealog_journal_format::limits::DATA_START;

use super::setup::{Bench, Opened, START_MS, closing, record};
use crate::{Admission, Class, Health, JournalError, NewRecord, Ticket, Unit};

fn used(disk: &SimDisk) -> u64 {
    disk.files().values().map(|bytes| (bytes.len() as u64).next_multiple_of(4096)).sum()
}

fn forget(count: usize) -> Unit {
    let body = Forget { streams: vec![[99; 16]; count] }.encode().unwrap();
    let class = Class::FORGETS;
    Unit::one(NewRecord {
        kind: KIND_FORGET,
        stream: None,
        class,
        event_number: 0,
        body,
        ..record(0, 0, b"")
    })
}

fn submit(opened: &Opened, unit: Unit, admission: Admission) -> Ticket {
    opened.journal.submit(unit, admission).unwrap()
}

/// `true`: durable; `false`: refused for want of room.
fn outcome(mut ticket: Ticket) -> bool {
    match ticket.try_result() {
        Some(Ok(())) => true,
        Some(Err(JournalError::Full)) => false,
        other => panic!("{other:?}"),
    }
}

fn commit(opened: &Opened, unit: Unit, admission: Admission) -> bool {
    let ticket = submit(opened, unit, admission);
    opened.journal.turn();
    outcome(ticket)
}

/// Bytes of written frames, for who looks at the budget.
const BUDGET: u64 = 300 << 10;

/// JC-7: of one group creations go first, then events, then what is forgotten; ends never.
#[test]
fn a_group_gives_up_creations_before_events_before_forgettings() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    assert!(commit(&opened, Unit::one(record(1, 1, b"opens")), Admission::Create));
    bench.disk.set_capacity(Some(used(&bench.disk)));

    // About 7.5 KiB are left. One open stream keeps 6400 bytes of them, two would keep 8704.
    let create = submit(&opened, Unit::one(record(3, 1, b"opens")), Admission::Create);
    let event = submit(&opened, Unit::one(record(1, 2, b"small")), Admission::Ordinary);
    opened.journal.turn();
    assert_eq!((outcome(create), outcome(event)), (false, true));
    assert_eq!(opened.journal.health(), Health::Full);
    assert!(commit(&opened, Unit::one(record(1, 2, b"small")), Admission::Ordinary));
    assert_eq!(opened.journal.health(), Health::Full, "an event that fits makes no room for a creation");

    let event = submit(&opened, Unit::one(record(1, 3, &[3; 2000])), Admission::Ordinary);
    let gone = submit(&opened, forget(10), Admission::Forget);
    opened.journal.turn();
    assert_eq!((outcome(event), outcome(gone)), (false, true));

    let mut forgotten = 0;
    while commit(&opened, forget(50), Admission::Forget) {
        forgotten += 1;
    }
    assert!((1..10).contains(&forgotten), "{forgotten}");
    let end =
        submit(&opened, Unit::one(NewRecord { body: vec![1; 2100], ..closing(1, 3) }), Admission::Reserved);
    let gone = submit(&opened, forget(1), Admission::Forget);
    opened.journal.turn();
    // Its own end frees what the reserve kept for it.
    assert!(outcome(end));
    let _ = outcome(gone);
    drop(opened);
    assert!(bench.open().unwrap().report.interrupted.is_empty());
}

/// Bytes behind the headers of the segments, and how many segments there are.
fn frames(disk: &SimDisk) -> (u64, u64) {
    let segments = disk.files().into_iter().filter(|(name, _)| name.ends_with(".seg"));
    let lengths: Vec<u64> = segments.map(|(_, bytes)| bytes.len() as u64 - DATA_START).collect();
    (lengths.iter().sum(), lengths.len() as u64)
}

/// JC-10: new work stops at the budget, ends do not, and the files stay within it, four segments, and their headers.
/// Another start counts what is there.
#[test]
fn the_budget_counts_written_frames_across_starts() {
    let mut bench = Bench::new();
    bench.config.tuning.disk_bytes_max = BUDGET;
    let most = |disk: &SimDisk| BUDGET + 4 * (64 << 10) + frames(disk).1 * DATA_START;
    let (mut open, mut streams) = (Vec::new(), 0);
    let mut opened = bench.open().unwrap();
    'filling: for n in 1..=250_u8 {
        if n % 20 == 0 {
            opened.journal.close().unwrap();
            assert!(frames(&bench.disk).0 <= BUDGET);
            opened = bench.open().unwrap();
        }
        if !commit(&opened, Unit::one(record(n, 1, b"opens")), Admission::Create) {
            break;
        }
        streams += 1;
        open.push(n);
        for event in 2..6 {
            if !commit(&opened, Unit::one(record(n, event, &[n; 1000])), Admission::Ordinary) {
                break 'filling;
            }
            opened.journal.maintain();
            assert!(used(&bench.disk) <= most(&bench.disk));
        }
        // What stays open asks for room of its own, which is not what is looked at here.
        if open.len() > 5 {
            assert!(commit(&opened, Unit::one(closing(open.remove(0), 9)), Admission::Reserved));
        }
    }
    assert!((40..100).contains(&streams), "{streams}");
    assert_eq!(opened.journal.health(), Health::Full);
    // What is open goes on into what is left of the budget.
    let more = || commit(&opened, Unit::one(record(open[0], 8, &[1; 1000])), Admission::Ordinary);
    assert!((1..40).contains(&(0..40).take_while(|_| more()).count()));
    assert!(commit(&opened, forget(1), Admission::Forget));
    for n in &open {
        assert!(commit(&opened, Unit::one(closing(*n, 9)), Admission::Reserved));
    }
    assert!(used(&bench.disk) <= most(&bench.disk));
    opened.journal.close().unwrap();
    assert!(frames(&bench.disk).0 > BUDGET - 2000);

    let opened = bench.open().unwrap();
    assert!(!commit(&opened, Unit::one(record(251, 1, b"opens")), Admission::Create));
    drop(opened);
    bench.config.tuning.disk_bytes_max = 2 * BUDGET;
    let opened = bench.open().unwrap();
    assert!(commit(&opened, Unit::one(record(251, 1, b"opens")), Admission::Create));
    assert_eq!(opened.journal.health(), Health::Ready);
    assert!(opened.records.iter().all(|record| record.time_ms < START_MS + 10));
}

/// JC-10: new work is refused ahead of the budget, so that what was taken comes to its end, however many there are at a
/// time and however much each of them writes, as long as they write alike.
#[test]
fn what_is_open_ends_within_the_budget() {
    for (at_once, events, bytes) in [(1, 12, 1000), (8, 12, 1000), (24, 12, 300), (3, 3, 20), (8, 4, 2000)] {
        let mut bench = Bench::new();
        bench.config.tuning.disk_bytes_max = BUDGET;
        let opened = bench.open().unwrap();
        // (stream, its next event), none of which stands where another one stands.
        let mut open: Vec<(u8, u64)> = Vec::new();
        let (mut taken, mut refused) = (0, 0);
        while refused == 0 || !open.is_empty() {
            // As many at a time as ever, of which none waits for the end of another one.
            if open.len() < at_once && refused == 0 {
                match commit(&opened, Unit::one(record(taken + 1, 1, b"opens")), Admission::Create) {
                    true => taken += 1,
                    false => refused += 1,
                }
                open.extend((refused == 0).then_some((taken, 2)));
            }
            for (stream, event) in &mut open {
                let written =
                    commit(&opened, Unit::one(record(*stream, *event, &vec![1; bytes])), Admission::Ordinary);
                assert!(written, "{at_once} at a time, {bytes} bytes: event {event} of {stream} of {taken}");
                *event += 1;
            }
            for (stream, event) in open.extract_if(.., |(_, event)| *event > events) {
                assert!(commit(&opened, Unit::one(closing(stream, event)), Admission::Reserved));
            }
            opened.journal.maintain();
            if taken == u8::MAX {
                break;
            }
        }
        assert!(taken > 10 && (refused == 1 || taken == u8::MAX), "{taken} taken, {refused} refused");
        // Nothing is open any more: what was kept for it is there for new work.
        let left = BUDGET - opened.journal.usage().frame_bytes;
        let create = Unit::one(record(taken.wrapping_add(1), 1, b"opens"));
        assert!(left < BUDGET / 16 + 1000 || commit(&opened, create, Admission::Create), "{left}");
    }
}

/// JC-10: of a group that asks for more than there is, the first ones are taken that there is room for.
#[test]
fn a_group_beyond_the_budget_is_taken_in_part() {
    let mut bench = Bench::new();
    bench.config.tuning.disk_bytes_max = BUDGET;
    let opened = bench.open().unwrap();
    let whole = |n: u8| {
        assert!(commit(&opened, Unit::one(record(n, 1, &[1; 9000])), Admission::Create));
        assert!(commit(&opened, Unit::one(closing(n, 2)), Admission::Reserved));
    };
    (1..=20).for_each(whole);
    let together = |units: Vec<Unit>, admission| -> Vec<bool> {
        let tickets: Vec<Ticket> = units.into_iter().map(|unit| submit(&opened, unit, admission)).collect();
        opened.journal.turn();
        tickets.into_iter().map(outcome).collect()
    };
    // About 120 KB are left: each wants a tenth of that, a sixteenth of the budget behind it.
    let created = together((30..62).map(|n| Unit::one(record(n, 1, b"opens"))).collect(), Admission::Create);
    let taken = created.iter().take_while(|taken| **taken).count();
    assert!((2..16).contains(&taken) && !created[taken..].contains(&true), "{created:?}");
    let events = |_: u8| Unit::one(record(30, 2, &[2; 6000]));
    let written = together((0..32).map(events).collect(), Admission::Ordinary);
    let fit = written.iter().take_while(|written| **written).count();
    assert!((8..32).contains(&fit) && !written[fit..].contains(&true), "{written:?}");
}

/// JC-10: with nothing open a sixteenth of the budget is left, also where one stream takes more than that.
#[test]
fn a_budget_that_is_small_for_one_stream_takes_one_at_a_time() {
    let mut bench = Bench::new();
    bench.config.tuning.disk_bytes_max = BUDGET;
    let opened = bench.open().unwrap();
    let left = || BUDGET - opened.journal.usage().frame_bytes;
    let mut streams = 0;
    while left() > BUDGET / 16 + 2000 {
        streams += 1;
        assert!(commit(&opened, Unit::one(record(streams, 1, b"opens")), Admission::Create), "{}", left());
        let more =
            |event: u64| commit(&opened, Unit::one(record(streams, event, &[1; 4000])), Admission::Ordinary);
        let last = (2..30).find(|event| !more(*event)).unwrap_or(30);
        assert!(commit(&opened, Unit::one(closing(streams, last)), Admission::Reserved));
    }
    assert!(streams > 2, "{streams}");
    assert!(!commit(&opened, Unit::one(record(streams + 1, 1, &[1; 2500])), Admission::Create));
}

/// JC-10, R28: what the budget refused is taken again by itself once compaction has made room; nobody asks first.
#[test]
fn a_budget_with_room_again_says_so_by_itself() {
    let mut bench = Bench::new();
    bench.config.tuning.disk_bytes_max = BUDGET;
    let opened = bench.open().unwrap();
    let mut ended = Vec::new();
    for n in 1..=250 {
        if !commit(&opened, Unit::one(record(n, 1, &[n; 1500])), Admission::Create) {
            break;
        }
        assert!(commit(&opened, Unit::one(closing(n, 2)), Admission::Reserved));
        ended.push(n);
        opened.journal.maintain();
    }
    assert!(ended.len() < 250);
    assert_eq!(opened.journal.health(), Health::Full);
    opened.journal.maintain();
    assert_eq!(opened.journal.health(), Health::Full, "nothing has changed");
    ended.truncate(ended.len() / 2);
    for n in ended {
        let named = super::crash_workloads::forget(&[super::setup::stream(n)]);
        assert!(commit(&opened, Unit::one(named), Admission::Forget));
    }
    assert!(!commit(&opened, Unit::one(record(251, 1, &[1; 1500])), Admission::Create));
    while opened.journal.tend() {}
    assert_eq!(opened.journal.health(), Health::Full, "nobody has looked");
    opened.journal.maintain();
    assert_eq!(opened.journal.health(), Health::Ready);
    assert!(commit(&opened, Unit::one(record(251, 1, &[1; 1500])), Admission::Create));
}
