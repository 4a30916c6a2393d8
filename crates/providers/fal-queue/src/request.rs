//! From an execution request to the body of `POST <base>/<model>`.

use sealog_execution::request::MediaKind;
use sealog_execution::{ExecutionRequest, Failure, Part};
use sealog_upstream::model::{extension, set, to_body, unavailable};

/// The name of this provider's member of `extensions`: `{"input": {...}}`, members for the model.
pub const EXTENSION: &str = "fal";

/// The JSON body of a request that the model supports.
///
/// # Errors
/// `capability_unavailable` for what cannot be said, `invalid_request` for an extension of the wrong shape.
pub fn body(request: &ExecutionRequest) -> Result<Vec<u8>, Failure> {
    let mut members = extension(request, EXTENSION, "input")?;
    // A media model has one prompt; a conversation is more than that.
    if request.conversation.is_some() {
        return Err(unavailable());
    }
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in &request.input {
        match part {
            Part::Text { text } => texts.push(text.as_str()),
            Part::Json { value } => texts.push(value.get()),
            Part::Media { kind: MediaKind::Image, uri, .. } => images.push(uri.as_str()),
            Part::Media { kind: MediaKind::Audio | MediaKind::Video | MediaKind::File, .. } => {
                return Err(unavailable());
            }
        }
    }
    // Last, so that the input of the request is what the model gets.
    let prompt = texts.join("\n");
    if !prompt.is_empty() {
        set(&mut members, "prompt", &prompt)?;
    }
    match images[..] {
        [] => {}
        [image] => set(&mut members, "image_url", image)?,
        _ => set(&mut members, "image_urls", &images)?,
    }
    to_body(&members)
}

#[cfg(test)]
mod tests;
