//! The `anthropic-messages` and `openai-responses` providers against the real local model, which speaks both.

use std::io::Write;
use std::sync::Arc;

use futures_util::StreamExt;
use sealog_events::{ExecutionId, PortableCode};
use sealog_execution::{AbortSignal, ExecutionRequest, ModelCall, ModelProvider, ProviderEvent, conformance};
use sealog_providers_anthropic_messages::AnthropicMessages;
use sealog_providers_openai_responses::OpenAiResponses;
use serde_json::{Value, json};

use crate::local_model::LocalModel;

/// The most tokens of any answer here.
const TOKENS_MAX: u32 = 24;

/// One provider under test, and how its requests are extended.
struct Dialect {
    provider: Arc<dyn ModelProvider>,
    extension: &'static str,
    limit: &'static str,
}

/// The `[[providers]]` entry of the local model without what only its own type has.
fn entry(model: &LocalModel, base: &str, key: &tempfile::NamedTempFile) -> toml::Table {
    let mut entry = model.configuration()["providers"][0].as_table().unwrap().clone();
    entry.remove("type");
    entry.insert("max_tokens".to_owned(), TOKENS_MAX.into());
    entry.insert("base_url".to_owned(), base.into());
    entry.insert("api_key_file".to_owned(), key.path().to_str().unwrap().into());
    entry
}

impl Dialect {
    fn call(&self, max_tokens: u32, abort: &AbortSignal) -> ModelCall {
        let mut members = json!({"temperature": 0});
        members[self.limit] = max_tokens.into();
        let request = json!({
            "ability": "text-generation",
            "input": [
                {"type": "text", "text": "Continue the list, one animal a line."},
                {"type": "json", "value": ["dog", "cat", "horse"]},
            ],
            "extensions": {self.extension: {"request": members}},
        });
        ModelCall {
            execution_id: ExecutionId::from_random([1; 16]),
            request: Arc::new(
                ExecutionRequest::parse(Value::to_string(&request).as_bytes()).unwrap().request,
            ),
            model: self.provider.manifest().unwrap().models[0].model.clone(),
            abort: abort.clone(),
        }
    }

    /// Text, output tokens; the completion signal was the last event.
    async fn answer(&self, max_tokens: u32) -> (String, f64) {
        let stream = self.provider.execute(self.call(max_tokens, &AbortSignal::new()));
        let events: Vec<ProviderEvent> = stream.map(|item| item.expect("an answer")).collect().await;
        assert_eq!(events.last(), Some(&ProviderEvent::Completed));
        let (mut text, mut tokens) = (String::new(), f64::NAN);
        for event in &events {
            if let ProviderEvent::OutputDelta { delta, .. } = event {
                text.push_str(delta);
            }
            if let ProviderEvent::Usage(facts) = event {
                let output = facts.iter().find(|fact| fact.unit == "output_token");
                tokens = output.map_or(f64::NAN, |fact| fact.quantity);
            }
        }
        (text, tokens)
    }

    async fn works(&self) {
        let report = conformance::run(Arc::clone(&self.provider)).await;
        assert!(report.passed, "{}: {:?}", self.extension, report.failed());
        let (text, tokens) = self.answer(1000).await;
        assert!(!text.trim().is_empty());
        let ceiling = f64::from(TOKENS_MAX);
        assert!((1.0..=ceiling).contains(&tokens), "{}: {tokens} output tokens", self.extension);
        let (_, tokens) = self.answer(3).await;
        assert!((1.0..=3.0).contains(&tokens), "{}: {tokens} output tokens", self.extension);

        let abort = AbortSignal::new();
        let mut stream = self.provider.execute(self.call(TOKENS_MAX, &abort));
        assert!(stream.next().await.expect("a first event").is_ok());
        abort.cancel();
        let failure = stream.next().await.expect("the end").expect_err("a cancelled answer");
        assert_eq!(failure.code, PortableCode::Cancelled);
    }
}

#[tokio::test]
async fn a_real_model_answers_in_both_dialects() {
    let model = LocalModel::start();
    let mut key = tempfile::NamedTempFile::new().unwrap();
    key.write_all(b"not-looked-at").unwrap();
    let base = model.configuration()["providers"][0]["base_url"].as_str().unwrap().to_owned();
    let root = base.strip_suffix("/v1").expect("a base with a version");

    let messages = entry(&model, root, &key).try_into().unwrap();
    let messages = AnthropicMessages::new(messages).unwrap();
    Dialect { provider: Arc::new(messages), extension: "anthropic", limit: "max_tokens" }.works().await;

    let responses = entry(&model, &base, &key).try_into().unwrap();
    let responses = OpenAiResponses::new(responses).unwrap();
    Dialect { provider: Arc::new(responses), extension: "openai", limit: "max_output_tokens" }.works().await;
}
