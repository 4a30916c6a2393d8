//! A disk that is full: what has begun ends, whatever it had to say.

use std::time::Duration;

use futures_util::FutureExt;
use sealog_disk::sim::{Fault, FaultKind};
use sealog_disk::{ErrorKind, Operation};
use sealog_events::{Status, Timestamp};
use sealog_journal::Journal;

use super::setup::*;
use crate::store::journal::JournalStore;
use crate::store::{Claim, EventStore, StoreError, StoreLimits};

const LIMITS: StoreLimits = StoreLimits::NODE;

/// Six executions with long outputs on a disk that has no room for more; the last sequence of each.
async fn filled(host: &Host) -> (JournalStore, Vec<u64>) {
    let (store, _) = host.open(LIMITS);
    let text = "long ".repeat(1_000);
    for number in 1..=6 {
        create(&store, host.now(), number).await.unwrap();
        append(&store, host.now(), number, 2, vec![selected()]).await.unwrap();
        append(&store, host.now(), number, 3, vec![delta(&text); 4]).await.unwrap();
    }
    let used: u64 = host.disk.files().values().map(|bytes| bytes.len() as u64).sum();
    host.disk.set_capacity(Some(used));
    let mut last = vec![6; 6];
    for round in 0.. {
        let at = round % 6;
        let appended = append(&store, host.now(), at as u8 + 1, last[at] + 1, vec![delta(&text)]).await;
        match appended {
            Ok(()) => last[at] += 1,
            Err(error) => {
                assert_eq!(error, StoreError::Full);
                break;
            }
        }
    }
    (store, last)
}

#[tokio::test]
async fn every_execution_ends_on_a_full_disk() {
    let host = Host::new();
    let (store, last) = filled(&host).await;
    for (number, last) in (1_u8..).zip(&last) {
        append(&store, host.now(), number, last + 1, vec![completed()]).await.unwrap();
        let snapshot = store.snapshot(id(number)).await.unwrap().unwrap();
        assert_eq!((snapshot.status, snapshot.last_sequence), (Status::Succeeded, last + 1));
    }
    let before = events(&store, id(1), 0).await;
    drop(store);
    host.disk.set_capacity(None);
    let (store, opened) = host.open(LIMITS);
    assert!(opened.interrupted.is_empty());
    assert_eq!(events(&store, id(1), 0).await, before);
}

#[tokio::test]
async fn a_crash_on_a_full_disk_needs_room_for_the_ends_only() {
    let host = Host::new();
    let (store, last) = filled(&host).await;
    drop(store);
    // The smallest segment and a little, and not the texts beside the ends.
    let used: u64 = host.disk.files().values().map(|bytes| bytes.len() as u64).sum();
    let texts: u64 = last.iter().map(|last| (last - 2) * 5_000).sum();
    assert!(texts > 112 << 10, "{last:?}");
    host.disk.set_capacity(Some(used + (96 << 10)));
    let (store, opened) = host.open(LIMITS);
    assert_eq!(opened.interrupted.len(), 6);
    for (number, last) in (1_u8..).zip(&last) {
        let snapshot = store.snapshot(id(number)).await.unwrap().unwrap();
        assert_eq!((snapshot.status, snapshot.last_sequence), (Status::Failed, last + 1));
    }
}

/// Executions with an output each, by a process that was killed.
async fn killed(host: &Host, executions: u8) {
    let (store, _) = host.open(LIMITS);
    for number in 1..=executions {
        create(&store, host.now(), number).await.unwrap();
        append(&store, host.now(), number, 2, vec![selected(), delta("a")]).await.unwrap();
    }
}

/// Exactly one end each, and the next start finds nothing to do.
async fn all_ended_once(host: &Host, store: JournalStore, executions: u8) {
    for number in 1..=executions {
        let events = events(&store, id(number), 0).await;
        let terminals = events.iter().filter(|event| event.terminal).count();
        assert_eq!((events.len(), terminals), (4, 1));
        assert!(events[3].data.contains("\"outcome\":\"unknown\""), "{}", events[3].data);
    }
    store.close().await.unwrap();
    drop(store);
    let (store, opened) = host.open(LIMITS);
    assert!(opened.interrupted.is_empty() && opened.unended == 0);
    assert_eq!(store.snapshot(id(1)).await.unwrap().unwrap().status, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_start_without_room_serves_what_is_durable_and_becomes_ready_by_itself() {
    let host = Host::new();
    killed(&host, 3).await;
    host.disk.set_capacity(Some(0));
    let (store, opened) = host.open(LIMITS);
    assert_eq!((opened.interrupted.len(), opened.unended), (0, 3));
    assert!(!store.available());
    assert_eq!(store.shortage(), Some(ErrorKind::Full));
    // Reads, known keys and the list are served; nothing new is taken.
    let snapshot = store.snapshot(id(2)).await.unwrap().unwrap();
    assert_eq!((snapshot.status, snapshot.last_sequence), (Status::Running, 3));
    assert!(matches!(store.find(identity(2)).await, Ok(Some(Claim::Replay(brief))) if brief.id == id(2)));
    assert_eq!(store.list(None, 10).await.unwrap().len(), 3);
    assert_eq!(create(&store, host.now(), 4).await, Err(StoreError::Full));
    let mut watch = store.watch(id(1), 0).await.unwrap().unwrap();
    for sequence in 1..=3 {
        assert_eq!(watch.next().await.unwrap().unwrap().sequence, sequence);
    }
    assert!(watch.next().now_or_never().is_none());
    assert_eq!(store.end_interrupted().await, Ok(false));

    host.disk.set_capacity(None);
    let terminal = watch.next().await.unwrap().unwrap();
    assert!(terminal.terminal && terminal.sequence == 4);
    assert!(watch.next().await.is_none());
    drop(watch);
    assert_eq!(store.end_interrupted().await, Ok(true));
    assert!(store.available());
    create(&store, host.now(), 4).await.unwrap();
    append(&store, host.now(), 4, 2, vec![completed()]).await.unwrap();
    all_ended_once(&host, store, 3).await;
}

/// Room for some of the ends: the others follow, and none comes twice.
#[tokio::test]
async fn ends_that_had_room_are_not_repeated() {
    let first = Host::new();
    killed(&first, 40).await;
    let mut partly = 0;
    let mut capacity = 0;
    loop {
        let host = first.after_crash(first.disk.fork());
        host.disk.set_capacity(Some(capacity));
        let (store, opened) = host.open(LIMITS);
        assert_eq!(opened.interrupted.len() + opened.unended, 40);
        if opened.unended == 0 {
            break;
        }
        let some = !opened.interrupted.is_empty();
        partly += usize::from(some);
        if some || capacity == 0 {
            host.disk.set_capacity(None);
            assert_eq!(store.end_interrupted().await, Ok(true));
            all_ended_once(&host, store, 40).await;
        }
        capacity += 4 << 10;
    }
    assert!(partly > 0, "all or nothing at every capacity up to {capacity}");
}

/// R28, JR-12: whatever keeps the next segment from being made is named, nothing is deleted, and it passes.
#[tokio::test]
async fn every_kind_of_shortage_is_told_apart_and_passes() {
    let first = Host::new();
    killed(&first, 2).await;
    for (fault, kind) in [
        (FaultKind::Full, ErrorKind::Full),
        (FaultKind::Descriptors, ErrorKind::Descriptors),
        (FaultKind::ReadOnly, ErrorKind::ReadOnly),
        (FaultKind::Io, ErrorKind::Io),
    ] {
        for operation in [Operation::Create, Operation::Write, Operation::Sync] {
            let host = first.after_crash(first.disk.fork());
            host.disk.inject(Fault::site(operation, "segments/next", 0, fault).forever());
            let (store, opened) = host.open(LIMITS);
            assert_eq!(opened.unended, 2, "{kind:?} {operation:?}");
            assert_eq!(store.shortage(), Some(kind), "{operation:?}");
            assert_eq!(store.snapshot(id(1)).await.unwrap().unwrap().last_sequence, 3);
            assert_eq!(create(&store, host.now(), 9).await, Err(StoreError::Full));
            host.disk.clear_faults();
            assert_eq!(store.end_interrupted().await, Ok(true));
            assert!(store.available());
            all_ended_once(&host, store, 2).await;
        }
    }
}

/// A store of one mebibyte of frames, turned by hand: nothing is done in the background that the test does not do.
fn budgeted(host: &Host, limits: StoreLimits) -> (JournalStore, Journal) {
    let mut config = host.config();
    config.tuning.disk_bytes_max = BUDGET;
    let limits = StoreLimits { max_disk_bytes: BUDGET, ..limits };
    let (store, journal, _) = JournalStore::open_manual(&config, limits).unwrap();
    (store, journal)
}

const BUDGET: u64 = 1 << 20;

/// 20 KB that end at once, or what of it there was no room for.
async fn finished(store: &JournalStore, now: Timestamp, number: u8) -> Result<(), StoreError> {
    create(store, now, number).await?;
    let bodies = [selected()].into_iter().chain(vec![delta(&"long ".repeat(1_000)); 4]);
    let appended = append(store, now, number, 2, bodies.collect()).await;
    let last = store.snapshot(id(number)).await?.map_or(1, |snapshot| snapshot.last_sequence);
    append(store, now, number, last + 1, vec![completed()]).await?;
    appended
}

/// What the node's own threads do between two calls.
fn work(store: &JournalStore, journal: &Journal) {
    drive(journal, store.sweep()).unwrap();
    while journal.tend() {}
    journal.maintain();
}

fn listed(store: &JournalStore, journal: &Journal) -> Vec<u8> {
    let briefs = drive(journal, store.list(None, 1000)).unwrap();
    briefs.iter().map(|brief| brief.id.as_bytes()[0]).collect()
}

/// RM-30: a budget that is used up by what is over does not keep new work out: what ended longest ago goes, never what
/// runs or is read.
#[test]
fn what_is_over_makes_room_within_the_budget() {
    let host = Host::new();
    let (store, journal) = budgeted(&host, StoreLimits { min_key_age_ms: 0, ..LIMITS });
    // One that goes on, and one that somebody reads.
    drive(&journal, create(&store, host.now(), 1)).unwrap();
    drive(&journal, finished(&store, host.now(), 2)).unwrap();
    let watch = drive(&journal, store.watch(id(2), 0)).unwrap();
    let mut refused = 0;
    for number in 3..=250 {
        host.clock.advance(Duration::from_millis(1));
        refused += u32::from(drive(&journal, finished(&store, host.now(), number)).is_err());
        work(&store, &journal);
        assert!(journal.usage().frame_bytes <= BUDGET, "{number}");
    }
    assert_eq!(refused, 0, "there is room again before it is asked for");
    let kept = listed(&store, &journal);
    assert_eq!(kept[..2], [1, 2], "active, and read");
    assert!(
        kept[2..].iter().copied().eq(*kept.get(2).unwrap()..=250),
        "the last ones without a hole: {kept:?}"
    );
    // An eighth of the budget is kept free, and what the active one may take yet; a sixteenth goes at once; the rest is used, but for
    // what waits for compaction: its files are no longer than a sixteenth, which holds three of them here.
    assert!((15..50).contains(&kept.len()), "{}", kept.len());
    drop(watch);
}

/// JC-10, RM-30: more at a time than a small budget holds, and compaction that is late: new work is refused, and what was
/// taken says all that it has to say.
#[test]
fn what_was_taken_ends_within_the_budget() {
    let host = Host::new();
    let (store, journal) = budgeted(&host, StoreLimits { min_key_age_ms: 0, ..LIMITS });
    let text = "long ".repeat(500);
    // (number, its next event).
    let mut open: Vec<(u8, u64)> = Vec::new();
    let (mut refused, mut succeeded, mut number) = (0, 0, 0_u8);
    for round in 0..600 {
        host.clock.advance(Duration::from_millis(1));
        if open.len() < 16 {
            number += 1;
            match drive(&journal, create(&store, host.now(), number)) {
                Ok(()) => {
                    drive(&journal, append(&store, host.now(), number, 2, vec![selected()])).unwrap();
                    open.push((number, 3));
                }
                Err(error) => {
                    assert_eq!(error, StoreError::Full);
                    (refused, number) = (refused + 1, number - 1);
                }
            }
        }
        for (number, next) in &mut open {
            let said = drive(&journal, append(&store, host.now(), *number, *next, vec![delta(&text)]));
            assert_eq!(said, Ok(()), "round {round}: event {next} of {number}");
            *next += 1;
        }
        for (number, next) in open.extract_if(.., |(_, next)| *next > 12) {
            drive(&journal, append(&store, host.now(), number, next, vec![completed()])).unwrap();
            succeeded += 1;
        }
        if round % 20 == 0 {
            work(&store, &journal);
        }
    }
    assert!(refused > 50 && succeeded > 100, "{refused} refused, {succeeded} succeeded");
}

/// A key that is too young to go keeps its place, whatever else does not fit then.
#[test]
fn young_keys_are_refused_for_within_the_budget_too() {
    let host = Host::new();
    let (store, journal) = budgeted(&host, LIMITS);
    let mut number = 0;
    let refused = loop {
        number += 1;
        if let Err(error) = drive(&journal, finished(&store, host.now(), number)) {
            break error;
        }
        work(&store, &journal);
    };
    assert_eq!(refused, StoreError::Full);
    for _ in 0..10 {
        work(&store, &journal);
    }
    assert!(listed(&store, &journal).into_iter().eq(1..number), "what was refused has left nothing");
    host.clock.advance(Duration::from_millis(LIMITS.min_key_age_ms));
    work(&store, &journal);
    drive(&journal, finished(&store, host.now(), 200)).unwrap();
    let kept = listed(&store, &journal);
    assert!(!kept.contains(&1) && kept.contains(&(number - 1)), "{kept:?}");
}

/// R28: a disk that is full, of whatever, deletes nothing.
#[test]
fn a_full_disk_lets_nothing_go() {
    let host = Host::new();
    let (store, journal) = budgeted(&host, StoreLimits { min_key_age_ms: 0, ..LIMITS });
    // Well below the share of the budget that is kept.
    for number in 1..=15 {
        drive(&journal, finished(&store, host.now(), number)).unwrap();
    }
    let used: u64 = host.disk.files().values().map(|bytes| bytes.len() as u64).sum();
    host.disk.set_capacity(Some(used));
    let mut number = 15;
    while drive(&journal, finished(&store, host.now(), number + 1)).is_ok() {
        number += 1;
    }
    for _ in 0..10 {
        work(&store, &journal);
    }
    assert!(
        listed(&store, &journal).into_iter().eq(1..=number + 1),
        "also the one that there was no room for"
    );
}
