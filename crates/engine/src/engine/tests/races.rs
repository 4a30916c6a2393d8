//! Seeded races: completion, failure, fallback, panic, cancel, deadline, shutdown, a full gate and a failing store meet in
//! every order that a seeded scheduler finds, on one thread with a paused clock. Whatever wins, each execution has exactly one terminal event, its
//! attempts are told as they were made, and nothing is left behind. A failing seed is printed and repeats exactly.

use std::collections::BTreeSet;
use std::time::Duration;

use sealog_disk::testing::SeededEntropy;
use sealog_events::{EventBody, ExecutionId, PortableCode, Status};
use sealog_execution::Failure;
use sealog_execution::lease::GateCounts;
use serde_json::Value;

use super::harness::*;
use super::scheduler::{Shuffling, scheduled};
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

const NAMES: [&str; 3] = ["a", "b", "c"];

fn routing(dice: &Dice) -> String {
    let mut members = vec![format!(r#""allow_fallback":{}"#, !dice.one_in(4))];
    if dice.one_in(3) {
        members.push(format!(r#""max_attempts":{}"#, 1 + dice.below(4)));
    }
    if dice.one_in(4) {
        members.push(format!(r#""retry_budget_ms":{}"#, 1 + dice.below(SPAN_MS)));
    }
    if dice.one_in(3) {
        members.push(format!(r#""provider_order":["{}"]"#, NAMES[dice.below(3) as usize]));
    }
    let deadline = match dice.one_in(2) {
        true => format!(r#","deadline_ms":{}"#, 1 + dice.below(2 * SPAN_MS)),
        false => String::new(),
    };
    format!(r#""routing":{{{}}}{deadline}"#, members.join(","))
}

fn setup(dice: &Dice, seed: u64) -> Setup {
    // At most two refusals in a row: the event's and that of its first terminal leave the second one.
    let refusals = if dice.one_in(4) { 1 } else { 0 };
    let count = 1 + dice.below(3) as usize;
    let providers = NAMES[..count].iter().map(|name| {
        let mut provider = Scripted::new(name, script(dice));
        provider.available = !dice.one_in(8);
        provider
    });
    let mut setup = Setup::new(providers.collect());
    setup.seed = seed;
    setup.options = EngineOptions {
        cleanup_ms: SPAN_MS,
        provider_concurrency: if dice.one_in(2) { 1 } else { 16 },
        provider_queue: dice.below(2) as usize,
        ..EngineOptions::default()
    };
    setup.fate = Box::new(fate(Dice(SeededEntropy::new(!seed)), 1 + dice.below(8) as u32, refusals));
    setup
}

/// Runs one seed; returns how its executions ended, and whether one of them fell back.
async fn race(seed: u64) -> Vec<(Status, PortableCode, bool)> {
    let _shuffling = Shuffling::with(seed.rotate_left(32));
    let dice = Dice(SeededEntropy::new(seed));
    let bench = setup(&dice, seed).start();
    let mut ids = Vec::new();
    for number in 0..=dice.below(2) {
        let request = body(&routing(&dice));
        let submission = bench.engine.submit(request.as_bytes(), Some(&format!("k{number}"))).await.unwrap();
        ids.push(submission.execution_id);
    }
    let follower = bench.engine.watch(ids[0], 0).await.unwrap().unwrap();
    let mut others = Vec::new();
    for _ in 0..dice.below(3) {
        let (engine, at, yields) = (bench.engine.clone(), dice.below(SPAN_MS), dice.below(3));
        let id = ids[dice.below(ids.len() as u64) as usize];
        others.push(tokio::spawn(scheduled(async move {
            tokio::time::sleep(Duration::from_millis(at)).await;
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
            engine.cancel(id).await.unwrap();
        })));
    }
    let (engine, at) = (bench.engine.clone(), if dice.one_in(3) { dice.below(SPAN_MS) } else { 3_600_000 });
    others.push(tokio::spawn(scheduled(async move {
        tokio::time::sleep(Duration::from_millis(at)).await;
        assert!(engine.shutdown().await);
    })));
    for other in others {
        other.await.unwrap();
    }
    drop(follower);
    nothing_is_left(&bench);
    let mut ends = Vec::new();
    for id in ids {
        ends.push(judge(&bench, id, &bench.story(id).await));
    }
    ends
}

fn nothing_is_left(bench: &Bench) {
    let state = bench.engine.inner.state();
    assert!(state.active.is_empty() && state.pending.is_empty());
    let idle = GateCounts { active: 0, queued: 0 };
    assert_eq!(bench.engine.inner.admission.counts(), idle);
    assert!(state.provider_gates.values().all(|gate| gate.counts() == idle));
    // Nothing of a provider outlives its execution.
    let log = noted(&bench.log);
    let count = |what: &str| log.iter().filter(|noted| noted.starts_with(what)).count();
    assert_eq!(count("execute"), count("dropped"), "{log:?}");
}

/// Checks what must hold however the race went. The story has already been checked for one terminal at its end.
fn judge(bench: &Bench, id: ExecutionId, story: &Story) -> (Status, PortableCode, bool) {
    let events: Vec<Value> = story.texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let attempts = attempts_told(&events);
    // A provider is asked only behind the durable word that it is, and no candidate twice.
    let trace = bench.trace.lock().unwrap();
    let of_this: Vec<&String> = trace.iter().filter(|(of, _)| *of == id).map(|(_, what)| what).collect();
    for (at, what) in of_this.iter().enumerate() {
        if let Some(name) = what.strip_prefix("asked ") {
            assert!(at > 0 && *of_this[at - 1] == format!("selected {name}"), "{of_this:?}");
        }
    }
    for (at, name) in attempts.iter().enumerate() {
        assert!(!attempts[..at].contains(name), "{attempts:?}");
    }
    // Output is the last attempt's: behind it nothing is tried.
    let output = story.types.iter().position(|name| *name == "output.delta");
    let selected = story.types.iter().rposition(|name| *name == "route.selected");
    assert!(
        output.is_none_or(|output| selected.is_some_and(|selected| selected < output)),
        "{:?}",
        story.types
    );

    let completed = story.snapshot.status == Status::Succeeded;
    assert_eq!(completed, story.snapshot.error.is_none());
    if completed {
        assert_eq!(Some(&story.snapshot.target.as_ref().unwrap().provider), attempts.last());
    }
    assert!(output.is_none() || story.retryable() != Some(true), "{:?}", story.texts);
    let code = story.code().unwrap_or(PortableCode::InvalidRequest);
    assert_eq!(story.snapshot.status == Status::Cancelled, code == PortableCode::Cancelled);
    (story.snapshot.status, code, attempts.len() > 1)
}

/// The providers of the attempts, which are counted from 1; a failure is told of the attempt before another one.
fn attempts_told(events: &[Value]) -> Vec<String> {
    let mut attempts = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let target = || event["target"]["provider"].as_str().unwrap().to_owned();
        match event["type"].as_str().unwrap() {
            "route.selected" => {
                attempts.push(target());
                assert_eq!(event["attempt"], attempts.len());
            }
            "route.attempt_failed" => {
                assert_eq!(event["attempt"], attempts.len());
                assert_eq!(Some(&target()), attempts.last());
                assert_eq!(event["error"]["retryable"], true);
                let next = &events[at + 1];
                let refused = next["error"]["code"] == "internal_error";
                assert!(next["type"] == "route.selected" || refused, "{next}");
            }
            _ => {}
        }
    }
    attempts
}

/// RM-2, RM-4.
#[test]
fn every_race_has_exactly_one_terminal() {
    let mut endings = BTreeSet::new();
    for seed in 0..SEEDS {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let run = std::panic::AssertUnwindSafe(|| runtime.block_on(race(seed)));
        match std::panic::catch_unwind(run) {
            Ok(ends) => endings.extend(ends),
            Err(panic) => {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    // The races reach every ending there is, with and without fallback; otherwise they would prove little.
    let ends = [
        (Status::Succeeded, PortableCode::InvalidRequest),
        (Status::Failed, PortableCode::DeadlineExceeded),
        (Status::Failed, PortableCode::ProviderUnavailable),
        (Status::Failed, PortableCode::ProviderProtocolError),
        (Status::Failed, PortableCode::InternalError),
        (Status::Failed, PortableCode::QueueFull),
        (Status::Cancelled, PortableCode::Cancelled),
    ];
    let both = ends.into_iter().flat_map(|(status, code)| [(status, code, false), (status, code, true)]);
    assert_eq!(endings, both.collect::<BTreeSet<_>>());
}
