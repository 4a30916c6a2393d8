//! The running writer: groups, the head, rolls, the lock, and what makes it stop besides the disk's errors.

use std::time::Duration;

use sealog_disk::sim::Call;
use sealog_disk::{Disk, Folder, Name};

use super::crash_judge::read_only;
use super::setup::{Bench, Opened, Records, closing, record, stream};
use crate::{Admission, Health, Journal, JournalError, Refusal, Turn, Unit};

fn name(folder: Folder, file: &str) -> Name {
    Name::new(folder, file).unwrap()
}

fn segment(number: u64) -> Name {
    name(Folder::Segments, &format!("{number:012}.seg"))
}

fn one(n: u8, event: u64) -> Unit {
    Unit::one(record(n, event, &[n; 100]))
}

/// R10; JC-4, JC-5: what was queued while a frame was written is one frame, and answers come in journal order.
#[test]
fn what_is_queued_together_becomes_one_group() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(one(1, 1)).unwrap();
    let mut tickets: Vec<_> = (1..=9).map(|n| opened.submit(one(n + 1, 1))).collect();
    assert!(tickets.iter_mut().all(|ticket| ticket.try_result().is_none()));
    assert_eq!(opened.journal.turn(), Turn::Decided(9));
    assert!(tickets.iter_mut().all(|ticket| matches!(ticket.try_result(), Some(Ok(())))));
    let counters = opened.journal.counters();
    assert_eq!((counters.group_records.count(), counters.records, counters.queue_depth), (2, 10, 0));
    let order: Vec<_> =
        opened.journal.read_from(2).map(|r| r.unwrap()).map(|r| (r.sequence, r.stream.unwrap())).collect();
    assert_eq!(order, (1..=9).map(|n| (n + 1, stream(n as u8 + 1))).collect::<Vec<_>>());
}

/// JF-11, JR-11: a group is closed before a unit that would take it past its soft limit; units stay whole.
#[test]
fn a_group_closes_before_the_unit_that_is_too_much() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    let unit = |n| Unit { records: (1..=10).map(|e| record(n, e, &[n; 10_000])).collect() };
    let tickets: Vec<_> = (1..=5).map(|n| opened.submit(unit(n))).collect();
    assert_eq!(opened.journal.turn(), Turn::Decided(2));
    assert_eq!(opened.journal.durable_sequence(), 20);
    assert_eq!(opened.journal.turn(), Turn::Decided(2));
    assert_eq!(opened.journal.turn(), Turn::Decided(1));
    assert_eq!(opened.journal.durable_sequence(), 50);
    assert_eq!(tickets.len(), 5);
}

/// A second close has nothing to do and nothing to complain about.
#[test]
fn closing_twice_is_closing_once() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(one(1, 1)).unwrap();
    let clone = opened.journal.clone();
    opened.journal.close().unwrap();
    let before = bench.disk.op_count();
    clone.close().unwrap();
    assert_eq!((bench.disk.op_count(), clone.health()), (before, Health::Closed));
}

/// JC-5: a ticket's answer does not change, whether it was taken or refused.
#[test]
fn a_refused_ticket_stays_refused() {
    let bench = Bench::new();
    bench.disk.set_capacity(Some(0));
    let opened = bench.open().unwrap();
    let mut ticket = opened.submit(one(1, 1));
    assert_eq!(opened.journal.turn(), Turn::Decided(1));
    for _ in 0..3 {
        assert!(matches!(ticket.try_result(), Some(Err(JournalError::Full))));
    }
}

fn head_writes(bench: &Bench) -> usize {
    bench.disk.take_trace().iter().filter(|e| e.call == Call::Write && e.file == "head").count()
}

/// JC-3: the head is rewritten after 250 ms without a commit, once, and at least once a second while commits go on.
#[test]
fn the_head_follows_the_commits() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(one(1, 1)).unwrap();
    bench.disk.start_trace();
    for (pause, wanted) in [(200, 0), (49, 0), (1, 1), (250, 0), (10_000, 0)] {
        bench.clock.advance(Duration::from_millis(pause));
        opened.journal.maintain();
        assert_eq!(head_writes(&bench), wanted, "after {pause} ms");
    }
    let mut rewritten = 0;
    for event in 2..42 {
        opened.commit(one(1, event)).unwrap();
        bench.clock.advance(Duration::from_millis(100));
        opened.journal.maintain();
        rewritten += head_writes(&bench);
    }
    // Forty commits in four seconds; a roll names the head as well.
    let rolls = opened.journal.counters().rolls as usize;
    assert!((4..=5 + rolls).contains(&rewritten), "{rewritten} rewrites, {rolls} rolls");
    drop(opened);
    let (found, _) = read_only(&bench).unwrap();
    assert_eq!(found.head.unwrap().good_slots, 2);
    assert!(!found.head.unwrap().closed);
    bench.open().unwrap().journal.close().unwrap();
    assert!(read_only(&bench).unwrap().0.head.unwrap().closed);
}

/// A stopped writer: nothing is taken, nothing is acknowledged, what is durable is still read.
fn check_poisoned(opened: &Opened, durable: usize) {
    assert!(matches!(opened.journal.health(), Health::Poisoned { .. }), "{:?}", opened.journal.health());
    let refusal = opened.journal.submit(one(9, 9), Admission::Reserved);
    assert!(matches!(refusal, Err(Refusal::Ended(JournalError::Poisoned { .. }))), "{refusal:?}");
    assert_eq!(opened.journal.turn(), Turn::Ended);
    assert_eq!(opened.journal.read_from(1).map(Result::unwrap).count(), durable);
    assert!(matches!(opened.journal.close(), Err(JournalError::Poisoned { .. })));
}

/// R43; JC-8: an unlinked segment file stops the writer before anything more is acknowledged.
#[test]
fn a_removed_segment_stops_the_writer() {
    for direct in [false, true] {
        let bench = Bench::new();
        bench.disk.set_direct(direct);
        let opened = bench.open().unwrap();
        opened.commit(one(1, 1)).unwrap();
        bench.disk.delete(&segment(1));
        let lost = opened.commit(one(1, 2));
        assert!(matches!(lost, Err(JournalError::Poisoned { .. })), "{lost:?}");
        check_poisoned(&opened, 1);
    }
}

/// R43; JC-8: so does a directory that was moved, once a second.
#[test]
fn a_moved_directory_stops_the_writer() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(one(1, 1)).unwrap();
    opened.journal.maintain();
    bench.disk.move_away();
    let mut ticket = opened.submit(one(1, 2));
    bench.clock.advance(Duration::from_millis(1000));
    opened.journal.maintain();
    assert!(matches!(ticket.try_result(), Some(Err(JournalError::Poisoned { .. }))));
    check_poisoned(&opened, 1);
}

/// R43; JC-8: so does a file that the next start would miss, whether it was moved, removed or replaced by its equal; a
/// clean close does not pass over it either.
#[test]
fn a_file_that_left_its_name_stops_the_writer() {
    type Away = fn(&Bench, &Name, &Name);
    let ways: [Away; 3] = [
        |bench, file, other| bench.disk.rename(file, other).unwrap(),
        |bench, file, _| bench.disk.delete(file),
        |bench, file, other| {
            bench.disk.copy(file, other);
            bench.disk.rename(other, file).unwrap();
        },
    ];
    for file in [name(Folder::Root, "store"), name(Folder::Root, "head"), segment(1)] {
        for away in ways {
            for closes in [false, true] {
                let bench = Bench::new();
                let opened = bench.open().unwrap();
                opened.commit(one(1, 1)).unwrap();
                opened.journal.maintain();
                away(&bench, &file, &name(file.folder(), "other"));
                if !closes {
                    bench.clock.advance(Duration::from_millis(1000));
                    opened.journal.maintain();
                    check_poisoned(&opened, 1);
                }
                let closed = opened.journal.close();
                assert!(matches!(closed, Err(JournalError::Poisoned { .. })), "{file}: {closed:?}");
            }
        }
    }
}

/// JC-9: after a new boot id or a jump of more than a minute the next frame goes into a new segment, whose key was
/// made after the jump, and nothing more was sealed under the old one.
#[test]
fn the_writer_rolls_when_the_clocks_jump() {
    type Jump = fn(&Bench);
    let jumps: [(&str, Jump, bool); 5] = [
        ("nothing", |_| (), false),
        ("half a minute", |bench| bench.clock.jump_wall_ms(30_000), false),
        ("forward", |bench| bench.clock.jump_wall_ms(61_000), true),
        ("back", |bench| bench.clock.jump_wall_ms(-61_000), true),
        ("boot", |bench| bench.clock.set_boot_id([7; 16]), true),
    ];
    for (what, jump, rolls) in jumps {
        for close in [false, true] {
            let bench = Bench::new();
            let opened = bench.open().unwrap();
            opened.commit(Unit::one(record(1, 1, &[1; 4000]))).unwrap();
            opened.journal.maintain();
            opened.journal.maintain();
            let prepared = bench.disk.bytes(&name(Folder::Segments, "next")).expect("the next one is ready");
            bench.clock.advance(Duration::from_secs(3600));
            jump(&bench);
            if !close {
                opened.commit(one(1, 2)).unwrap();
            }
            opened.journal.close().unwrap();
            let (found, shown) = read_only(&bench).unwrap();
            assert!(found.is_sound(), "{what}: {:?}", found.problems);
            assert_eq!(shown.len(), if close { 1 } else { 2 }, "{what}");
            assert_eq!(found.segments[0].sealed, !rolls, "{what}");
            assert_eq!(found.segments.len(), if rolls && !close { 2 } else { 1 }, "{what}");
            if rolls && !close {
                let published = bench.disk.bytes(&segment(2)).unwrap();
                assert_ne!(
                    published[136..200],
                    prepared[136..200],
                    "{what}: salt and key of before the jump"
                );
            }
        }
    }
}

/// JC-2: a start that writes nothing publishes nothing; one that writes has a key, a lineage and an epoch of its own.
#[test]
fn every_open_that_writes_starts_a_segment() {
    let bench = Bench::new();
    for round in 1..=3 {
        let idle = bench.open().unwrap();
        idle.journal.close().unwrap();
        let opened = bench.open().unwrap();
        opened.commit(one(round, 1)).unwrap();
        opened.journal.close().unwrap();
    }
    let (found, _) = read_only(&bench).unwrap();
    assert_eq!(
        found.segments.iter().map(|s| (s.number, s.records)).collect::<Vec<_>>(),
        [(1, 1), (2, 1), (3, 1)]
    );
    let mut keys: Vec<_> =
        (1..=3).map(|n| bench.disk.bytes(&segment(n)).unwrap()[136..200].to_vec()).collect();
    let mut lineages: Vec<_> = found.segments.iter().map(|s| s.lineage).collect();
    keys.sort();
    keys.dedup();
    lineages.sort();
    lineages.dedup();
    assert_eq!((keys.len(), lineages.len()), (3, 3));
    assert!(found.segments.windows(2).all(|two| two[0].epoch < two[1].epoch), "{:?}", found.segments);
}

/// R29; JD-1: the lock is on the directory, whatever became of `LOCK`, and goes with its writer, however that ends.
#[test]
fn a_second_writer_is_refused_without_any_help_of_a_file() {
    let bench = Bench::new();
    let first = bench.open().unwrap();
    let refused = |bench: &Bench| {
        let second = Journal::open_manual(&bench.config, &mut Records::default());
        assert!(matches!(second, Err(JournalError::Locked { .. })), "{second:?}");
    };
    refused(&bench);
    bench.disk.delete(&name(Folder::Root, "LOCK"));
    refused(&bench);
    first.commit(one(1, 1)).unwrap();
    first.journal.close().unwrap();
    let second = bench.open().unwrap();
    second.commit(one(2, 1)).unwrap();
    drop(second);
    bench.disk.put(&name(Folder::Root, "LOCK"), b"pid 1\nstarted never\n");
    assert_eq!(bench.open().unwrap().records.len(), 2);
}

/// R12; JD-3: beside segments nothing of the root may be missing, and no start or creation makes it anew.
#[test]
fn a_missing_file_is_never_a_fresh_store() {
    let full = Bench::new();
    let opened = full.open().unwrap();
    for n in 1..=3 {
        opened.commit(Unit { records: vec![record(n, 1, &[n; 6000]), closing(n, 2)] }).unwrap();
    }
    opened.journal.close().unwrap();
    assert!(full.disk.bytes(&segment(2)).is_some());
    let root = |file: &str| vec![name(Folder::Root, file)];
    let both = [root("keyring.0"), root("keyring.1")].concat();
    let segments = vec![segment(1), segment(2)];
    for missing in [root("store"), root("head"), both, vec![segment(1)], vec![segment(2)], segments] {
        let disk = full.disk.fork();
        missing.iter().for_each(|file| disk.delete(file));
        let before = disk.durable_files();
        let bench = Bench::on(disk.clone(), 5);
        let opened = bench.open();
        let refused = matches!(
            opened,
            Err(JournalError::Missing { .. }
                | JournalError::Corrupt { .. }
                | JournalError::CorruptFile { .. })
        );
        assert!(refused, "{missing:?}: {:?}", opened.map(|o| o.report));
        assert!(bench.try_create().is_err(), "{missing:?}");
        let mut after = disk.durable_files();
        after.retain(|file, _| file != "LOCK");
        let changed = before.iter().any(|(file, bytes)| file != "LOCK" && after.get(file) != Some(bytes));
        assert!(!changed, "{missing:?}: something was changed");
    }
}

/// JD-2: what the caller makes durable before the commit point may fail; then there is no journal, and the same call
/// completes it with the same keys.
#[test]
fn a_creation_that_fails_before_its_commit_point_is_completed() {
    let bench = Bench::on(sealog_disk::sim::SimDisk::new(), 7);
    let secret = sealog_seal::Secret::raw([9; 32]);
    let create = |entropy| crate::Create {
        disk: bench.config.disk.clone(),
        clock: bench.config.clock.clone(),
        entropy,
        store_id: sealog_seal::StoreId([3; 16]),
        slot_name: "key",
        secret: &secret,
        params: sealog_seal::SlotParams::DEFAULT,
    };
    let failed = create(bench.config.entropy.clone()).run(&mut || Err(JournalError::Full));
    assert!(matches!(failed, Err(JournalError::Full)));
    let leftovers = crate::look(&bench.disk).unwrap();
    assert_eq!(leftovers, crate::Contents::Leftovers { store_id: Some(sealog_seal::StoreId([3; 16])) });
    assert!(matches!(bench.open(), Err(JournalError::NoJournal)));
    let keyring = bench.disk.bytes(&name(Folder::Root, "keyring.0"));
    create(bench.config.entropy.clone()).run(&mut || Ok(())).unwrap();
    assert_eq!(bench.disk.bytes(&name(Folder::Root, "keyring.0")), keyring);
    assert!(matches!(
        create(bench.config.entropy.clone()).run(&mut || Ok(())),
        Err(JournalError::AlreadyExists)
    ));
    bench.open().unwrap().commit(one(1, 1)).unwrap();
}
