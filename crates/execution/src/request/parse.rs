//! Reading a request from bytes, strictly at every level.

use std::collections::BTreeMap;

use sealog_events::canonical;
use serde_json::value::RawValue;

use super::{
    ATTEMPTS_MAX, BODY_BYTES_MAX, CONVERSATION, DURATION_MS_MAX, ENTRIES_MAX, ExecutionRequest, MediaKind,
    Modality, NAME_LENGTH_MAX, PARTS_MAX, Part, Requirements, Routing, Strategy, URI_LENGTH_MAX,
};
use crate::Conversation;
use crate::strict::{self, Members, Refused};

/// A request and the SHA-256 of its canonical text, which covers every member as it was sent.
#[derive(Clone, Debug)]
pub struct ParsedRequest {
    pub request: ExecutionRequest,
    pub fingerprint: [u8; 32],
}

/// The bytes are not a request. One fixed sentence: no member, path or value is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Execution request does not match the schema")]
pub struct InvalidRequest;

impl From<Refused> for InvalidRequest {
    fn from(_: Refused) -> InvalidRequest {
        InvalidRequest
    }
}

impl ExecutionRequest {
    /// Reads a request of at most [`BODY_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// The body is too large, is not strict JSON, or does not match the schema.
    pub fn parse(body: &[u8]) -> Result<ParsedRequest, InvalidRequest> {
        if body.len() > BODY_BYTES_MAX {
            return Err(InvalidRequest);
        }
        // First, because everything below relies on what the canonical parser refuses: invalid UTF-8,
        // duplicate members, lone surrogates, unbounded depth.
        let fingerprint = canonical::fingerprint(body).map_err(|_| InvalidRequest)?;
        let json = std::str::from_utf8(body).map_err(|_| InvalidRequest)?;
        let request = request(json)?;
        Ok(ParsedRequest { request, fingerprint })
    }
}

fn request(json: &str) -> Result<ExecutionRequest, Refused> {
    let mut members = Members::of(json)?;
    let mut request = ExecutionRequest {
        ability: strict::text(members.require("ability")?, 1, NAME_LENGTH_MAX)?,
        input: input(members.require("input")?)?,
        requirements: members.optional("requirements", requirements)?.unwrap_or_default(),
        routing: members.optional("routing", routing)?.unwrap_or_default(),
        deadline_ms: members.optional("deadline_ms", duration_ms)?,
        metadata: members.optional("metadata", metadata)?.unwrap_or_default(),
        extensions: members.optional("extensions", entries)?.unwrap_or_default(),
        conversation: None,
        only: None,
        origin: None,
    };
    members.finish()?;
    if let Some(json) = request.extensions.remove(CONVERSATION) {
        let conversation = Conversation::parse(json.get())?;
        let expected = conversation.input();
        let same = request.input.iter().zip(&expected).all(|(given, expected)| given.same(expected));
        if !same || request.input.len() != expected.len() {
            return Err(Refused);
        }
        request.go_on_with(conversation);
    }
    Ok(request)
}

fn input(json: &str) -> Result<Vec<Part>, Refused> {
    let items = strict::items(json)?;
    if !(1..=PARTS_MAX).contains(&items.len()) {
        return Err(Refused);
    }
    items.into_iter().map(|item| part(item.get())).collect()
}

fn part(json: &str) -> Result<Part, Refused> {
    let mut members = Members::of(json)?;
    let kind = strict::text(members.require("type")?, 1, NAME_LENGTH_MAX)?;
    let part = match kind.as_str() {
        "text" => Part::Text { text: strict::text(members.require("text")?, 0, BODY_BYTES_MAX)? },
        "json" => Part::Json { value: raw(members.require("value")?)? },
        "image" => media(MediaKind::Image, &mut members)?,
        "audio" => media(MediaKind::Audio, &mut members)?,
        "video" => media(MediaKind::Video, &mut members)?,
        "file" => media(MediaKind::File, &mut members)?,
        _ => return Err(Refused),
    };
    members.finish()?;
    Ok(part)
}

fn media(kind: MediaKind, members: &mut Members<'_>) -> Result<Part, Refused> {
    let uri = strict::text(members.require("uri")?, 1, URI_LENGTH_MAX)?;
    let media_type = members.optional("media_type", |json| strict::text(json, 0, NAME_LENGTH_MAX))?;
    Ok(Part::Media { kind, uri, media_type })
}

fn requirements(json: &str) -> Result<Requirements, Refused> {
    let mut members = Members::of(json)?;
    let modalities = |json| strict::unique(json, modality);
    let requirements = Requirements {
        input_modalities: members.optional("input_modalities", modalities)?.unwrap_or_default(),
        output_modalities: members.optional("output_modalities", modalities)?.unwrap_or_default(),
        stream: members.optional("stream", strict::boolean)?.unwrap_or(false),
        tools: members.optional("tools", strict::boolean)?.unwrap_or(false),
        structured_output: members.optional("structured_output", strict::boolean)?.unwrap_or(false),
        asynchronous: members.optional("async", strict::boolean)?.unwrap_or(false),
        cancel: members.optional("cancel", strict::boolean)?.unwrap_or(false),
    };
    members.finish()?;
    Ok(requirements)
}

fn modality(json: &str) -> Result<Modality, Refused> {
    Modality::parse(&strict::text(json, 1, NAME_LENGTH_MAX)?).ok_or(Refused)
}

fn routing(json: &str) -> Result<Routing, Refused> {
    let mut members = Members::of(json)?;
    let name = |json: &str| strict::text(json, 1, BODY_BYTES_MAX);
    let attempts = |json: &str| strict::integer(json, 1, ATTEMPTS_MAX).map(|count| count as u32);
    let routing = Routing {
        strategy: members.optional("strategy", strategy)?,
        provider_order: members
            .optional("provider_order", |json| strict::unique(json, name))?
            .unwrap_or_default(),
        allow_fallback: members.optional("allow_fallback", strict::boolean)?,
        max_attempts: members.optional("max_attempts", attempts)?,
        retry_budget_ms: members.optional("retry_budget_ms", duration_ms)?,
    };
    members.finish()?;
    Ok(routing)
}

fn strategy(json: &str) -> Result<Strategy, Refused> {
    match strict::text(json, 1, NAME_LENGTH_MAX)?.as_str() {
        "first_available" => Ok(Strategy::FirstAvailable),
        "ordered" => Ok(Strategy::Ordered),
        _ => Err(Refused),
    }
}

fn duration_ms(json: &str) -> Result<u64, Refused> {
    strict::integer(json, 1, DURATION_MS_MAX)
}

fn metadata(json: &str) -> Result<BTreeMap<String, Box<RawValue>>, Refused> {
    let entries = entries(json)?;
    let scalar = |value: &RawValue| !value.get().starts_with(['{', '[', 'n']);
    if entries.values().all(|value| scalar(value)) { Ok(entries) } else { Err(Refused) }
}

fn entries(json: &str) -> Result<BTreeMap<String, Box<RawValue>>, Refused> {
    let entries = Members::of(json)?.rest(ENTRIES_MAX)?;
    Ok(entries.into_iter().map(|(name, value)| (name, value.to_owned())).collect())
}

fn raw(json: &str) -> Result<Box<RawValue>, Refused> {
    RawValue::from_string(json.to_owned()).map_err(|_| Refused)
}
