//! Seeded races: completion, failure, panic, cancel, deadline, shutdown and a failing store meet in every order on
//! one thread with a paused clock. Whatever wins, the execution has exactly one terminal event and nothing is left
//! behind. A failing seed is printed and repeats exactly.

use std::collections::BTreeSet;
use std::time::Duration;

use sealog_disk::testing::SeededEntropy;
use sealog_events::{EventBody, PortableCode, Status};
use sealog_execution::Failure;
use sealog_execution::lease::GateCounts;

use super::harness::*;
use crate::{EngineOptions, StoreError};

const SEEDS: u64 = 3000;
/// Times are drawn from a small range, so that equal times are common.
const SPAN_MS: u64 = 8;

pub(crate) struct Dice(pub(crate) SeededEntropy);

impl Dice {
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.0.draw() % bound
    }

    pub(crate) fn one_in(&self, chance: u64) -> bool {
        self.below(chance) == 0
    }
}

pub(crate) fn script(dice: &Dice) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..dice.below(4) {
        steps.push(match dice.below(4) {
            0 => Step::Sleep(dice.below(SPAN_MS)),
            1 => Step::SleepDeaf(dice.below(SPAN_MS)),
            2 => Step::Yield,
            _ => text("x"),
        });
    }
    match dice.below(7) {
        0 => steps.push(Step::Fail(Failure::transient(PortableCode::ProviderUnavailable, "m"))),
        1 => steps.push(Step::Panic),
        2 => steps.push(Step::Hang),
        3 => steps.push(Step::Cleanup(dice.below(SPAN_MS))),
        4 => {}
        _ => steps.push(completed()),
    }
    steps
}

/// The store's behaviour: slow appends, and in some runs refusals of the first `refusals` appends from one on.
fn fate(dice: Dice, refuse_from: u32, refusals: u32) -> impl Fn(u32, &EventBody) -> Fate + Send + Sync {
    move |number, _| {
        if (refuse_from..refuse_from + refusals).contains(&number) {
            return Fate::Refused(StoreError::Failed);
        }
        Fate::Stored {
            yields: dice.below(3) as u32,
            delay_ms: if dice.one_in(3) { dice.below(SPAN_MS) } else { 0 },
        }
    }
}

/// Runs one seed; returns how the execution ended.
async fn race(seed: u64) -> (Status, PortableCode) {
    let dice = Dice(SeededEntropy::new(seed));
    // At most two refusals in a row: the event's and that of its first terminal leave the second one.
    let refusals = if dice.one_in(4) { 1 } else { 0 };
    let mut setup = Setup::new(vec![Scripted::new("p", script(&dice))]);
    setup.seed = seed;
    setup.options = EngineOptions { cleanup_ms: SPAN_MS, ..EngineOptions::default() };
    setup.fate = Box::new(fate(Dice(SeededEntropy::new(!seed)), 1 + dice.below(5) as u32, refusals));
    let bench = setup.start();

    let request = if dice.one_in(2) {
        body(&format!(r#""deadline_ms":{}"#, 1 + dice.below(SPAN_MS)))
    } else {
        BODY.to_owned()
    };
    let submission = bench.engine.submit(request.as_bytes(), Some("k")).await.unwrap();
    let id = submission.execution_id;
    let follower = bench.engine.watch(id, 0).await.unwrap().unwrap();
    let mut others = Vec::new();
    for _ in 0..dice.below(3) {
        let (engine, at, yields) = (bench.engine.clone(), dice.below(SPAN_MS), dice.below(3));
        others.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(at)).await;
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
            engine.cancel(id).await.unwrap();
        }));
    }
    let (engine, at) = (bench.engine.clone(), if dice.one_in(3) { dice.below(SPAN_MS) } else { 3_600_000 });
    others.push(tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(at)).await;
        assert!(engine.shutdown().await);
    }));
    for other in others {
        other.await.unwrap();
    }
    drop(follower);
    judge(&bench, &bench.story(id).await)
}

/// Checks what must hold however the race went. The story has already been checked for one terminal at its end.
fn judge(bench: &Bench, story: &Story) -> (Status, PortableCode) {
    let log = noted(&bench.log);
    let terminals = log
        .iter()
        .filter(|what| matches!(what.as_str(), "stored execution.completed" | "stored execution.failed"));
    assert_eq!(terminals.count(), 1, "{log:?}");
    let state = bench.engine.inner.state();
    assert!(state.active.is_empty() && state.pending.is_empty());
    let idle = GateCounts { active: 0, queued: 0 };
    assert_eq!(bench.engine.inner.admission.counts(), idle);
    assert!(state.provider_gates.values().all(|gate| gate.counts() == idle));
    // Nothing of the provider outlives its execution, and it was asked only behind a durable announcement.
    let position = |name: &str| log.iter().position(|what| what == name);
    assert_eq!(position("execute").is_some(), log.iter().any(|what| what.starts_with("dropped")));
    if let Some(executed) = position("execute") {
        assert!(position("stored route.selected").is_some_and(|announced| announced < executed), "{log:?}");
    }
    let completed = story.snapshot.status == Status::Succeeded;
    assert_eq!(completed, story.snapshot.error.is_none());
    let code = story.code().unwrap_or(PortableCode::InvalidRequest);
    assert_eq!(story.snapshot.status == Status::Cancelled, code == PortableCode::Cancelled);
    (story.snapshot.status, code)
}

#[test]
fn every_race_has_exactly_one_terminal() {
    let mut endings = BTreeSet::new();
    for seed in 0..SEEDS {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let run = std::panic::AssertUnwindSafe(|| runtime.block_on(race(seed)));
        match std::panic::catch_unwind(run) {
            Ok(ending) => drop(endings.insert(ending)),
            Err(panic) => {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    // The races reach every ending there is; otherwise they would prove little.
    let expected = [
        (Status::Succeeded, PortableCode::InvalidRequest),
        (Status::Failed, PortableCode::DeadlineExceeded),
        (Status::Failed, PortableCode::ProviderUnavailable),
        (Status::Failed, PortableCode::ProviderProtocolError),
        (Status::Failed, PortableCode::InternalError),
        (Status::Cancelled, PortableCode::Cancelled),
    ];
    assert_eq!(endings, BTreeSet::from(expected));
}
