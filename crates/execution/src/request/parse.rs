//! Reading a request from bytes, strictly at every level.

use std::collections::BTreeMap;

use sealog_events::canonical::{self, CanonicalError};
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

/// The bytes are not a request. A fixed sentence, which names members of the schema only: of what the caller sent it says
/// nothing, not even the name of a member that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRequest(&'static str);

impl InvalidRequest {
    pub fn sentence(self) -> &'static str {
        self.0
    }
}

impl From<CanonicalError> for InvalidRequest {
    fn from(error: CanonicalError) -> InvalidRequest {
        InvalidRequest(match error {
            CanonicalError::TooLong => TOO_LONG,
            CanonicalError::NotUtf8 => "Execution request is not UTF-8",
            CanonicalError::ByteOrderMark => "Execution request begins with a byte order mark",
            CanonicalError::Syntax => "Execution request is not JSON",
            CanonicalError::DuplicateMember => "Execution request has an object with a member twice",
            CanonicalError::TooDeep => "Execution request nests arrays and objects too deep",
            CanonicalError::LoneSurrogate => "Execution request has a string with half of a surrogate pair",
            CanonicalError::NumberRange => "Execution request has a number beyond the range of a double",
        })
    }
}

const TOO_LONG: &str = "Execution request is larger than 1 MiB, or would be in canonical form";

/// The member is not there.
macro_rules! lacks {
    ($path:literal) => {
        InvalidRequest(concat!("Execution request lacks `", $path, "`"))
    };
}

/// What reading the member refused.
macro_rules! wrong {
    ($($path:tt)+) => {
        |_: Refused| InvalidRequest(concat!("Execution request has a `", $($path)+, "` that is not as the schema says"))
    };
}

/// There is a member that the schema does not have.
macro_rules! unknown {
    ($place:literal) => {
        |_: Refused| InvalidRequest(concat!("Execution request has an unknown member", $place))
    };
}

impl ExecutionRequest {
    /// Reads a request of at most [`BODY_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// The body is too large, is not strict JSON, or does not match the schema.
    pub fn parse(body: &[u8]) -> Result<ParsedRequest, InvalidRequest> {
        if body.len() > BODY_BYTES_MAX {
            return Err(InvalidRequest(TOO_LONG));
        }
        // First, because everything below relies on what the canonical parser refuses: invalid UTF-8,
        // duplicate members, lone surrogates, unbounded depth.
        let fingerprint = canonical::fingerprint(body)?;
        let json = std::str::from_utf8(body).map_err(|_| CanonicalError::NotUtf8)?;
        let request = request(json)?;
        Ok(ParsedRequest { request, fingerprint })
    }
}

type Parsed<T> = Result<T, InvalidRequest>;

fn request(json: &str) -> Parsed<ExecutionRequest> {
    let not_an_object = InvalidRequest("Execution request is not an object");
    let mut members = Members::of(json).map_err(|_| not_an_object)?;
    let ability = members.take("ability").ok_or(lacks!("ability"))?;
    let parts = members.take("input").ok_or(lacks!("input"))?;
    let mut request = ExecutionRequest {
        ability: strict::text(ability, 1, NAME_LENGTH_MAX).map_err(wrong!("ability"))?,
        input: input(parts)?,
        requirements: members.take("requirements").map(requirements).transpose()?.unwrap_or_default(),
        routing: members.take("routing").map(routing).transpose()?.unwrap_or_default(),
        deadline_ms: members.optional("deadline_ms", duration_ms).map_err(wrong!("deadline_ms"))?,
        metadata: members.optional("metadata", metadata).map_err(wrong!("metadata"))?.unwrap_or_default(),
        extensions: members
            .optional("extensions", entries)
            .map_err(wrong!("extensions"))?
            .unwrap_or_default(),
        conversation: None,
        only: None,
        origin: None,
    };
    members.finish().map_err(unknown!(""))?;
    if let Some(json) = request.extensions.remove(CONVERSATION) {
        let conversation = Conversation::parse(json.get()).map_err(wrong!("extensions.conversation"))?;
        let expected = conversation.input();
        let same = request.input.iter().zip(&expected).all(|(given, expected)| given.same(expected));
        if !same || request.input.len() != expected.len() {
            return Err(NOT_THE_LAST);
        }
        request.go_on_with(conversation);
    }
    Ok(request)
}

const NOT_THE_LAST: InvalidRequest = InvalidRequest(
    "Execution request has an `input` that is not the last user message of `extensions.conversation`",
);

fn input(json: &str) -> Parsed<Vec<Part>> {
    let items = strict::items(json).map_err(wrong!("input"))?;
    if !(1..=PARTS_MAX).contains(&items.len()) {
        return Err(wrong!("input")(Refused));
    }
    items.into_iter().map(|item| part(item.get())).collect()
}

fn part(json: &str) -> Parsed<Part> {
    let mut members = Members::of(json).map_err(wrong!("input"))?;
    let kind = members.take("type").ok_or(lacks!("input[].type"))?;
    let kind = strict::text(kind, 1, NAME_LENGTH_MAX).map_err(wrong!("input[].type"))?;
    let part = match kind.as_str() {
        "text" => {
            let text = members.take("text").ok_or(lacks!("input[].text"))?;
            Part::Text { text: strict::text(text, 0, BODY_BYTES_MAX).map_err(wrong!("input[].text"))? }
        }
        "json" => {
            let value = members.take("value").ok_or(lacks!("input[].value"))?;
            Part::Json { value: raw(value).map_err(wrong!("input[].value"))? }
        }
        "image" => media(MediaKind::Image, &mut members)?,
        "audio" => media(MediaKind::Audio, &mut members)?,
        "video" => media(MediaKind::Video, &mut members)?,
        "file" => media(MediaKind::File, &mut members)?,
        _ => return Err(wrong!("input[].type")(Refused)),
    };
    members.finish().map_err(unknown!(" in a part of `input`"))?;
    Ok(part)
}

fn media(kind: MediaKind, members: &mut Members<'_>) -> Parsed<Part> {
    let uri = members.take("uri").ok_or(lacks!("input[].uri"))?;
    let uri = strict::text(uri, 1, URI_LENGTH_MAX).map_err(wrong!("input[].uri"))?;
    let media_type = members.optional("media_type", |json| strict::text(json, 0, NAME_LENGTH_MAX));
    Ok(Part::Media { kind, uri, media_type: media_type.map_err(wrong!("input[].media_type"))? })
}

fn requirements(json: &str) -> Parsed<Requirements> {
    let mut members = Members::of(json).map_err(wrong!("requirements"))?;
    let modalities = |json| strict::unique(json, modality);
    // Takes a member of this name, with the sentence that names it.
    macro_rules! read {
        ($name:literal, $read:expr) => {
            members
                .optional($name, $read)
                .map_err(wrong!(concat!("requirements.", $name)))?
                .unwrap_or_default()
        };
    }
    let requirements = Requirements {
        input_modalities: read!("input_modalities", modalities),
        output_modalities: read!("output_modalities", modalities),
        stream: read!("stream", strict::boolean),
        tools: read!("tools", strict::boolean),
        structured_output: read!("structured_output", strict::boolean),
        asynchronous: read!("async", strict::boolean),
        cancel: read!("cancel", strict::boolean),
    };
    members.finish().map_err(unknown!(" in `requirements`"))?;
    Ok(requirements)
}

fn modality(json: &str) -> Result<Modality, Refused> {
    Modality::parse(&strict::text(json, 1, NAME_LENGTH_MAX)?).ok_or(Refused)
}

fn routing(json: &str) -> Parsed<Routing> {
    let mut members = Members::of(json).map_err(wrong!("routing"))?;
    let name = |json: &str| strict::text(json, 1, BODY_BYTES_MAX);
    let attempts = |json: &str| strict::integer(json, 1, ATTEMPTS_MAX).map(|count| count as u32);
    macro_rules! read {
        ($name:literal, $read:expr) => {
            members.optional($name, $read).map_err(wrong!(concat!("routing.", $name)))?
        };
    }
    let routing = Routing {
        strategy: read!("strategy", strategy),
        provider_order: read!("provider_order", |json| strict::unique(json, name)).unwrap_or_default(),
        allow_fallback: read!("allow_fallback", strict::boolean),
        max_attempts: read!("max_attempts", attempts),
        retry_budget_ms: read!("retry_budget_ms", duration_ms),
    };
    members.finish().map_err(unknown!(" in `routing`"))?;
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
