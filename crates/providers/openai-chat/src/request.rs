//! From an execution request to the body of `POST <base>/chat/completions`.

use sealog_execution::{ExecutionRequest, Failure, Modality, Part};
use sealog_upstream::model::{Model, ceiling, extension, set, to_body, unavailable};
use serde::Serialize;

use crate::conversation;

/// The name of this provider's member of `extensions`: `{"request": {...}}`, members for the upstream.
pub const EXTENSION: &str = "openai_chat";

/// Members that only make sense where tools are declared; even an empty list counts.
const TOOL_MEMBERS: [&str; 5] = ["tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"];

/// The two names of the same limit; an upstream knows at least one.
const LIMIT_MEMBERS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

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
    ceiling(model.max_tokens, &mut members, &LIMIT_MEMBERS)?;
    // Last, so that nobody chooses another model, another conversation or another way of answering.
    set(&mut members, "model", &model.model)?;
    match &request.conversation {
        Some(conversation) => set(&mut members, "messages", &conversation::messages(conversation)?)?,
        None => {
            set(&mut members, "messages", &[Message { role: "user", content: content(&request.input)? }])?
        }
    }
    set(&mut members, "stream", &true)?;
    set(&mut members, "stream_options", &StreamOptions { include_usage: true })?;
    to_body(&members)
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// A plain string where one is enough: not every compatible server takes a list of parts.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: &'a str,
}

fn content(input: &[Part]) -> Result<Content<'_>, Failure> {
    let mut parts = input.iter().map(content_part).collect::<Result<Vec<_>, _>>()?;
    if let [ContentPart::Text { text }] = parts[..] {
        return Ok(Content::Text(text));
    }
    parts.shrink_to_fit();
    Ok(Content::Parts(parts))
}

fn content_part(part: &Part) -> Result<ContentPart<'_>, Failure> {
    match part {
        Part::Text { text } => Ok(ContentPart::Text { text }),
        Part::Json { value } => Ok(ContentPart::Text { text: value.get() }),
        Part::Media { uri, .. } => match part.modality() {
            Modality::Image => Ok(ContentPart::ImageUrl { image_url: ImageUrl { url: uri } }),
            Modality::Text | Modality::Json | Modality::Audio | Modality::Video | Modality::File => {
                Err(unavailable())
            }
        },
    }
}

#[cfg(test)]
mod tests;
