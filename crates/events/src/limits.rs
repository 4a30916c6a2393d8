//! How large an event may be, and the cutting of text that is larger.
//!
//! One module serves everything that makes events: what [`check`] accepts can be stored, decoded, streamed to every
//! known client and shown in a snapshot. Must never shorten anything silently.

use crate::json::{self, Length};
use crate::{Artifact, ErrorFact, EventBody, ExecutionId, PortableCode, Target, Timestamp, UsageFact};

/// Longest JSON text of an event, in bytes. Clients refuse a stream frame above 1 MiB; the rest of the frame
/// (`id`, `event`, field names, line ends) takes fewer than the 1024 bytes left here.
pub const EVENT_JSON_BYTES_MAX: usize = 1_048_576 - 1024;

/// Longest JSON text of a terminal event, in bytes. The store reserves room for one, so that an execution can always
/// end.
pub const TERMINAL_JSON_BYTES_MAX: usize = 2048;

/// Longest encoded record body, in bytes. Above every event that [`check`] accepts, since a body is no longer than
/// the event's JSON text plus its stored result.
pub const BODY_BYTES_MAX: usize = 2 * 1_048_576;

/// Deepest nesting of arrays and objects in a [`crate::JsonText`] and in a canonicalised request. Parsers in use give
/// up at 128, and an event adds a level of its own.
pub const JSON_DEPTH_MAX: usize = 100;

/// Longest canonicalised text, in bytes, before and after canonicalisation.
pub const CANONICAL_BYTES_MAX: usize = 1_048_576;

/// Longest name in bytes: provider and model ids, call ids, tool names, units, media types. 256 characters fit.
pub const NAME_BYTES_MAX: usize = 1024;

/// Longest error message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// Longest artifact URI in bytes. 8192 characters fit.
pub const URI_BYTES_MAX: usize = 32_768;

/// Most artifacts or usage facts in one event.
pub const LIST_ITEMS_MAX: usize = 1024;

/// Longest piece of [`split_delta`], measured inside a JSON string. Leaves room for an event's other members, and
/// keeps a stored piece within one commit group.
pub const DELTA_JSON_BYTES_MAX: usize = 131_072;

/// Longest materialized result stored by value beside the terminal event, in bytes; a longer one is stored by hash.
pub const RESULT_BYTES_MAX: usize = 262_144;

/// Why an event cannot be produced; says nothing about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unproducible {
    #[error("the event's JSON text is longer than a client accepts")]
    EventTooLong,
    #[error("the terminal event is longer than the room reserved for it")]
    TerminalTooLong,
    #[error("a member of the event is longer than allowed")]
    FieldTooLong,
    #[error("a member of the event is empty")]
    FieldEmpty,
    #[error("the event lists more items than allowed")]
    TooManyItems,
    #[error("attempts count from 1")]
    AttemptZero,
    #[error("a cancelled execution carries the code `cancelled`")]
    CancelledCode,
}

/// Whether an event with this body can be produced, at whatever sequence and time.
///
/// # Errors
/// The first rule that the body breaks.
pub fn check(body: &EventBody) -> Result<(), Unproducible> {
    match body {
        EventBody::Accepted | EventBody::Progress { .. } => {}
        EventBody::RouteSelected { target, attempt } => check_route(target, *attempt)?,
        EventBody::RouteAttemptFailed { target, attempt, error } => {
            check_route(target, *attempt)?;
            check_error(error)?;
        }
        EventBody::OutputDelta { output_index: _, delta: _ } => {}
        EventBody::ToolCallStarted { call_id, name } => {
            check_long(call_id, NAME_BYTES_MAX)?;
            check_long(name, NAME_BYTES_MAX)?;
        }
        EventBody::ToolCallArgumentsDelta { call_id, delta: _ } => check_long(call_id, NAME_BYTES_MAX)?,
        EventBody::OutputResult { result: _, artifacts } => {
            check_items(artifacts.as_deref().unwrap_or_default(), check_artifact)?;
        }
        EventBody::UsageReported { facts } => check_items(facts, check_usage_fact)?,
        EventBody::Completed { target, stop_reason: _ } => check_target(target)?,
        EventBody::Failed { error, cancelled } => {
            check_error(error)?;
            if *cancelled && error.code != PortableCode::Cancelled {
                return Err(Unproducible::CancelledCode);
            }
        }
    }
    check_json_length(body)
}

/// Upper bound of the event's JSON text in bytes: exact but for the digits of sequence and time, taken as longest.
#[must_use]
pub fn event_json_bytes_max(body: &EventBody) -> usize {
    let mut length = Length::default();
    let (longest_sequence, longest_time) = (u64::MAX, Timestamp(u64::MAX));
    json::put_event(&mut length, ExecutionId::from_bytes([0; 16]), longest_sequence, longest_time, body);
    length.0
}

fn check_json_length(body: &EventBody) -> Result<(), Unproducible> {
    if let EventBody::OutputDelta { delta, .. } | EventBody::ToolCallArgumentsDelta { delta, .. } = body {
        // A byte takes at most six in a JSON string. The frequent short deltas are thus settled without a look.
        const OTHER_MEMBERS_BYTES_MAX: usize = 6 * NAME_BYTES_MAX + 512;
        if delta.len() < (EVENT_JSON_BYTES_MAX - OTHER_MEMBERS_BYTES_MAX) / 6 {
            return Ok(());
        }
    }
    let bytes = event_json_bytes_max(body);
    if body.is_terminal() && bytes > TERMINAL_JSON_BYTES_MAX {
        return Err(Unproducible::TerminalTooLong);
    }
    if bytes > EVENT_JSON_BYTES_MAX {
        return Err(Unproducible::EventTooLong);
    }
    Ok(())
}

fn check_route(target: &Target, attempt: u32) -> Result<(), Unproducible> {
    if attempt == 0 {
        return Err(Unproducible::AttemptZero);
    }
    check_target(target)
}

fn check_target(target: &Target) -> Result<(), Unproducible> {
    check_name(&target.provider, NAME_BYTES_MAX)?;
    check_name(&target.model, NAME_BYTES_MAX)
}

fn check_error(error: &ErrorFact) -> Result<(), Unproducible> {
    check_long(&error.message, MESSAGE_BYTES_MAX)?;
    error.provider_code.as_deref().map_or(Ok(()), |code| check_name(code, NAME_BYTES_MAX))
}

fn check_artifact(artifact: &Artifact) -> Result<(), Unproducible> {
    check_name(&artifact.uri, URI_BYTES_MAX)?;
    for text in [&artifact.media_type, &artifact.name, &artifact.expires_at].into_iter().flatten() {
        check_long(text, NAME_BYTES_MAX)?;
    }
    Ok(())
}

fn check_usage_fact(fact: &UsageFact) -> Result<(), Unproducible> {
    check_name(&fact.unit, NAME_BYTES_MAX)
}

fn check_items<T>(
    items: &[T],
    check_item: impl Fn(&T) -> Result<(), Unproducible>,
) -> Result<(), Unproducible> {
    if items.len() > LIST_ITEMS_MAX {
        return Err(Unproducible::TooManyItems);
    }
    items.iter().try_for_each(check_item)
}

fn check_name(text: &str, bytes_max: usize) -> Result<(), Unproducible> {
    if text.is_empty() {
        return Err(Unproducible::FieldEmpty);
    }
    check_long(text, bytes_max)
}

fn check_long(text: &str, bytes_max: usize) -> Result<(), Unproducible> {
    if text.len() > bytes_max { Err(Unproducible::FieldTooLong) } else { Ok(()) }
}

/// Cuts text into pieces that each fit an event: between characters, none longer than [`DELTA_JSON_BYTES_MAX`] inside
/// a JSON string. The pieces joined are the text; an empty text is one empty piece.
pub fn split_delta(text: &str) -> impl Iterator<Item = &str> {
    split_text(text, DELTA_JSON_BYTES_MAX)
}

/// [`split_delta`] with a bound of at least 6, the longest that one character takes.
fn split_text(text: &str, json_bytes_max: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    core::iter::from_fn(move || {
        let text = rest?;
        let mut json_bytes = 0;
        let end = text
            .char_indices()
            .find(|&(_, character)| {
                json_bytes += json::escaped_char_bytes(character);
                json_bytes > json_bytes_max
            })
            .map_or(text.len(), |(at, _)| at);
        let (piece, after) = text.split_at(end);
        rest = (!after.is_empty()).then_some(after);
        Some(piece)
    })
}

#[cfg(test)]
mod tests;
