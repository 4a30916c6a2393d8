//! The provider against a scripted upstream, over a real socket.

use std::io::Write;

use futures_util::StreamExt;
use sealog_events::PortableCode;
use sealog_execution::{AbortSignal, ProviderEvent, conformance};
use sealog_upstream::testing::odd_cases::{self, Answer};
use sealog_upstream::testing::{self, Script, ScriptedServer};
use serde_json::{Value, json};

use super::*;

fn answer() -> Answer {
    let words = |text: &str| (None, json!({"message": {"content": text}, "done": false}).to_string());
    let done = json!({"done": true, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2});
    Answer {
        framing: Framing::JsonLines,
        pieces: vec![words("h\u{e9}l"), words("lo \u{1f600}"), (None, done.to_string())],
        first_output: 1,
    }
}

fn text() -> Value {
    json!({"ability": "text-generation", "input": [{"type": "text", "text": "hi"}]})
}

fn call(model: &str) -> ModelCall {
    testing::call(&text(), model, &AbortSignal::new())
}

fn key_file(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    file
}

fn provider(server: &ScriptedServer, key: &tempfile::NamedTempFile, timeouts: Timeouts) -> Ollama {
    let (url, key) = (server.url(""), key.path().display());
    let text = format!("model = 'm-1'\nbase_url = '{url}'\napi_key_file = '{key}'");
    Ollama::with_timeouts(toml::from_str(&text).unwrap(), timeouts).unwrap()
}

#[tokio::test]
async fn every_odd_case_ends_as_it_must() {
    let key = key_file(b"sk-canary");
    let make = |server: &ScriptedServer, timeouts| -> Arc<dyn ModelProvider> {
        Arc::new(provider(server, &key, timeouts))
    };
    let wrong = odd_cases::run(&make, testing::request(&text()), &answer()).await.unwrap();
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test]
async fn the_conformance_suite_passes() {
    let scripts = vec![answer().head().send(answer().whole()), answer().begun().stall()];
    let server = ScriptedServer::start(scripts).await.unwrap();
    let key = key_file(b"sk-1");
    let provider = provider(&server, &key, Timeouts::default());
    let report = conformance::run(Arc::new(provider)).await;
    assert!(report.passed, "{:?}", report.failed());
    assert_eq!(report.provider, "ollama");
    server.abandoned(1).await;
}

#[tokio::test]
async fn a_request_arrives_as_the_protocol_wants_it() {
    let server = ScriptedServer::start(vec![answer().head().send(answer().whole())]).await.unwrap();
    let key = key_file(b"sk-canary\n");
    let provider = provider(&server, &key, Timeouts::default());
    let events: Vec<_> = provider.execute(call("m-1")).map(|item| item.unwrap()).collect().await;
    assert!(matches!(events[..], [.., ProviderEvent::Usage(_), ProviderEvent::Completed]));
    let sent = &server.requests()[0];
    assert!(sent.holds_only_in("authorization", "sk-canary"));
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/api/chat"));
    assert_eq!(sent.header("authorization"), Some("Bearer sk-canary"));
    assert_eq!(sent.header("accept"), Some("application/x-ndjson"));
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!((&body["model"], &body["stream"]), (&json!("m-1"), &json!(true)));
    let shown = format!("{provider:?} {:?}", provider.manifest());
    assert!(!shown.contains("sk-canary") && !shown.contains(&key.path().display().to_string()));
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_before_key_and_connection() {
    let server = ScriptedServer::start(vec![Script::new()]).await.unwrap();
    // No key can be read: had it been read first, the failure would be another one.
    let provider = provider(&server, &key_file(b""), Timeouts::default());
    for (model, code) in
        [("m-2", PortableCode::CapabilityUnavailable), ("m-1", PortableCode::ProviderUnavailable)]
    {
        let failure = provider.execute(call(model)).next().await.unwrap().unwrap_err();
        assert_eq!((failure.code, failure.retryable()), (code, false));
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn the_least_configuration_names_a_model() {
    assert_eq!(Ollama::new(toml::from_str("model = 'm'").unwrap()).unwrap().id(), "ollama");
}
