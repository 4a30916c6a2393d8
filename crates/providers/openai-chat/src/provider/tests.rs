//! The provider against a scripted upstream, over a real socket.

use std::io::Write;

use futures_util::StreamExt;
use sealog_events::PortableCode;
use sealog_execution::{AbortSignal, ProviderEvent, conformance};
use sealog_upstream::testing::odd_cases::{self, Answer};
use sealog_upstream::testing::{self, Gate, Script, ScriptedServer};
use serde_json::{Value, json};

use super::*;

const TEXT: [&str; 3] = [
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"hel"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
];
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;

fn answer() -> Script {
    TEXT.iter()
        .fold(Script::new().event_stream(), |script, data| script.data(data))
        .data(USAGE)
        .data("[DONE]")
}

async fn server(script: Script) -> ScriptedServer {
    ScriptedServer::start(vec![script]).await.unwrap()
}

fn provider(server: &ScriptedServer, toml: &str) -> OpenAiChat {
    let text = format!("model = 'm-1'\nbase_url = '{}'\n{toml}", server.url("/v1"));
    OpenAiChat::new(toml::from_str(&text).unwrap()).unwrap()
}

fn call(request: Value, abort: &AbortSignal) -> ModelCall {
    testing::call(&request, "m-1", abort)
}

fn text() -> Value {
    json!({"ability": "text-generation", "input": [{"type": "text", "text": "hi"}]})
}

/// Everything the provider emits, and the failure that ended it.
async fn run(provider: &OpenAiChat, request: Value) -> (Vec<ProviderEvent>, Option<Failure>) {
    let mut stream = provider.execute(call(request, &AbortSignal::new()));
    let (mut events, mut failure) = (Vec::new(), None);
    while let Some(item) = stream.next().await {
        assert!(failure.is_none(), "nothing follows a failure");
        match item {
            Ok(event) => events.push(event),
            Err(failed) => failure = Some(failed),
        }
    }
    (events, failure)
}

fn joined(events: &[ProviderEvent]) -> String {
    let delta = |event: &ProviderEvent| {
        if let ProviderEvent::OutputDelta { delta, .. } = event { Some(delta.clone()) } else { None }
    };
    events.iter().filter_map(delta).collect()
}

#[track_caller]
fn failed_with(outcome: &(Vec<ProviderEvent>, Option<Failure>), code: PortableCode, retryable: bool) {
    let failure = outcome.1.as_ref().expect("a failure");
    assert_eq!((failure.code, failure.retryable()), (code, retryable), "{failure:?}");
}

#[tokio::test]
async fn a_prompt_streams_to_its_completion() {
    let server = server(answer().stall()).await;
    let (events, failure) = run(&provider(&server, "max_tokens = 16"), text()).await;
    assert_eq!((joined(&events).as_str(), failure), ("hello", None));
    assert!(matches!(events[..], [.., ProviderEvent::Usage(_), ProviderEvent::Completed]));
    // The upstream went on after its end marker; nobody waited for that.
    server.abandoned(1).await;
    let requests = server.requests();
    assert_eq!((requests.len(), requests[0].path.as_str()), (1, "/v1/chat/completions"));
    assert_eq!(
        (requests[0].header("authorization"), requests[0].header("accept")),
        (None, Some("text/event-stream"))
    );
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(
        (&body["model"], &body["stream"], &body["max_tokens"]),
        (&json!("m-1"), &json!(true), &json!(16))
    );
}

#[tokio::test]
async fn the_conformance_suite_passes() {
    let scripts = vec![answer(), Script::new().event_stream().data(TEXT[0]).data(TEXT[1]).stall()];
    let server = ScriptedServer::start(scripts).await.unwrap();
    let report = conformance::run(Arc::new(provider(&server, ""))).await;
    assert!(report.passed, "{:?}", report.failed());
    assert_eq!(report.provider, "openai-chat");
    server.abandoned(1).await;
}

#[tokio::test]
async fn the_manifest_says_what_the_configuration_declared() {
    let server = server(answer()).await;
    let toml =
        "id = 'local'\nabilities = ['a']\n[capabilities]\ninput_modalities = ['text', 'image']\ntools = true";
    let provider = provider(&server, toml);
    let manifest = provider.manifest().unwrap();
    assert_eq!((provider.id(), manifest.provider.as_str(), manifest.models.len()), ("local", "local", 1));
    let model = &manifest.models[0];
    assert_eq!((model.model.as_str(), &model.abilities[..]), ("m-1", &["a".to_owned()][..]));
    assert_eq!(model.input_modalities, [Modality::Text, Modality::Image]);
    assert_eq!(model.output_modalities, [Modality::Text]);
    assert!(model.stream && model.cancel && model.tools && !model.structured_output && !model.asynchronous);
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let server = server(answer()).await;
    let stream = provider(&server, "").execute(call(text(), &AbortSignal::new()));
    drop(stream);
    let events: Vec<_> = provider(&server, "").execute(call(text(), &AbortSignal::new())).collect().await;
    assert!(events.iter().all(Result::is_ok));
    assert_eq!((server.connections(), server.requests().len()), (1, 1));
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_before_key_and_connection() {
    let server = server(answer()).await;
    // The key is missing as well: had it been read first, the failure would be another one.
    let provider = provider(&server, "api_key_env = 'SEALOG_TEST_THIS_IS_NEVER_SET'");
    let image =
        json!({"ability": "text-generation", "input": [{"type": "image", "uri": "https://example.com/x"}]});
    failed_with(&run(&provider, image).await, PortableCode::CapabilityUnavailable, false);
    let mut other = call(text(), &AbortSignal::new());
    other.model = "m-2".to_owned();
    let refused = provider.execute(other).next().await.unwrap().unwrap_err();
    assert_eq!(refused.code, PortableCode::CapabilityUnavailable);
    failed_with(&run(&provider, text()).await, PortableCode::ProviderUnavailable, false);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_key_is_read_at_the_call_and_shown_nowhere() {
    let server = server(answer()).await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let provider = provider(&server, &format!("api_key_file = '{}'", file.path().display()));
    failed_with(&run(&provider, text()).await, PortableCode::ProviderUnavailable, false);
    file.write_all(b"sk-canary\n").unwrap();
    assert_eq!(run(&provider, text()).await.1, None);
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-canary"));
    assert!(server.requests()[0].holds_only_in("authorization", "sk-canary"));
    assert_eq!(server.connections(), 1);
    let shown = format!("{provider:?} {:?}", provider.manifest());
    assert!(!shown.contains("sk-canary") && !shown.contains(&file.path().display().to_string()));
}

#[tokio::test]
async fn a_key_that_the_upstream_sends_back_is_shown_nowhere() {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"sk-canary-0123\n").unwrap();
    let key = format!("api_key_file = '{}'", file.path().display());
    for (code, kept) in
        [("sk-canary-0123", None), ("invalid_key_sk-canary-0123", None), ("overloaded", Some("overloaded"))]
    {
        let data = format!(r#"{{"error":{{"message":"sk-canary-0123","code":"{code}"}}}}"#);
        let head = ["content-type: text/event-stream", "x-request-id: for-sk-canary-0123"];
        let server = server(Script::new().head(200, &head).data(&data)).await;
        let (events, failure) = run(&provider(&server, &key), text()).await;
        assert_eq!(failure.as_ref().unwrap().provider_code.as_deref(), kept);
        assert!(!format!("{events:?} {failure:?}").contains("sk-canary"));
    }
}

#[tokio::test]
async fn statuses_become_portable_failures_without_the_upstreams_text() {
    use PortableCode::{ProviderUnavailable, RateLimited};
    for (status, code, retryable) in [
        (400, ProviderUnavailable, false),
        (401, ProviderUnavailable, false),
        (404, ProviderUnavailable, false),
        (408, ProviderUnavailable, true),
        (429, RateLimited, true),
        (500, ProviderUnavailable, true),
        (503, ProviderUnavailable, true),
    ] {
        let body = r#"{"error":{"message":"canary: your prompt was hi","code":"canary"}}"#;
        let server = server(Script::new().respond(status, "application/json", body)).await;
        let outcome = run(&provider(&server, ""), text()).await;
        failed_with(&outcome, code, retryable);
        let failure = outcome.1.unwrap();
        assert_eq!(failure.provider_code, Some(status.to_string()));
        assert!(!format!("{failure} {failure:?}").contains("canary"));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn facts_64_a_redirect_to_another_origin_sends_it_nothing() {
    let elsewhere = server(answer()).await;
    let location = format!("location: {}", elsewhere.url("/v1/chat/completions"));
    let server = server(Script::new().head(307, &[&location, "content-length: 0"])).await;
    failed_with(&run(&provider(&server, ""), text()).await, PortableCode::ProviderUnavailable, true);
    assert_eq!((server.requests().len(), elsewhere.connections()), (1, 0));
}

#[tokio::test]
async fn an_answer_without_its_end_marker_is_truncated() {
    use PortableCode::{ProviderProtocolError, ProviderUnavailable};
    let stream = Script::new().event_stream().data(TEXT[0]).data(TEXT[1]);
    let cases = [
        (stream.clone(), ProviderProtocolError),
        (stream.clone().data(TEXT[2]), ProviderProtocolError),
        (stream.clone().data(TEXT[2]).send("data: [DONE]\n"), ProviderProtocolError),
        (stream.clone().data("[DONE]"), ProviderProtocolError),
        (stream.clone().data("{broken"), ProviderProtocolError),
        (stream.data(r#"{"error":{"message":"canary","code":502}}"#), ProviderUnavailable),
    ];
    for (script, code) in cases {
        let server = server(script).await;
        let outcome = run(&provider(&server, ""), text()).await;
        failed_with(&outcome, code, false);
        assert_eq!(joined(&outcome.0), "hello", "what came before is kept");
        assert!(!outcome.0.contains(&ProviderEvent::Completed));
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_a_protocol_error() {
    let body = r#"{"choices":[{"index":0,"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let server = server(Script::new().respond(200, "application/json", body)).await;
    failed_with(&run(&provider(&server, ""), text()).await, PortableCode::ProviderProtocolError, false);
}

#[tokio::test]
async fn a_reset_within_the_answer_is_not_retryable() {
    let gate = Gate::new();
    let server = server(Script::new().event_stream().data(TEXT[0]).send("data: {").wait(&gate).reset()).await;
    let mut stream = testing::unmarked(provider(&server, "").execute(call(text(), &AbortSignal::new())));
    assert!(matches!(stream.next().await, Some(Ok(ProviderEvent::OutputDelta { .. }))));
    gate.open();
    let failure = stream.next().await.unwrap().unwrap_err();
    assert_eq!((failure.code, failure.retryable()), (PortableCode::ProviderUnavailable, false));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn an_abort_ends_the_attempt_and_the_upstream_connection() {
    let abort = AbortSignal::new();
    let server = server(Script::new().event_stream().data(TEXT[0]).stall()).await;
    let mut stream = testing::unmarked(provider(&server, "").execute(call(text(), &abort)));
    assert!(matches!(stream.next().await, Some(Ok(ProviderEvent::OutputDelta { .. }))));
    let (failure, ()) = tokio::join!(stream.next(), async { abort.cancel() });
    assert_eq!(failure.unwrap().unwrap_err().code, PortableCode::Cancelled);
    server.abandoned(1).await;
}

#[tokio::test]
async fn a_dropped_attempt_closes_the_upstream_connection() {
    let server = server(Script::new().event_stream().data(TEXT[0]).stall()).await;
    let mut stream = testing::unmarked(provider(&server, "").execute(call(text(), &AbortSignal::new())));
    assert!(matches!(stream.next().await, Some(Ok(_))));
    drop(stream);
    server.abandoned(1).await;
}

#[tokio::test]
async fn a_whole_answer_cut_at_every_byte_never_completes() {
    let whole: String =
        TEXT.iter().chain([&USAGE, &"[DONE]"]).map(|data| format!("data: {data}\n\n")).collect();
    let scripts = (0..whole.len()).map(|cut| Script::new().event_stream().send(&whole[..cut])).collect();
    let server = ScriptedServer::start(scripts).await.unwrap();
    let provider = provider(&server, "");
    for cut in 0..whole.len() {
        let outcome = run(&provider, text()).await;
        failed_with(&outcome, PortableCode::ProviderProtocolError, false);
        assert!(!outcome.0.contains(&ProviderEvent::Completed), "cut {cut}");
    }
    assert_eq!(server.requests().len(), whole.len());
}

#[tokio::test]
async fn every_odd_case_ends_as_it_must() {
    let words =
        |text: &str| (None, json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string());
    let answer = Answer {
        framing: Framing::ServerSentEvents,
        pieces: vec![
            words("h\u{e9}l"),
            words("lo \u{1f600}"),
            (None, TEXT[2].to_owned()),
            (None, USAGE.to_owned()),
            (None, "[DONE]".to_owned()),
        ],
        first_output: 1,
    };
    let mut key = tempfile::NamedTempFile::new().unwrap();
    key.write_all(b"sk-canary").unwrap();
    let make = |server: &ScriptedServer, timeouts| -> Arc<dyn ModelProvider> {
        let (url, key) = (server.url("/v1"), key.path().display());
        let toml = format!("model = 'm-1'\nbase_url = '{url}'\napi_key_file = '{key}'");
        Arc::new(OpenAiChat::with_timeouts(toml::from_str(&toml).unwrap(), timeouts).unwrap())
    };
    let request = testing::request(&text());
    let wrong = odd_cases::run(&make, request, &answer).await.unwrap();
    assert_eq!(wrong, Vec::<String>::new());
}
