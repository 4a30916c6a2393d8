//! The route family: where an attempt goes.

/// A provider and one of its models.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Registered provider id, not empty; at most [`crate::limits::NAME_BYTES_MAX`] bytes.
    pub provider: String,
    /// Model name, not empty; at most [`crate::limits::NAME_BYTES_MAX`] bytes.
    pub model: String,
}
