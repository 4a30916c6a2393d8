//! The provider: runs a script in time and obeys the abort signal, unless told not to.

use std::time::Duration;

use futures_util::stream;
use sealog_events::PortableCode;
use sealog_execution::manifest::PROTOCOL_VERSION;
use sealog_execution::{
    AbortSignal, Failure, Modality, ModelCall, ModelManifest, ModelProvider, ProviderEvent, ProviderLimits,
    ProviderManifest, ProviderStream,
};

use crate::script::{Script, Step};
use crate::settings::Settings;

/// A provider that does what the request's `mock` extension says.
#[derive(Clone, Debug)]
pub struct MockProvider {
    id: String,
    model: String,
    abilities: Vec<String>,
    capabilities: MockCapabilities,
    limits: Option<ProviderLimits>,
}

/// What the mock's model is declared to support: what the router believes. Scripts are played whatever stands here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MockCapabilities {
    pub input_modalities: Vec<Modality>,
    pub output_modalities: Vec<Modality>,
    /// Whether requests may carry tools.
    pub tools: bool,
}

impl Default for MockCapabilities {
    /// Text in, text out, no tools.
    fn default() -> MockCapabilities {
        MockCapabilities {
            input_modalities: vec![Modality::Text],
            output_modalities: vec![Modality::Text],
            tools: false,
        }
    }
}

impl Default for MockProvider {
    /// `provider-mock` with `model-alpha` and `text-generation`.
    fn default() -> MockProvider {
        MockProvider::new("provider-mock", "model-alpha", vec!["text-generation".to_owned()])
    }
}

impl MockProvider {
    pub fn new(id: impl Into<String>, model: impl Into<String>, abilities: Vec<String>) -> MockProvider {
        let capabilities = MockCapabilities::default();
        MockProvider { id: id.into(), model: model.into(), abilities, capabilities, limits: None }
    }

    /// Declares these capabilities in place of the default.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: MockCapabilities) -> MockProvider {
        self.capabilities = capabilities;
        self
    }

    /// Declares limits in the manifest.
    #[must_use]
    pub fn with_limits(mut self, limits: ProviderLimits) -> MockProvider {
        self.limits = Some(limits);
        self
    }
}

impl ModelProvider for MockProvider {
    fn id(&self) -> &str {
        &self.id
    }

    fn manifest(&self) -> Result<ProviderManifest, Failure> {
        let model = ModelManifest {
            model: self.model.clone(),
            abilities: self.abilities.clone(),
            input_modalities: self.capabilities.input_modalities.clone(),
            output_modalities: self.capabilities.output_modalities.clone(),
            stream: true,
            tools: self.capabilities.tools,
            structured_output: false,
            asynchronous: false,
            cancel: true,
        };
        Ok(ProviderManifest {
            provider: self.id.clone(),
            protocol_version: PROTOCOL_VERSION.to_owned(),
            models: vec![model],
            limits: self.limits,
        })
    }

    fn execute(&self, call: ModelCall) -> ProviderStream {
        Box::pin(stream::unfold(State::Waiting(call), next))
    }
}

enum State {
    /// Nothing was polled yet.
    Waiting(ModelCall),
    Running(Script, AbortSignal),
    Over,
}

async fn next(state: State) -> Option<(Result<ProviderEvent, Failure>, State)> {
    let (mut script, abort) = match state {
        State::Waiting(call) => match settings(&call) {
            Ok(settings) => (Script::new(settings), call.abort),
            Err(failure) => return Some((Err(failure), State::Over)),
        },
        State::Running(script, abort) => (script, abort),
        State::Over => return None,
    };
    let item = play(&mut script, &abort).await?;
    if item.is_err() {
        script.stop();
    }
    Some((item, State::Running(script, abort)))
}

fn settings(call: &ModelCall) -> Result<Settings, Failure> {
    let Some(json) = call.request.extension("mock") else { return Ok(Settings::default()) };
    Settings::parse(json).map_err(|_| {
        Failure::permanent(PortableCode::InvalidRequest, "Mock extension has an unknown or ill-typed member")
    })
}

/// Plays one step. `None` ends the stream.
async fn play(script: &mut Script, abort: &AbortSignal) -> Option<Result<ProviderEvent, Failure>> {
    let obeys = !script.settings().ignore_cancel;
    let step = script.step();
    if obeys && abort.is_cancelled() && step != Step::End {
        return Some(Err(Failure::cancelled()));
    }
    let aborted = async { if obeys { abort.cancelled().await } else { std::future::pending().await } };
    match step {
        Step::Delta(event) => {
            let delay = Duration::from_millis(script.settings().delay_ms);
            if delay.is_zero() {
                return Some(Ok(event));
            }
            tokio::select! {
                biased;
                () = aborted => Some(Err(Failure::cancelled())),
                () = tokio::time::sleep(delay) => Some(Ok(event)),
            }
        }
        Step::Send(event) => Some(Ok(event)),
        Step::Fail(failure) => Some(Err(failure)),
        Step::Stall => {
            aborted.await;
            Some(Err(Failure::cancelled()))
        }
        Step::End => None,
    }
}

#[cfg(test)]
mod tests;
