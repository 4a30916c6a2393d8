//! Record bodies: the only module that names bincode.
//!
//! A body is one plain struct per record kind (`body/wire.rs`) in bincode 2.0.1's standard configuration: little-endian,
//! variable-length integers, lengths bounded. Stream, event number and time stand in the record's envelope, never here.
//! Must never accept a body that [`encode`] would not have written: decoding consumes every byte, the value passes the
//! checks of [`limits`], and its encoding equals the input.

mod convert;
mod wire;

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use bincode::{BorrowDecode, Encode};

use crate::limits::{self, Unproducible};
use crate::{AttemptEvidence, Created, EventBody, Labels, MaterializedResult, Origin, RecordKind};

const CONFIG: Configuration<LittleEndian, Varint, Limit<{ limits::BODY_BYTES_MAX }>> =
    bincode::config::standard().with_limit::<{ limits::BODY_BYTES_MAX }>();

/// Why a value cannot be encoded or a body cannot be decoded; says nothing about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("no record kind has this number, or its bodies are not of the kind asked for")]
    UnknownKind,
    #[error("the body is longer than a record body may be")]
    TooLong,
    #[error("the body is not laid out as its kind requires")]
    Malformed,
    #[error("the body is not in its one valid encoding")]
    NotCanonical,
    #[error("the body holds a number that its closed set does not know")]
    UnknownNumber,
    #[error("the body holds a value that breaks a rule of its kind")]
    InvalidValue,
    #[error(transparent)]
    Unproducible(#[from] Unproducible),
}

/// Encodes an event's body after checking it against [`limits::check`].
///
/// # Errors
/// [`BodyError::Unproducible`] for an event that must not exist.
pub fn encode(body: &EventBody) -> Result<Vec<u8>, BodyError> {
    limits::check(body)?;
    match body {
        EventBody::Accepted => write(&wire::Accepted {}),
        EventBody::RouteSelected { target, attempt } => {
            write(&wire::RouteSelected { target: target.into(), attempt: *attempt })
        }
        EventBody::RouteAttemptFailed { target, attempt, error } => {
            write(&wire::RouteAttemptFailed { target: target.into(), attempt: *attempt, error: error.into() })
        }
        EventBody::OutputDelta { output_index, delta } => {
            write(&wire::OutputDelta { output_index: *output_index, delta })
        }
        EventBody::ToolCallStarted { call_id, name } => write(&wire::ToolCallStarted { call_id, name }),
        EventBody::ToolCallArgumentsDelta { call_id, delta } => {
            write(&wire::ToolCallArgumentsDelta { call_id, delta })
        }
        EventBody::Progress { phase, progress } => write(&wire::Progress {
            phase: phase.number(),
            progress_bits: progress.map(|progress| progress.bits()),
        }),
        EventBody::OutputResult { result, artifacts } => write(&wire::OutputResult {
            result: result.as_str(),
            artifacts: artifacts.as_ref().map(|artifacts| artifacts.iter().map(Into::into).collect()),
        }),
        EventBody::UsageReported { facts } => {
            write(&wire::UsageReported { facts: facts.iter().map(Into::into).collect() })
        }
        EventBody::Completed { target, stop_reason: None } => {
            write(&wire::Completed { target: target.into() })
        }
        EventBody::Completed { target, stop_reason: Some(reason) } => {
            write(&wire::CompletedFor { target: target.into(), stop_reason: reason.number() })
        }
        EventBody::Failed { error, cancelled: _ } => {
            write(&wire::Failed { status: body.status().number(), error: error.into() })
        }
    }
}

/// Decodes the body of an event record of this kind.
///
/// # Errors
/// [`BodyError`] for anything but what [`encode`] returns for an event of this kind.
pub fn decode(kind: u16, bytes: &[u8]) -> Result<EventBody, BodyError> {
    let kind = RecordKind::from_number(kind).ok_or(BodyError::UnknownKind)?;
    let body = match kind {
        RecordKind::Created
        | RecordKind::MaterializedResult
        | RecordKind::Origin
        | RecordKind::Labels
        | RecordKind::AttemptEvidence => {
            return Err(BodyError::UnknownKind);
        }
        RecordKind::Accepted => {
            let wire::Accepted {} = read(bytes)?;
            EventBody::Accepted
        }
        RecordKind::RouteSelected => {
            let wire::RouteSelected { target, attempt } = read(bytes)?;
            EventBody::RouteSelected { target: target.into(), attempt }
        }
        RecordKind::RouteAttemptFailed => {
            let wire::RouteAttemptFailed { target, attempt, error } = read(bytes)?;
            EventBody::RouteAttemptFailed { target: target.into(), attempt, error: error.try_into()? }
        }
        RecordKind::OutputDelta => {
            let wire::OutputDelta { output_index, delta } = read(bytes)?;
            EventBody::OutputDelta { output_index, delta: delta.to_owned() }
        }
        RecordKind::ToolCallStarted => {
            let wire::ToolCallStarted { call_id, name } = read(bytes)?;
            EventBody::ToolCallStarted { call_id: call_id.to_owned(), name: name.to_owned() }
        }
        RecordKind::ToolCallArgumentsDelta => {
            let wire::ToolCallArgumentsDelta { call_id, delta } = read(bytes)?;
            EventBody::ToolCallArgumentsDelta { call_id: call_id.to_owned(), delta: delta.to_owned() }
        }
        RecordKind::Progress => convert::progress(&read(bytes)?)?,
        RecordKind::OutputResult => convert::output_result(read(bytes)?)?,
        RecordKind::UsageReported => convert::usage_reported(read(bytes)?)?,
        RecordKind::Completed => {
            let wire::Completed { target } = read(bytes)?;
            EventBody::Completed { target: target.into(), stop_reason: None }
        }
        RecordKind::CompletedFor => convert::completed_for(&read(bytes)?)?,
        RecordKind::Failed => convert::failed(read(bytes)?)?,
    };
    limits::check(&body)?;
    Ok(body)
}

/// Encodes the body of a [`RecordKind::Created`] record.
#[must_use]
pub fn encode_created(created: &Created) -> Vec<u8> {
    // Two fixed-size fields: far below every limit.
    write(&wire::Created::from(created)).expect("a created body has a bounded size")
}

/// Decodes the body of a [`RecordKind::Created`] record.
///
/// # Errors
/// [`BodyError`] for anything but what [`encode_created`] returns.
pub fn decode_created(bytes: &[u8]) -> Result<Created, BodyError> {
    Ok(read::<wire::Created>(bytes)?.into())
}

/// Encodes the body of a [`RecordKind::Origin`] record.
///
/// # Errors
/// [`BodyError::InvalidValue`] for a model without a name or with one that is too long.
pub fn encode_origin(origin: &Origin) -> Result<Vec<u8>, BodyError> {
    if !origin.is_storable() {
        return Err(BodyError::InvalidValue);
    }
    let Origin { dialect, model, max_tokens, background } = origin;
    let (max_tokens, background) = (*max_tokens, *background);
    write(&wire::Origin { dialect: dialect.number(), model, max_tokens, background })
}

/// Decodes the body of a [`RecordKind::Origin`] record.
///
/// # Errors
/// [`BodyError`] for anything but what [`encode_origin`] returns.
pub fn decode_origin(bytes: &[u8]) -> Result<Origin, BodyError> {
    convert::origin(&read(bytes)?)
}

/// Encodes the body of a [`RecordKind::Labels`] record.
///
/// # Errors
/// [`BodyError::InvalidValue`] for labels that may not be stored.
pub fn encode_labels(labels: &Labels) -> Result<Vec<u8>, BodyError> {
    if !labels.is_storable() {
        return Err(BodyError::InvalidValue);
    }
    write(&wire::Labels { ability: &labels.ability })
}

/// Decodes the body of a [`RecordKind::Labels`] record.
///
/// # Errors
/// [`BodyError`] for anything but what [`encode_labels`] returns.
pub fn decode_labels(bytes: &[u8]) -> Result<Labels, BodyError> {
    convert::labels(&read(bytes)?)
}

/// Encodes the body of a [`RecordKind::MaterializedResult`] record.
///
/// # Errors
/// [`BodyError::InvalidValue`] if status, text, length and hash do not fit each other, [`BodyError::TooLong`] if the
/// text is longer than a body may be.
pub fn encode_result(result: &MaterializedResult) -> Result<Vec<u8>, BodyError> {
    if !result.is_consistent() {
        return Err(BodyError::InvalidValue);
    }
    write(&wire::MaterializedResult::from(result))
}

/// Decodes the body of a [`RecordKind::MaterializedResult`] record.
///
/// # Errors
/// [`BodyError`] for anything but what [`encode_result`] returns.
pub fn decode_result(bytes: &[u8]) -> Result<MaterializedResult, BodyError> {
    convert::materialized_result(&read(bytes)?)
}

/// Encodes the body of a [`RecordKind::AttemptEvidence`] record.
///
/// # Errors
/// [`BodyError::Unproducible`] for attempt 0.
pub fn encode_evidence(evidence: &AttemptEvidence) -> Result<Vec<u8>, BodyError> {
    if evidence.attempt == 0 {
        return Err(BodyError::Unproducible(Unproducible::AttemptZero));
    }
    write(&wire::AttemptEvidence::from(evidence))
}

/// Decodes the body of a [`RecordKind::AttemptEvidence`] record.
///
/// # Errors
/// [`BodyError`] for anything but what [`encode_evidence`] returns.
pub fn decode_evidence(bytes: &[u8]) -> Result<AttemptEvidence, BodyError> {
    convert::attempt_evidence(&read(bytes)?)
}

fn write(wire: &impl Encode) -> Result<Vec<u8>, BodyError> {
    let bytes = bincode::encode_to_vec(wire, CONFIG).map_err(|_| BodyError::Malformed)?;
    if bytes.len() > limits::BODY_BYTES_MAX { Err(BodyError::TooLong) } else { Ok(bytes) }
}

fn read<'a, T: BorrowDecode<'a, ()> + Encode>(bytes: &'a [u8]) -> Result<T, BodyError> {
    if bytes.len() > limits::BODY_BYTES_MAX {
        return Err(BodyError::TooLong);
    }
    let (wire, consumed): (T, usize) =
        bincode::borrow_decode_from_slice(bytes, CONFIG).map_err(|_| BodyError::Malformed)?;
    if consumed != bytes.len() {
        return Err(BodyError::NotCanonical);
    }
    // bincode reads an integer in any of several lengths but writes only the shortest.
    let mut rest = Equal { rest: bytes };
    bincode::encode_into_writer(&wire, &mut rest, CONFIG).map_err(|_| BodyError::NotCanonical)?;
    if rest.rest.is_empty() { Ok(wire) } else { Err(BodyError::NotCanonical) }
}

/// A writer that accepts exactly the bytes it was given, so that an encoding is compared without being kept.
struct Equal<'a> {
    rest: &'a [u8],
}

impl Writer for Equal<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.rest = self.rest.strip_prefix(bytes).ok_or(EncodeError::UnexpectedEnd)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
