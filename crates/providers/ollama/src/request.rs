//! From an execution request to the body of `POST <base>/api/chat`.

use sealog_execution::request::MediaKind;
use sealog_execution::strict;
use sealog_execution::{ExecutionRequest, Failure, Part};
use sealog_upstream::model::{
    JsonMembers, Model, ceiling, data_uri, extension, invalid, set, to_body, unavailable,
};
use serde::Serialize;

use crate::conversation;

/// The name of this provider's member of `extensions`: `{"request": {...}}`, members for the upstream.
pub const EXTENSION: &str = "ollama";

const OPTIONS: &str = "options";
const LIMIT: &str = "num_predict";

/// Members that only make sense where tools are declared; even an empty list counts.
pub(crate) const TOOL_MEMBERS: [&str; 1] = ["tools"];

/// The JSON body of a request that the model supports.
///
/// # Errors
/// `capability_unavailable` for what cannot be said, `invalid_request` for an extension of the wrong shape.
pub fn body(model: &Model, request: &ExecutionRequest) -> Result<Vec<u8>, Failure> {
    let mut members = extension(request, EXTENSION, "request")?;
    model.permits(&members, &TOOL_MEMBERS)?;
    if let Some(conversation) = &request.conversation {
        conversation::add(&mut members, conversation)?;
        let mut options = options(&members)?;
        conversation::add_options(&mut options, conversation, LIMIT)?;
        if !options.is_empty() {
            set(&mut members, OPTIONS, &options)?;
        }
    }
    limit(model.max_tokens, &mut members)?;
    // Last, so that nobody chooses another model, another conversation or another way of answering.
    set(&mut members, "model", &model.model)?;
    match &request.conversation {
        Some(conversation) => set(&mut members, "messages", &conversation::messages(conversation)?)?,
        None => set(&mut members, "messages", &[message(&request.input)?])?,
    }
    set(&mut members, "stream", &true)?;
    to_body(&members)
}

/// The limit is one of the model's options. A negative one is the upstream's word for none.
fn limit(configured: Option<u32>, members: &mut JsonMembers) -> Result<(), Failure> {
    if configured.is_none() && !members.contains_key(OPTIONS) {
        return Ok(());
    }
    let mut options = options(members)?;
    let asked = options.get(LIMIT).map(|json| strict::number(json.get())).transpose();
    if asked.map_err(|_| invalid())?.is_some_and(|asked| asked < 0.0) {
        if configured.is_none() {
            return Ok(());
        }
        options.remove(LIMIT);
    }
    ceiling(configured, &mut options, &[LIMIT])?;
    set(members, OPTIONS, &options)
}

fn options(members: &JsonMembers) -> Result<JsonMembers, Failure> {
    match members.get(OPTIONS) {
        Some(json) => serde_json::from_str(json.get()).map_err(|_| invalid()),
        None => Ok(JsonMembers::new()),
    }
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
}

/// A message has one text: texts and JSON are its lines, in order.
fn message(input: &[Part]) -> Result<Message<'_>, Failure> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in input {
        match part {
            Part::Text { text } => texts.push(text.as_str()),
            Part::Json { value } => texts.push(value.get()),
            // The protocol takes the image itself; nothing is fetched to get it.
            Part::Media { kind: MediaKind::Image, uri, .. } => {
                images.push(data_uri(uri).ok_or_else(unavailable)?.1);
            }
            Part::Media { kind: MediaKind::Audio | MediaKind::Video | MediaKind::File, .. } => {
                return Err(unavailable());
            }
        }
    }
    Ok(Message { role: "user", content: texts.join("\n"), images })
}

#[cfg(test)]
mod tests;
