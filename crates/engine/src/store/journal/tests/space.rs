//! A disk that is full: what has begun ends, whatever it had to say.

use sealog_events::Status;

use super::setup::*;
use crate::store::journal::JournalStore;
use crate::store::{EventStore, StoreError, StoreLimits};

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
