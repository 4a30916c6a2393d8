//! The engine on the journal store, with the power going at a random disk operation while executions run, finish
//! and are cancelled. Whatever was told to a caller or a reader is there after the next start, a provider was only
//! asked behind a durable announcement, and every execution has exactly one end. Failing seeds repeat exactly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sealog_disk::sim::Choice;
use sealog_disk::testing::SeededEntropy;
use sealog_events::{ExecutionId, Outcome};
use sealog_execution::Registry;

use super::setup::*;
use crate::engine::tests::harness::{BODY, Scripted};
use crate::engine::tests::races::{Dice, script};
use crate::store::journal::JournalStore;
use crate::store::{Claim, EventStore};
use crate::{Engine, EngineOptions};

const SEEDS: u64 = 400;
const EXECUTIONS: u64 = 4;

/// Event texts by execution, as readers were given them.
type Seen = Arc<Mutex<BTreeMap<ExecutionId, Vec<String>>>>;

/// What the callers of one process know when the power is gone.
struct Told {
    host: Host,
    /// Key number and id of every acknowledged submission.
    submitted: Vec<(u64, ExecutionId)>,
    seen: BTreeMap<ExecutionId, Vec<String>>,
    /// Executions that the provider was asked to begin.
    begun: Vec<ExecutionId>,
}

fn engine(store: JournalStore, host: &Host, seed: u64, provider: Scripted) -> Engine {
    let mut registry = Registry::new();
    registry.register(Arc::new(provider)).unwrap();
    let options = EngineOptions { cleanup_ms: 8, ..EngineOptions::default() };
    let entropy = Arc::new(SeededEntropy::new(seed));
    Engine::start(options, registry, Arc::new(store), Arc::new(host.clock.clone()), entropy)
}

async fn follow(engine: Engine, id: ExecutionId, seen: Seen) {
    let Ok(Some(mut watch)) = engine.watch(id, 0).await else { return };
    while let Some(Ok(event)) = watch.next().await {
        seen.lock().unwrap().entry(id).or_default().push(event.data.clone());
    }
}

async fn live(seed: u64) -> Told {
    let dice = Dice(SeededEntropy::new(seed));
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    host.disk.cut_at(host.disk.op_count() + 1 + dice.below(60));
    let pump = tokio::spawn(async move {
        loop {
            journal.turn();
            journal.maintain();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let provider = Scripted::new("p", script(&dice));
    let begun = Arc::clone(&provider.ids);
    let engine = engine(store, &host, seed, provider);
    let seen = Seen::default();
    let (mut submitted, mut others) = (Vec::new(), Vec::new());
    for key in 0..EXECUTIONS {
        tokio::time::sleep(Duration::from_millis(dice.below(4))).await;
        let Ok(submission) = engine.submit(BODY.as_bytes(), Some(&key.to_string())).await else { continue };
        let id = submission.execution_id;
        submitted.push((key, id));
        others.push(tokio::spawn(follow(engine.clone(), id, Arc::clone(&seen))));
        if dice.one_in(3) {
            let (engine, at) = (engine.clone(), dice.below(8));
            others.push(tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(at)).await;
                engine.cancel(id).await.unwrap();
            }));
        }
    }
    tokio::time::sleep(Duration::from_millis(dice.below(30))).await;
    engine.shutdown().await;
    pump.abort();
    others.iter().for_each(|other| other.abort());
    let seen = seen.lock().unwrap().clone();
    let begun = begun.lock().unwrap().clone();
    Told { host, submitted, seen, begun }
}

async fn judge(told: Told, seed: u64) -> usize {
    let host = told.host.after_crash(told.host.disk.crash_image(Choice::Seeded(seed)));
    let (store, journal, opened) = host.open_manual().unwrap();
    let routed =
        |events: &[Arc<crate::StoredEvent>]| events.iter().any(|event| event.type_name == "route.selected");
    for (key, id) in &told.submitted {
        let identity = sealog_events::Identity {
            key_hash: sealog_events::canonical::key_hash(&key.to_string()),
            fingerprint: sealog_events::canonical::fingerprint(BODY.as_bytes()).unwrap(),
        };
        let claim = store.find(identity).await.unwrap();
        assert!(
            matches!(claim, Some(Claim::Replay(brief)) if brief.id == *id),
            "an acknowledged key is gone"
        );
    }
    for brief in store.list(None, 100).await.unwrap() {
        let events = events(&store, brief.id, 0).await;
        assert!(events.last().unwrap().terminal && events.iter().filter(|event| event.terminal).count() == 1);
        let seen = told.seen.get(&brief.id).map_or(&[][..], Vec::as_slice);
        assert!(events.len() >= seen.len());
        assert!(
            events.iter().zip(seen).all(|(event, seen)| event.data == *seen),
            "a delivered event changed"
        );
        assert_eq!(events.len() as u64, brief.last_sequence);
    }
    for id in &told.begun {
        let events = events(&store, *id, 0).await;
        assert!(routed(&events), "the provider was asked before the announcement was durable");
        let interrupted = opened.interrupted.iter().find(|one| one.id == *id);
        assert!(
            interrupted.is_none_or(|one| one.outcome == Outcome::Unknown),
            "something may have been sent"
        );
    }
    for id in told.seen.keys() {
        assert!(store.brief(*id).await.unwrap().is_some(), "a followed execution is gone");
    }
    // The same keys start nothing again.
    let provider = Scripted::new("p", Vec::new());
    let begun = Arc::clone(&provider.ids);
    let engine = engine(store, &host, !seed, provider);
    for (key, id) in &told.submitted {
        let again = engine.submit(BODY.as_bytes(), Some(&key.to_string())).await.unwrap();
        assert_eq!((again.execution_id, again.idempotent_replay), (*id, true));
    }
    assert!(begun.lock().unwrap().is_empty());
    drop(journal);
    opened.interrupted.len()
}

#[test]
fn whatever_was_told_is_there_after_the_power_went() {
    let (mut interrupted, mut acknowledged) = (0, 0);
    for seed in 0..SEEDS {
        let runtime = || {
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
        };
        let run = std::panic::AssertUnwindSafe(|| {
            let told = runtime().block_on(live(seed));
            acknowledged += told.submitted.len();
            interrupted += runtime().block_on(judge(told, seed));
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
    // Otherwise the runs would prove little.
    assert!(interrupted > 50 && acknowledged > 500, "{interrupted} interrupted, {acknowledged} acknowledged");
}
