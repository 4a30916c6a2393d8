//! Executions over compaction: nobody who reads notices, and what was forgotten in part is forgotten.

use std::time::Duration;

use sealog_disk::{Disk, Folder};

use super::setup::*;
use crate::store::journal::JournalStore;
use crate::store::{EventStore, StoreLimits};

fn files(host: &Host) -> Vec<String> {
    let entries = host.disk.list(Folder::Segments).unwrap().into_iter().map(|entry| entry.file);
    entries.filter(|file| file.ends_with(".seg")).collect()
}

/// Until the node's own thread has compacted something.
pub(super) async fn compacted(host: &Host) {
    while !files(host).iter().any(|file| file.contains('-')) {
        // Its rate goes by the clock.
        host.clock.advance(Duration::from_millis(50));
        tokio::task::yield_now().await;
    }
}

/// What a client sees of an execution: the stream from every place, and the state.
async fn seen(store: &JournalStore, number: u8) -> (Vec<Vec<(u64, String)>>, String) {
    let snapshot = store.snapshot(id(number)).await.unwrap().unwrap();
    let mut streams = Vec::new();
    for after in 0..snapshot.last_sequence {
        let events = events(store, id(number), after).await;
        streams.push(events.iter().map(|event| (event.sequence, event.data.clone())).collect());
    }
    (streams, sealog_events::json::snapshot_json(&snapshot))
}

/// JD-7, JF-15: byte for byte from every `Last-Event-ID`, by a node that compacts by itself, and after a restart.
#[tokio::test]
async fn replays_are_the_same_bytes_before_and_after() {
    let host = Host::new();
    let (store, _) = host.open(StoreLimits::NODE);
    let mut before = Vec::new();
    for number in 1..=20 {
        create(&store, host.now(), number).await.unwrap();
        let texts = (0..6).map(|at| delta(&format!("\u{e9}{number}-{at} ").repeat(60 + usize::from(number))));
        let bodies = std::iter::once(selected()).chain(texts).collect();
        append(&store, host.now(), number, 2, bodies).await.unwrap();
        host.clock.advance(Duration::from_millis(3));
    }
    for number in 1..=19 {
        append(&store, host.now(), number, 9, vec![completed()]).await.unwrap();
    }
    for number in 1..=19 {
        before.push(seen(&store, number).await);
    }
    host.clock.advance(Duration::from_secs(601));
    compacted(&host).await;
    for number in 1..=19 {
        assert_eq!(seen(&store, number).await, before[usize::from(number) - 1], "{number}");
    }
    append(&store, host.now(), 20, 9, vec![completed()]).await.unwrap();
    before.push(seen(&store, 20).await);
    store.close().await.unwrap();
    let (store, opened) = host.open(StoreLimits::NODE);
    assert!(opened.interrupted.is_empty());
    for number in 1..=20 {
        assert_eq!(seen(&store, number).await, before[usize::from(number) - 1], "{number} after a restart");
    }
    assert_eq!(store.list(None, 100).await.unwrap().len(), 20);
}

/// R42, JD-6: where only a part of what was forgotten has gone, the rest does not stop a start and does not come back.
#[test]
fn a_part_of_a_forgotten_execution_is_no_execution() {
    let host = Host::new();
    let limits = StoreLimits { retention_ms: 1000, ..StoreLimits::NODE };
    let open = || JournalStore::open_manual(&host.config(), limits).unwrap();
    let (store, journal, _) = open();
    let long = |at: usize| delta(&"x".repeat(9000 + at));
    drive(&journal, create(&store, host.now(), 1)).unwrap();
    drive(&journal, append(&store, host.now(), 1, 2, (0..14).map(long).collect())).unwrap();
    // Live ones beside its end, which is then not worth a rewrite.
    for number in 2..=30 {
        drive(&journal, create(&store, host.now(), number)).unwrap();
        drive(&journal, append(&store, host.now(), number, 2, vec![selected()])).unwrap();
    }
    drive(&journal, append(&store, host.now(), 1, 16, vec![long(1), completed()])).unwrap();
    host.clock.advance(Duration::from_secs(2));
    drive(&journal, store.sweep()).unwrap();
    for number in 2..=30 {
        drive(&journal, append(&store, host.now(), number, 3, vec![delta(&"y".repeat(2500))])).unwrap();
    }
    while journal.tend() {}
    let names = files(&host);
    assert!(names[0].contains('-') && names.len() > 1, "{names:?}");
    let left = journal.read_from(1).map(Result::unwrap);
    let of_first = left.filter(|record| record.stream.is_some_and(|stream| stream.0 == *id(1).as_bytes()));
    let parts = of_first.count();
    assert!((1..17).contains(&parts), "{parts} records are left of it");
    drop((store, journal));
    let (store, journal, opened) = open();
    assert_eq!(opened.interrupted.len(), 29);
    assert!(drive(&journal, store.brief(id(1))).unwrap().is_none());
    assert!(drive(&journal, store.find(identity(1))).unwrap().is_none());
}
