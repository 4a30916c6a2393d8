//! The `openai-chat` provider against a real model: the one that `tools/local-model` installs and serves.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use futures_util::StreamExt;
use sealog_events::{ExecutionId, PortableCode};
use sealog_execution::{AbortSignal, ExecutionRequest, ModelCall, ModelProvider, ProviderEvent, conformance};
use sealog_providers_openai_chat::OpenAiChat;
use serde_json::{Value, json};

/// The most tokens of any answer here.
const TOKENS_MAX: u32 = 24;

/// The served model; gone when dropped.
pub(crate) struct LocalModel {
    server: Child,
    configuration: toml::Table,
}

impl LocalModel {
    /// Installs what is missing, serves on a free port, and reads the configuration that is printed when it answers.
    pub(crate) fn start() -> LocalModel {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/local-model/local-model");
        let installed = Command::new(&program).arg("install").status();
        assert!(installed.is_ok_and(|status| status.success()), "local-model cannot be installed");
        let mut server =
            Command::new(&program).args(["serve", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = String::new();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        while !printed.contains("max_tokens") {
            let line = lines.next().expect("local-model ended before it served").unwrap();
            printed.push_str(&line);
            printed.push('\n');
        }
        LocalModel { server, configuration: printed.parse().unwrap() }
    }

    /// The configuration that it printed.
    pub(crate) fn configuration(&self) -> &toml::Table {
        &self.configuration
    }

    /// The provider as the printed configuration describes it, with shorter answers.
    fn provider(&self) -> OpenAiChat {
        let mut entry = self.configuration["providers"][0].as_table().unwrap().clone();
        assert_eq!(entry.remove("type"), Some("openai-chat".into()));
        assert!(entry.insert("max_tokens".to_owned(), TOKENS_MAX.into()).is_some());
        OpenAiChat::new(entry.try_into().unwrap()).unwrap()
    }
}

impl Drop for LocalModel {
    fn drop(&mut self) {
        // A server that ended by itself has failed its test already.
        let _already_ended = self.server.kill();
        let _status = self.server.wait();
    }
}

fn call(provider: &OpenAiChat, request: Value, abort: &AbortSignal) -> ModelCall {
    ModelCall {
        execution_id: ExecutionId::from_random([1; 16]),
        request: Arc::new(ExecutionRequest::parse(request.to_string().as_bytes()).unwrap().request),
        model: provider.manifest().unwrap().models[0].model.clone(),
        abort: abort.clone(),
    }
}

fn prompt(max_tokens: u32) -> Value {
    json!({
        "ability": "text-generation",
        "input": [
            {"type": "text", "text": "Continue the list, one animal a line."},
            {"type": "json", "value": ["dog", "cat", "horse"]},
        ],
        "extensions": {"openai_chat": {"request": {"max_tokens": max_tokens, "temperature": 0, "seed": 7}}},
    })
}

/// Text, output tokens; the completion signal was the last event.
async fn answer(provider: &OpenAiChat, max_tokens: u32) -> (String, f64) {
    let stream = provider.execute(call(provider, prompt(max_tokens), &AbortSignal::new()));
    let events: Vec<ProviderEvent> = stream.map(|item| item.expect("an answer")).collect().await;
    assert_eq!(events.last(), Some(&ProviderEvent::Completed));
    let (mut text, mut tokens) = (String::new(), f64::NAN);
    for event in &events {
        if let ProviderEvent::OutputDelta { output_index, delta } = event {
            assert_eq!(*output_index, 0);
            text.push_str(delta);
        }
        if let ProviderEvent::Usage(facts) = event {
            assert!(facts.iter().any(|fact| fact.unit == "input_token" && fact.quantity >= 1.0));
            tokens =
                facts.iter().find(|fact| fact.unit == "output_token").map_or(f64::NAN, |fact| fact.quantity);
        }
    }
    (text, tokens)
}

#[tokio::test]
async fn a_real_model_answers_is_limited_and_can_be_cancelled() {
    let model = LocalModel::start();
    let provider = model.provider();

    let report = conformance::run(Arc::new(provider.clone())).await;
    assert!(report.passed, "{:?}", report.failed());

    let (text, tokens) = answer(&provider, 1000).await;
    assert!(!text.trim().is_empty());
    let ceiling = f64::from(TOKENS_MAX);
    assert!(
        (1.0..=ceiling).contains(&tokens),
        "the limit of the configuration holds: {tokens} output tokens"
    );
    let (_, tokens) = answer(&provider, 3).await;
    assert!((1.0..=3.0).contains(&tokens), "the limit of the request holds: {tokens} output tokens");

    // An aborted answer fails as cancelled, and the model is free for the next one.
    let abort = AbortSignal::new();
    let mut stream = provider.execute(call(&provider, prompt(TOKENS_MAX), &abort));
    assert!(stream.next().await.expect("a first event").is_ok());
    abort.cancel();
    let failure = stream.next().await.expect("the end").expect_err("a cancelled answer");
    assert_eq!(failure.code, PortableCode::Cancelled);
    assert!(!answer(&provider, 8).await.0.is_empty());
}
