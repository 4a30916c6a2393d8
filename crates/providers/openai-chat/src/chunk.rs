//! The shapes an OpenAI-compatible upstream streams. Unknown members are ignored: upstreams add their own.

use serde::Deserialize;
use serde_json::Value;

/// The data of one event.
#[derive(Deserialize)]
pub struct Chunk {
    #[serde(default)]
    pub choices: Vec<Choice>,
    pub usage: Option<Usage>,
    /// Sent instead of choices when the upstream gives up after its head; an object, or just a text.
    pub error: Option<Value>,
}

#[derive(Deserialize)]
pub struct Choice {
    #[serde(default)]
    pub index: u32,
    pub delta: Option<Delta>,
    pub finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub struct Delta {
    pub content: Option<String>,
    /// What the model says instead of content when it declines.
    pub refusal: Option<String>,
    pub tool_calls: Option<Vec<ToolCallDelta>>,
    /// The older form of a single tool call.
    pub function_call: Option<FunctionDelta>,
}

#[derive(Deserialize)]
pub struct ToolCallDelta {
    #[serde(default)]
    pub index: u32,
    pub id: Option<String>,
    pub function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
pub struct FunctionDelta {
    pub name: Option<String>,
    pub arguments: Option<String>,
}

/// Counts; whatever is not a number is passed over.
#[derive(Deserialize)]
pub struct Usage {
    pub prompt_tokens: Option<Value>,
    pub completion_tokens: Option<Value>,
    pub prompt_tokens_details: Option<PromptDetails>,
    pub completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
pub struct PromptDetails {
    pub cached_tokens: Option<Value>,
}

#[derive(Deserialize)]
pub struct CompletionDetails {
    pub reasoning_tokens: Option<Value>,
}
