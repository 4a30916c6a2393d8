//! What every adapter of a model behind HTTP does in the same way: reading its configuration, judging a request
//! against it, and pulling one attempt from its POST to the completion signal.
//!
//! Knows no vendor: an adapter brings the body of its request and a [`Translator`] of what comes back.

mod attempt;
mod config;
mod request;

pub use attempt::{Framing, Key, Prepared, Translator, attempt};
pub use config::{Capabilities, ConfigError, ModelConfig, Rules, modalities};
pub use request::{
    JsonMembers, add_sampling, ceiling, data_uri, extension, integer, invalid, set, to_body,
    tool_result_text, unavailable,
};

use sealog_execution::manifest::PROTOCOL_VERSION;
use sealog_execution::{ExecutionRequest, Failure, Modality, ModelManifest, ProviderManifest};

use crate::{BaseUrl, Client, ClientError, CredentialSource, Endpoint, Timeouts};

/// One configured model that met the rules of its type.
#[derive(Clone, Debug)]
pub struct Model {
    pub id: String,
    pub model: String,
    pub abilities: Vec<String>,
    pub base: BaseUrl,
    pub key: Option<CredentialSource>,
    pub max_tokens: Option<u32>,
    pub input_modalities: Vec<Modality>,
    pub output_modalities: Vec<Modality>,
    pub tools: bool,
    asynchronous: bool,
}

impl Model {
    /// What the router is told: nothing but what was configured.
    pub fn manifest(&self) -> ProviderManifest {
        let model = ModelManifest {
            model: self.model.clone(),
            abilities: self.abilities.clone(),
            input_modalities: self.input_modalities.clone(),
            output_modalities: self.output_modalities.clone(),
            stream: !self.asynchronous,
            tools: self.tools,
            structured_output: false,
            asynchronous: self.asynchronous,
            cancel: true,
        };
        ProviderManifest {
            provider: self.id.clone(),
            protocol_version: PROTOCOL_VERSION.to_owned(),
            models: vec![model],
            limits: None,
        }
    }

    /// Judges the request again: the router did, but what cannot be translated must not be sent.
    ///
    /// # Errors
    /// `capability_unavailable` for another model and for whatever this one was not declared to support.
    pub fn supports(&self, model: &str, request: &ExecutionRequest) -> Result<(), Failure> {
        let needs = &request.requirements;
        let takes = |modality: &Modality| self.input_modalities.contains(modality);
        let fits = model == self.model
            && request.input.iter().all(|part| takes(&part.modality()))
            && needs.input_modalities.iter().all(takes)
            && needs.output_modalities.iter().all(|modality| self.output_modalities.contains(modality))
            && !needs.structured_output
            && (!needs.stream || !self.asynchronous)
            && (!needs.asynchronous || self.asynchronous)
            && (!needs.tools || self.tools);
        if fits { Ok(()) } else { Err(unavailable()) }
    }

    /// Refuses members that only make sense where tools are declared; even an empty list counts.
    ///
    /// # Errors
    /// `capability_unavailable`.
    pub fn permits(&self, members: &JsonMembers, tool_members: &[&str]) -> Result<(), Failure> {
        if !self.tools && tool_members.iter().any(|name| members.contains_key(*name)) {
            return Err(unavailable());
        }
        Ok(())
    }
}

/// A configured model, the one place its attempts are posted to, and the client for it.
#[derive(Debug)]
pub struct Upstream {
    pub model: Model,
    pub client: Client,
    pub endpoint: Endpoint,
}

impl Upstream {
    /// `path` is what an adapter's protocol puts below the configured base: fixed segments, which always make an
    /// endpoint of a checked base.
    ///
    /// # Errors
    /// The configuration breaks a rule, or no client can be set up for it. No key is read yet.
    pub fn new(
        config: ModelConfig,
        rules: &Rules,
        path: &[&str],
        timeouts: Timeouts,
    ) -> Result<Upstream, ConfigError> {
        let model = Model::new(config, rules)?;
        let client = Client::new(&model.base, timeouts)?;
        let endpoint = model.base.endpoint(path).map_err(|_| ClientError::Setup)?;
        Ok(Upstream { model, client, endpoint })
    }
}
