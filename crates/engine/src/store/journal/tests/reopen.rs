//! What a later process finds.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sealog_disk::sim::{Fault, FaultKind};
use sealog_disk::testing::SeededEntropy;
use sealog_disk::{Folder, Name, Operation};
use sealog_events::{Outcome, PortableCode, Snapshot, Status, StopReason};
use sealog_execution::Registry;
use sealog_journal::JournalError;

use super::setup::*;
use crate::engine::tests::harness::{BODY, Scripted, Step, text};
use crate::store::journal::{JournalStore, OpenError};
use crate::store::{Claim, EventStore, StoreError, StoreLimits};
use crate::{Engine, EngineOptions};

const LIMITS: StoreLimits = StoreLimits::NODE;

fn replay(claim: Option<Claim>) -> crate::Brief {
    match claim {
        Some(Claim::Replay(brief)) => brief,
        other => panic!("{other:?}"),
    }
}

async fn snapshot(store: &JournalStore, number: u8) -> Snapshot {
    store.snapshot(id(number)).await.unwrap().unwrap()
}

#[tokio::test]
async fn facts_08_a_clean_close_leaves_everything() {
    let host = Host::new();
    let (store, opened) = host.open(LIMITS);
    assert!(opened.interrupted.is_empty());
    create(&store, host.now(), 1).await.unwrap();
    append(
        &store,
        host.now(),
        1,
        2,
        vec![selected(), delta("a"), delta("b"), completed_for(StopReason::Length)],
    )
    .await
    .unwrap();
    let (before, live) = (snapshot(&store, 1).await, events(&store, id(1), 0).await);
    store.close().await.unwrap();

    host.clock.advance(Duration::from_secs(60));
    let (store, opened) = host.open(LIMITS);
    assert!(opened.interrupted.is_empty());
    assert_eq!(snapshot(&store, 1).await, before);
    assert_eq!(events(&store, id(1), 0).await, live);
    let behind = events(&store, id(1), 3).await;
    assert_eq!(behind.first().map(|event| event.sequence), Some(4));
    assert_eq!(replay(store.find(identity(1)).await.unwrap()).status, Status::Succeeded);
    let other = sealog_events::Identity { fingerprint: [0; 32], ..identity(1) };
    assert_eq!(store.find(other).await, Ok(Some(Claim::Conflict)));
    assert_eq!(store.list(None, 10).await.unwrap().len(), 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn facts_09_the_disk_holds_no_text_and_no_key() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    create(&store, host.now(), 1).await.unwrap();
    let canary = "canary-canary-canary";
    append(&store, host.now(), 1, 2, vec![selected(), delta(canary), completed()]).await.unwrap();
    store.close().await.unwrap();
    for (name, bytes) in host.disk.files() {
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "{name}");
        assert!(!bytes.windows(16).any(|window| window == [1; 16]), "the key's hash is in {name}");
    }
}

/// RM-28.
#[tokio::test]
async fn facts_10_an_interrupted_execution_ends_as_failed_and_keeps_its_key() {
    let host = Host::new();
    {
        let (store, _) = host.open(LIMITS);
        create(&store, host.now(), 1).await.unwrap();
        create(&store, host.now(), 2).await.unwrap();
        append(&store, host.now(), 2, 2, vec![selected(), delta("part")]).await.unwrap();
        // Dropped without close: as after a crash.
    }
    host.clock.set_wall_ms(START_MS - 5_000);
    let (store, opened) = host.open(LIMITS);
    let outcomes: Vec<_> = opened.interrupted.iter().map(|one| (one.id, one.outcome)).collect();
    assert_eq!(outcomes, [(id(1), Outcome::NotDispatched), (id(2), Outcome::Unknown)]);
    for (number, last_sequence, outcome, message) in [
        (1, 2, Outcome::NotDispatched, "Execution was interrupted by a runtime restart; nothing was sent"),
        (2, 4, Outcome::Unknown, "Execution was interrupted by a runtime restart; remote outcome is unknown"),
    ] {
        let snapshot = snapshot(&store, number).await;
        assert_eq!((snapshot.status, snapshot.last_sequence), (Status::Failed, last_sequence));
        let error = snapshot.error.unwrap();
        assert_eq!((error.code, error.retryable), (PortableCode::InternalError, false));
        assert_eq!((error.outcome, error.message.as_str()), (Some(outcome), message));
        // A clock that was set back does not make the end older than the beginning.
        assert!(snapshot.updated_at >= snapshot.created_at);
        let brief = replay(store.find(identity(number)).await.unwrap());
        assert_eq!((brief.id, brief.status), (id(number), Status::Failed));
        let events = events(&store, id(number), 0).await;
        assert_eq!(events.iter().filter(|event| event.terminal).count(), 1);
    }
    assert!(snapshot(&store, 2).await.result.unwrap().as_str().contains("part"));
    let before = (snapshot(&store, 1).await, snapshot(&store, 2).await);
    drop(store);
    let (store, opened) = host.open(LIMITS);
    assert!(opened.interrupted.is_empty());
    assert_eq!((snapshot(&store, 1).await, snapshot(&store, 2).await), before);
}

#[tokio::test]
async fn facts_13_a_wrong_key_opens_nothing_and_changes_nothing() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    create(&store, host.now(), 1).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let before = host.disk.files();
    let mut config = host.config();
    config.secrets = vec![sealog_seal::Secret::raw([8; 32])];
    let refused = JournalStore::open(&config, LIMITS).unwrap_err();
    assert!(matches!(refused, OpenError::Journal(JournalError::WrongKey)), "{refused:?}");
    assert!(host.disk.files() == before);
}

#[tokio::test]
async fn facts_15_garbage_behind_what_was_written_is_cut() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    create(&store, host.now(), 1).await.unwrap();
    append(&store, host.now(), 1, 2, vec![selected(), delta("kept"), completed()]).await.unwrap();
    let before = snapshot(&store, 1).await;
    drop(store);
    let segment = Name::new(Folder::Segments, "000000000001.seg").unwrap();
    let bytes = host.disk.bytes(&segment).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    host.disk.overwrite(&segment, end.next_multiple_of(512) + 512, b"no newline and no frame");
    let (store, opened) = host.open(LIMITS);
    assert!(opened.interrupted.is_empty());
    assert_eq!(snapshot(&store, 1).await, before);
    let cut = host.disk.bytes(&segment).unwrap();
    assert!(cut.len() as u64 <= end.next_multiple_of(32) && bytes.starts_with(&cut), "exactly the tail went");
}

#[tokio::test]
async fn facts_12_there_is_one_writer() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    let second = host.try_open(LIMITS).unwrap_err();
    assert!(matches!(second, OpenError::Journal(JournalError::Locked { .. })), "{second:?}");
    store.close().await.unwrap();
    let (store, _) = host.open(LIMITS);
    store.close().await.unwrap();
}

#[tokio::test]
async fn facts_18_a_failed_sync_ends_the_store_for_writers_and_waiters() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    create(&store, host.now(), 1).await.unwrap();
    create(&store, host.now(), 2).await.unwrap();
    append(&store, host.now(), 2, 2, vec![selected(), completed()]).await.unwrap();
    let mut watch = store.watch(id(1), 1).await.unwrap().unwrap();
    assert!(watch.next().now_or_never().is_none());
    let waiting = tokio::spawn(async move { watch.next().await });
    tokio::task::yield_now().await;
    assert!(store.available());
    for operation in [Operation::Write, Operation::Sync] {
        host.disk.inject(Fault::site(operation, "segments/*.seg", 0, FaultKind::Io).forever());
    }
    let refused = append(&store, host.now(), 1, 2, vec![selected()]).await.unwrap_err();
    assert_eq!(refused.to_failure().code, PortableCode::InternalError);
    assert_eq!(waiting.await.unwrap().unwrap(), Err(StoreError::Failed));
    assert!(!store.available());
    assert!(append(&store, host.now(), 1, 2, vec![selected()]).await.is_err());
    // What is durable can still be read.
    assert_eq!(snapshot(&store, 2).await.status, Status::Succeeded);
    assert_eq!(events(&store, id(2), 0).await.len(), 3);
}

#[tokio::test]
async fn facts_18_a_removed_file_ends_the_store_for_writers_and_waiters() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    create(&store, host.now(), 1).await.unwrap();
    let mut watch = store.watch(id(1), 1).await.unwrap().unwrap();
    assert!(watch.next().now_or_never().is_none());
    let waiting = tokio::spawn(async move { watch.next().await });
    tokio::task::yield_now().await;
    host.disk.delete(&Name::new(Folder::Segments, "000000000001.seg").unwrap());
    let refused = append(&store, host.now(), 1, 2, vec![selected()]).await.unwrap_err();
    assert_eq!(refused.to_failure().code, PortableCode::InternalError);
    let told = waiting.await.unwrap().unwrap().unwrap_err();
    assert_eq!(told.to_failure().code, PortableCode::InternalError);
    assert!(!store.available());
}

#[tokio::test]
async fn a_long_stream_is_read_from_the_journal_while_it_grows() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    create(&store, host.now(), 1).await.unwrap();
    let mut slow = store.watch(id(1), 0).await.unwrap().unwrap();
    let text = "x".repeat(20_000);
    for sequence in 2..60 {
        append(&store, host.now(), 1, sequence, vec![delta(&text)]).await.unwrap();
    }
    let mut read = Vec::new();
    for _ in 0..30 {
        read.push(slow.next().await.unwrap().unwrap());
    }
    for sequence in 60..80 {
        append(&store, host.now(), 1, sequence, vec![delta(&text)]).await.unwrap();
    }
    append(&store, host.now(), 1, 80, vec![completed()]).await.unwrap();
    while let Some(event) = slow.next().await {
        read.push(event.unwrap());
    }
    assert_eq!(read.iter().map(|event| event.sequence).collect::<Vec<_>>(), (1..=80).collect::<Vec<_>>());
    assert_eq!(events(&store, id(1), 0).await, read);
    store.close().await.unwrap();
    let (store, _) = host.open(LIMITS);
    assert_eq!(events(&store, id(1), 0).await, read);
    assert_eq!(events(&store, id(1), 70).await[..], read[70..]);
}

#[tokio::test]
async fn what_was_forgotten_stays_forgotten() {
    let host = Host::new();
    let limits = StoreLimits { max_executions: 1, ..StoreLimits::default() };
    let (store, _) = host.open(limits);
    create(&store, host.now(), 1).await.unwrap();
    append(&store, host.now(), 1, 2, vec![completed()]).await.unwrap();
    create(&store, host.now(), 2).await.unwrap();
    append(&store, host.now(), 2, 2, vec![completed()]).await.unwrap();
    drop(store);
    let (store, _) = host.open(LIMITS);
    assert_eq!(store.snapshot(id(1)).await, Ok(None));
    assert_eq!(store.find(identity(1)).await, Ok(None));
    assert_eq!(replay(store.find(identity(2)).await.unwrap()).id, id(2));
}

#[tokio::test]
async fn a_dropped_create_is_finished_and_joined() {
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    {
        // Submitted and, as nobody turns the journal yet, not durable.
        let mut create = std::pin::pin!(create(&store, host.now(), 1));
        assert!(futures_util::poll!(&mut create).is_pending());
    }
    let joining = store.clone();
    let found = tokio::spawn(async move { joining.find(identity(1)).await });
    for _ in 0..10 {
        tokio::task::yield_now().await;
        assert!(!found.is_finished());
    }
    assert_eq!(store.brief(id(1)).await, Ok(None));
    for _ in 0..10 {
        journal.turn();
        tokio::task::yield_now().await;
    }
    let brief = replay(found.await.unwrap().unwrap());
    assert_eq!((brief.id, brief.last_sequence), (id(1), 1));
}

#[tokio::test]
async fn an_engine_that_dies_is_never_asked_to_repeat_itself() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    let start = |store: JournalStore, seed| {
        let mut registry = Registry::new();
        registry.register(Arc::new(Scripted::new("p", vec![text("a"), text("b"), Step::Hang]))).unwrap();
        let entropy = Arc::new(SeededEntropy::new(seed));
        Engine::start(
            EngineOptions::default(),
            registry,
            Arc::new(store),
            Arc::new(host.clock.clone()),
            entropy,
        )
    };
    let engine = start(store.clone(), 10);
    let body = BODY.as_bytes();
    let submitted = engine.submit(body, Some("k")).await.unwrap();
    let mut watch = engine.watch(submitted.execution_id, 0).await.unwrap().unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.push(watch.next().await.unwrap().unwrap());
    }
    drop(watch);
    // The disk as a killed process leaves it.
    let host = host.after_crash(host.disk.fork());
    let (store, opened) = host.open(LIMITS);
    assert_eq!(opened.interrupted.len(), 1);
    let engine = start(store, 11);
    let again = engine.submit(body, Some("k")).await.unwrap();
    assert_eq!(
        (again.execution_id, again.status, again.idempotent_replay),
        (submitted.execution_id, Status::Failed, true)
    );
    let mut watch = engine.watch(again.execution_id, 0).await.unwrap().unwrap();
    for event in &seen {
        assert_eq!(watch.next().await.unwrap().unwrap(), *event);
    }
    let terminal = watch.next().await.unwrap().unwrap();
    assert!(terminal.terminal && terminal.data.contains("remote outcome is unknown"));
    assert!(watch.next().await.is_none());
    assert_eq!(engine.cancel(again.execution_id).await, Ok(false));
    assert!(engine.shutdown().await);
}
