//! Attempts and fallback: who is asked, in which order, how often, and what of it the events say.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use sealog_events::{Phase, PortableCode, Status};
use sealog_execution::{Failure, ProviderEvent, ProviderLimits, ProviderManifest};
use serde_json::Value;
use tokio::time::Instant;

use super::harness::*;
use crate::{EngineOptions, StoreError};

const FALLBACK: &str = r#""routing":{"allow_fallback":true}"#;

fn busy() -> Failure {
    Failure::transient(PortableCode::ProviderUnavailable, "m")
}

fn failing(id: &'static str) -> Scripted {
    Scripted::new(id, vec![Step::Fail(busy())])
}

fn good(id: &'static str) -> Scripted {
    Scripted::new(id, vec![text("x"), completed()])
}

/// The routing events as `type provider/attempt`, everything else by its type.
fn told(story: &Story) -> Vec<String> {
    let words = |text: &String| {
        let event: Value = serde_json::from_str(text).unwrap();
        let name = event["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
        match event["attempt"].as_u64() {
            Some(attempt) => format!("{name} {}/{attempt}", event["target"]["provider"].as_str().unwrap()),
            None => name,
        }
    };
    story.texts.iter().map(words).collect()
}

#[track_caller]
fn check(story: &Story, expected: &[&str], end: Option<(PortableCode, bool)>) {
    assert_eq!(told(story), expected);
    assert_eq!(story.code().zip(story.retryable()), end);
}

#[tokio::test(start_paused = true)]
async fn facts_22_a_retryable_failure_before_output_falls_back() {
    let (first, second) = (failing("first"), good("second"));
    let calls = [&first, &second].map(|provider| Arc::clone(&provider.calls));
    let bench = Setup::new(vec![first, second]).start();
    let story = bench.run(&body(r#""routing":{"allow_fallback":true,"max_attempts":2}"#)).await;
    let expected =
        ["accepted", "selected first/1", "attempt_failed first/1", "selected second/2", "delta", "completed"];
    check(&story, &expected, None);
    assert_eq!(story.snapshot.status, Status::Succeeded);
    assert_eq!(story.snapshot.target.unwrap().provider, "second");
    assert!(calls.iter().all(|calls| calls.lock().unwrap().len() == 1));
    let failed: Value = serde_json::from_str(&story.texts[2]).unwrap();
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["retryable"]),
        (&"provider_unavailable".into(), &true.into())
    );
    // The first one is unwound before the second is asked.
    let expected = [
        "stored route.selected",
        "execute",
        "poll",
        "dropped aborted",
        "stored route.attempt_failed",
        "stored route.selected",
        "execute",
    ];
    assert_eq!(noted(&bench.log)[..expected.len()], expected);
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_stands_in_the_terminal_event_alone() {
    let providers = || vec![failing("a"), failing("b"), failing("c")];
    let unavailable = Some((PortableCode::ProviderUnavailable, true));
    let story = Setup::new(providers()).start().run(&body(FALLBACK)).await;
    let all = [
        "accepted",
        "selected a/1",
        "attempt_failed a/1",
        "selected b/2",
        "attempt_failed b/2",
        "selected c/3",
        "failed",
    ];
    check(&story, &all, unavailable);
    let limited = body(r#""routing":{"allow_fallback":true,"max_attempts":2,"provider_order":["c"]}"#);
    let story = Setup::new(providers()).start().run(&limited).await;
    check(&story, &["accepted", "selected c/1", "attempt_failed c/1", "selected a/2", "failed"], unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_not_retryable_ends_the_execution() {
    for failure in [
        Failure::permanent(PortableCode::ProviderUnavailable, "m"),
        Failure::outcome_unknown(PortableCode::ProviderUnavailable, "m"),
        Failure::protocol("m"),
    ] {
        let code = failure.code;
        let bench = Setup::new(vec![Scripted::new("a", vec![Step::Fail(failure)]), good("b")]).start();
        let story = bench.run(&body(FALLBACK)).await;
        check(&story, &["accepted", "selected a/1", "failed"], Some((code, false)));
    }
    let bench = Setup::new(vec![Scripted::new("a", vec![Step::Panic]), good("b")]).start();
    let story = bench.run(&body(FALLBACK)).await;
    check(&story, &["accepted", "selected a/1", "failed"], Some((PortableCode::ProviderUnavailable, false)));
}

#[tokio::test(start_paused = true)]
async fn progress_and_usage_do_not_end_fallback() {
    let progress = ProviderEvent::Progress { phase: Phase::Queued, progress: None };
    let first = Scripted::new("a", vec![Step::Send(progress), Step::Fail(busy())]);
    let story = Setup::new(vec![first, good("b")]).start().run(&body(FALLBACK)).await;
    let expected =
        ["accepted", "selected a/1", "progress", "attempt_failed a/1", "selected b/2", "delta", "completed"];
    check(&story, &expected, None);
}

#[tokio::test(start_paused = true)]
async fn a_full_gate_and_an_absent_provider_fall_back() {
    let mut away = good("away");
    away.available = false;
    let away_calls = Arc::clone(&away.calls);
    let slow = Scripted::new("slow", vec![Step::Sleep(1000), completed()]);
    let mut setup = Setup::new(vec![slow, away, good("b")]);
    setup.options = EngineOptions { provider_concurrency: 1, provider_queue: 0, ..EngineOptions::default() };
    let bench = setup.start();
    let running = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let story = bench.run(&body(FALLBACK)).await;
    let expected = [
        "accepted",
        "selected slow/1",
        "attempt_failed slow/1",
        "selected away/2",
        "attempt_failed away/2",
        "selected b/3",
        "delta",
        "completed",
    ];
    check(&story, &expected, None);
    let full: Value = serde_json::from_str(&story.texts[2]).unwrap();
    assert_eq!((&full["error"]["code"], &full["error"]["retryable"]), (&"queue_full".into(), &true.into()));
    assert!(away_calls.lock().unwrap().is_empty());
    assert_eq!(bench.story(running).await.snapshot.status, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn limits_are_those_of_the_registration_and_shown() {
    let limits = ProviderLimits { max_concurrency: 1, max_queue_depth: 0 };
    let mut narrow = Scripted::new("narrow", vec![Step::Sleep(1000), completed()]);
    // What a provider says of itself has no effect.
    narrow.manifest = Box::new(|| {
        let limits = Some(ProviderLimits { max_concurrency: 9, max_queue_depth: 9 });
        Ok(ProviderManifest { limits, ..manifest("narrow", |_| {}) })
    });
    narrow.limits = Some(limits);
    let bench = Setup::new(vec![narrow, good("b")]).start();
    let shown: Vec<_> =
        bench.engine.providers().unwrap().into_iter().map(|manifest| manifest.limits).collect();
    assert_eq!(shown, [Some(limits), Some(ProviderLimits { max_concurrency: 16, max_queue_depth: 64 })]);
    bench.submit(BODY).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    check(
        &bench.run(BODY).await,
        &["accepted", "selected narrow/1", "failed"],
        Some((PortableCode::QueueFull, true)),
    );
}

#[tokio::test(start_paused = true)]
async fn the_retry_budget_ends_fallback_and_never_an_attempt() {
    for (budget_ms, follows) in [(50, false), (51, true)] {
        let first = Scripted::new("a", vec![Step::Sleep(50), Step::Fail(busy())]);
        let second = Scripted::new("b", vec![Step::Sleep(1000), completed()]);
        let request = body(&format!(r#""routing":{{"allow_fallback":true,"retry_budget_ms":{budget_ms}}}"#));
        let story = Setup::new(vec![first, second]).start().run(&request).await;
        if follows {
            let expected = ["accepted", "selected a/1", "attempt_failed a/1", "selected b/2", "completed"];
            check(&story, &expected, None);
        } else {
            let unavailable = Some((PortableCode::ProviderUnavailable, true));
            check(&story, &["accepted", "selected a/1", "failed"], unavailable);
        }
    }
}

/// A provider that takes a while to say what it has: routing has begun, and nobody was asked yet.
fn hesitant(id: &'static str, hesitates_ms: u64, steps: Vec<Step>) -> Scripted {
    let mut provider = Scripted::new(id, steps);
    provider.manifest = Box::new(move || {
        // The first poll moves the clock.
        let _later = tokio::time::advance(Duration::from_millis(hesitates_ms)).now_or_never();
        Ok(manifest(id, |_| {}))
    });
    provider
}

#[tokio::test(start_paused = true)]
async fn rm_9_a_budget_that_is_gone_before_the_first_attempt_leaves_none() {
    for allow_fallback in [false, true] {
        for (hesitates_ms, starts) in [(49, true), (50, false), (51, false)] {
            let first = hesitant("a", hesitates_ms, vec![completed()]);
            let second = good("b");
            let calls = [&first, &second].map(|provider| Arc::clone(&provider.calls));
            let routing = format!(r#""routing":{{"allow_fallback":{allow_fallback},"retry_budget_ms":50}}"#);
            let story = Setup::new(vec![first, second]).start().run(&body(&routing)).await;
            if starts {
                check(&story, &["accepted", "selected a/1", "completed"], None);
            } else {
                // Whoever asks again may have more luck: nothing was sent.
                let unavailable = Some((PortableCode::ProviderUnavailable, true));
                check(&story, &["accepted", "failed"], unavailable);
                assert_eq!(story.snapshot.error.unwrap().message, "Retry budget is exhausted");
                assert!(calls.iter().all(|calls| calls.lock().unwrap().is_empty()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rm_9_a_wait_at_the_gate_uses_up_the_budget_of_what_follows_and_not_the_attempt() {
    let all = ["accepted", "selected a/1", "attempt_failed a/1", "selected b/2", "delta", "completed"];
    let one = ["accepted", "selected a/1", "failed"];
    // The first two are gone before the place at the gate is free.
    for (budget_ms, follows) in [(1, false), (50, false), (100, false), (101, true)] {
        let mut narrow = Scripted::new("a", vec![Step::Sleep(50), Step::Fail(busy())]);
        narrow.limits = Some(ProviderLimits { max_concurrency: 1, max_queue_depth: 1 });
        let calls = Arc::clone(&narrow.calls);
        let bench = Setup::new(vec![narrow, good("b")]).start();
        let ahead = bench.submit(BODY).await.execution_id;
        // It has the place at the gate for 50 ms of the clock, which stands still until everybody waits.
        while calls.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let began = Instant::now();
        let routing = format!(r#""routing":{{"allow_fallback":true,"retry_budget_ms":{budget_ms}}}"#);
        let story = bench.run(&body(&routing)).await;
        assert_eq!(began.elapsed(), Duration::from_millis(100));
        assert_eq!(calls.lock().unwrap().len(), 2, "the wait took the attempt");
        let unavailable = Some((PortableCode::ProviderUnavailable, true));
        if follows {
            check(&story, &all, None);
        } else {
            check(&story, &one, unavailable);
        }
        check(&bench.story(ahead).await, &one, unavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn rm_9_the_budget_bounds_every_further_attempt_and_an_announced_one_starts() {
    const ALL: [&str; 7] = [
        "accepted",
        "selected a/1",
        "attempt_failed a/1",
        "selected b/2",
        "attempt_failed b/2",
        "selected c/3",
        "failed",
    ];
    // Attempts of 20 ms, and an announcement that is stored for `announced_ms`.
    for (announced_ms, budget_ms, attempts) in [
        (0, 20, 1),
        (0, 21, 2),
        (0, 40, 2),
        (0, 41, 3),
        (0, 1000, 3),
        // Stored until the budget is gone: what is announced is followed, and nothing behind it.
        (30, 21, 2),
        (30, 50, 2),
        (30, 70, 2),
        (30, 71, 3),
    ] {
        let slow = |id| Scripted::new(id, vec![Step::Sleep(20), Step::Fail(busy())]);
        let mut setup = Setup::new(vec![slow("a"), slow("b"), slow("c")]);
        setup.fate = Box::new(move |_, body| match body.type_name() {
            "route.attempt_failed" => Fate::Stored { yields: 0, delay_ms: announced_ms },
            _ => AT_ONCE,
        });
        let routing = format!(r#""routing":{{"allow_fallback":true,"retry_budget_ms":{budget_ms}}}"#);
        let story = setup.start().run(&body(&routing)).await;
        let expected = [&ALL[..2 * attempts], &["failed"]].concat();
        assert_eq!(told(&story), expected, "{announced_ms} {budget_ms}");
        let unavailable = Some((PortableCode::ProviderUnavailable, true));
        assert_eq!(story.code().zip(story.retryable()), unavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn one_deadline_covers_routing_queueing_and_all_attempts() {
    let slow = |id| Scripted::new(id, vec![Step::Sleep(20), Step::Fail(busy())]);
    let request = body(r#""deadline_ms":50,"routing":{"allow_fallback":true}"#);
    let began = Instant::now();
    let story = Setup::new(vec![slow("a"), slow("b"), slow("c"), slow("d")]).start().run(&request).await;
    let expected = [
        "accepted",
        "selected a/1",
        "attempt_failed a/1",
        "selected b/2",
        "attempt_failed b/2",
        "selected c/3",
        "failed",
    ];
    check(&story, &expected, Some((PortableCode::DeadlineExceeded, false)));
    assert_eq!(began.elapsed(), Duration::from_millis(50));

    // At the gate.
    let mut setup = Setup::new(vec![Scripted::new("a", vec![Step::Sleep(1000), completed()])]);
    setup.options = EngineOptions { provider_concurrency: 1, ..EngineOptions::default() };
    let bench = setup.start();
    bench.submit(BODY).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = Instant::now();
    let story = bench.run(&request).await;
    check(&story, &["accepted", "selected a/1", "failed"], Some((PortableCode::DeadlineExceeded, false)));
    assert_eq!(began.elapsed(), Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_fallback() {
    let first = Scripted::new("a", vec![Step::SleepDeaf(50), Step::Fail(busy())]);
    let second = good("b");
    let calls = Arc::clone(&second.calls);
    let bench = Setup::new(vec![first, second]).start();
    let id = bench.submit(&body(FALLBACK)).await.execution_id;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(bench.engine.cancel(id).await, Ok(true));
    let story = bench.story(id).await;
    check(&story, &["accepted", "selected a/1", "failed"], Some((PortableCode::Cancelled, false)));
    assert!(calls.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_announced_failure_is_followed_by_an_attempt_whatever_happens_meanwhile() {
    let slow_store = |_, body: &sealog_events::EventBody| match body.type_name() {
        "route.attempt_failed" => Fate::Stored { yields: 0, delay_ms: 100 },
        _ => AT_ONCE,
    };
    let expected = ["accepted", "selected a/1", "attempt_failed a/1", "selected b/2", "failed"];
    for (members, code) in [
        (FALLBACK.to_owned(), PortableCode::Cancelled),
        (format!(r#"{FALLBACK},"deadline_ms":50"#), PortableCode::DeadlineExceeded),
    ] {
        let second = good("b");
        let calls = Arc::clone(&second.calls);
        let mut setup = Setup::new(vec![failing("a"), second]);
        setup.fate = Box::new(slow_store);
        let bench = setup.start();
        let id = bench.submit(&body(&members)).await.execution_id;
        if code == PortableCode::Cancelled {
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert_eq!(bench.engine.cancel(id).await, Ok(true));
        }
        check(&bench.story(id).await, &expected, Some((code, false)));
        assert!(calls.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_the_announcement_ends_the_execution() {
    let second = good("b");
    let calls = Arc::clone(&second.calls);
    let mut setup = Setup::new(vec![failing("a"), second]);
    setup.fate = Box::new(|_, body| match body.type_name() {
        "route.attempt_failed" => Fate::Refused(StoreError::ExecutionFull),
        _ => AT_ONCE,
    });
    let story = setup.start().run(&body(FALLBACK)).await;
    check(&story, &["accepted", "selected a/1", "failed"], Some((PortableCode::QueueFull, false)));
    assert!(calls.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deaf_provider_is_dropped_and_gives_its_place_back() {
    let mut setup = Setup::new(vec![Scripted::new("a", vec![Step::Hang]), good("b")]);
    setup.options = EngineOptions { provider_concurrency: 1, ..EngineOptions::default() };
    let bench = setup.start();
    let began = Instant::now();
    let story = bench.run(&body(&format!(r#"{FALLBACK},"deadline_ms":20"#))).await;
    check(&story, &["accepted", "selected a/1", "failed"], Some((PortableCode::DeadlineExceeded, false)));
    assert_eq!(began.elapsed(), Duration::from_millis(20 + 5000));
    // The next one waits for nobody.
    let began = Instant::now();
    bench.run(&body(r#""deadline_ms":20"#)).await;
    assert_eq!(began.elapsed(), Duration::from_millis(20 + 5000));
}
