//! What an operator writes about one OpenAI-compatible model, and the rules it must meet.
//!
//! A configuration names places of secrets, never a secret: an inline key is an unknown member and refused. What
//! is declared here is all the router ever believes about the model.

use std::fmt;
use std::path::PathBuf;

use sealog_execution::Modality;
use sealog_upstream::{BaseUrl, BaseUrlError, ClientError, CredentialSource, EnvironmentName};
use serde::Deserialize;

/// The provider's identity where none is configured.
pub const DEFAULT_ID: &str = "openai-chat";
/// The one ability of a model whose configuration names none.
pub const DEFAULT_ABILITY: &str = "text-generation";

/// Longest id, model and ability, in code points.
const NAME_LENGTH_MAX: usize = 256;

/// One `[[providers]]` entry of `type = "openai-chat"`, without the `type`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiChatConfig {
    /// 1 to 256 characters, unique among the providers. Default `openai-chat`.
    #[serde(default = "default_id")]
    pub id: String,
    /// The upstream's name of the model, 1 to 256 characters.
    pub model: String,
    /// At least one, each 1 to 256 characters. Default `text-generation`.
    #[serde(default = "default_abilities")]
    pub abilities: Vec<String>,
    /// Everything before `/chat/completions`, such as `https://api.example.com/v1`. https, or http to
    /// 127.0.0.1, localhost or [::1]; no user information, query or fragment.
    pub base_url: String,
    /// The environment variable that holds the key, `[A-Z][A-Z0-9_]{1,127}`; read at each call.
    pub api_key_env: Option<String>,
    /// The absolute path of a file that holds the key; read at each call. Not beside `api_key_env`; without either
    /// of them no key is sent.
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
    /// Of `text`, `json`, `image`. Default `text` and `json`.
    pub input_modalities: Option<Vec<String>>,
    /// `text` and nothing else, which is also the default.
    pub output_modalities: Option<Vec<String>>,
    /// Whether requests may carry tools. Default false.
    #[serde(default)]
    pub tools: bool,
}

fn default_id() -> String {
    DEFAULT_ID.to_owned()
}

fn default_abilities() -> Vec<String> {
    vec![DEFAULT_ABILITY.to_owned()]
}

// A base URL may hold a password before it is refused.
impl fmt::Debug for OpenAiChatConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChatConfig")
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
    #[error("max_tokens must be at least 1")]
    MaxTokens,
    #[error("capabilities.input_modalities must be a list of different ones of text, json and image")]
    InputModalities,
    #[error("capabilities.output_modalities can only be text")]
    OutputModalities,
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// A configuration that met the rules.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub id: String,
    pub model: String,
    pub abilities: Vec<String>,
    pub base: BaseUrl,
    pub key: Option<CredentialSource>,
    pub max_tokens: Option<u32>,
    pub input_modalities: Vec<Modality>,
    pub output_modalities: Vec<Modality>,
    pub tools: bool,
}

impl Checked {
    pub fn new(config: OpenAiChatConfig) -> Result<Checked, ConfigError> {
        let OpenAiChatConfig {
            id,
            model,
            abilities,
            base_url,
            api_key_env,
            api_key_file,
            max_tokens,
            capabilities,
        } = config;
        if !is_name(&id) {
            return Err(ConfigError::Id);
        }
        if !is_name(&model) {
            return Err(ConfigError::Model);
        }
        if !is_set(&abilities) || !abilities.iter().all(|ability| is_name(ability)) {
            return Err(ConfigError::Abilities);
        }
        if max_tokens == Some(0) {
            return Err(ConfigError::MaxTokens);
        }
        let Capabilities { input_modalities, output_modalities, tools } = capabilities;
        let input_modalities = modalities(
            input_modalities,
            &[Modality::Text, Modality::Json],
            &[Modality::Text, Modality::Json, Modality::Image],
        )
        .ok_or(ConfigError::InputModalities)?;
        let output_modalities = modalities(output_modalities, &[Modality::Text], &[Modality::Text])
            .ok_or(ConfigError::OutputModalities)?;
        let base = BaseUrl::parse(&base_url)?;
        let key = key(api_key_env.as_deref(), api_key_file)?;
        Ok(Checked {
            id,
            model,
            abilities,
            base,
            key,
            max_tokens,
            input_modalities,
            output_modalities,
            tools,
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

fn modalities(
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
mod tests {
    use super::*;

    const LEAST: &str = "model = 'm'\nbase_url = 'http://127.0.0.1:1/v1'\n";

    fn checked(toml: &str) -> Result<Checked, ConfigError> {
        Checked::new(toml::from_str(&format!("{LEAST}{toml}")).unwrap())
    }

    #[track_caller]
    fn refused(toml: &str, expected: ConfigError) {
        assert_eq!(checked(toml).err(), Some(expected), "{toml}");
    }

    #[test]
    fn the_least_configuration_has_these_defaults() {
        let checked = checked("").unwrap();
        assert_eq!((checked.id.as_str(), checked.model.as_str()), ("openai-chat", "m"));
        assert_eq!(checked.abilities, ["text-generation"]);
        assert_eq!(checked.input_modalities, [Modality::Text, Modality::Json]);
        assert_eq!(checked.output_modalities, [Modality::Text]);
        assert_eq!((checked.key, checked.max_tokens, checked.tools), (None, None, false));
    }

    #[test]
    fn a_full_configuration_is_taken_as_written() {
        let checked = checked(
            "id = 'local'\nabilities = ['a', 'b']\napi_key_env = 'LOCAL_KEY'\nmax_tokens = 9\n\
             [capabilities]\ninput_modalities = ['image', 'text']\noutput_modalities = ['text']\ntools = true",
        )
        .unwrap();
        assert_eq!((checked.id.as_str(), checked.abilities.len()), ("local", 2));
        assert_eq!(checked.input_modalities, [Modality::Image, Modality::Text]);
        assert_eq!((checked.max_tokens, checked.tools), (Some(9), true));
        assert!(
            matches!(checked.key, Some(CredentialSource::Environment(name)) if name.as_str() == "LOCAL_KEY")
        );
    }

    #[test]
    fn unknown_members_and_inline_keys_do_not_parse() {
        for toml in ["api_key = 'sk-1'", "headers = {}", "[capabilities]\nstream = true", "max_tokens = -1"] {
            assert!(toml::from_str::<OpenAiChatConfig>(&format!("{LEAST}{toml}")).is_err(), "{toml}");
        }
    }

    #[test]
    fn every_rule_has_its_refusal() {
        refused("id = ''", ConfigError::Id);
        refused(&format!("id = '{}'", "x".repeat(257)), ConfigError::Id);
        refused("abilities = []", ConfigError::Abilities);
        refused("abilities = ['a', 'a']", ConfigError::Abilities);
        refused("abilities = ['']", ConfigError::Abilities);
        refused("max_tokens = 0", ConfigError::MaxTokens);
        refused("api_key_env = 'lower'", ConfigError::ApiKeyEnv);
        refused("api_key_file = 'relative'", ConfigError::ApiKeyFile);
        refused("api_key_env = 'KEY'\napi_key_file = '/k'", ConfigError::TwoKeys);
        for list in ["[]", "['text', 'text']", "['audio']", "['file']", "['Text']"] {
            refused(&format!("[capabilities]\ninput_modalities = {list}"), ConfigError::InputModalities);
        }
        for list in ["[]", "['json']", "['text', 'text']"] {
            refused(&format!("[capabilities]\noutput_modalities = {list}"), ConfigError::OutputModalities);
        }
        let config = |model: &str, url: &str| {
            toml::from_str(&format!("model = '{model}'\nbase_url = '{url}'")).unwrap()
        };
        assert_eq!(Checked::new(config("", "https://h")).err(), Some(ConfigError::Model));
        let remote = Checked::new(config("m", "http://example.com")).err();
        assert_eq!(remote, Some(ConfigError::BaseUrl(BaseUrlError::Scheme)));
    }

    #[test]
    fn no_refusal_repeats_a_value() {
        let text = "model = 'm'\nbase_url = 'https://u:hunter2@h/'";
        let config: OpenAiChatConfig = toml::from_str(text).unwrap();
        let shown = format!("{config:?} {}", Checked::new(config.clone()).unwrap_err());
        assert!(!shown.contains("hunter2") && config.base_url.contains("hunter2"));
    }
}
