//! From an execution request to the body of `POST <base>/responses`.

use sealog_execution::request::MediaKind;
use sealog_execution::{ExecutionRequest, Failure, Part};
use sealog_upstream::model::{Model, ceiling, extension, set, to_body, unavailable};
use serde::Serialize;

use crate::conversation;

/// The name of this provider's member of `extensions`: `{"request": {...}}`, members for the upstream.
pub const EXTENSION: &str = "openai";

pub(crate) const LIMIT: &str = "max_output_tokens";

/// Members that only make sense where tools are declared; even an empty list counts. A stored prompt may bring tools
/// of its own.
pub(crate) const TOOL_MEMBERS: [&str; 5] =
    ["tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "prompt"];

/// The JSON body of a request that the model supports.
///
/// # Errors
/// `capability_unavailable` for what cannot be said, `invalid_request` for an extension of the wrong shape.
pub fn body(model: &Model, request: &ExecutionRequest) -> Result<Vec<u8>, Failure> {
    let mut members = extension(request, EXTENSION, "request")?;
    model.permits(&members, &TOOL_MEMBERS)?;
    // Nothing is stored upstream, so nothing can go on in the background there.
    if members.get("background").is_some_and(|value| value.get() != "false") {
        return Err(unavailable());
    }
    if let Some(conversation) = &request.conversation {
        conversation::add(&mut members, conversation)?;
    }
    ceiling(model.max_tokens, &mut members, &[LIMIT])?;
    // Last, so that nobody chooses another model, another conversation or another way of answering.
    set(&mut members, "model", &model.model)?;
    match &request.conversation {
        Some(conversation) => set(&mut members, "input", &conversation::items(conversation)?)?,
        None => {
            let content = request.input.iter().map(content_part).collect::<Result<Vec<_>, _>>()?;
            set(&mut members, "input", &[Message { role: "user", content }])?;
        }
    }
    set(&mut members, "stream", &true)?;
    set(&mut members, "store", &false)?;
    to_body(&members)
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<ContentPart<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum ContentPart<'a> {
    #[serde(rename = "input_text")]
    Text { text: &'a str },
    #[serde(rename = "input_image")]
    Image { image_url: &'a str },
    #[serde(rename = "input_file")]
    File { file_url: &'a str },
}

fn content_part(part: &Part) -> Result<ContentPart<'_>, Failure> {
    match part {
        Part::Text { text } => Ok(ContentPart::Text { text }),
        Part::Json { value } => Ok(ContentPart::Text { text: value.get() }),
        Part::Media { kind: MediaKind::Image, uri, .. } => Ok(ContentPart::Image { image_url: uri }),
        Part::Media { kind: MediaKind::File, uri, .. } => Ok(ContentPart::File { file_url: uri }),
        Part::Media { kind: MediaKind::Audio | MediaKind::Video, .. } => Err(unavailable()),
    }
}

#[cfg(test)]
mod tests;
