//! What one execution becomes: routing, output, failures, deadline, cancellation, containment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sealog_events::{Phase, PortableCode, Status, StopReason, UsageSource};
use sealog_execution::{Failure, Modality, ProviderEvent, ReportedUsage};
use tokio::time::Instant;

use super::harness::*;
use crate::store::StoreLimits;
use crate::{EngineOptions, StoreError};

const HEAD: [&str; 2] = ["execution.accepted", "route.selected"];

fn busy() -> Failure {
    Failure::transient(PortableCode::ProviderUnavailable, "m")
}

#[track_caller]
fn check(story: &Story, middle: &[&str], status: Status, error: Option<(PortableCode, bool)>) {
    let end = if status == Status::Succeeded { "execution.completed" } else { "execution.failed" };
    let expected: Vec<&str> = HEAD.iter().chain(middle).chain([&end]).copied().collect();
    assert_eq!(story.types, expected);
    assert_eq!(story.snapshot.status, status);
    assert_eq!(story.code().zip(story.retryable()), error);
}

#[tokio::test(start_paused = true)]
async fn a_plain_run_is_seven_events() {
    let fact = ReportedUsage {
        unit: "output_token".to_owned(),
        quantity: 3.0,
        source: UsageSource::Runtime,
        complete: None,
    };
    let usage = Step::Send(ProviderEvent::Usage(vec![fact]));
    let story = bench(vec![text("hello"), text(" from"), text(" p"), usage, completed()]).run(BODY).await;
    let delta = "output.delta";
    check(&story, &[delta, delta, delta, "usage.reported"], Status::Succeeded, None);
    assert_eq!(story.snapshot.last_sequence, 7);
    assert!(story.snapshot.result.unwrap().as_str().contains("\"hello from p\""));
    assert_eq!(story.snapshot.target.unwrap().provider, "p");
    assert_eq!(story.snapshot.usage.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn facts_21_requirements_select_the_provider_that_has_tools() {
    let plain = Scripted::new("plain", vec![completed()]);
    let mut tools = Scripted::new("tools", vec![completed()]);
    tools.manifest = Box::new(|| Ok(manifest("tools", |model| model.tools = true)));
    let plain_calls = Arc::clone(&plain.calls);
    let bench = Setup::new(vec![plain, tools]).start();
    let story = bench.run(&body(r#""requirements":{"stream":true,"tools":true}"#)).await;
    check(&story, &[], Status::Succeeded, None);
    assert_eq!(story.snapshot.target.unwrap().provider, "tools");
    assert!(plain_calls.lock().unwrap().is_empty());
}

/// RM-11.
#[tokio::test(start_paused = true)]
async fn facts_23_output_makes_a_failure_final() {
    let start = ProviderEvent::ToolCallStarted { call_id: "c".to_owned(), name: "n".to_owned() };
    let result = ProviderEvent::Result { result: "1".to_owned(), artifacts: None };
    let arguments = ProviderEvent::ToolCallArgumentsDelta { call_id: "c".to_owned(), delta: String::new() };
    let cases = [
        (text("x"), "output.delta"),
        (text(""), "output.delta"),
        (Step::Send(start), "tool.call.started"),
        (Step::Send(arguments), "tool.call.arguments.delta"),
        (Step::Send(result), "output.result"),
    ];
    for (step, name) in cases {
        let first = Scripted::new("first", vec![step, Step::Fail(busy())]);
        let second = Scripted::new("second", vec![completed()]);
        let calls = Arc::clone(&second.calls);
        let bench = Setup::new(vec![first, second]).start();
        let story = bench.run(&body(r#""routing":{"allow_fallback":true,"max_attempts":2}"#)).await;
        check(&story, &[name], Status::Failed, Some((PortableCode::ProviderUnavailable, false)));
        assert_eq!(story.snapshot.target.unwrap().provider, "first");
        assert!(calls.lock().unwrap().is_empty());
    }
}

/// RM-10.
#[tokio::test(start_paused = true)]
async fn a_failure_without_output_may_stay_retryable() {
    let progress = ProviderEvent::Progress { phase: Phase::Queued, progress: None };
    let story = bench(vec![Step::Send(progress), Step::Fail(busy())]).run(BODY).await;
    check(&story, &["execution.progress"], Status::Failed, Some((PortableCode::ProviderUnavailable, true)));
}

/// RM-9.
#[tokio::test(start_paused = true)]
async fn facts_25_without_fallback_there_is_one_attempt() {
    let second = Scripted::new("second", vec![completed()]);
    let calls = Arc::clone(&second.calls);
    let bench = Setup::new(vec![Scripted::new("first", vec![Step::Fail(busy())]), second]).start();
    let story = bench.run(&body(r#""routing":{"allow_fallback":false,"max_attempts":2}"#)).await;
    check(&story, &[], Status::Failed, Some((PortableCode::ProviderUnavailable, true)));
    assert!(calls.lock().unwrap().is_empty());
}

/// RM-7, PA-16.
#[tokio::test(start_paused = true)]
async fn facts_26_unsatisfiable_requirements_give_two_events() {
    let story = bench(vec![completed()]).run(&body(r#""requirements":{"async":true}"#)).await;
    assert_eq!(story.types, ["execution.accepted", "execution.failed"]);
    assert_eq!(story.code(), Some(PortableCode::CapabilityUnavailable));
}

#[tokio::test(start_paused = true)]
async fn facts_27_image_input_never_reaches_a_text_model() {
    for requirements in ["", r#","requirements":{"input_modalities":["text"]}"#] {
        let provider = Scripted::new("p", vec![completed()]);
        let calls = Arc::clone(&provider.calls);
        let bench = Setup::new(vec![provider]).start();
        let request = format!(r#"{{"ability":"chat","input":[{{"type":"image","uri":"u"}}]{requirements}}}"#);
        let story = bench.run(&request).await;
        assert_eq!(story.types, ["execution.accepted", "execution.failed"]);
        assert_eq!(story.code(), Some(PortableCode::CapabilityUnavailable));
        assert!(calls.lock().unwrap().is_empty());
    }
}

/// RM-17.
#[tokio::test(start_paused = true)]
async fn facts_28_cancel_after_accepted() {
    let bench = bench(vec![Step::Sleep(1000), completed()]);
    let id = bench.submit(BODY).await.execution_id;
    assert_eq!(bench.engine.cancel(id).await, Ok(true));
    let story = bench.story(id).await;
    assert_eq!(story.snapshot.status, Status::Cancelled);
    assert_eq!(story.code().zip(story.retryable()), Some((PortableCode::Cancelled, false)));
    assert_eq!(bench.engine.cancel(id).await, Ok(false));
}

/// RM-16.
#[tokio::test(start_paused = true)]
async fn facts_29_a_deadline_after_output() {
    let began = Instant::now();
    let story = bench(vec![text("x"), Step::Sleep(60_000)]).run(&body(r#""deadline_ms":20"#)).await;
    check(&story, &["output.delta"], Status::Failed, Some((PortableCode::DeadlineExceeded, false)));
    assert_eq!(began.elapsed(), Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn facts_32_the_callers_buffer_is_its_own_again() {
    let provider = Scripted::new("p", vec![completed()]);
    let calls = Arc::clone(&provider.calls);
    let bench = Setup::new(vec![provider]).start();
    let mut bytes = BODY.as_bytes().to_vec();
    let id = bench.engine.submit(&bytes, None).await.unwrap().execution_id;
    bytes.fill(b' ');
    bench.story(id).await;
    assert_eq!(calls.lock().unwrap()[0].ability, "chat");
}

/// RM-31.
#[tokio::test(start_paused = true)]
async fn facts_33_errors_and_events_hold_no_caller_content() {
    let bench = bench(vec![completed()]);
    let canary =
        r#"{"ability":"canary-a","input":[{"type":"text","text":"canary-t"}],"metadata":{"canary-m":1}}"#;
    let story = bench.run(canary).await;
    assert_eq!(story.code(), Some(PortableCode::CapabilityUnavailable));
    assert!(!story.texts.concat().contains("canary"));
    let refused = bench.engine.submit(br#"{"canary-x":1}"#, Some("k")).await.unwrap_err();
    assert_eq!(refused.code, PortableCode::InvalidRequest);
    assert!(!format!("{refused} {refused:?}").contains("canary"));
}

/// RM-13.
#[tokio::test(start_paused = true)]
async fn facts_35_bad_usage_is_a_protocol_error() {
    for quantity in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        let fact =
            ReportedUsage { unit: "t".to_owned(), quantity, source: UsageSource::Provider, complete: None };
        let bench = bench(vec![text("x"), Step::Send(ProviderEvent::Usage(vec![fact])), completed()]);
        let story = bench.run(BODY).await;
        check(&story, &["output.delta"], Status::Failed, Some((PortableCode::ProviderProtocolError, false)));
        assert_eq!(noted(&bench.log).last().unwrap(), "stored execution.failed");
        assert!(noted(&bench.log).contains(&"dropped aborted".to_owned()));
    }
}

/// RM-12.
#[tokio::test(start_paused = true)]
async fn ending_without_the_completion_signal_is_a_protocol_error() {
    let story = bench(vec![text("x")]).run(BODY).await;
    check(&story, &["output.delta"], Status::Failed, Some((PortableCode::ProviderProtocolError, false)));
}

/// RM-12.
#[tokio::test(start_paused = true)]
async fn nothing_is_read_behind_the_completion_signal() {
    let bench = bench(vec![completed(), Step::Panic]);
    check(&bench.run(BODY).await, &[], Status::Succeeded, None);
    assert_eq!(noted(&bench.log).iter().filter(|what| *what == "poll").count(), 1);
}

/// RM-33.
#[tokio::test(start_paused = true)]
async fn the_reason_to_stop_is_that_of_the_attempt_that_completed() {
    let stopped = |reason| Step::Send(ProviderEvent::Stopped(reason));
    let length = StopReason::Length;
    let story = bench(vec![stopped(StopReason::Other), stopped(length), completed()]).run(BODY).await;
    check(&story, &[], Status::Succeeded, None);
    assert_eq!(story.snapshot.stop_reason, Some(length));
    // One that failed had no answer that could have ended.
    let first = Scripted::new("a", vec![stopped(length), Step::Fail(busy())]);
    let second = Scripted::new("b", vec![completed()]);
    let story =
        Setup::new(vec![first, second]).start().run(&body(r#""routing":{"allow_fallback":true}"#)).await;
    assert_eq!((story.snapshot.status, story.snapshot.stop_reason), (Status::Succeeded, None));
    let story = bench(vec![stopped(length), Step::Fail(busy())]).run(BODY).await;
    assert_eq!((story.snapshot.status, story.snapshot.stop_reason), (Status::Failed, None));
}

/// RM-3.
#[tokio::test(start_paused = true)]
async fn every_effect_waits_for_its_announcement_and_every_pull_for_the_last_event() {
    let bench = bench(vec![text("a"), text("b"), completed()]);
    bench.run(BODY).await;
    let expected = [
        "stored route.selected",
        "execute",
        "poll",
        "stored output.delta",
        "poll",
        "stored output.delta",
        "poll",
        "dropped",
        "stored execution.completed",
    ];
    assert_eq!(noted(&bench.log), expected);
}

/// RM-3.
#[tokio::test(start_paused = true)]
async fn a_provider_is_not_polled_while_route_selected_is_not_durable() {
    let bench = bench(vec![completed()]);
    bench.store.appends.forget_permits(PERMITS);
    let id = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(noted(&bench.log), Vec::<String>::new());
    assert_eq!(bench.engine.snapshot(id).await.unwrap().unwrap().last_sequence, 1);
    bench.store.appends.add_permits(PERMITS);
    check(&bench.story(id).await, &[], Status::Succeeded, None);
}

/// RM-17.
#[tokio::test(start_paused = true)]
async fn a_completion_after_the_cancel_wins() {
    let bench = bench(vec![text("x"), Step::SleepDeaf(50), completed()]);
    let id = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(bench.engine.cancel(id).await, Ok(true));
    check(&bench.story(id).await, &["output.delta"], Status::Succeeded, None);
}

/// RM-18.
#[tokio::test(start_paused = true)]
async fn a_stop_overrides_the_providers_own_failure() {
    let bench = bench(vec![Step::SleepDeaf(50), Step::Fail(busy())]);
    let id = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(Duration::from_millis(10)).await;
    bench.engine.cancel(id).await.unwrap();
    check(&bench.story(id).await, &[], Status::Cancelled, Some((PortableCode::Cancelled, false)));
}

/// RM-18.
#[tokio::test(start_paused = true)]
async fn a_provider_that_ignores_its_abort_is_dropped_after_the_cleanup_time() {
    for (members, status, code, ends_ms) in [
        (r#""deadline_ms":20"#, Status::Failed, PortableCode::DeadlineExceeded, 20 + 5000),
        (r#""deadline_ms":90000"#, Status::Cancelled, PortableCode::Cancelled, 30 + 5000),
    ] {
        let bench = bench(vec![text("x"), Step::Hang]);
        let began = Instant::now();
        let id = bench.submit(&body(members)).await.execution_id;
        tokio::time::sleep(Duration::from_millis(30)).await;
        bench.engine.cancel(id).await.unwrap();
        check(&bench.story(id).await, &["output.delta"], status, Some((code, false)));
        assert_eq!(began.elapsed(), Duration::from_millis(ends_ms));
        assert!(noted(&bench.log).contains(&"dropped aborted".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_provider_cannot_outrun_the_cleanup_time() {
    let mut steps = Vec::new();
    for _ in 0..2000 {
        steps.extend([text("x"), Step::SleepDeaf(10)]);
    }
    let bench = bench(steps);
    let began = Instant::now();
    let story = bench.run(&body(r#""deadline_ms":1000"#)).await;
    assert_eq!(story.code(), Some(PortableCode::DeadlineExceeded));
    assert_eq!(began.elapsed(), Duration::from_millis(6000));
}

#[tokio::test(start_paused = true)]
async fn cleanup_that_takes_its_time_is_waited_for() {
    let bench = bench(vec![text("x"), Step::Cleanup(4000)]);
    let began = Instant::now();
    let story = bench.run(&body(r#""deadline_ms":20"#)).await;
    check(&story, &["output.delta"], Status::Failed, Some((PortableCode::DeadlineExceeded, false)));
    assert_eq!(began.elapsed(), Duration::from_millis(4020));
}

#[tokio::test(start_paused = true)]
async fn a_provider_may_end_as_cancelled_by_itself() {
    let story = bench(vec![text("x"), Step::Fail(Failure::cancelled())]).run(BODY).await;
    check(&story, &["output.delta"], Status::Cancelled, Some((PortableCode::Cancelled, false)));
}

/// RM-15.
#[tokio::test(start_paused = true)]
async fn panics_of_a_provider_are_contained() {
    let polled = bench(vec![text("x"), Step::Panic]);
    let unavailable = Some((PortableCode::ProviderUnavailable, false));
    check(&polled.run(BODY).await, &["output.delta"], Status::Failed, unavailable);

    let mut executed = Scripted::new("p", Vec::new());
    executed.panic_on_execute = true;
    check(&Setup::new(vec![executed]).start().run(BODY).await, &[], Status::Failed, unavailable);

    let mut dropped = Scripted::new("p", vec![completed()]);
    dropped.panic_on_drop = true;
    check(&Setup::new(vec![dropped]).start().run(BODY).await, &[], Status::Succeeded, None);

    let mut declared = Scripted::new("p", vec![completed()]);
    declared.manifest = Box::new(|| panic!("told to panic"));
    let bench = Setup::new(vec![declared]).start();
    let story = bench.run(BODY).await;
    assert_eq!(story.types, ["execution.accepted", "execution.failed"]);
    assert_eq!(story.code(), Some(PortableCode::ProviderUnavailable));
    assert!(bench.engine.providers().is_err());
    // The engine is as good as new.
    assert!(bench.engine.shutdown().await);
}

/// RM-8.
#[tokio::test(start_paused = true)]
async fn a_manifest_of_another_provider_fails_the_execution() {
    let mut provider = Scripted::new("p", vec![completed()]);
    provider.manifest = Box::new(|| Ok(manifest("q", |_| {})));
    let bench = Setup::new(vec![Scripted::new("good", vec![completed()]), provider]).start();
    let story = bench.run(BODY).await;
    assert_eq!(story.types, ["execution.accepted", "execution.failed"]);
    assert_eq!(story.code(), Some(PortableCode::ProviderProtocolError));
}

#[tokio::test(start_paused = true)]
async fn capabilities_are_checked_again_before_the_call() {
    let mut provider = Scripted::new("p", vec![completed()]);
    let asked = AtomicU32::new(0);
    provider.manifest = Box::new(move || {
        let again = asked.fetch_add(1, Ordering::Relaxed) > 0;
        Ok(manifest("p", |model| {
            model.input_modalities = if again { vec![Modality::Image] } else { vec![Modality::Text] }
        }))
    });
    let calls = Arc::clone(&provider.calls);
    let story = Setup::new(vec![provider]).start().run(BODY).await;
    check(&story, &[], Status::Failed, Some((PortableCode::CapabilityUnavailable, false)));
    assert!(calls.lock().unwrap().is_empty());
}

/// RM-29.
#[tokio::test(start_paused = true)]
async fn facts_06_a_full_execution_fails_and_its_producer_is_aborted() {
    let mut setup = Setup::new(vec![Scripted::new("p", vec![text(&"x".repeat(1000)), completed()])]);
    setup.limits = StoreLimits { max_execution_bytes: 700, ..StoreLimits::default() };
    let bench = setup.start();
    let story = bench.run(BODY).await;
    check(&story, &[], Status::Failed, Some((PortableCode::QueueFull, false)));
    assert!(noted(&bench.log).contains(&"dropped aborted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_refused_append_ends_the_execution_with_the_stores_error() {
    for refused in ["route.selected", "output.delta", "execution.completed"] {
        let mut setup = Setup::new(vec![Scripted::new("p", vec![text("x"), completed()])]);
        setup.fate = Box::new(move |_, body| match body.type_name() == refused {
            true => Fate::Refused(StoreError::Failed),
            false => AT_ONCE,
        });
        let bench = setup.start();
        let story = bench.run(BODY).await;
        assert_eq!(story.snapshot.status, Status::Failed);
        assert_eq!(story.code().zip(story.retryable()), Some((PortableCode::InternalError, false)));
        let executed = noted(&bench.log).contains(&"execute".to_owned());
        assert_eq!(executed, refused != "route.selected", "{refused}");
    }
}

/// RM-29.
#[tokio::test(start_paused = true)]
async fn facts_20_an_oversized_terminal_is_replaced_by_a_short_one() {
    let mut failure = busy();
    failure.provider_code = Some("\"".repeat(1000));
    let story = bench(vec![Step::Fail(failure)]).run(BODY).await;
    check(&story, &[], Status::Failed, Some((PortableCode::InternalError, false)));
}

/// RM-14.
#[tokio::test(start_paused = true)]
async fn a_provider_gate_queues_and_a_cancelled_waiter_is_never_called() {
    let provider = Scripted::new("p", vec![Step::Sleep(1000), completed()]);
    let calls = Arc::clone(&provider.calls);
    let mut setup = Setup::new(vec![provider]);
    setup.options = EngineOptions { provider_concurrency: 1, provider_queue: 1, ..EngineOptions::default() };
    let bench = setup.start();
    let running = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let waiting = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(Duration::from_millis(1)).await;
    check(&bench.run(BODY).await, &[], Status::Failed, Some((PortableCode::QueueFull, true)));
    bench.engine.cancel(waiting).await.unwrap();
    check(&bench.story(waiting).await, &[], Status::Cancelled, Some((PortableCode::Cancelled, false)));
    check(&bench.story(running).await, &[], Status::Succeeded, None);
    assert_eq!(calls.lock().unwrap().len(), 1);
}

/// PA-31.
#[tokio::test(start_paused = true)]
async fn over_long_text_arrives_in_pieces() {
    let long = "\u{1}".repeat(200_000);
    let story = bench(vec![text(&long), completed()]).run(BODY).await;
    assert!(story.types.len() > 4);
    assert!(story.texts.iter().all(|event| event.len() < 1 << 20));
    let escaped = "\\u0001".repeat(200_000);
    assert!(story.snapshot.result.unwrap().as_str().contains(&escaped));
}
