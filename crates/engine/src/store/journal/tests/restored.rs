//! A journal that was restored from a copy (JB-9): what it refuses while it is fenced, and how what was open in the copy
//! ends.

use std::sync::Arc;

use sealog_disk::Disk;
use sealog_disk::sim::SimDisk;
use sealog_disk::testing::SeededEntropy;
use sealog_events::{Event, EventBody, Outcome, PortableCode, Status};
use sealog_execution::Registry;
use sealog_journal::{restore, unfence};

use super::setup::*;
use crate::engine::tests::harness::{self, BODY, Scripted, text};
use crate::store::journal::JournalStore;
use crate::store::journal::transfer::{Exported, Imported, check, export, import_manual};
use crate::store::{Claim, EventStore, NewExecution, StoreError, StoreLimits};
use crate::{Engine, EngineOptions, RuntimeState};

const LIMITS: StoreLimits = StoreLimits::NODE;

/// Execution 1 ended, 2 was running, 3 was only created; then the journal was copied and restored elsewhere.
async fn restored() -> Host {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    create(&store, host.now(), 1).await.unwrap();
    append(&store, host.now(), 1, 2, vec![selected(), delta("a"), completed()]).await.unwrap();
    create(&store, host.now(), 2).await.unwrap();
    append(&store, host.now(), 2, 2, vec![selected(), delta("b")]).await.unwrap();
    create(&store, host.now(), 3).await.unwrap();
    store.close().await.unwrap();
    let elsewhere = SimDisk::new();
    let target: Arc<dyn Disk> = Arc::new(elsewhere.clone());
    assert_eq!(restore(&host.config(), None, &target).unwrap().interrupted, 2);
    host.after_crash(elsewhere)
}

async fn cursor(store: &JournalStore, number: u8, after: u64) -> Result<bool, StoreError> {
    store.watch(id(number), after).await.map(|watch| watch.is_some())
}

#[tokio::test]
async fn jb_9_what_was_open_in_the_copy_ends_as_unknown() {
    let host = restored().await;
    let (store, opened) = host.open(LIMITS);
    let mut ended: Vec<_> = opened.interrupted.iter().map(|one| (one.id, one.outcome)).collect();
    ended.sort_by_key(|(id, _)| *id);
    // Also the one of which the copy holds no attempt: the original may have made one.
    assert_eq!(ended, [(id(2), Outcome::Unknown), (id(3), Outcome::Unknown)]);
    assert_eq!(store.snapshot(id(3)).await.unwrap().unwrap().status, Status::Failed);
    store.close().await.unwrap();
}

#[tokio::test]
async fn jb_9_a_cursor_behind_what_the_copy_held_is_diverged_also_after_unfence() {
    let host = restored().await;
    for round in 0..2 {
        let (store, _) = host.open(LIMITS);
        assert_eq!(store.fenced(), round == 0);
        // The ended one is whole: a cursor at its end is at its end.
        assert_eq!(cursor(&store, 1, 4).await, Ok(true));
        assert_eq!(cursor(&store, 1, 9).await, Ok(true));
        for (number, held) in [(2, 3), (3, 1)] {
            assert_eq!(cursor(&store, number, held).await, Ok(true));
            assert_eq!(cursor(&store, number, held + 1).await, Err(StoreError::Diverged));
            assert_eq!(events(&store, id(number), held).await.len(), 1, "the end that this start gave it");
        }
        store.close().await.unwrap();
        if round == 0 {
            assert!(unfence(&host.config()).unwrap().was_fenced);
        }
    }
}

#[tokio::test]
async fn jb_9_a_fenced_store_creates_nothing_by_any_door() {
    let host = restored().await;
    let (store, _) = host.open(LIMITS);
    let accepted = Event { sequence: 1, time: host.now(), body: EventBody::Accepted };
    for identity in [None, Some(identity(9))] {
        let new = NewExecution {
            id: id(9),
            created_at: host.now(),
            identity,
            origin: None,
            labels: None,
            accepted: accepted.clone(),
        };
        assert_eq!(store.create(new).await, Err(StoreError::Fenced));
    }
    let known = NewExecution {
        id: id(9),
        created_at: host.now(),
        identity: Some(identity(1)),
        origin: None,
        labels: None,
        accepted,
    };
    assert!(matches!(store.create(known).await, Ok(Claim::Replay(brief)) if brief.id == id(1)));
    store.close().await.unwrap();
}

#[tokio::test]
async fn jb_9_the_engine_says_so_for_unknown_keys_and_ids_and_answers_for_known_ones() {
    let host = Host::new();
    let engine = |store: JournalStore, seed| {
        let mut registry = Registry::new();
        registry.register(Arc::new(Scripted::new("p", vec![text("a"), harness::completed()]))).unwrap();
        let clock = Arc::new(host.clock.clone());
        let entropy = Arc::new(SeededEntropy::new(seed));
        Engine::start(EngineOptions::default(), registry, Arc::new(store), clock, entropy)
    };
    let (store, _) = host.open(LIMITS);
    let first = engine(store.clone(), 5);
    let known = first.submit(BODY.as_bytes(), Some("known")).await.unwrap();
    first.shutdown().await;
    store.close().await.unwrap();
    let elsewhere = SimDisk::new();
    let target: Arc<dyn Disk> = Arc::new(elsewhere.clone());
    restore(&host.config(), None, &target).unwrap();
    let there = host.after_crash(elsewhere);
    let (store, _) = there.open(LIMITS);
    let fenced = engine(store.clone(), 6);
    assert_eq!(fenced.runtime_info().state, RuntimeState::Unavailable);
    let replay = fenced.submit(BODY.as_bytes(), Some("known")).await.unwrap();
    assert!(replay.idempotent_replay && replay.execution_id == known.execution_id);
    assert!(fenced.snapshot(known.execution_id).await.unwrap().is_some());
    let refused = |error: crate::PublicError| {
        assert_eq!((error.code, error.retryable), (PortableCode::ProviderUnavailable, true));
        assert_eq!(error.message, "Runtime is fenced: its journal was made from another one");
    };
    refused(fenced.submit(BODY.as_bytes(), Some("other")).await.unwrap_err());
    refused(fenced.submit(BODY.as_bytes(), None).await.unwrap_err());
    refused(fenced.snapshot(id(77)).await.unwrap_err());
    refused(fenced.watch(id(77), 0).await.err().unwrap());
    refused(fenced.cancel(id(77)).await.unwrap_err());
    assert_eq!(fenced.cancel(known.execution_id).await, Ok(false), "known, and over");
    store.close().await.unwrap();
    unfence(&there.config()).unwrap();
    let (store, _) = there.open(LIMITS);
    let free = engine(store.clone(), 7);
    assert_eq!(free.runtime_info().state, RuntimeState::Ready);
    assert_eq!(free.snapshot(id(77)).await, Ok(None));
    assert!(!free.submit(BODY.as_bytes(), Some("other")).await.unwrap().idempotent_replay);
    free.shutdown().await;
    store.close().await.unwrap();
}

/// Export and import into a new journal.
fn transferred(host: &Host, only: Option<u8>) -> (Host, Exported, Imported) {
    let mut lines = Vec::new();
    let exported = export(&host.config(), only.map(id), &mut lines).unwrap();
    let checked = check(&mut &lines[..]).unwrap();
    assert_eq!(checked.partial, exported.partial);
    let other = Host::new();
    let imported = import_manual(&other.config(), &mut &lines[..], &checked).unwrap();
    (other, exported, imported)
}

fn fresh(host: &Host, key: Option<u8>) -> NewExecution {
    let accepted = Event { sequence: 1, time: host.now(), body: EventBody::Accepted };
    let identity = key.map(identity);
    NewExecution { id: id(9), created_at: host.now(), identity, origin: None, labels: None, accepted }
}

#[tokio::test]
async fn jb_12_an_import_of_a_fenced_journal_is_fenced_until_it_is_unfenced() {
    let (host, exported, imported) = transferred(&restored().await, None);
    assert!(!exported.partial && imported.fenced);
    for round in 0..2 {
        let (store, opened) = host.open(LIMITS);
        assert_eq!(store.fenced(), round == 0);
        if round == 0 {
            let mut ended: Vec<_> = opened.interrupted.iter().map(|one| (one.id, one.outcome)).collect();
            ended.sort_by_key(|(id, _)| *id);
            assert_eq!(
                ended,
                [(id(2), Outcome::Unknown), (id(3), Outcome::Unknown)],
                "as in the copy itself"
            );
            for key in [None, Some(9)] {
                assert_eq!(store.create(fresh(&host, key)).await, Err(StoreError::Fenced));
            }
            let known = store.create(fresh(&host, Some(1))).await;
            assert!(matches!(known, Ok(Claim::Replay(brief)) if brief.id == id(1)));
        }
        // What the original wrote behind these places is another history for the import as well.
        for (number, held) in [(2, 3), (3, 1)] {
            assert_eq!(cursor(&store, number, held).await, Ok(true));
            assert_eq!(cursor(&store, number, held + 1).await, Err(StoreError::Diverged));
        }
        store.close().await.unwrap();
        if round == 0 {
            assert!(unfence(&host.config()).unwrap().was_fenced);
        }
    }
    // The lifted fence travels, too, and so does where the copies ended.
    let (again, _, imported) = transferred(&host, None);
    assert!(!imported.fenced);
    let (store, _) = again.open(LIMITS);
    assert!(!store.fenced());
    assert_eq!(cursor(&store, 2, 4).await, Err(StoreError::Diverged));
    assert_eq!(store.create(fresh(&again, Some(9))).await, Ok(Claim::New));
    store.close().await.unwrap();
}

#[tokio::test]
async fn jb_12_what_may_lack_executions_is_imported_behind_a_fence() {
    let host = Host::new();
    let (store, _) = host.open(LIMITS);
    for number in 1..=2 {
        create(&store, host.now(), number).await.unwrap();
        append(&store, host.now(), number, 2, vec![selected(), delta("a"), completed()]).await.unwrap();
    }
    store.close().await.unwrap();
    let fenced = |(there, exported, imported): (Host, Exported, Imported)| {
        assert_eq!(exported.partial, imported.fenced);
        let (store, journal, _) = there.open_manual().unwrap();
        assert_eq!(store.fenced(), imported.fenced);
        journal.close().unwrap();
        imported.fenced
    };
    assert!(!fenced(transferred(&host, None)), "all that a stopped journal held");
    assert!(fenced(transferred(&host, Some(1))), "others have keys, too");
    let writer = host.disk.lock().unwrap();
    assert!(fenced(transferred(&host, None)), "the writer goes on");
    drop(writer);
    assert!(!fenced(transferred(&host, None)));
}
