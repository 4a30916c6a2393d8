//! A scripted upstream server for tests: it sends exactly the bytes a script says, or breaks off as it says.
//!
//! It speaks raw TCP, because the cases worth testing (half heads, wrong lengths, resets, silence) are those a
//! correct HTTP server cannot produce. Nothing here sleeps: a script waits for a [`Gate`] that the test opens.
//! [`odd_cases`] runs all of them against one adapter.

pub mod conversations;
pub mod odd_cases;
mod script;
mod server;

use std::sync::Arc;

use futures_util::StreamExt;
use sealog_events::ExecutionId;
use sealog_execution::{AbortSignal, ExecutionRequest, ModelCall, ProviderEvent, ProviderStream};
use serde_json::Value;

pub use script::{Gate, Script};
pub use server::{Recorded, ScriptedServer};

/// A request, parsed as the engine does.
///
/// # Panics
/// It is not a valid one.
pub fn request(body: &Value) -> ExecutionRequest {
    ExecutionRequest::parse(body.to_string().as_bytes()).expect("a test's request is valid").request
}

/// A call of `model` with that request.
///
/// # Panics
/// As [`request`].
pub fn call(body: &Value, model: &str, abort: &AbortSignal) -> ModelCall {
    ModelCall {
        execution_id: ExecutionId::from_random([7; 16]),
        request: Arc::new(request(body)),
        model: model.to_owned(),
        abort: abort.clone(),
    }
}

/// The stream without its marks, for tests of what an attempt says rather than of what it proves.
pub fn unmarked(stream: ProviderStream) -> ProviderStream {
    let is_mark = |item: &Result<ProviderEvent, _>| matches!(item, Ok(ProviderEvent::Mark(_)));
    stream.filter(move |item| std::future::ready(!is_mark(item))).boxed()
}
