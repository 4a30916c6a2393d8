//! From an execution request to the body of `POST <base>/v1/messages`.

use sealog_execution::request::MediaKind;
use sealog_execution::{ExecutionRequest, Failure, Part};
use sealog_upstream::model::{Model, ceiling, data_uri, extension, set, to_body, unavailable};
use serde::Serialize;

use crate::conversation::{self, Sent};

/// The name of this provider's member of `extensions`: `{"request": {...}}`, members for the upstream.
pub const EXTENSION: &str = "anthropic";

/// The protocol requires a limit; this one holds where neither the configuration nor the request says one.
pub const DEFAULT_MAX_TOKENS: u32 = 1024;

pub(crate) const LIMIT: &str = "max_tokens";

/// Members that only make sense where tools are declared; even an empty list counts.
pub(crate) const TOOL_MEMBERS: [&str; 3] = ["tools", "tool_choice", "mcp_servers"];

/// The JSON body of a request that the model supports.
///
/// # Errors
/// `capability_unavailable` for what cannot be said, `invalid_request` for an extension of the wrong shape.
pub fn body(model: &Model, request: &ExecutionRequest) -> Result<Vec<u8>, Failure> {
    let mut members = extension(request, EXTENSION, "request")?;
    model.permits(&members, &TOOL_MEMBERS)?;
    if let Some(conversation) = &request.conversation {
        conversation::add(&mut members, conversation)?;
    }
    ceiling(model.max_tokens, &mut members, &[LIMIT])?;
    if !members.contains_key(LIMIT) {
        set(&mut members, LIMIT, &DEFAULT_MAX_TOKENS)?;
    }
    // Last, so that nobody chooses another model, another conversation or another way of answering.
    set(&mut members, "model", &model.model)?;
    match &request.conversation {
        Some(conversation) => {
            let Sent { system, messages } = conversation::turns(conversation)?;
            if !system.is_empty() {
                set(&mut members, "system", &system)?;
            }
            set(&mut members, "messages", &messages)?;
        }
        None => {
            let content = request.input.iter().map(block).collect::<Result<Vec<_>, _>>()?;
            set(&mut members, "messages", &[Message { role: "user", content }])?;
        }
    }
    set(&mut members, "stream", &true)?;
    to_body(&members)
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Url { url: &'a str },
    Base64 { media_type: &'a str, data: &'a str },
}

fn block(part: &Part) -> Result<Block<'_>, Failure> {
    match part {
        Part::Text { text } => Ok(Block::Text { text }),
        Part::Json { value } => Ok(Block::Text { text: value.get() }),
        Part::Media { kind: MediaKind::Image, uri, .. } => {
            let source = match data_uri(uri) {
                Some((media_type, data)) => Source::Base64 { media_type, data },
                None => Source::Url { url: uri },
            };
            Ok(Block::Image { source })
        }
        Part::Media { kind: MediaKind::Audio | MediaKind::Video | MediaKind::File, .. } => Err(unavailable()),
    }
}

#[cfg(test)]
mod tests;
