//! What the engine tells its callers: submissions, runtime facts and public errors.
//!
//! Every message here is a fixed sentence. Caller content, provider text, paths and causes never reach these types.

use sealog_events::{ExecutionId, PortableCode, Status, Timestamp};
use sealog_execution::Failure;
use sealog_execution::lease::GateFull;
use sealog_execution::request::InvalidRequest;

use crate::StoreError;

/// A refused or failed call, as it may be shown to anybody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .code.as_str())]
pub struct PublicError {
    pub code: PortableCode,
    /// A fixed sentence.
    pub message: &'static str,
    pub retryable: bool,
    pub provider_code: Option<String>,
}

impl PublicError {
    fn fixed(code: PortableCode, message: &'static str, retryable: bool) -> PublicError {
        PublicError { code, message, retryable, provider_code: None }
    }

    /// The runtime takes no new work.
    pub fn shutting_down() -> PublicError {
        PublicError::fixed(PortableCode::ProviderUnavailable, "Runtime is shutting down", true)
    }

    /// What is asked for is not known to this restored copy, and the original may know it.
    pub fn fenced() -> PublicError {
        StoreError::Fenced.into()
    }

    /// The node only reads, by intention.
    pub fn read_only() -> PublicError {
        StoreError::ReadOnly.into()
    }

    /// The idempotency key has no or too many characters.
    pub fn bad_key() -> PublicError {
        PublicError::fixed(
            PortableCode::InvalidRequest,
            "Idempotency key must have 1 to 256 characters",
            false,
        )
    }

    /// The idempotency key belongs to another request.
    pub fn key_conflict() -> PublicError {
        let message = "Idempotency key was already used with a different request";
        PublicError::fixed(PortableCode::InvalidRequest, message, false)
    }

    /// Everything the caller can neither have caused nor change.
    pub fn internal() -> PublicError {
        PublicError::fixed(PortableCode::InternalError, "Runtime request could not be completed", false)
    }
}

impl From<Failure> for PublicError {
    fn from(failure: Failure) -> PublicError {
        let retryable = failure.retryable();
        PublicError {
            code: failure.code,
            message: failure.message,
            retryable,
            provider_code: failure.provider_code,
        }
    }
}

impl From<StoreError> for PublicError {
    fn from(error: StoreError) -> PublicError {
        error.to_failure().into()
    }
}

impl From<InvalidRequest> for PublicError {
    fn from(invalid: InvalidRequest) -> PublicError {
        PublicError::fixed(PortableCode::InvalidRequest, invalid.sentence(), false)
    }
}

impl From<GateFull> for PublicError {
    fn from(_: GateFull) -> PublicError {
        PublicError::fixed(PortableCode::QueueFull, QUEUE_FULL, true)
    }
}

/// Said by the admission gate and by provider gates alike.
pub(crate) const QUEUE_FULL: &str = "Provider execution queue is full";

/// The answer to a submit: the execution is durable, new or known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    pub execution_id: ExecutionId,
    /// `accepted` for a new execution, the current status for a replay.
    pub status: Status,
    pub created_at: Timestamp,
    /// The key was known with the same request: nothing was started.
    pub idempotent_replay: bool,
}

/// What the runtime says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeInfo {
    /// `sealog`.
    pub name: &'static str,
    pub protocol_version: &'static str,
    pub provider_count: usize,
    pub state: RuntimeState,
    pub features: Features,
}

/// Whether new work is taken. Stopping outranks unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeState {
    Ready,
    Stopping,
    /// The event store has failed.
    Unavailable,
}

impl RuntimeState {
    pub const ALL: [RuntimeState; 3] =
        [RuntimeState::Ready, RuntimeState::Stopping, RuntimeState::Unavailable];

    pub fn as_str(self) -> &'static str {
        match self {
            RuntimeState::Ready => "ready",
            RuntimeState::Stopping => "stopping",
            RuntimeState::Unavailable => "unavailable",
        }
    }
}

/// Constant in this version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    pub routing: bool,
    pub flow_control: bool,
    pub usage_facts: bool,
    pub billing: bool,
}

impl Features {
    pub const CURRENT: Features =
        Features { routing: true, flow_control: true, usage_facts: true, billing: false };
}
