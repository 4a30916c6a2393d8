//! Forgetting is a record: what is gone stays gone, whatever clock and configuration a later process has (R24, R42).

use std::sync::Arc;
use std::time::Duration;

use sealog_events::Status;

use super::setup::*;
use crate::store::journal::JournalStore;
use crate::store::{Claim, EventStore, StoreError, StoreLimits, sweep};

const RETENTION: StoreLimits = StoreLimits { retention_ms: 1000, ..StoreLimits::NODE };

async fn finished(store: &JournalStore, host: &Host, number: u8) {
    create(store, host.now(), number).await.unwrap();
    append(store, host.now(), number, 2, vec![completed()]).await.unwrap();
}

async fn known(store: &JournalStore, number: u8) -> bool {
    let found = store.find(identity(number)).await.unwrap();
    let brief = store.brief(id(number)).await.unwrap();
    assert_eq!(found.is_some(), brief.is_some());
    brief.is_some()
}

/// RM-30.
#[tokio::test]
async fn r24_retention_counts_from_the_terminal_event_across_restarts() {
    let host = Host::new();
    let (store, _) = host.open(RETENTION);
    create(&store, host.now(), 1).await.unwrap();
    host.clock.advance(Duration::from_secs(5));
    append(&store, host.now(), 1, 2, vec![completed()]).await.unwrap();
    store.close().await.unwrap();
    host.clock.advance(Duration::from_millis(999));
    let (store, opened) = host.open(RETENTION);
    assert_eq!((opened.clock.ahead_ms, opened.clock.expired), (None, 0));
    assert!(known(&store, 1).await);
    store.close().await.unwrap();
    host.clock.advance(Duration::from_millis(1));
    let (store, opened) = host.open(RETENTION);
    assert_eq!(opened.clock.expired, 1);
    assert!(!known(&store, 1).await);
}

#[tokio::test]
async fn r42_what_was_swept_does_not_come_back() {
    let host = Host::new();
    let (store, _) = host.open(RETENTION);
    finished(&store, &host, 1).await;
    finished(&store, &host, 2).await;
    let early = host.now();
    host.clock.advance(Duration::from_secs(1));
    store.sweep().await.unwrap();
    assert!(!known(&store, 1).await);
    // As after a kill: nothing is written at the end.
    drop(store);
    for retention_ms in [1000, u64::MAX] {
        for wall_ms in [early.0, early.0 - 86_400_000] {
            host.clock.set_wall_ms(wall_ms);
            let (store, _) = host.open(StoreLimits { retention_ms, ..RETENTION });
            assert!(!known(&store, 1).await && !known(&store, 2).await);
            assert_eq!(store.list(None, 10).await.unwrap().len(), 0);
            drop(store);
        }
    }
}

#[tokio::test]
async fn r42_a_close_says_what_was_let_go() {
    let host = Host::new();
    let (store, _) = host.open(RETENTION);
    finished(&store, &host, 1).await;
    host.clock.advance(Duration::from_secs(1));
    assert!(!known(&store, 1).await);
    store.close().await.unwrap();
    host.clock.jump_wall_ms(-1000);
    let (store, _) = host.open(StoreLimits { retention_ms: u64::MAX, ..RETENTION });
    assert!(!known(&store, 1).await);
}

#[tokio::test]
async fn r42_a_key_that_was_given_again_stays_with_the_younger_one() {
    let host = Host::new();
    let (store, _) = host.open(RETENTION);
    finished(&store, &host, 1).await;
    // Read while it expires: its key is free, its record stays for the reader.
    let watch = store.watch(id(1), 0).await.unwrap().unwrap();
    host.clock.advance(Duration::from_secs(1));
    let accepted =
        sealog_events::Event { sequence: 1, time: host.now(), body: sealog_events::EventBody::Accepted };
    let again = crate::store::NewExecution {
        id: id(2),
        created_at: host.now(),
        identity: Some(identity(1)),
        origin: None,
        labels: None,
        accepted,
    };
    assert_eq!(store.create(again).await, Ok(Claim::New));
    drop((watch, store));
    // Killed before the older one could be forgotten: both are there, the key belongs to the younger one.
    host.clock.jump_wall_ms(-1000);
    for round in 0..2 {
        let (store, _) = host.open(StoreLimits { retention_ms: u64::MAX, ..RETENTION });
        match store.find(identity(1)).await {
            Ok(Some(Claim::Replay(brief))) => assert_eq!(brief.id, id(2)),
            other => panic!("round {round}: {other:?}"),
        }
        store.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn expiry_needs_nobody_to_ask() {
    let host = Host::new();
    let (store, _) = host.open(RETENTION);
    finished(&store, &host, 1).await;
    let store: Arc<dyn EventStore> = Arc::new(store);
    let sweeping = tokio::spawn(sweep::sweep(Arc::downgrade(&store)));
    host.clock.advance(Duration::from_secs(1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    store.close().await.unwrap();
    sweeping.await.unwrap();
    host.clock.jump_wall_ms(-1000);
    let (store, _) = host.open(RETENTION);
    assert!(!known(&store, 1).await);
}

#[tokio::test]
async fn a_time_from_the_future_does_not_shorten_what_comes_after() {
    let host = Host::new();
    let (store, _) = host.open(RETENTION);
    let right = host.now();
    host.clock.advance(Duration::from_secs(86_400 * 3650));
    finished(&store, &host, 1).await;
    host.clock.set_wall_ms(right.0);
    finished(&store, &host, 2).await;
    assert!(known(&store, 2).await);
    store.close().await.unwrap();
    let (store, opened) = host.open(RETENTION);
    assert_eq!(opened.clock.behind_ms, Some(86_400_000 * 3650));
    assert!(known(&store, 2).await);
    store.close().await.unwrap();
    host.clock.advance(Duration::from_secs(86_400 * 3650 + 1));
    let (store, opened) = host.open(RETENTION);
    assert_eq!((opened.clock.behind_ms, opened.clock.expired), (None, 2));
    assert!(!known(&store, 2).await);
}

#[tokio::test]
async fn a_clock_far_ahead_is_told() {
    let host = Host::new();
    let (store, opened) = host.open(RETENTION);
    assert_eq!(opened.clock, Default::default());
    finished(&store, &host, 1).await;
    store.close().await.unwrap();
    host.clock.advance(Duration::from_millis(1001));
    let (_store, opened) = host.open(RETENTION);
    assert_eq!((opened.clock.ahead_ms, opened.clock.expired), (Some(1001), 1));
}

#[tokio::test]
async fn a_node_refuses_rather_than_lose_a_young_key() {
    let host = Host::new();
    let limits = StoreLimits { max_executions: 1, ..StoreLimits::NODE };
    let (store, _) = host.open(limits);
    finished(&store, &host, 1).await;
    host.clock.advance(Duration::from_millis(599_999));
    assert_eq!(create(&store, host.now(), 2).await, Err(StoreError::Full));
    assert!(known(&store, 1).await);
    drop(store);
    // Its age does not begin anew with a process.
    let (store, _) = host.open(limits);
    assert_eq!(create(&store, host.now(), 2).await, Err(StoreError::Full));
    host.clock.advance(Duration::from_millis(1));
    create(&store, host.now(), 2).await.unwrap();
    assert!(!known(&store, 1).await);
    assert_eq!(store.snapshot(id(2)).await.unwrap().unwrap().status, Status::Accepted);
}

/// More than one record forgets at once, and a start that finds too many.
#[tokio::test]
async fn a_lowered_limit_is_kept_by_the_next_creation() {
    let host = Host::new();
    let (store, _) = host.open(StoreLimits::default());
    for number in 1..=200 {
        finished(&store, &host, number).await;
    }
    store.close().await.unwrap();
    let (store, _) = host.open(StoreLimits { max_executions: 10, ..StoreLimits::default() });
    assert_eq!(store.list(None, 300).await.unwrap().len(), 200);
    create(&store, host.now(), 201).await.unwrap();
    assert_eq!(store.list(None, 300).await.unwrap().len(), 10);
    drop(store);
    let (store, _) = host.open(StoreLimits::default());
    assert_eq!(store.list(None, 300).await.unwrap().len(), 10);
}
