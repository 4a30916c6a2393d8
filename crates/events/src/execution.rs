//! The execution family: creation, error facts.
//!
//! Owns the shape of an error as events and answers carry it. Must never hold text that came from a caller.

use crate::limits;
use crate::{Dialect, Outcome, PortableCode, Timestamp};

/// Why an attempt or an execution failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFact {
    pub code: PortableCode,
    /// A fixed public sentence; at most [`limits::MESSAGE_BYTES_MAX`] bytes.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The provider's own code, never empty; at most [`limits::NAME_BYTES_MAX`] bytes.
    pub provider_code: Option<String>,
    /// Only on work that a restart interrupted.
    pub outcome: Option<Outcome>,
}

impl ErrorFact {
    /// An error without provider code or outcome.
    #[must_use]
    pub fn new(code: PortableCode, message: impl Into<String>, retryable: bool) -> Self {
        Self { code, message: message.into(), retryable, provider_code: None, outcome: None }
    }

    /// Adds the provider's code. An empty or over-long one is left out, since neither could be stored.
    #[must_use]
    pub fn with_provider_code(mut self, code: impl Into<String>) -> Self {
        let code = code.into();
        self.provider_code = (!code.is_empty() && code.len() <= limits::NAME_BYTES_MAX).then_some(code);
        self
    }

    /// Adds what is known about the effect of interrupted work.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }
}

/// What makes two submissions the same one: hashes only, never the key or the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// [`crate::canonical::key_hash`] of the idempotency key.
    pub key_hash: [u8; 32],
    /// [`crate::canonical::fingerprint`] of the request.
    pub fingerprint: [u8; 32],
}

/// The record that opens an execution's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    pub created_at: Timestamp,
    /// `None` for a submission without an idempotency key.
    pub identity: Option<Identity>,
}

/// How an execution was asked for that came through the model API of others: what its later answers have to say again.
/// Nothing else of the request is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub dialect: Dialect,
    /// The model as it was named; 1 to [`Origin::MODEL_BYTES_MAX`] bytes.
    pub model: String,
    /// The most tokens that were asked for.
    pub max_tokens: Option<u64>,
    /// Nobody waits for the answer.
    pub background: bool,
}

impl Origin {
    /// Longest name of a model: a provider's and a model's longest, and what stands between them.
    pub const MODEL_BYTES_MAX: usize = 2 * 4 * 256 + 1;

    /// Whether it may be stored.
    #[must_use]
    pub fn is_storable(&self) -> bool {
        (1..=Self::MODEL_BYTES_MAX).contains(&self.model.len())
    }
}

/// What an execution is found by in lists. Nothing else of the request is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// The ability that was asked for; 1 to [`limits::NAME_BYTES_MAX`] bytes.
    pub ability: String,
}

impl Labels {
    /// Whether they may be stored.
    #[must_use]
    pub fn is_storable(&self) -> bool {
        (1..=limits::NAME_BYTES_MAX).contains(&self.ability.len())
    }
}
