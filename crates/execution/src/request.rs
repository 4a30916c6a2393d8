//! The execution request: its types and limits. Reading one from bytes is [`ExecutionRequest::parse`].
//!
//! No defaults are filled in here: the fingerprint tells an absent member from an empty one, and only routing
//! gives absence a meaning.

mod parse;
#[cfg(any(test, feature = "contract"))]
pub mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;

use sealog_events::{Origin, Target};

use crate::Conversation;

pub use parse::{InvalidRequest, ParsedRequest};

/// Largest request body, in bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest ability, media type and similar names, in code points.
pub const NAME_LENGTH_MAX: usize = 256;
/// Longest URI, in code points.
pub const URI_LENGTH_MAX: usize = 8192;
/// Most input parts.
pub const PARTS_MAX: usize = 1024;
/// Most metadata entries, and most extension entries.
pub const ENTRIES_MAX: usize = 64;
/// Longest deadline and retry budget, in milliseconds.
pub const DURATION_MS_MAX: u64 = 86_400_000;
/// Most attempts a caller may ask for.
pub const ATTEMPTS_MAX: u64 = 32;

/// A checked request. JSON values keep the text they were sent as.
#[derive(Clone)]
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct ExecutionRequest {
    /// 1 to 256 code points.
    #[cfg_attr(any(test, feature = "contract"), schemars(length(min = 1, max = NAME_LENGTH_MAX)))]
    pub ability: String,
    /// 1 to 1024 parts.
    #[cfg_attr(any(test, feature = "contract"), schemars(length(min = 1, max = PARTS_MAX)))]
    pub input: Vec<Part>,
    #[cfg_attr(any(test, feature = "contract"), schemars(default))]
    pub requirements: Requirements,
    #[cfg_attr(any(test, feature = "contract"), schemars(default))]
    pub routing: Routing,
    /// 1 to 86 400 000.
    #[cfg_attr(any(test, feature = "contract"), schemars(default, with = "u64", range(min = 1, max = DURATION_MS_MAX)))]
    pub deadline_ms: Option<u64>,
    /// At most 64 strings, numbers and Booleans. Never proof of identity.
    #[cfg_attr(any(test, feature = "contract"), schemars(default, schema_with = "schema::metadata"))]
    pub metadata: BTreeMap<String, Box<RawValue>>,
    /// At most 64 JSON values, each meant for whoever documents its name.
    #[cfg_attr(any(test, feature = "contract"), schemars(default, schema_with = "schema::extensions"))]
    pub extensions: BTreeMap<String, Box<RawValue>>,
    /// The extension `conversation`, which is read here and no longer stands among the others.
    #[cfg_attr(any(test, feature = "contract"), schemars(skip))]
    pub conversation: Option<Conversation>,
    /// The only target that may be chosen. No member of the public request.
    #[cfg_attr(any(test, feature = "contract"), schemars(skip))]
    pub only: Option<Target>,
    /// The model API of others that it came through. No member of the public request.
    #[cfg_attr(any(test, feature = "contract"), schemars(skip))]
    pub origin: Option<Origin>,
}

impl ExecutionRequest {
    /// A request that goes on with a conversation, and requires what that holds.
    pub fn of_conversation(ability: String, conversation: Conversation) -> ExecutionRequest {
        let mut request = ExecutionRequest {
            ability,
            input: conversation.input(),
            requirements: Requirements::default(),
            routing: Routing::default(),
            deadline_ms: None,
            metadata: BTreeMap::new(),
            extensions: BTreeMap::new(),
            conversation: None,
            only: None,
            origin: None,
        };
        request.go_on_with(conversation);
        request
    }

    /// Requires these as well.
    pub fn require(&mut self, more: Requirements) {
        let required = &mut self.requirements;
        let lists = [
            (&mut required.input_modalities, more.input_modalities),
            (&mut required.output_modalities, more.output_modalities),
        ];
        for (list, more) in lists {
            for modality in more {
                if !list.contains(&modality) {
                    list.push(modality);
                }
            }
        }
        required.stream |= more.stream;
        required.tools |= more.tools;
        required.structured_output |= more.structured_output;
        required.asynchronous |= more.asynchronous;
        required.cancel |= more.cancel;
    }

    /// Every part counts for the choice of a model, not only those that stand in `input`.
    fn go_on_with(&mut self, conversation: Conversation) {
        let (tools, input_modalities) = (conversation.needs_tools(), conversation.modalities());
        self.require(Requirements { tools, input_modalities, ..Requirements::default() });
        self.conversation = Some(conversation);
    }

    /// The JSON text of one extension.
    pub fn extension(&self, name: &str) -> Option<&str> {
        self.extensions.get(name).map(|value| value.get())
    }
}

// A request is caller content: none of it belongs into a log or a panic's text.
impl fmt::Debug for ExecutionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionRequest").field("parts", &self.input.len()).finish_non_exhaustive()
    }
}

/// One typed part of the input.
#[derive(Clone)]
pub enum Part {
    /// May be empty.
    Text { text: String },
    /// Any JSON value, `null` included, as it was sent.
    Json { value: Box<RawValue> },
    /// A reference the runtime never follows. `kind` says which of the four media parts it was.
    Media { kind: MediaKind, uri: String, media_type: Option<String> },
}

impl Part {
    /// Whether both are the same part, JSON by its text.
    pub fn same(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Text { text }, Part::Text { text: other }) => text == other,
            (Part::Json { value }, Part::Json { value: other }) => value.get() == other.get(),
            (
                Part::Media { kind, uri, media_type },
                Part::Media { kind: other_kind, uri: other_uri, media_type: other_type },
            ) => (kind, uri, media_type) == (other_kind, other_uri, other_type),
            (Part::Text { .. } | Part::Json { .. } | Part::Media { .. }, _) => false,
        }
    }

    /// The modality a model must accept to be given this part.
    pub fn modality(&self) -> Modality {
        match self {
            Part::Text { .. } => Modality::Text,
            Part::Json { .. } => Modality::Json,
            Part::Media { kind, .. } => kind.modality(),
        }
    }
}

/// The extension that holds a conversation.
pub(crate) const CONVERSATION: &str = "conversation";

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part({})", self.modality().as_str())
    }
}

/// The media parts.
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema), schemars(rename_all = "lowercase"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MediaKind {
    Image,
    Audio,
    Video,
    File,
}

impl MediaKind {
    pub fn modality(self) -> Modality {
        match self {
            MediaKind::Image => Modality::Image,
            MediaKind::Audio => Modality::Audio,
            MediaKind::Video => Modality::Video,
            MediaKind::File => Modality::File,
        }
    }
}

/// What a part or a result is made of.
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    Text,
    Image,
    Audio,
    Video,
    File,
    Json,
}

impl Modality {
    pub const ALL: [Modality; 6] =
        [Modality::Text, Modality::Image, Modality::Audio, Modality::Video, Modality::File, Modality::Json];

    pub fn as_str(self) -> &'static str {
        match self {
            Modality::Text => "text",
            Modality::Image => "image",
            Modality::Audio => "audio",
            Modality::Video => "video",
            Modality::File => "file",
            Modality::Json => "json",
        }
    }

    /// The modality of this name.
    pub fn parse(name: &str) -> Option<Modality> {
        Modality::ALL.into_iter().find(|modality| modality.as_str() == name)
    }
}

/// What must be supported before routing. A Boolean constrains only when it is true.
#[cfg_attr(
    any(test, feature = "contract"),
    derive(schemars::JsonSchema),
    schemars(deny_unknown_fields, default)
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    #[cfg_attr(any(test, feature = "contract"), schemars(extend("uniqueItems" = true)))]
    pub input_modalities: Vec<Modality>,
    #[cfg_attr(any(test, feature = "contract"), schemars(extend("uniqueItems" = true)))]
    pub output_modalities: Vec<Modality>,
    pub stream: bool,
    pub tools: bool,
    pub structured_output: bool,
    #[cfg_attr(any(test, feature = "contract"), schemars(rename = "async"))]
    pub asynchronous: bool,
    pub cancel: bool,
}

/// Bounded preferences of the caller.
#[cfg_attr(
    any(test, feature = "contract"),
    derive(schemars::JsonSchema),
    schemars(deny_unknown_fields, default)
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Accepted for compatibility; has no effect.
    #[cfg_attr(any(test, feature = "contract"), schemars(with = "Strategy"))]
    pub strategy: Option<Strategy>,
    /// Unique, non-empty names; ranks, never excludes.
    #[cfg_attr(any(test, feature = "contract"), schemars(extend("uniqueItems" = true), inner(length(min = 1))))]
    pub provider_order: Vec<String>,
    #[cfg_attr(any(test, feature = "contract"), schemars(with = "bool"))]
    pub allow_fallback: Option<bool>,
    /// 1 to 32.
    #[cfg_attr(any(test, feature = "contract"), schemars(with = "u32", range(min = 1, max = ATTEMPTS_MAX)))]
    pub max_attempts: Option<u32>,
    /// 1 to 86 400 000.
    #[cfg_attr(any(test, feature = "contract"), schemars(with = "u64", range(min = 1, max = DURATION_MS_MAX)))]
    pub retry_budget_ms: Option<u64>,
}

#[cfg_attr(
    any(test, feature = "contract"),
    derive(schemars::JsonSchema),
    schemars(rename_all = "snake_case")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    FirstAvailable,
    Ordered,
}
