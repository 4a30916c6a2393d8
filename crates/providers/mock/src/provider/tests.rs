use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use sealog_events::ExecutionId;
use sealog_execution::{ExecutionRequest, conformance};
use tokio::time::Instant;

use super::*;

fn start(mock: &str) -> (ProviderStream, AbortSignal) {
    let extensions =
        if mock.is_empty() { String::new() } else { format!(r#","extensions":{{"mock":{mock}}}"#) };
    let body =
        format!(r#"{{"ability":"text-generation","input":[{{"type":"text","text":"t"}}]{extensions}}}"#);
    let request = Arc::new(ExecutionRequest::parse(body.as_bytes()).unwrap().request);
    let abort = AbortSignal::new();
    let call = ModelCall {
        execution_id: ExecutionId::from_random([1; 16]),
        request,
        model: "model-alpha".to_owned(),
        abort: abort.clone(),
    };
    (MockProvider::default().execute(call), abort)
}

/// Every item in short form: text as it is, anything else by name or code.
async fn all(mock: &str) -> Vec<String> {
    start(mock).0.map(short).collect().await
}

fn short(item: Result<ProviderEvent, Failure>) -> String {
    match item {
        Ok(ProviderEvent::OutputDelta { output_index: 0, delta }) => delta,
        Ok(ProviderEvent::ToolCallStarted { call_id, name }) => format!("<{call_id} {name}"),
        Ok(ProviderEvent::ToolCallArgumentsDelta { call_id, delta }) => format!("<{call_id} {delta}>"),
        Ok(ProviderEvent::Usage(facts)) => {
            let facts =
                facts.iter().map(|fact| format!("{}={}", fact.unit, fact.quantity)).collect::<Vec<_>>();
            facts.join(",")
        }
        Ok(event) => format!("<{}>", event.name()),
        Err(failure) => format!("!{} {}", failure.code, failure.retryable()),
    }
}

const USAGE: &str = "input_token=1,output_token=3";

#[tokio::test(start_paused = true)]
async fn the_default_script() {
    assert_eq!(all("").await, ["hello", " from", " mock", USAGE, "<completed>"]);
    assert_eq!(all("{}").await, ["hello", " from", " mock", USAGE, "<completed>"]);
}

#[tokio::test(start_paused = true)]
async fn passes_conformance() {
    let report = conformance::run(Arc::new(MockProvider::default())).await;
    assert!(report.passed, "{:?}", report.failed());
    let names: Vec<&str> = report.checks.iter().map(|check| check.name).collect();
    assert_eq!(
        names,
        [
            "manifest.provider",
            "manifest.protocol_version",
            "manifest.models",
            "execution.completes_once",
            "execution.completion_is_last",
            "usage.non_negative",
            "execution.cancellation",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn chunks_have_exact_sizes() {
    let items = all(r#"{"chunks":4,"chunk_bytes":1000}"#).await;
    assert_eq!(items.len(), 6);
    assert!(items[..4].iter().all(|delta| delta.len() == 1000));
    assert_ne!(items[0], items[1]);
    assert_eq!(all(r#"{"chunks":1,"chunk_bytes":0}"#).await[0], "");
    assert_eq!(all(r#"{"chunks":0}"#).await, ["input_token=1,output_token=0", "<completed>"]);
    assert_eq!(all(r#"{"chunks":4}"#).await[..4], ["hello", " from", " mock", "hello"]);
}

#[tokio::test(start_paused = true)]
async fn tool_calls_and_usage_follow_the_deltas() {
    let mock = r#"{"chunks":1,"tool_calls":[{"call_id":"c1","name":"n","arguments":"{}"},
        {"call_id":"c2","name":"m","arguments":""}],"usage":[{"unit":"x","quantity":-2}]}"#;
    let expected = ["hello", "<c1 n", "<c1 {}>", "<c2 m", "<c2 >", "x=-2", "<completed>"];
    assert_eq!(all(mock).await, expected);
}

#[tokio::test(start_paused = true)]
async fn the_reason_to_stop_stands_before_the_completion() {
    let mock = r#"{"chunks":0,"usage":[],"stop_reason":"refusal"}"#;
    let items: Vec<_> = start(mock).0.map(Result::unwrap).collect().await;
    let expected = [
        ProviderEvent::Usage(Vec::new()),
        ProviderEvent::Stopped(sealog_events::StopReason::Refusal),
        ProviderEvent::Completed,
    ];
    assert_eq!(items, expected);
}

#[tokio::test(start_paused = true)]
async fn a_result_follows_the_calls_with_its_artifacts() {
    let mock = r#"{"chunks":0,"result":{"images":[1.50]},"artifacts":[{"uri":"https://h/a.png","media_type":"image/png"}],
        "usage":[]}"#;
    let items: Vec<_> = start(mock).0.collect().await;
    let [Ok(ProviderEvent::Result { result, artifacts: Some(artifacts) }), ..] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(result, r#"{"images":[1.50]}"#);
    assert_eq!(
        (artifacts[0].uri.as_str(), artifacts[0].media_type.as_deref()),
        ("https://h/a.png", Some("image/png"))
    );
    assert_eq!(items.len(), 3);
    let items: Vec<_> = start(r#"{"chunks":0,"result":"x"}"#).0.collect().await;
    assert!(matches!(&items[0], Ok(ProviderEvent::Result { artifacts: None, .. })), "{items:?}");
}

#[test]
fn what_is_declared_stands_in_the_manifest() {
    let capabilities = MockCapabilities {
        input_modalities: vec![Modality::Text, Modality::Image],
        output_modalities: vec![Modality::Json],
        tools: true,
    };
    let declared = MockProvider::default().with_capabilities(capabilities.clone());
    let model = declared.manifest().unwrap().models.remove(0);
    assert_eq!(model.input_modalities, capabilities.input_modalities);
    assert_eq!(model.output_modalities, capabilities.output_modalities);
    assert!(model.tools);
}

#[tokio::test(start_paused = true)]
async fn failures_come_after_their_number_of_deltas() {
    assert_eq!(all(r#"{"fail_after":0}"#).await, ["!provider_unavailable false"]);
    let mock = r#"{"fail_after":2,"fail_code":"rate_limited","fail_retryable":true}"#;
    assert_eq!(all(mock).await, ["hello", " from", "!rate_limited true"]);
    assert_eq!(all(r#"{"fail_after":3}"#).await, ["hello", " from", " mock", "!provider_unavailable false"]);
    assert_eq!(all(r#"{"fail_after":4}"#).await.last().unwrap(), "<completed>");
}

#[tokio::test(start_paused = true)]
async fn never_complete_ends_without_the_signal() {
    assert_eq!(all(r#"{"never_complete":true}"#).await, ["hello", " from", " mock", USAGE]);
}

#[tokio::test(start_paused = true)]
async fn bad_members_fail_before_output() {
    for mock in [r#"{"x":1}"#, r#"{"chunks":"3"}"#, "7"] {
        assert_eq!(all(mock).await, ["!invalid_request false"], "{mock}");
    }
}

#[tokio::test(start_paused = true)]
async fn delays_are_waited_and_cut_short_by_the_abort() {
    let began = Instant::now();
    all(r#"{"delay_ms":50}"#).await;
    assert_eq!(began.elapsed(), Duration::from_millis(150));

    let (mut stream, abort) = start(r#"{"delay_ms":50}"#);
    assert!(stream.next().now_or_never().is_none());
    abort.cancel();
    assert_eq!(stream.next().now_or_never().flatten().map(short).unwrap(), "!cancelled false");
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stall_lasts_until_the_abort() {
    let (mut stream, abort) = start(r#"{"stall_after":1}"#);
    assert_eq!(stream.next().await.map(short).unwrap(), "hello");
    assert!(stream.next().now_or_never().is_none());
    abort.cancel();
    assert_eq!(stream.next().await.map(short).unwrap(), "!cancelled false");
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn ignoring_the_abort_goes_on_and_stalls_for_ever() {
    let (stream, abort) = start(r#"{"ignore_cancel":true,"delay_ms":5}"#);
    abort.cancel();
    assert_eq!(stream.map(short).collect::<Vec<_>>().await.last().unwrap(), "<completed>");
    let (mut stream, abort) = start(r#"{"ignore_cancel":true,"stall_after":0}"#);
    abort.cancel();
    assert!(stream.next().now_or_never().is_none());
}
