//! From an execution request to the body of `POST <base>/chat/completions`.
//!
//! The router has checked the model against the request already; everything is checked again here, because what
//! cannot be translated must not be sent, and before a credential is read or a connection opened.

use std::collections::BTreeMap;

use sealog_events::PortableCode;
use sealog_execution::strict::{self, Members, Refused};
use sealog_execution::{ExecutionRequest, Failure, Modality, Part};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::config::Checked;

/// The name of this provider's member of `extensions`: `{"request": {...}}`, members for the upstream.
pub const EXTENSION: &str = "openai_chat";

/// Members that only make sense where tools are declared; even an empty list counts.
const TOOL_MEMBERS: [&str; 5] = ["tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"];

/// Most members of the extension's `request`.
const MEMBERS_MAX: usize = 64;

/// Largest token limit that is understood.
const TOKENS_MAX: u64 = 1 << 32;

/// The two names of the same limit; an upstream knows at least one.
const LIMIT_MEMBERS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Members for the upstream, each as JSON text.
type MembersOut = BTreeMap<String, Box<RawValue>>;

/// The JSON body, or why this model cannot do it.
///
/// # Errors
/// `capability_unavailable` for what the model was not declared to support, `invalid_request` for an extension
/// of the wrong shape.
pub fn body(config: &Checked, request: &ExecutionRequest) -> Result<Vec<u8>, Failure> {
    supported(config, request)?;
    let mut members = extension(request)?;
    if !config.tools && TOOL_MEMBERS.iter().any(|name| members.contains_key(*name)) {
        return Err(unavailable());
    }
    limit(config.max_tokens, &mut members)?;
    // Last, so that nobody chooses another model, another conversation or another way of answering.
    set(&mut members, "model", &config.model)?;
    set(&mut members, "messages", &[Message { role: "user", content: content(&request.input)? }])?;
    set(&mut members, "stream", &true)?;
    set(&mut members, "stream_options", &StreamOptions { include_usage: true })?;
    serde_json::to_vec(&members).map_err(|_| unserialisable())
}

fn supported(config: &Checked, request: &ExecutionRequest) -> Result<(), Failure> {
    let needs = &request.requirements;
    let takes = |modality: &Modality| config.input_modalities.contains(modality);
    let fits = request.input.iter().all(|part| takes(&part.modality()))
        && needs.input_modalities.iter().all(takes)
        && needs.output_modalities.iter().all(|modality| config.output_modalities.contains(modality))
        && !needs.structured_output
        && !needs.asynchronous
        && (config.tools || !needs.tools);
    if fits { Ok(()) } else { Err(unavailable()) }
}

fn extension(request: &ExecutionRequest) -> Result<MembersOut, Failure> {
    let Some(json) = request.extension(EXTENSION) else { return Ok(MembersOut::new()) };
    let read = || {
        let mut members = Members::of(json)?;
        let given = members.optional("request", Members::of)?;
        members.finish()?;
        given.map_or(Ok(BTreeMap::new()), |given| given.rest(MEMBERS_MAX))
    };
    let given = read().map_err(|_: Refused| invalid())?;
    Ok(given.into_iter().map(|(name, value)| (name, value.to_owned())).collect())
}

/// The configured limit is a ceiling: a request may lower it, under either name.
fn limit(ceiling: Option<u32>, members: &mut MembersOut) -> Result<(), Failure> {
    let Some(ceiling) = ceiling else { return Ok(()) };
    let mut asked = false;
    for name in LIMIT_MEMBERS {
        if let Some(value) = members.get(name) {
            let tokens = strict::integer(value.get(), 1, TOKENS_MAX).map_err(|_| invalid())?;
            set(members, name, &tokens.min(u64::from(ceiling)))?;
            asked = true;
        }
    }
    if asked { Ok(()) } else { set(members, "max_tokens", &ceiling) }
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

fn set<T: Serialize + ?Sized>(members: &mut MembersOut, name: &str, value: &T) -> Result<(), Failure> {
    members.insert(name.to_owned(), to_raw_value(value).map_err(|_| unserialisable())?);
    Ok(())
}

pub fn unavailable() -> Failure {
    Failure::permanent(PortableCode::CapabilityUnavailable, "Provider does not support this request")
}

fn invalid() -> Failure {
    Failure::permanent(PortableCode::InvalidRequest, "Provider extension is invalid")
}

fn unserialisable() -> Failure {
    Failure::permanent(PortableCode::InternalError, "Provider request could not be written")
}

#[cfg(test)]
mod tests;
