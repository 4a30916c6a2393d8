//! The shape of one line. Unknown members are ignored: they are added without notice.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub struct Chunk {
    pub message: Option<Message>,
    #[serde(default)]
    pub done: bool,
    pub done_reason: Option<String>,
    /// Counts; whatever is not a number is passed over.
    pub prompt_eval_count: Option<Value>,
    pub eval_count: Option<Value>,
    /// A sentence, sent instead of a message when the upstream gives up after its head.
    pub error: Option<Value>,
}

#[derive(Deserialize)]
pub struct Message {
    pub content: Option<String>,
    pub tool_calls: Option<Vec<ToolCall>>,
}

/// A call comes whole.
#[derive(Deserialize)]
pub struct ToolCall {
    pub id: Option<String>,
    pub function: Function,
}

#[derive(Deserialize)]
pub struct Function {
    pub name: String,
    pub arguments: Option<Box<RawValue>>,
}
