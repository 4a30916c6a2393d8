//! Readiness and shutdown.

use std::sync::Arc;
use std::time::Duration;

use sealog_events::{PortableCode, Status};
use tokio::time::Instant;

use super::harness::*;
use crate::{EngineOptions, EventStore, RuntimeState};

/// PA-22.
#[tokio::test(start_paused = true)]
async fn runtime_facts() {
    let bench = bench(vec![completed()]);
    let info = bench.engine.runtime_info();
    assert_eq!((info.name, info.protocol_version, info.provider_count), ("sealog", "0.1.0", 1));
    assert_eq!(info.state, RuntimeState::Ready);
    let features = info.features;
    assert!(features.routing && features.flow_control && features.usage_facts && !features.billing);
    bench.engine.register(Arc::new(Scripted::new("q", Vec::new()))).unwrap();
    let manifests = bench.engine.providers().unwrap();
    assert_eq!(manifests.iter().map(|manifest| manifest.provider.as_str()).collect::<Vec<_>>(), ["p", "q"]);
    bench.store.close().await.unwrap();
    assert_eq!(bench.engine.runtime_info().state, RuntimeState::Unavailable);
    assert_eq!(
        bench.engine.submit(BODY.as_bytes(), None).await.unwrap_err().code,
        PortableCode::InternalError
    );
    bench.engine.shutdown().await;
    assert_eq!(bench.engine.runtime_info().state, RuntimeState::Stopping);
}

/// RM-19.
#[tokio::test(start_paused = true)]
async fn facts_52_shutdown_cancels_what_runs_and_what_waits_and_refuses_the_rest() {
    let mut setup = Setup::new(vec![Scripted::new("p", vec![text("x"), Step::Sleep(60_000)])]);
    setup.options = EngineOptions { provider_concurrency: 1, ..EngineOptions::default() };
    let bench = setup.start();
    let running = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let waiting = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(bench.engine.shutdown().await);
    let (running, waiting) = (bench.story(running).await, bench.story(waiting).await);
    assert_eq!(running.types[2..], ["output.delta", "execution.failed"]);
    assert_eq!(waiting.types[1..], ["route.selected", "execution.failed"]);
    for story in [running, waiting] {
        assert_eq!(story.snapshot.status, Status::Cancelled);
        assert_eq!(story.code(), Some(PortableCode::Cancelled));
    }
    let refused = bench.engine.submit(BODY.as_bytes(), None).await.unwrap_err();
    assert_eq!((refused.code, refused.retryable), (PortableCode::ProviderUnavailable, true));
    assert!(refused.message.contains("shutting down"));
    assert!(bench.engine.register(Arc::new(Scripted::new("q", Vec::new()))).is_err());
    assert!(bench.engine.shutdown().await);
}

#[tokio::test(start_paused = true)]
async fn a_submission_on_its_way_in_ends_as_cancelled() {
    let bench = bench(vec![completed()]);
    bench.store.creates.forget_permits(PERMITS);
    let engine = bench.engine.clone();
    let submit = tokio::spawn(async move { engine.submit(BODY.as_bytes(), None).await });
    tokio::task::yield_now().await;
    let engine = bench.engine.clone();
    let shutdown = tokio::spawn(async move { engine.shutdown().await });
    tokio::task::yield_now().await;
    assert!(!shutdown.is_finished());
    bench.store.creates.add_permits(PERMITS);
    assert!(shutdown.await.unwrap());
    let id = submit.await.unwrap().unwrap().execution_id;
    let story = bench.story(id).await;
    assert_eq!(story.types, ["execution.accepted", "execution.failed"]);
    assert_eq!(story.snapshot.status, Status::Cancelled);
}

/// RM-18, RM-19.
#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_deaf_providers_but_not_for_ever() {
    let hanging = bench(vec![Step::Hang]);
    hanging.submit(BODY).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = Instant::now();
    assert!(hanging.engine.shutdown().await);
    assert_eq!(began.elapsed(), Duration::from_millis(5000));

    // A store that does not answer is not waited for.
    let stuck = bench(vec![text("x"), completed()]);
    stuck.store.appends.forget_permits(PERMITS);
    stuck.submit(BODY).await;
    let began = Instant::now();
    assert!(!stuck.engine.shutdown().await);
    assert_eq!(began.elapsed(), Duration::from_millis(10_000));
    stuck.store.appends.add_permits(PERMITS);
    assert!(stuck.engine.shutdown().await);
}
