//! The provider: what it declares, and how an attempt is put together.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use sealog_execution::{Failure, Modality, ModelCall, ModelProvider, ProviderManifest, ProviderStream};
use sealog_upstream::model::{ConfigError, Framing, Key, ModelConfig, Prepared, Rules, Upstream, attempt};
use sealog_upstream::{Post, Timeouts};

use crate::request;
use crate::translate::Messages;

/// The provider's identity where none is configured.
pub const DEFAULT_ID: &str = "anthropic";

pub(crate) const RULES: Rules = Rules {
    default_id: DEFAULT_ID,
    default_ability: Some("text-generation"),
    default_base_url: Some("https://api.anthropic.com"),
    key_required: true,
    text_model: true,
    input_modalities: &[Modality::Text, Modality::Json, Modality::Image],
    output_modalities: &[Modality::Text],
    asynchronous: false,
};

const KEY: HeaderName = HeaderName::from_static("x-api-key");
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// The form of requests and events that this adapter knows.
const VERSION_KNOWN: HeaderValue = HeaderValue::from_static("2023-06-01");

/// One configured model behind one upstream that speaks the messages API.
#[derive(Clone, Debug)]
pub struct AnthropicMessages {
    upstream: Arc<Upstream>,
}

impl AnthropicMessages {
    /// # Errors
    /// The configuration breaks a rule, or no client can be set up for it. No key is read yet.
    pub fn new(config: ModelConfig) -> Result<AnthropicMessages, ConfigError> {
        AnthropicMessages::with_timeouts(config, Timeouts::default())
    }

    /// # Errors
    /// As [`AnthropicMessages::new`].
    pub fn with_timeouts(config: ModelConfig, timeouts: Timeouts) -> Result<AnthropicMessages, ConfigError> {
        let upstream = Upstream::new(config, &RULES, &["v1", "messages"], timeouts)?;
        Ok(AnthropicMessages { upstream: Arc::new(upstream) })
    }
}

impl ModelProvider for AnthropicMessages {
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

fn prepare(upstream: &Upstream, call: &ModelCall) -> Result<Prepared<Messages>, Failure> {
    let Upstream { model, client, endpoint } = upstream;
    model.supports(&call.model, &call.request)?;
    let framing = Framing::ServerSentEvents;
    let body = request::body(model, &call.request)?;
    let post = Post::new(endpoint.clone(), framing.media_type(), body).with_header(VERSION, VERSION_KNOWN);
    let key = model.key.clone().map(|source| Key { source, header: KEY, prefix: "" });
    Ok(Prepared { client: client.clone(), post, key, framing, translator: Messages::new(model.tools) })
}

#[cfg(test)]
mod tests;
