//! The shapes of the stream's events. Unknown members are ignored: they are added without notice.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The data of one event; which members there are depends on its type.
#[derive(Deserialize)]
pub struct Chunk {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The number of a content block.
    pub index: Option<u32>,
    pub message: Option<Message>,
    pub content_block: Option<ContentBlock>,
    pub delta: Option<Delta>,
    pub usage: Option<Usage>,
    pub error: Option<Value>,
}

#[derive(Deserialize)]
pub struct Message {
    pub usage: Option<Usage>,
}

#[derive(Deserialize)]
pub struct ContentBlock {
    #[serde(rename = "type")]
    pub kind: String,
    pub text: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    /// The whole input where no deltas follow, commonly `{}`.
    pub input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub struct Delta {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub text: Option<String>,
    pub partial_json: Option<String>,
    pub stop_reason: Option<String>,
}

/// Counts; whatever is not a number is passed over.
#[derive(Deserialize)]
pub struct Usage {
    pub input_tokens: Option<Value>,
    pub output_tokens: Option<Value>,
    pub cache_creation_input_tokens: Option<Value>,
    pub cache_read_input_tokens: Option<Value>,
    pub thinking_tokens: Option<Value>,
}
