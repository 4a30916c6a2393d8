//! The provider: what it declares, and where its tasks are submitted.

use std::sync::Arc;
use std::time::Duration;

use sealog_execution::{Failure, Modality, ModelCall, ModelProvider, ProviderManifest, ProviderStream};
use sealog_upstream::model::{ConfigError, Model, ModelConfig, Rules};
use sealog_upstream::{Client, Endpoint, Timeouts};

use crate::task;

/// The provider's identity where none is configured.
pub const DEFAULT_ID: &str = "fal";

pub(crate) const RULES: Rules = Rules {
    default_id: DEFAULT_ID,
    default_ability: None,
    default_base_url: Some("https://queue.fal.run"),
    key_required: true,
    text_model: false,
    input_modalities: &[Modality::Text, Modality::Json, Modality::Image],
    output_modalities: &[
        Modality::Json,
        Modality::Text,
        Modality::Image,
        Modality::Audio,
        Modality::Video,
        Modality::File,
    ],
    asynchronous: true,
};

/// How a task is watched.
#[derive(Clone, Copy, Debug)]
pub struct Polling {
    /// Between two questions, at first; twice as long after each twenty of them, at most sixteen times as long.
    pub interval: Duration,
    /// How often is asked at most.
    pub count_max: u32,
    /// How long giving up a task may take.
    pub cancel: Duration,
}

impl Default for Polling {
    fn default() -> Polling {
        Polling { interval: Duration::from_millis(500), count_max: 120, cancel: Duration::from_secs(5) }
    }
}

impl Polling {
    pub(crate) fn wait(&self, asked: u32) -> Duration {
        self.interval * (1 << (asked / 20).min(4))
    }
}

/// One configured model on one queue.
#[derive(Clone, Debug)]
pub struct FalQueue {
    upstream: Arc<Upstream>,
}

#[derive(Debug)]
pub(crate) struct Upstream {
    pub model: Model,
    pub client: Client,
    /// `None`: the model's name does not stay below the base; its requests are invalid.
    pub submit: Option<Endpoint>,
    pub polling: Polling,
}

impl FalQueue {
    /// # Errors
    /// The configuration breaks a rule, or no client can be set up for it. No key is read yet.
    pub fn new(config: ModelConfig) -> Result<FalQueue, ConfigError> {
        FalQueue::with_times(config, Timeouts::default(), Polling::default())
    }

    /// # Errors
    /// As [`FalQueue::new`].
    pub fn with_times(
        config: ModelConfig,
        timeouts: Timeouts,
        polling: Polling,
    ) -> Result<FalQueue, ConfigError> {
        let model = Model::new(config, &RULES)?;
        let client = Client::new(&model.base, timeouts)?;
        let path: Vec<&str> = model.model.trim_start_matches('/').split('/').collect();
        let plain = !model.model.contains(['?', '#', '\\', '@', ':']);
        let submit = model.base.endpoint(&path).ok().filter(|_| plain);
        Ok(FalQueue { upstream: Arc::new(Upstream { model, client, submit, polling }) })
    }
}

impl ModelProvider for FalQueue {
    fn id(&self) -> &str {
        &self.upstream.model.id
    }

    fn manifest(&self) -> Result<ProviderManifest, Failure> {
        Ok(self.upstream.model.manifest())
    }

    fn execute(&self, call: ModelCall) -> ProviderStream {
        task::run(Arc::clone(&self.upstream), call)
    }
}

#[cfg(test)]
mod tests;
