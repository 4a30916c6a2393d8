//! Keys: joining, replaying, conflicts, admission.

use std::time::Duration;

use futures_util::future::join_all;
use sealog_events::{PortableCode, Status};
use sealog_execution::ExecutionRequest;
use sealog_execution::request::ParsedRequest;

use super::harness::*;
use crate::store::Watch;
use crate::{EngineOptions, StoreError, Submission};

async fn keyed(bench: &Bench, key: &str) -> Submission {
    bench.engine.submit(BODY.as_bytes(), Some(key)).await.unwrap()
}

/// RM-20.
#[tokio::test(start_paused = true)]
async fn facts_36_concurrent_submissions_of_one_key_are_one_execution() {
    let bench = bench(vec![completed()]);
    let answers = join_all((0..64).map(|_| keyed(&bench, "k"))).await;
    assert!(answers.iter().all(|answer| answer.execution_id == answers[0].execution_id));
    assert_eq!(answers.iter().filter(|answer| !answer.idempotent_replay).count(), 1);
    assert!(answers.iter().all(|answer| answer.status == Status::Accepted));
    bench.story(answers[0].execution_id).await;
    assert_eq!(noted(&bench.log).iter().filter(|what| *what == "execute").count(), 1);
}

/// RM-20.
#[tokio::test(start_paused = true)]
async fn a_replay_tells_the_current_status_and_runs_nothing() {
    let bench = bench(vec![completed()]);
    let first = keyed(&bench, "k").await;
    bench.story(first.execution_id).await;
    bench.clock.advance(Duration::from_secs(5));
    let replay = keyed(&bench, "k").await;
    assert_eq!(replay, Submission { status: Status::Succeeded, idempotent_replay: true, ..first });
    assert_eq!(noted(&bench.log).iter().filter(|what| *what == "execute").count(), 1);
}

/// RM-20.
#[tokio::test(start_paused = true)]
async fn another_request_on_the_key_is_refused_before_and_after_the_end() {
    let bench = bench(vec![completed()]);
    let other = body(r#""routing":{}"#);
    let (first, conflict) =
        tokio::join!(keyed(&bench, "k"), bench.engine.submit(other.as_bytes(), Some("k")));
    assert_eq!(conflict.unwrap_err().code, PortableCode::InvalidRequest);
    bench.story(first.execution_id).await;
    let conflict = bench.engine.submit(other.as_bytes(), Some("k")).await.unwrap_err();
    assert_eq!((conflict.code, conflict.retryable), (PortableCode::InvalidRequest, false));
    // White space and member order do not make another request.
    let same = r#"{ "input":[{"text":"t","type":"text"}], "ability":"chat" }"#;
    assert!(bench.engine.submit(same.as_bytes(), Some("k")).await.unwrap().idempotent_replay);
}

#[tokio::test(start_paused = true)]
async fn facts_38_keys_have_one_to_256_utf16_units() {
    let bench = bench(vec![completed()]);
    for (key, fits) in [
        ("k".repeat(256), true),
        ("k".repeat(257), false),
        (String::new(), false),
        ("\u{1F600}".repeat(128), true),
        ("\u{1F600}".repeat(129), false),
    ] {
        let answer = bench.engine.submit(BODY.as_bytes(), Some(&key)).await;
        assert_eq!(answer.map_err(|error| error.code).err(), (!fits).then_some(PortableCode::InvalidRequest));
    }
}

/// RM-22.
#[tokio::test(start_paused = true)]
async fn facts_39_a_failed_creation_fails_all_who_joined_and_frees_the_key() {
    let bench = bench(vec![completed()]);
    *bench.store.refuse_create.lock().unwrap() = Some(StoreError::Failed);
    let (first, second) = tokio::join!(
        bench.engine.submit(BODY.as_bytes(), Some("k")),
        bench.engine.submit(BODY.as_bytes(), Some("k"))
    );
    assert_eq!(first.unwrap_err().code, PortableCode::InternalError);
    assert_eq!(second.unwrap_err().code, PortableCode::InternalError);
    assert!(bench.engine.inner.state().active.is_empty());
    let third = keyed(&bench, "k").await;
    assert!(!third.idempotent_replay);
    bench.story(third.execution_id).await;
}

#[tokio::test(start_paused = true)]
async fn without_randomness_nothing_starts() {
    let bench = bench(vec![completed()]);
    bench.entropy.set_failing(true);
    let refused = bench.engine.submit(BODY.as_bytes(), Some("k")).await.unwrap_err();
    assert_eq!(refused.code, PortableCode::InternalError);
    bench.entropy.set_failing(false);
    assert!(!keyed(&bench, "k").await.idempotent_replay);
}

/// RM-23.
#[tokio::test(start_paused = true)]
async fn the_admission_limit_refuses_and_a_replay_needs_no_slot() {
    let mut setup = Setup::new(vec![Scripted::new("p", vec![Step::Sleep(1000), completed()])]);
    setup.options = EngineOptions { max_active_executions: 1, ..EngineOptions::default() };
    let bench = setup.start();
    let first = keyed(&bench, "k").await;
    let refused = bench.engine.submit(BODY.as_bytes(), Some("other")).await.unwrap_err();
    assert_eq!((refused.code, refused.retryable), (PortableCode::QueueFull, true));
    let replay = keyed(&bench, "k").await;
    assert_eq!((replay.execution_id, replay.idempotent_replay), (first.execution_id, true));
    bench.story(first.execution_id).await;
    tokio::task::yield_now().await;
    assert!(!keyed(&bench, "other").await.idempotent_replay);
}

/// RM-24.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_changes_nothing() {
    let bench = bench(vec![completed()]);
    bench.store.creates.forget_permits(PERMITS);
    {
        let submit = std::pin::pin!(bench.engine.submit(BODY.as_bytes(), Some("k")));
        assert!(futures_util::poll!(submit).is_pending());
    }
    tokio::task::yield_now().await;
    bench.store.creates.add_permits(PERMITS);
    let joined = keyed(&bench, "k").await;
    assert!(joined.idempotent_replay);
    assert_eq!(bench.story(joined.execution_id).await.snapshot.status, Status::Succeeded);
}

/// As it was read and checked by the front doors of other model APIs.
async fn translated(bench: &Bench, key: Option<&str>) -> (Submission, Box<dyn Watch>) {
    let ParsedRequest { request, fingerprint } = ExecutionRequest::parse(BODY.as_bytes()).unwrap();
    bench.engine.submit_translated(request, fingerprint, key).await.unwrap()
}

async fn types(watch: &mut dyn Watch) -> Vec<&'static str> {
    let mut types = Vec::new();
    while let Some(event) = watch.next().await {
        types.push(event.unwrap().type_name);
    }
    types
}

/// Whoever is answered from the events has them, although the execution is the first to go.
#[tokio::test(start_paused = true)]
async fn a_translated_submission_is_told_everything_however_short_its_life() {
    let mut setup = Setup::new(vec![Scripted::new("p", vec![completed()])]);
    setup.limits.max_executions = 1;
    setup.limits.min_key_age_ms = 0;
    let bench = setup.start();
    let (first, mut watch) = translated(&bench, Some("k")).await;
    bench.story(first.execution_id).await;
    let refused = bench.engine.submit(BODY.as_bytes(), None).await.unwrap_err();
    assert_eq!(refused.code, PortableCode::QueueFull, "pinned: there is no room for another one");
    let told = types(watch.as_mut()).await;
    assert_eq!((told.first(), told.last()), (Some(&"execution.accepted"), Some(&"execution.completed")));
    drop(watch);
    let (again, mut watch) = translated(&bench, Some("k")).await;
    assert_eq!((again.execution_id, again.idempotent_replay), (first.execution_id, true));
    assert_eq!(types(watch.as_mut()).await, told);
    drop(watch);
    let other = bench.submit(BODY).await;
    bench.story(other.execution_id).await;
    let (fresh, _watch) = translated(&bench, Some("k")).await;
    assert!(!fresh.idempotent_replay && fresh.execution_id != first.execution_id);
    bench.engine.shutdown().await;
    let ParsedRequest { request, fingerprint } = ExecutionRequest::parse(BODY.as_bytes()).unwrap();
    for key in [None, Some("k")] {
        let late = bench.engine.submit_translated(request.clone(), fingerprint, key).await;
        assert_eq!(late.err().map(|error| error.code), Some(PortableCode::ProviderUnavailable));
    }
}

/// An execution that ends at once and is let go at once is still told from its first event on to who submitted it.
#[tokio::test(start_paused = true)]
async fn a_watching_submission_is_told_everything_however_short_its_life() {
    let mut setup = Setup::new(vec![Scripted::new("p", vec![completed()])]);
    setup.limits.max_executions = 1;
    setup.limits.min_key_age_ms = 0;
    let bench = setup.start();
    let (first, mut watch) = bench.engine.submit_watching(BODY.as_bytes(), Some("k")).await.unwrap();
    assert!(!first.idempotent_replay);
    bench.story(first.execution_id).await;
    // Pinned: there is no room for another one.
    let refused = bench.engine.submit(BODY.as_bytes(), None).await.unwrap_err();
    assert_eq!(refused.code, PortableCode::QueueFull);
    let told = types(watch.as_mut()).await;
    assert_eq!((told.first(), told.last()), (Some(&"execution.accepted"), Some(&"execution.completed")));
    drop(watch);
    // A replay is watched as well; once it is let go the key is free.
    let (again, watch) = bench.engine.submit_watching(BODY.as_bytes(), Some("k")).await.unwrap();
    assert_eq!((again.execution_id, again.idempotent_replay), (first.execution_id, true));
    drop(watch);
    let other = bench.submit(BODY).await;
    bench.story(other.execution_id).await;
    let (fresh, _watch) = bench.engine.submit_watching(BODY.as_bytes(), Some("k")).await.unwrap();
    assert!(!fresh.idempotent_replay && fresh.execution_id != first.execution_id);
}
