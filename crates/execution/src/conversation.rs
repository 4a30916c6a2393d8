//! The neutral conversation: what every dialect's messages, tools and settings become, and what every adapter
//! translates from.
//!
//! Owns the type, its limits and its rules. It names no dialect and no vendor, and it must never hold a member that
//! an adapter could leave out without saying so: what cannot be expressed upstream is refused there.

mod parse;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::request::{MediaKind, Modality, Part};

pub use parse::seed;

/// Most messages.
pub const MESSAGES_MAX: usize = 4096;
/// Most parts of one message, and of one tool's result.
pub const MESSAGE_PARTS_MAX: usize = 1024;
/// Most tools.
pub const TOOLS_MAX: usize = 512;
/// Most texts that stop an answer.
pub const STOPS_MAX: usize = 16;
/// Longest name, call id, media type, stop and file name, in code points.
pub const LABEL_LENGTH_MAX: usize = 256;
/// Largest token limit.
pub const TOKENS_MAX: u64 = 1 << 32;
/// Largest seed, and with a minus the smallest: what a double holds exactly.
pub const SEED_MAX: i64 = (1 << 53) - 1;

/// A conversation that the model is to go on with. Its JSON form is the extension `conversation`.
#[derive(Clone, Serialize)]
pub struct Conversation {
    /// 1 to 4096.
    pub messages: Vec<Message>,
    /// At most 512, names unique.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may call several tools in one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Sampling::is_unset")]
    pub sampling: Sampling,
    /// The most tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "OutputFormat::is_text")]
    pub output_format: OutputFormat,
}

// A conversation is caller content: none of it belongs into a log or a panic's text.
impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("messages", &self.messages.len()).finish_non_exhaustive()
    }
}

/// One message.
#[derive(Clone, Serialize)]
#[expect(missing_debug_implementations, reason = "holds a caller's content")]
pub struct Message {
    pub role: Role,
    /// 1 to 1024, of the kinds that the role allows.
    pub parts: Vec<MessagePart>,
}

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Texts only.
    System,
    /// Texts, images and files.
    User,
    /// Texts and calls of tools.
    Assistant,
    /// Results of tools only.
    Tool,
}

/// One part of a message.
#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_debug_implementations, reason = "holds a caller's content")]
pub enum MessagePart {
    Text {
        text: String,
    },
    Image {
        /// Never followed; a `data:` URI holds the image itself.
        uri: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<Detail>,
    },
    File {
        uri: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    ToolCall {
        call_id: String,
        name: String,
        /// The text that the model gave, commonly JSON.
        arguments: String,
    },
    ToolResult {
        /// Of an earlier call.
        call_id: String,
        /// Texts, images and files.
        parts: Vec<MessagePart>,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
}

/// How closely an image is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    Auto,
    Low,
    High,
}

impl Detail {
    pub const ALL: [Detail; 3] = [Detail::Auto, Detail::Low, Detail::High];

    pub fn as_str(self) -> &'static str {
        match self {
            Detail::Auto => "auto",
            Detail::Low => "low",
            Detail::High => "high",
        }
    }

    pub fn parse(name: &str) -> Option<Detail> {
        Detail::ALL.into_iter().find(|detail| detail.as_str() == name)
    }
}

/// A function that the model may ask the caller to call.
#[derive(Clone, Serialize)]
#[expect(missing_debug_implementations, reason = "holds a caller's content")]
pub struct Tool {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON schema, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Box<RawValue>>,
    /// Whether arguments must meet the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// Whether tools are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    None,
    Required,
    /// This one.
    Named(String),
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named<'a> {
            name: &'a str,
        }
        match self {
            ToolChoice::Auto => serializer.serialize_str("auto"),
            ToolChoice::None => serializer.serialize_str("none"),
            ToolChoice::Required => serializer.serialize_str("required"),
            ToolChoice::Named(name) => Named { name }.serialize(serializer),
        }
    }
}

/// How the next token is chosen; absent: as the model is set up.
#[derive(Clone, Default, PartialEq, Serialize)]
#[expect(missing_debug_implementations, reason = "stops are a caller's content")]
pub struct Sampling {
    /// 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u64>,
    /// At most 16, none empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
}

impl Sampling {
    fn is_unset(&self) -> bool {
        *self == Sampling::default()
    }
}

/// What the answer's text is.
#[derive(Clone, Default, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_debug_implementations, reason = "holds a caller's content")]
pub enum OutputFormat {
    #[default]
    Text,
    /// Some JSON object.
    Json,
    /// JSON that meets a schema.
    JsonSchema {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// A JSON schema, an object.
        schema: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

impl OutputFormat {
    fn is_text(&self) -> bool {
        matches!(self, OutputFormat::Text)
    }
}

impl Conversation {
    /// A conversation of these messages and nothing else.
    pub fn of(messages: Vec<Message>) -> Conversation {
        Conversation {
            messages,
            tools: Vec::new(),
            tool_choice: None,
            parallel_tool_calls: None,
            sampling: Sampling::default(),
            max_tokens: None,
            output_format: OutputFormat::Text,
        }
    }

    /// Whether only a model with tools can go on with it.
    pub fn needs_tools(&self) -> bool {
        let speaks_of_them = |part: &MessagePart| {
            matches!(part, MessagePart::ToolCall { .. } | MessagePart::ToolResult { .. })
        };
        !self.tools.is_empty()
            || self.tool_choice.is_some()
            || self.parallel_tool_calls.is_some()
            || self.messages.iter().flat_map(|message| &message.parts).any(speaks_of_them)
    }

    /// What a model must accept to be given all of it.
    pub fn modalities(&self) -> Vec<Modality> {
        let mut found = Vec::new();
        for part in self.messages.iter().flat_map(|message| &message.parts) {
            let inner = match part {
                MessagePart::ToolResult { parts, .. } => parts.as_slice(),
                MessagePart::Text { .. }
                | MessagePart::Image { .. }
                | MessagePart::File { .. }
                | MessagePart::ToolCall { .. } => std::slice::from_ref(part),
            };
            for modality in inner.iter().map(MessagePart::modality) {
                if !found.contains(&modality) {
                    found.push(modality);
                }
            }
        }
        found
    }

    /// What stands in `input` beside it: the parts of the last message of the user, or one empty text.
    pub fn input(&self) -> Vec<Part> {
        let last = self.messages.iter().rev().find(|message| message.role == Role::User);
        let parts: Vec<Part> = last.into_iter().flat_map(|message| &message.parts).filter_map(part).collect();
        if parts.is_empty() { vec![Part::Text { text: String::new() }] } else { parts }
    }

    /// The name of the tool that an earlier call was for.
    pub fn tool_of(&self, call: &str) -> Option<&str> {
        self.messages.iter().flat_map(|message| &message.parts).find_map(|part| match part {
            MessagePart::ToolCall { call_id, name, .. } if call_id == call => Some(name.as_str()),
            MessagePart::ToolCall { .. }
            | MessagePart::Text { .. }
            | MessagePart::Image { .. }
            | MessagePart::File { .. }
            | MessagePart::ToolResult { .. } => None,
        })
    }
}

impl MessagePart {
    pub fn text(text: impl Into<String>) -> MessagePart {
        MessagePart::Text { text: text.into() }
    }

    fn modality(&self) -> Modality {
        match self {
            MessagePart::Image { .. } => Modality::Image,
            MessagePart::File { .. } => Modality::File,
            MessagePart::Text { .. } | MessagePart::ToolCall { .. } | MessagePart::ToolResult { .. } => {
                Modality::Text
            }
        }
    }
}

fn part(part: &MessagePart) -> Option<Part> {
    let media = |kind, uri: &String, media_type: &Option<String>| {
        Some(Part::Media { kind, uri: uri.clone(), media_type: media_type.clone() })
    };
    match part {
        MessagePart::Text { text } => Some(Part::Text { text: text.clone() }),
        MessagePart::Image { uri, media_type, .. } => media(MediaKind::Image, uri, media_type),
        MessagePart::File { uri, media_type, .. } => media(MediaKind::File, uri, media_type),
        MessagePart::ToolCall { .. } | MessagePart::ToolResult { .. } => None,
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}
