//! The types of providers whose configuration has the common form of a model behind HTTP.

use std::sync::Arc;

use sealog_execution::ModelProvider;
use sealog_providers_anthropic_messages::AnthropicMessages;
use sealog_providers_fal_queue::FalQueue;
use sealog_providers_ollama::Ollama;
use sealog_providers_openai_chat::OpenAiChat;
use sealog_providers_openai_responses::OpenAiResponses;
use sealog_upstream::model::{ConfigError, ModelConfig};
use serde::Deserialize;
use toml::{Table, Value};

use super::{Kind, Made, Members, UNSUPPORTED, limits};

const TEXT: Members = &[
    ("type", Kind::Text),
    ("id", Kind::Text),
    ("model", Kind::Text),
    ("abilities", Kind::Texts),
    ("base_url", Kind::Text),
    ("api_key_env", Kind::Text),
    ("api_key_file", Kind::Text),
    ("max_tokens", Kind::Integer),
    ("capabilities", Kind::Table(CAPABILITIES)),
    limits::CONCURRENCY,
    limits::QUEUE_DEPTH,
];

pub(super) const CAPABILITIES: Members =
    &[("input_modalities", Kind::Texts), ("output_modalities", Kind::Texts), ("tools", Kind::Boolean)];

/// Media models have no tools and no tokens.
const MEDIA: Members = &[
    ("type", Kind::Text),
    ("id", Kind::Text),
    ("model", Kind::Text),
    ("abilities", Kind::Texts),
    ("base_url", Kind::Text),
    ("api_key_env", Kind::Text),
    ("api_key_file", Kind::Text),
    ("capabilities", Kind::Table(&[("input_modalities", Kind::Texts), ("output_modalities", Kind::Texts)])),
    limits::CONCURRENCY,
    limits::QUEUE_DEPTH,
];

/// One type: its name, the members it has, and who builds it.
pub(super) struct Type {
    pub name: &'static str,
    pub members: Members,
    build: fn(ModelConfig) -> Result<Arc<dyn ModelProvider>, ConfigError>,
}

const TYPES: &[Type] = &[
    Type { name: "openai-chat", members: TEXT, build: |config| Ok(Arc::new(OpenAiChat::new(config)?)) },
    Type {
        name: "openai-responses",
        members: TEXT,
        build: |config| Ok(Arc::new(OpenAiResponses::new(config)?)),
    },
    Type {
        name: "anthropic-messages",
        members: TEXT,
        build: |config| Ok(Arc::new(AnthropicMessages::new(config)?)),
    },
    Type { name: "ollama", members: TEXT, build: |config| Ok(Arc::new(Ollama::new(config)?)) },
    Type { name: "fal-queue", members: MEDIA, build: |config| Ok(Arc::new(FalQueue::new(config)?)) },
];

impl Type {
    pub fn of(name: &str) -> Option<&'static Type> {
        TYPES.iter().find(|known| known.name == name)
    }

    pub fn provider(&self, mut values: Table) -> Made<'static, String> {
        values.remove("type");
        if !values.contains_key("model") {
            return Err(("model", "must be there".to_owned()));
        }
        // Every kind was checked; what is left is a number out of its type's range.
        let config = ModelConfig::deserialize(Value::Table(values))
            .map_err(|_| ("max_tokens", "an integer from 1 on".to_owned()))?;
        (self.build)(config).map_err(|error| {
            let member = error.member();
            let words = match error {
                // Where a secret would travel in the clear or to somebody else.
                ConfigError::BaseUrl(why) => format!("{UNSUPPORTED}: {why}"),
                other => other.to_string(),
            };
            // The member stands before the words already.
            let own =
                words.strip_prefix(member).map(|rest| rest.trim_start_matches(':').trim_start().to_owned());
            (member, own.unwrap_or(words))
        })
    }
}
