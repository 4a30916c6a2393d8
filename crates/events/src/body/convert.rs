//! Between the encoded structs and the public types: numbers become members of closed sets, bits become numbers.
//!
//! Every match on a number ends in an error; must never fill in a default.

use super::{BodyError, wire};
use crate::limits::{self, Unproducible};
use crate::{
    Artifact, AttemptEvidence, Created, Dialect, ErrorFact, EventBody, Identity, JsonText, Labels, Mark,
    MaterializedResult, Origin, Outcome, Phase, PortableCode, ProgressNumber, Quantity, Reached, RequestId,
    Status, StopReason, Target, Timestamp, UsageFact, UsageSource,
};

impl<'a> From<&'a AttemptEvidence> for wire::AttemptEvidence<'a> {
    fn from(evidence: &'a AttemptEvidence) -> Self {
        let request_id = match &evidence.mark {
            Mark::RequestSent => None,
            Mark::ResponseHeaders { request_id } => request_id.as_ref().map(RequestId::as_str),
        };
        Self { attempt: evidence.attempt, reached: evidence.mark.reached().number(), request_id }
    }
}

pub(super) fn attempt_evidence(wire: &wire::AttemptEvidence<'_>) -> Result<AttemptEvidence, BodyError> {
    let request_id = match wire.request_id {
        None => None,
        Some(text) => Some(RequestId::new(text).ok_or(BodyError::InvalidValue)?),
    };
    let mark = match (Reached::from_number(wire.reached).ok_or(BodyError::UnknownNumber)?, request_id) {
        (Reached::RequestSent, None) => Mark::RequestSent,
        (Reached::ResponseHeaders, request_id) => Mark::ResponseHeaders { request_id },
        // The other steps are told by events.
        (Reached::Selected | Reached::RequestSent | Reached::FirstOutput, _) => {
            return Err(BodyError::InvalidValue);
        }
    };
    if wire.attempt == 0 {
        return Err(BodyError::Unproducible(Unproducible::AttemptZero));
    }
    Ok(AttemptEvidence { attempt: wire.attempt, mark })
}

pub(super) fn completed_for(wire: &wire::CompletedFor<'_>) -> Result<EventBody, BodyError> {
    let reason = StopReason::from_number(wire.stop_reason).ok_or(BodyError::UnknownNumber)?;
    let wire::Target { provider, model } = wire.target;
    let target = Target { provider: provider.to_owned(), model: model.to_owned() };
    Ok(EventBody::Completed { target, stop_reason: Some(reason) })
}

impl<'a> From<&'a Target> for wire::Target<'a> {
    fn from(target: &'a Target) -> Self {
        Self { provider: &target.provider, model: &target.model }
    }
}

impl From<wire::Target<'_>> for Target {
    fn from(target: wire::Target<'_>) -> Self {
        Self { provider: target.provider.to_owned(), model: target.model.to_owned() }
    }
}

impl<'a> From<&'a ErrorFact> for wire::ErrorFact<'a> {
    fn from(error: &'a ErrorFact) -> Self {
        Self {
            code: error.code.number(),
            message: &error.message,
            retryable: error.retryable,
            provider_code: error.provider_code.as_deref(),
            outcome: error.outcome.map(Outcome::number),
        }
    }
}

impl TryFrom<wire::ErrorFact<'_>> for ErrorFact {
    type Error = BodyError;

    fn try_from(error: wire::ErrorFact<'_>) -> Result<Self, BodyError> {
        Ok(Self {
            code: PortableCode::from_number(error.code).ok_or(BodyError::UnknownNumber)?,
            message: error.message.to_owned(),
            retryable: error.retryable,
            provider_code: error.provider_code.map(str::to_owned),
            outcome: match error.outcome {
                None => None,
                Some(number) => Some(Outcome::from_number(number).ok_or(BodyError::UnknownNumber)?),
            },
        })
    }
}

impl<'a> From<&'a Artifact> for wire::Artifact<'a> {
    fn from(artifact: &'a Artifact) -> Self {
        Self {
            uri: &artifact.uri,
            media_type: artifact.media_type.as_deref(),
            name: artifact.name.as_deref(),
            expires_at: artifact.expires_at.as_deref(),
        }
    }
}

impl From<wire::Artifact<'_>> for Artifact {
    fn from(artifact: wire::Artifact<'_>) -> Self {
        Self {
            uri: artifact.uri.to_owned(),
            media_type: artifact.media_type.map(str::to_owned),
            name: artifact.name.map(str::to_owned),
            expires_at: artifact.expires_at.map(str::to_owned),
        }
    }
}

impl<'a> From<&'a UsageFact> for wire::UsageFact<'a> {
    fn from(fact: &'a UsageFact) -> Self {
        Self {
            unit: &fact.unit,
            quantity_bits: fact.quantity.bits(),
            source: fact.source.number(),
            complete: fact.complete,
        }
    }
}

impl TryFrom<wire::UsageFact<'_>> for UsageFact {
    type Error = BodyError;

    fn try_from(fact: wire::UsageFact<'_>) -> Result<Self, BodyError> {
        Ok(Self {
            unit: fact.unit.to_owned(),
            quantity: Quantity::from_bits(fact.quantity_bits).ok_or(BodyError::InvalidValue)?,
            source: UsageSource::from_number(fact.source).ok_or(BodyError::UnknownNumber)?,
            complete: fact.complete,
        })
    }
}

impl From<&Created> for wire::Created {
    fn from(created: &Created) -> Self {
        Self {
            created_at_ms: created.created_at.0,
            identity: created
                .identity
                .map(|Identity { key_hash, fingerprint }| wire::Identity { key_hash, fingerprint }),
        }
    }
}

impl From<wire::Created> for Created {
    fn from(created: wire::Created) -> Self {
        Self {
            created_at: Timestamp(created.created_at_ms),
            identity: created
                .identity
                .map(|wire::Identity { key_hash, fingerprint }| Identity { key_hash, fingerprint }),
        }
    }
}

impl<'a> From<&'a MaterializedResult> for wire::MaterializedResult<'a> {
    fn from(result: &'a MaterializedResult) -> Self {
        Self {
            rule_version: result.rule_version,
            status: result.status.number(),
            bytes: result.bytes,
            sha256: result.sha256,
            text: result.text.as_deref(),
        }
    }
}

pub(super) fn origin(origin: &wire::Origin<'_>) -> Result<Origin, BodyError> {
    let origin = Origin {
        dialect: Dialect::from_number(origin.dialect).ok_or(BodyError::UnknownNumber)?,
        model: origin.model.to_owned(),
        max_tokens: origin.max_tokens,
        background: origin.background,
    };
    if origin.is_storable() { Ok(origin) } else { Err(BodyError::InvalidValue) }
}

pub(super) fn labels(labels: &wire::Labels<'_>) -> Result<Labels, BodyError> {
    let labels = Labels { ability: labels.ability.to_owned() };
    if labels.is_storable() { Ok(labels) } else { Err(BodyError::InvalidValue) }
}

pub(super) fn materialized_result(
    result: &wire::MaterializedResult<'_>,
) -> Result<MaterializedResult, BodyError> {
    let result = MaterializedResult {
        rule_version: result.rule_version,
        status: Status::from_number(result.status).ok_or(BodyError::UnknownNumber)?,
        bytes: result.bytes,
        sha256: result.sha256,
        text: result.text.map(str::to_owned),
    };
    if result.is_consistent() { Ok(result) } else { Err(BodyError::InvalidValue) }
}

pub(super) fn progress(progress: &wire::Progress) -> Result<EventBody, BodyError> {
    Ok(EventBody::Progress {
        phase: Phase::from_number(progress.phase).ok_or(BodyError::UnknownNumber)?,
        progress: match progress.progress_bits {
            None => None,
            Some(bits) => Some(ProgressNumber::from_bits(bits).ok_or(BodyError::InvalidValue)?),
        },
    })
}

pub(super) fn output_result(output: wire::OutputResult<'_>) -> Result<EventBody, BodyError> {
    check_count(output.artifacts.as_deref().unwrap_or_default())?;
    Ok(EventBody::OutputResult {
        result: JsonText::new(output.result).map_err(|_| BodyError::InvalidValue)?,
        artifacts: output.artifacts.map(|artifacts| artifacts.into_iter().map(Into::into).collect()),
    })
}

/// Before the items are copied: a list that is refused anyway must not cost memory first.
fn check_count<T>(items: &[T]) -> Result<(), BodyError> {
    if items.len() > limits::LIST_ITEMS_MAX { Err(Unproducible::TooManyItems.into()) } else { Ok(()) }
}

pub(super) fn usage_reported(usage: wire::UsageReported<'_>) -> Result<EventBody, BodyError> {
    check_count(&usage.facts)?;
    let facts = usage.facts.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?;
    Ok(EventBody::UsageReported { facts })
}

pub(super) fn failed(failed: wire::Failed<'_>) -> Result<EventBody, BodyError> {
    let cancelled = match Status::from_number(failed.status).ok_or(BodyError::UnknownNumber)? {
        Status::Failed => false,
        Status::Cancelled => true,
        Status::Accepted | Status::Routing | Status::Running | Status::Succeeded => {
            return Err(BodyError::InvalidValue);
        }
    };
    Ok(EventBody::Failed { error: failed.error.try_into()?, cancelled })
}
