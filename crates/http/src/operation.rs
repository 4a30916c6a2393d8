//! What the composition root knows of the node beyond its engine.

use std::fmt;

/// Asked by `/readyz` and `/metrics`. Must not block.
pub trait Operation: fmt::Debug + Send + Sync {
    /// Why the node does not take new work, in words of [`READY_REASONS`]; empty where it does.
    fn unready(&self) -> Vec<&'static str>;

    /// The metrics as OpenMetrics text.
    fn metrics(&self) -> String;
}

/// Every reason that `/readyz` can give.
pub const READY_REASONS: [&str; 9] = [
    "stopping",
    "fenced",
    "read_only",
    "full",
    "unended",
    "stalled",
    "poisoned",
    "damaged",
    "store_unavailable",
];
