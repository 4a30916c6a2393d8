//! The execution id in a path.
//!
//! Text that is no id names no execution and reads as absent, so that nothing is learned by trying forms.

use http::Uri;
use sealog_events::ExecutionId;

use crate::error::ApiError;

/// Why a path names no execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadId {
    /// The segment is empty. The router matches it all the same, but there is no such route.
    Absent,
    /// An escape cannot be decoded.
    Undecodable,
    /// The text is no id.
    Unknown,
}

impl From<BadId> for ApiError {
    fn from(bad: BadId) -> Self {
        match bad {
            BadId::Absent => ApiError::route_not_found(),
            BadId::Undecodable => ApiError::invalid("Execution id could not be decoded"),
            BadId::Unknown => ApiError::execution_not_found(),
        }
    }
}

/// The id of `/v1/executions/{id}` and of what is below it.
///
/// # Errors
/// [`BadId`]
pub(super) fn execution_id(uri: &Uri) -> Result<ExecutionId, BadId> {
    let segment = uri.path().split('/').nth(3).unwrap_or_default();
    if segment.is_empty() {
        return Err(BadId::Absent);
    }
    let text = decoded(segment).ok_or(BadId::Undecodable)?;
    ExecutionId::parse(&text).ok_or(BadId::Unknown)
}

/// `None` for a percent sign without two hexadecimal digits, and for what is no UTF-8 after decoding.
pub(super) fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(segment: &str, expected: Option<&str>) {
        assert_eq!(decoded(segment).as_deref(), expected, "{segment}");
    }

    #[test]
    fn escapes() {
        check("plain", Some("plain"));
        check("%61%2F%2f", Some("a//"));
        check("%C3%A9", Some("é"));
        check("%ZZ", None);
        check("%4", None);
        check("%", None);
        check("%FF", None);
        check("%+1", None);
    }

    #[test]
    fn an_escaped_id_is_the_same_id() {
        let uri: Uri = "/v1/executions/%31%31111111-2222-4333-8444-555555555555/events".parse().unwrap();
        assert_eq!(execution_id(&uri).unwrap().to_string(), "11111111-2222-4333-8444-555555555555");
    }
}
