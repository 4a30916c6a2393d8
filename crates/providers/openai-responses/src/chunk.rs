//! The shapes of the stream's events. Unknown members are ignored: they are added without notice.

use serde::Deserialize;
use serde_json::Value;

/// The data of one event; which members there are depends on its type.
#[derive(Deserialize)]
pub struct Chunk {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub output_index: Option<u32>,
    pub item_id: Option<String>,
    pub delta: Option<Value>,
    pub arguments: Option<String>,
    pub input: Option<Value>,
    pub item: Option<Item>,
    pub response: Option<Response>,
    /// Of an `error` event, whose members stand beside its type or in one of their own.
    pub code: Option<Value>,
    pub error: Option<Value>,
}

/// One output item; only calls of tools are looked at.
#[derive(Deserialize)]
pub struct Item {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub id: Option<String>,
    pub call_id: Option<String>,
    pub name: Option<String>,
    /// Of a call; whole once the item is done.
    pub arguments: Option<String>,
}

#[derive(Deserialize)]
pub struct Response {
    pub usage: Option<Usage>,
    pub error: Option<Value>,
    pub incomplete_details: Option<IncompleteDetails>,
}

#[derive(Deserialize)]
pub struct IncompleteDetails {
    pub reason: Option<String>,
}

/// Counts; whatever is not a number is passed over.
#[derive(Deserialize)]
pub struct Usage {
    pub input_tokens: Option<Value>,
    pub output_tokens: Option<Value>,
    pub input_tokens_details: Option<InputDetails>,
    pub output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
pub struct InputDetails {
    pub cache_write_tokens: Option<Value>,
    pub cached_tokens: Option<Value>,
}

#[derive(Deserialize)]
pub struct OutputDetails {
    pub reasoning_tokens: Option<Value>,
}
