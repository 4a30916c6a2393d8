//! The one answer of every failed authentication.

/// The bytes did not authenticate. Carries no detail: which check failed is nobody's business but the caller's,
/// who knows what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes did not authenticate")]
pub struct Rejected;
