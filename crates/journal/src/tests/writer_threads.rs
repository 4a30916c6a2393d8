//! The writer on its own thread: many producers, groups behind a slow sync, an orderly end and every other one.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use sealog_disk::real::RealClock;
use sealog_disk::sim::{Call, Fault, FaultKind, SimDisk, TraceEntry};
use sealog_disk::{Disk, Operation};

use super::crash_judge::read_only;
use super::readers_disk::Between;
use super::setup::{Bench, Records, record, stream};
use crate::{Admission, Config, Health, Journal, JournalError, Refusal, StreamId, Turn, Unit};

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn config(disk: Arc<dyn Disk>, seed: u64) -> Config {
    let mut config = Bench::on(SimDisk::new(), seed).config;
    config.disk = disk;
    config.clock = Arc::new(RealClock::new());
    config
}

fn create(config: &Config) {
    let mut bench = Bench::on(SimDisk::new(), 7);
    bench.config.disk = Arc::clone(&config.disk);
    bench.create();
}

fn id(producer: u64) -> StreamId {
    StreamId([producer as u8 + 1; 16])
}

/// Sixty-four producers, each waiting for its unit before it offers the next one; the queue is so short that they
/// wait for room as well. Everything that was acknowledged is there afterwards, in each producer's order, and
/// nothing else.
pub(crate) fn many_producers(config: &Config, units: u64) {
    const PRODUCERS: u64 = 64;
    let mut config = config.clone();
    config.tuning.queue_units_max = 16;
    let (journal, _) = Journal::open(&config, &mut Records::default()).unwrap();
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let journal = journal.clone();
            scope.spawn(move || {
                for event in 1..=units {
                    let body = format!("{producer} {event}");
                    let mut one = record(0, event, body.as_bytes());
                    one.stream = Some(id(producer));
                    block_on(journal.append(Unit::one(one), Admission::Ordinary)).unwrap();
                    let newest = journal.stream(id(producer)).unwrap();
                    assert!(newest.last_event >= event && newest.last_sequence <= journal.durable_sequence());
                }
            });
        }
    });
    let counters = journal.counters();
    assert_eq!((counters.records, counters.queue_depth), (PRODUCERS * units, 0));
    assert!(counters.group_records.count() <= PRODUCERS * units);
    for producer in 0..PRODUCERS {
        let events: Vec<u64> =
            journal.read_stream(id(producer), 1).map(|record| record.unwrap().event_number).collect();
        assert_eq!(events, (1..=units).collect::<Vec<_>>());
    }
    journal.close().unwrap();
    assert!(matches!(
        journal.submit(Unit::one(record(1, 1, b"late")), Admission::Reserved),
        Err(Refusal::Ended(JournalError::Closed))
    ));
    let mut records = Records::default();
    let (again, report) = Journal::open(&config, &mut records).unwrap();
    assert!(report.tail.is_none());
    assert_eq!(records.0.len() as u64, PRODUCERS * units);
    assert!(records.0.iter().zip(1..).all(|(record, sequence)| record.sequence == sequence));
    drop(again);
}

/// JC-5, R10 with real threads on the simulated disk.
#[test]
fn many_producers_on_the_simulated_disk() {
    for direct in [false, true] {
        let disk = SimDisk::new();
        disk.set_direct(direct);
        let config = config(Arc::new(disk), 7);
        create(&config);
        many_producers(&config, 20);
    }
}

/// A disk whose writer thread stops at its next call, once, while the gate is closed.
struct Gate {
    closed: Arc<AtomicBool>,
    stopped: Receiver<()>,
    open: Sender<()>,
}

fn gate(disk: &SimDisk) -> (Between, Gate) {
    gate_at(disk, |_| true)
}

/// As `gate`, and only where the newest call was such a one.
fn gate_at(disk: &SimDisk, mut wanted: impl FnMut(&TraceEntry) -> bool + Send + 'static) -> (Between, Gate) {
    let (closed, (at_gate, stopped), (open, opened)) =
        (Arc::new(AtomicBool::new(false)), channel(), channel::<()>());
    let (seen, traced) = (Arc::clone(&closed), disk.clone());
    disk.start_trace();
    let mut newest = None;
    let between = Between::new(disk, move || {
        newest = traced.take_trace().pop().or(newest.take());
        let here =
            thread::current().name() == Some("journal-writer") && newest.as_ref().is_some_and(&mut wanted);
        if here && seen.swap(false, Ordering::SeqCst) {
            at_gate.send(()).unwrap();
            opened.recv().unwrap();
        }
    });
    (between, Gate { closed, stopped, open })
}

/// R10; JC-4: what is queued while a frame is under way is one frame behind it, acknowledged after it.
#[test]
fn units_queued_during_a_sync_are_covered_by_the_next() {
    let (between, gate) = gate(&SimDisk::new());
    let config = config(Arc::new(between), 7);
    create(&config);
    let (journal, _) = Journal::open(&config, &mut Records::default()).unwrap();
    let submit =
        |n| journal.submit(Unit::one(record(n, 1, b"unit")), Admission::Reserved).expect("there is room");
    submit(1).wait().unwrap();
    gate.closed.store(true, Ordering::SeqCst);
    let first = submit(2);
    gate.stopped.recv().unwrap();
    let mut others: Vec<_> = (3..=20).map(submit).collect();
    assert!(others.iter_mut().all(|ticket| ticket.try_result().is_none()));
    assert_eq!(journal.durable_sequence(), 1);
    gate.open.send(()).unwrap();
    others.pop().unwrap().wait().unwrap();
    // The last one resolved, so all before it have.
    assert!(others.iter_mut().all(|ticket| matches!(ticket.try_result(), Some(Ok(())))));
    first.wait().unwrap();
    let groups = journal.counters().group_records;
    assert_eq!((groups.count(), groups.sum), (3, 20));
    journal.close().unwrap();
}

/// A close writes what is queued first; a drop does not, and answers all the same.
#[test]
fn a_close_drains_and_a_drop_abandons() {
    for close in [true, false] {
        let disk = SimDisk::new();
        let (between, gate) = gate(&disk);
        let config = config(Arc::new(between), 7);
        create(&config);
        let (journal, _) = Journal::open(&config, &mut Records::default()).unwrap();
        let submit =
            |n| journal.submit(Unit::one(record(n, 1, b"unit")), Admission::Reserved).expect("there is room");
        submit(1).wait().unwrap();
        gate.closed.store(true, Ordering::SeqCst);
        let mut tickets = vec![submit(2)];
        gate.stopped.recv().unwrap();
        tickets.extend((3..=30).map(submit));
        let ending = thread::spawn(move || match close {
            true => journal.close(),
            false => {
                drop(journal);
                Ok(())
            }
        });
        gate.open.send(()).unwrap();
        ending.join().unwrap().unwrap();
        let answers: Vec<_> = tickets.into_iter().map(|ticket| ticket.wait().is_ok()).collect();
        assert!(!close || answers.iter().all(|ok| *ok), "{answers:?}");
        let acknowledged = 1 + answers.iter().filter(|ok| **ok).count();
        let mut records = Records::default();
        let again = Journal::open_manual(&Bench::on(disk, 8).config, &mut records).unwrap();
        assert!(records.0.len() >= acknowledged, "{acknowledged} acknowledged, {} there", records.0.len());
        assert!(!close || again.1.tail.is_none());
    }
}

/// JC-6, R14: a failing sync fails everything that is pending, at once and for all threads.
#[test]
fn a_failed_sync_answers_every_waiting_thread() {
    let disk = SimDisk::new();
    disk.set_direct(false);
    let config = config(Arc::new(disk.clone()), 7);
    create(&config);
    let (journal, _) = Journal::open(&config, &mut Records::default()).unwrap();
    journal.submit(Unit::one(record(1, 1, b"durable")), Admission::Ordinary).unwrap().wait().unwrap();
    disk.inject(Fault::site(Operation::Sync, "segments/*.seg", 0, FaultKind::Io).forever());
    thread::scope(|scope| {
        for producer in 0..16 {
            let journal = &journal;
            scope.spawn(move || {
                let unit = Unit::one(record(producer + 2, 1, b"lost"));
                match journal.submit(unit, Admission::Ordinary) {
                    Ok(ticket) => assert!(matches!(ticket.wait(), Err(JournalError::Poisoned { .. }))),
                    Err(Refusal::Ended(JournalError::Poisoned { .. })) => {}
                    Err(other) => panic!("{other:?}"),
                }
            });
        }
    });
    assert!(!journal.wait_durable(2, Duration::from_secs(3600)), "a stopped writer ends the wait");
    assert_eq!(journal.read_from(1).count(), 1);
    assert!(journal.close().is_err());
    // The lock is free and the records are there.
    disk.clear_faults();
    let mut records = Records::default();
    Journal::open_manual(&Bench::on(disk, 8).config, &mut records).unwrap();
    assert!(!records.0.is_empty());
}

/// One turn on a thread that a gate stops; no helper is there that could be stopped instead.
fn turn_beside(journal: &Journal) -> thread::JoinHandle<Turn> {
    let journal = journal.clone();
    let builder = thread::Builder::new().name("journal-writer".into());
    builder.spawn(move || journal.turn()).unwrap()
}

/// JC-1: while a segment is being published the helper does not name the one before it again.
#[test]
fn the_helper_never_takes_the_head_back() {
    let disk = SimDisk::new();
    // The second look at that call is the one before the next call: the head is free again.
    let mut looks = 0;
    let (between, gate) = gate_at(&disk, move |newest| {
        let synced = newest.call == Call::SyncData && newest.file == "head";
        looks = if synced { looks + 1 } else { 0 };
        looks == 2
    });
    let mut bench = Bench::on(disk.clone(), 7);
    bench.config.disk = Arc::new(between);
    bench.create();
    let opened = bench.open().unwrap();
    opened.commit(Unit::one(record(1, 1, b"first"))).unwrap();
    gate.closed.store(true, Ordering::SeqCst);
    let mut large = opened.submit(Unit::one(record(1, 2, &[2; 60_000])));
    let turn = turn_beside(&opened.journal);
    gate.stopped.recv().unwrap();
    let head = || {
        let facts = read_only(&Bench::on(disk.clone(), 1)).unwrap().0.head.unwrap();
        (facts.segment, facts.frames)
    };
    assert_eq!(head(), (2, 0));
    bench.clock.advance(Duration::from_secs(5));
    opened.journal.maintain();
    assert_eq!(head(), (2, 0));
    gate.open.send(()).unwrap();
    assert_eq!(turn.join().unwrap(), Turn::Decided(1));
    assert!(matches!(large.try_result(), Some(Ok(()))));
    bench.clock.advance(Duration::from_secs(5));
    opened.journal.maintain();
    assert_eq!(head(), (2, 2));
}

/// JC-6: a frame that was under way when the journal stopped is not acknowledged, though it may be there.
#[test]
fn nothing_is_acknowledged_after_the_journal_stopped() {
    let disk = SimDisk::new();
    let (between, gate) = gate(&disk);
    let mut bench = Bench::on(disk.clone(), 7);
    bench.config.disk = Arc::new(between);
    bench.create();
    let opened = bench.open().unwrap();
    opened.commit(Unit::one(record(1, 1, b"first"))).unwrap();
    gate.closed.store(true, Ordering::SeqCst);
    let mut late = opened.submit(Unit::one(record(1, 2, b"late")));
    let turn = turn_beside(&opened.journal);
    gate.stopped.recv().unwrap();
    disk.move_away();
    bench.clock.advance(Duration::from_secs(2));
    opened.journal.maintain();
    assert!(matches!(opened.journal.health(), Health::Poisoned { .. }));
    gate.open.send(()).unwrap();
    turn.join().unwrap();
    assert!(matches!(late.try_result(), Some(Err(JournalError::Poisoned { .. }))));
    assert!(opened.journal.close().is_err());
    assert!(!Bench::on(disk.fork(), 8).open().unwrap().records.is_empty());
}

/// F2: nobody knows how far a frame came whose writer panicked.
#[test]
fn a_panic_of_the_writer_stops_the_journal() {
    let disk = SimDisk::new();
    let armed = Arc::new(AtomicBool::new(false));
    let trigger = Arc::clone(&armed);
    let between = Between::new(&disk, move || {
        if thread::current().name() == Some("journal-writer") && trigger.swap(false, Ordering::SeqCst) {
            std::panic::resume_unwind(Box::new("a panic inside a storage call"));
        }
    });
    let config = config(Arc::new(between), 7);
    create(&config);
    let (journal, _) = Journal::open(&config, &mut Records::default()).unwrap();
    journal.submit(Unit::one(record(1, 1, b"durable")), Admission::Ordinary).unwrap().wait().unwrap();
    armed.store(true, Ordering::SeqCst);
    let lost = journal.submit(Unit::one(record(2, 1, b"lost")), Admission::Ordinary).unwrap().wait();
    assert!(matches!(lost, Err(JournalError::Poisoned { .. })), "{lost:?}");
    assert!(matches!(journal.health(), Health::Poisoned { .. }));
    assert!(journal.close().is_err());
    assert_eq!(Bench::on(disk, 8).open().unwrap().records.len(), 1);
}

/// One wake a group: the dispatcher is woken, and wakes the tickets of its own runtime in journal order.
#[test]
fn a_dispatcher_wakes_the_tickets_in_order() {
    struct Note(u8, Arc<Mutex<Vec<u8>>>);
    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    let woken = Arc::new(Mutex::new(Vec::new()));
    let waker = |n| Waker::from(Arc::new(Note(n, Arc::clone(&woken))));
    let mut dispatcher = Box::pin(opened.journal.dispatcher());
    assert!(dispatcher.as_mut().poll(&mut Context::from_waker(&waker(0))).is_pending());
    let mut tickets: Vec<_> = (1..=5).map(|n| opened.submit(Unit::one(record(n, 1, b"unit")))).collect();
    for (ticket, n) in tickets.iter_mut().zip(1..=5).rev() {
        assert!(pin!(ticket).poll(&mut Context::from_waker(&waker(n))).is_pending());
    }
    opened.journal.turn();
    assert_eq!(*woken.lock().unwrap(), [0]);
    assert!(dispatcher.as_mut().poll(&mut Context::from_waker(&waker(0))).is_pending());
    assert_eq!(*woken.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
    opened.journal.close().unwrap();
    assert!(dispatcher.as_mut().poll(&mut Context::from_waker(&waker(0))).is_ready());
    assert_eq!(opened.journal.stream(stream(5)).unwrap().last_event, 1);
}
