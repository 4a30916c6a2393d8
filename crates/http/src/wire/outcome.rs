//! The flat answers of `/result` and `/cancel`, which carry a status instead of the error envelope.

use sealog_events::Snapshot;
use sealog_events::json::error_json;

/// A cancellation was taken up.
pub(crate) const CANCELLATION_REQUESTED: &str = r#"{"status":"cancellation_requested"}"#;

/// Nothing is there to cancel.
pub(crate) const NOT_FOUND: &str = r#"{"status":"not_found"}"#;

/// `{status, error?}` of an execution without a result to give.
pub(crate) fn unfinished_json(snapshot: &Snapshot) -> String {
    let status = snapshot.status.as_str();
    match &snapshot.error {
        None => format!(r#"{{"status":"{status}"}}"#),
        Some(error) => format!(r#"{{"status":"{status}","error":{}}}"#, error_json(error)),
    }
}
