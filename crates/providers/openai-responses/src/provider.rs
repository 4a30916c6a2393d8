//! The provider: what it declares, and how an attempt is put together.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use sealog_execution::{Failure, Modality, ModelCall, ModelProvider, ProviderManifest, ProviderStream};
use sealog_upstream::model::{ConfigError, Framing, Key, ModelConfig, Prepared, Rules, Upstream, attempt};
use sealog_upstream::{Post, Timeouts};

use crate::request;
use crate::translate::Responses;

/// The provider's identity where none is configured.
pub const DEFAULT_ID: &str = "openai";

pub(crate) const RULES: Rules = Rules {
    default_id: DEFAULT_ID,
    default_ability: Some("text-generation"),
    default_base_url: Some("https://api.openai.com/v1"),
    key_required: true,
    text_model: true,
    input_modalities: &[Modality::Text, Modality::Json, Modality::Image, Modality::File],
    output_modalities: &[Modality::Text],
    asynchronous: false,
};

/// One configured model behind one upstream that speaks the responses API.
#[derive(Clone, Debug)]
pub struct OpenAiResponses {
    upstream: Arc<Upstream>,
}

impl OpenAiResponses {
    /// # Errors
    /// The configuration breaks a rule, or no client can be set up for it. No key is read yet.
    pub fn new(config: ModelConfig) -> Result<OpenAiResponses, ConfigError> {
        OpenAiResponses::with_timeouts(config, Timeouts::default())
    }

    /// # Errors
    /// As [`OpenAiResponses::new`].
    pub fn with_timeouts(config: ModelConfig, timeouts: Timeouts) -> Result<OpenAiResponses, ConfigError> {
        let upstream = Upstream::new(config, &RULES, &["responses"], timeouts)?;
        Ok(OpenAiResponses { upstream: Arc::new(upstream) })
    }
}

impl ModelProvider for OpenAiResponses {
    fn id(&self) -> &str {
        &self.upstream.model.id
    }

    fn manifest(&self) -> Result<ProviderManifest, Failure> {
        Ok(self.upstream.model.manifest())
    }

    fn execute(&self, call: ModelCall) -> ProviderStream {
        let upstream = Arc::clone(&self.upstream);
        attempt(call.abort.clone(), move || prepare(&upstream, &call))
    }
}

fn prepare(upstream: &Upstream, call: &ModelCall) -> Result<Prepared<Responses>, Failure> {
    let Upstream { model, client, endpoint } = upstream;
    model.supports(&call.model, &call.request)?;
    let framing = Framing::ServerSentEvents;
    let body = request::body(model, &call.request)?;
    let post = Post::new(endpoint.clone(), framing.media_type(), body);
    let key = model.key.clone().map(|source| Key { source, header: AUTHORIZATION, prefix: "Bearer " });
    Ok(Prepared { client: client.clone(), post, key, framing, translator: Responses::new(model.tools) })
}

#[cfg(test)]
mod tests;
