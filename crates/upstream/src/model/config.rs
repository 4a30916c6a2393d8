//! What an operator writes about one model behind HTTP, and the rules it must meet.
//!
//! A configuration names places of secrets, never a secret: an inline key is an unknown member and refused. What
//! is declared here is all the router ever believes about the model.

use std::fmt;
use std::path::PathBuf;

use sealog_execution::Modality;
use serde::Deserialize;

use super::Model;
use crate::{BaseUrl, BaseUrlError, ClientError, CredentialSource, EnvironmentName};

/// Longest id, model and ability, in code points.
const NAME_LENGTH_MAX: usize = 256;

/// One `[[providers]]` entry without its `type`. What may be left out, and its default, is the type's business.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// 1 to 256 characters, unique among the providers.
    pub id: Option<String>,
    /// The upstream's name of the model, 1 to 256 characters.
    pub model: String,
    /// At least one, each 1 to 256 characters.
    pub abilities: Option<Vec<String>>,
    /// https, or http to 127.0.0.1, localhost or [::1]; no user information, query or fragment.
    pub base_url: Option<String>,
    /// The environment variable that holds the key, `[A-Z][A-Z0-9_]{1,127}`; read at each call.
    pub api_key_env: Option<String>,
    /// The absolute path of a file that holds the key; read at each call. Not beside `api_key_env`.
    pub api_key_file: Option<PathBuf>,
    /// The most tokens of an answer, at least 1. A request may ask for fewer.
    pub max_tokens: Option<u32>,
    #[serde(default)]
    pub capabilities: Capabilities,
}

/// What the model is declared to support. A list replaces the default, it does not add to it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    pub input_modalities: Option<Vec<String>>,
    pub output_modalities: Option<Vec<String>>,
    /// Whether requests may carry tools. Default false.
    pub tools: Option<bool>,
}

/// What one type of provider makes of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub default_id: &'static str,
    /// `None`: abilities must be written.
    pub default_ability: Option<&'static str>,
    /// `None`: it must be written.
    pub default_base_url: Option<&'static str>,
    pub key_required: bool,
    /// Whether the type knows token limits and tools.
    pub text_model: bool,
    /// What may be declared; `text` and `json` are the default.
    pub input_modalities: &'static [Modality],
    /// What may be declared; the first one is the default.
    pub output_modalities: &'static [Modality],
    /// The upstream works on a task and is asked how far it came, instead of streaming.
    pub asynchronous: bool,
}

// A base URL may hold a password before it is refused.
impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelConfig")
            .field("id", &self.id)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Why a configuration was refused. Names the member, never its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("id must be 1 to 256 characters")]
    Id,
    #[error("model must be 1 to 256 characters")]
    Model,
    #[error("abilities must be a list of different names of 1 to 256 characters")]
    Abilities,
    #[error("base_url must be there")]
    NoBaseUrl,
    #[error("base_url: {0}")]
    BaseUrl(#[from] BaseUrlError),
    #[error(
        "api_key_env must be the name of an environment variable: A-Z, 0-9 and _, starting with a letter"
    )]
    ApiKeyEnv,
    #[error("api_key_file must be an absolute path")]
    ApiKeyFile,
    #[error("api_key_env and api_key_file exclude each other")]
    TwoKeys,
    #[error("api_key_env or api_key_file must be there")]
    NoKey,
    #[error("max_tokens must be at least 1")]
    MaxTokens,
    #[error("capabilities.input_modalities must be a list of different ones that this type can take")]
    InputModalities,
    #[error("capabilities.output_modalities must be a list of different ones that this type can give")]
    OutputModalities,
    #[error("capabilities.tools: this type has no tools")]
    Tools,
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl ConfigError {
    /// The member that is wrong.
    pub fn member(&self) -> &'static str {
        match self {
            ConfigError::Id => "id",
            ConfigError::Model => "model",
            ConfigError::Abilities => "abilities",
            ConfigError::NoBaseUrl | ConfigError::BaseUrl(_) | ConfigError::Client(_) => "base_url",
            ConfigError::ApiKeyEnv | ConfigError::TwoKeys | ConfigError::NoKey => "api_key_env",
            ConfigError::ApiKeyFile => "api_key_file",
            ConfigError::MaxTokens => "max_tokens",
            ConfigError::InputModalities | ConfigError::OutputModalities | ConfigError::Tools => {
                "capabilities"
            }
        }
    }
}

impl Model {
    /// # Errors
    /// The first rule that the configuration breaks.
    pub fn new(config: ModelConfig, rules: &Rules) -> Result<Model, ConfigError> {
        let id = config.id.unwrap_or_else(|| rules.default_id.to_owned());
        if !is_name(&id) {
            return Err(ConfigError::Id);
        }
        if !is_name(&config.model) {
            return Err(ConfigError::Model);
        }
        let default = || rules.default_ability.map(|ability| vec![ability.to_owned()]);
        let abilities = config.abilities.or_else(default).ok_or(ConfigError::Abilities)?;
        if !is_set(&abilities) || !abilities.iter().all(|ability| is_name(ability)) {
            return Err(ConfigError::Abilities);
        }
        if config.max_tokens.is_some_and(|tokens| tokens == 0 || !rules.text_model) {
            return Err(ConfigError::MaxTokens);
        }
        let Capabilities { input_modalities, output_modalities, tools } = config.capabilities;
        if tools.is_some() && !rules.text_model {
            return Err(ConfigError::Tools);
        }
        let default = [Modality::Text, Modality::Json];
        let input_modalities = modalities(input_modalities, &default, rules.input_modalities)
            .ok_or(ConfigError::InputModalities)?;
        let default = &rules.output_modalities[..1];
        let output_modalities = modalities(output_modalities, default, rules.output_modalities)
            .ok_or(ConfigError::OutputModalities)?;
        let base_url = config.base_url.as_deref().or(rules.default_base_url);
        let base = BaseUrl::parse(base_url.ok_or(ConfigError::NoBaseUrl)?)?;
        let key = key(config.api_key_env.as_deref(), config.api_key_file)?;
        if key.is_none() && rules.key_required {
            return Err(ConfigError::NoKey);
        }
        Ok(Model {
            id,
            model: config.model,
            abilities,
            base,
            key,
            max_tokens: config.max_tokens,
            input_modalities,
            output_modalities,
            tools: tools.unwrap_or(false),
            asynchronous: rules.asynchronous,
        })
    }
}

fn is_name(text: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&text.chars().count())
}

/// Not empty, and nothing twice.
fn is_set<T: PartialEq>(list: &[T]) -> bool {
    !list.is_empty() && (1..list.len()).all(|at| !list[..at].contains(&list[at]))
}

/// The modalities of a list of the configuration, or the default in its place. `None`: it is empty, or holds something
/// twice or something that is not allowed.
pub fn modalities(
    names: Option<Vec<String>>,
    default: &[Modality],
    allowed: &[Modality],
) -> Option<Vec<Modality>> {
    let Some(names) = names else { return Some(default.to_vec()) };
    let list: Vec<Modality> = names.iter().map(|name| Modality::parse(name)).collect::<Option<_>>()?;
    (is_set(&list) && list.iter().all(|modality| allowed.contains(modality))).then_some(list)
}

fn key(env: Option<&str>, file: Option<PathBuf>) -> Result<Option<CredentialSource>, ConfigError> {
    match (env, file) {
        (Some(_), Some(_)) => Err(ConfigError::TwoKeys),
        (Some(name), None) => EnvironmentName::parse(name)
            .map(|name| Some(CredentialSource::Environment(name)))
            .ok_or(ConfigError::ApiKeyEnv),
        // A relative path would depend on where the node was started.
        (None, Some(path)) if path.is_absolute() => Ok(Some(CredentialSource::File(path))),
        (None, Some(_)) => Err(ConfigError::ApiKeyFile),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests;
