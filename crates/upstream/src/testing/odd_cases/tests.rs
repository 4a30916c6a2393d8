//! The suite itself: a careful adapter passes, and careless ones are found out.

use std::collections::VecDeque;

use sealog_execution::{Modality, ProviderManifest};

use super::*;
use crate::model::{Model, ModelConfig, Prepared, Rules, Translator, attempt};
use crate::{Client, Post, ServerEvent};

const RULES: Rules = Rules {
    default_id: "toy",
    default_ability: Some("text-generation"),
    default_base_url: Some("https://example.com"),
    key_required: false,
    text_model: true,
    input_modalities: &[Modality::Text],
    output_modalities: &[Modality::Text],
    asynchronous: false,
};

/// What the toy adapter neglects.
#[derive(Clone, Copy, PartialEq)]
enum Careless {
    No,
    /// Takes any piece for the end once there was text.
    NoEndMarker,
    /// Passes over what it cannot read.
    AnyPiece,
    /// Sends its request a second time.
    SendsTwice,
}

/// A protocol of two objects: `{"t":"text"}` and `{"end":true}`.
struct Toy {
    careless: Careless,
    texts: u32,
}

impl Translator for Toy {
    fn read(&mut self, piece: &ServerEvent, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        let value: serde_json::Value = match serde_json::from_str(&piece.data) {
            Ok(value @ serde_json::Value::Object(_)) => value,
            _ if self.careless == Careless::AnyPiece => return Ok(()),
            _ => return Err(Failure::protocol("Toy piece is no object")),
        };
        if let Some(text) = value["t"].as_str() {
            self.texts += 1;
            out.push_back(ProviderEvent::OutputDelta { output_index: 0, delta: text.to_owned() });
        }
        let enough = self.careless == Careless::NoEndMarker && self.texts == 2;
        if value["end"] == true || enough {
            out.push_back(ProviderEvent::Completed);
        }
        Ok(())
    }
}

struct Provider {
    model: Model,
    client: Client,
    careless: Careless,
}

impl ModelProvider for Provider {
    fn id(&self) -> &str {
        &self.model.id
    }

    fn manifest(&self) -> Result<ProviderManifest, Failure> {
        Ok(self.model.manifest())
    }

    fn execute(&self, call: ModelCall) -> ProviderStream {
        let framing = Framing::JsonLines;
        let endpoint = self.model.base.endpoint(&["toy"]).unwrap();
        let (client, careless) = (self.client.clone(), self.careless);
        let prepare = move || {
            let post = Post::new(endpoint, framing.media_type(), b"{}".to_vec());
            Ok(Prepared { client, post, key: None, framing, translator: Toy { careless, texts: 0 } })
        };
        let stream = attempt(call.abort.clone(), prepare);
        if self.careless != Careless::SendsTwice {
            return stream;
        }
        let again =
            Provider { careless: Careless::No, client: self.client.clone(), model: self.model.clone() };
        let first = futures_util::stream::once(async move {
            let sent = unmarked(again.execute(call)).next().await;
            sent.unwrap_or(Ok(ProviderEvent::Completed))
        });
        first.chain(stream).boxed()
    }
}

async fn wrong(careless: Careless) -> Vec<String> {
    let make = |server: &ScriptedServer, timeouts| -> Arc<dyn ModelProvider> {
        let config = ModelConfig { base_url: Some(server.url("")), ..toml::from_str("model = 'm'").unwrap() };
        let model = Model::new(config, &RULES).unwrap();
        let client = Client::new(&model.base, timeouts).unwrap();
        Arc::new(Provider { model, client, careless })
    };
    let piece = |text: &str| (None, text.to_owned());
    let answer = Answer {
        framing: Framing::JsonLines,
        pieces: vec![piece("{\"t\":\"h\u{e9}\"}"), piece("{\"t\":\"llo\"}"), piece("{\"end\":true}")],
        first_output: 1,
    };
    let body = br#"{"ability":"text-generation","input":[{"type":"text","text":"hi"}]}"#;
    let request = ExecutionRequest::parse(body).unwrap().request;
    run(&make, request, &answer).await.unwrap()
}

#[tokio::test]
async fn a_careful_adapter_passes() {
    assert_eq!(wrong(Careless::No).await, Vec::<String>::new());
}

#[tokio::test]
async fn careless_adapters_are_found_out() {
    for (careless, case) in [
        (Careless::NoEndMarker, "a clean end after"),
        (Careless::AnyPiece, "broken JSON"),
        (Careless::SendsTwice, "one connection"),
    ] {
        let wrong = wrong(careless).await;
        assert!(wrong.iter().any(|line| line.contains(case)), "{case}: {wrong:?}");
    }
}
