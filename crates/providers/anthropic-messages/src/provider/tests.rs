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
    let event = |name: &'static str, mut data: Value| {
        data["type"] = name.into();
        (Some(name), data.to_string())
    };
    let delta = |text: &str| {
        event("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": text}}))
    };
    Answer {
        framing: Framing::ServerSentEvents,
        pieces: vec![
            event("message_start", json!({"message": {"usage": {"input_tokens": 5}}})),
            event("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}})),
            delta("h\u{e9}l"),
            delta("lo \u{1f600}"),
            event("content_block_stop", json!({"index": 0})),
            event(
                "message_delta",
                json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
            ),
            event("message_stop", json!({})),
        ],
        first_output: 3,
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

fn provider(server: &ScriptedServer, key: &tempfile::NamedTempFile, timeouts: Timeouts) -> AnthropicMessages {
    let (url, key) = (server.url(""), key.path().display());
    let text = format!("model = 'm-1'\nbase_url = '{url}'\napi_key_file = '{key}'");
    AnthropicMessages::with_timeouts(toml::from_str(&text).unwrap(), timeouts).unwrap()
}

/// Redirects to another origin are among the cases, each with nothing sent there.
#[tokio::test]
async fn facts_64_every_odd_case_ends_as_it_must() {
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
    assert_eq!(report.provider, "anthropic");
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
    assert!(sent.holds_only_in("x-api-key", "sk-canary"));
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(sent.header("x-api-key"), Some("sk-canary"));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!((sent.header("accept"), sent.header("authorization")), (Some("text/event-stream"), None));
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
fn the_least_configuration_names_a_model_and_a_key() {
    let made = |toml: &str| AnthropicMessages::new(toml::from_str(toml).unwrap());
    assert_eq!(made("model = 'm'\napi_key_env = 'KEY'").unwrap().id(), "anthropic");
    assert_eq!(made("model = 'm'").unwrap_err(), ConfigError::NoKey);
}
