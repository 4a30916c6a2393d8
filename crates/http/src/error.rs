//! The closed set of errors of this projection: status, retryability and what may have happened, per code.
//!
//! It must never show text that is not a fixed sentence: no path, id, caller content or cause.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use sealog_engine::PublicError;
use sealog_events::PortableCode;
use serde::Serialize;

use crate::answer::{JSON, json_answer};

/// Every error an answer can carry. Two portable codes stand here more than once, because what they mean for
/// the caller differs: the queue that empties and the capacity that does not, the node that stops and the
/// provider that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// No such route or execution; not one of the portable codes.
    NotFound,
    /// No token, or one that is not known; not one of the portable codes.
    Unauthorized,
    /// A name, a page or a token that may not do this; not one of the portable codes.
    Forbidden,
    /// The request itself is at fault.
    InvalidRequest,
    /// No provider has what the request needs.
    CapabilityUnavailable,
    /// Too much work at once.
    QueueFull,
    /// The store has no room, and waiting makes none.
    CapacityReached,
    /// An upstream asks for patience.
    RateLimited,
    /// The time given ran out.
    DeadlineExceeded,
    /// The work was cancelled.
    Cancelled,
    /// The node takes no new work: it is stopping, fenced or read-only.
    ShuttingDown,
    /// A provider does not answer.
    ProviderUnavailable,
    /// A provider refused.
    ProviderRefused,
    /// A provider spoke another language than its protocol.
    ProviderProtocolError,
    /// The node failed; only its log knows why.
    InternalError,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [ErrorCode; 15] = [
        Self::NotFound,
        Self::Unauthorized,
        Self::Forbidden,
        Self::InvalidRequest,
        Self::CapabilityUnavailable,
        Self::QueueFull,
        Self::CapacityReached,
        Self::RateLimited,
        Self::DeadlineExceeded,
        Self::Cancelled,
        Self::ShuttingDown,
        Self::ProviderUnavailable,
        Self::ProviderRefused,
        Self::ProviderProtocolError,
        Self::InternalError,
    ];

    /// The code on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::InvalidRequest => PortableCode::InvalidRequest.as_str(),
            Self::CapabilityUnavailable => PortableCode::CapabilityUnavailable.as_str(),
            Self::QueueFull | Self::CapacityReached => PortableCode::QueueFull.as_str(),
            Self::RateLimited => PortableCode::RateLimited.as_str(),
            Self::DeadlineExceeded => PortableCode::DeadlineExceeded.as_str(),
            Self::Cancelled => PortableCode::Cancelled.as_str(),
            Self::ShuttingDown | Self::ProviderUnavailable | Self::ProviderRefused => {
                PortableCode::ProviderUnavailable.as_str()
            }
            Self::ProviderProtocolError => PortableCode::ProviderProtocolError.as_str(),
            Self::InternalError => PortableCode::InternalError.as_str(),
        }
    }

    /// The status of an answer with this code.
    pub fn status(self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::QueueFull | Self::CapacityReached | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::CapabilityUnavailable
            | Self::RateLimited
            | Self::DeadlineExceeded
            | Self::Cancelled
            | Self::ProviderUnavailable
            | Self::ProviderRefused
            | Self::ProviderProtocolError
            | Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the same request may succeed later. `None`: the answer has no such member.
    pub fn retryable(self) -> Option<bool> {
        match self {
            Self::NotFound => None,
            Self::QueueFull | Self::RateLimited | Self::ShuttingDown | Self::ProviderUnavailable => {
                Some(true)
            }
            Self::Unauthorized
            | Self::Forbidden
            | Self::InvalidRequest
            | Self::CapabilityUnavailable
            | Self::CapacityReached
            | Self::DeadlineExceeded
            | Self::Cancelled
            | Self::ProviderRefused
            | Self::ProviderProtocolError
            | Self::InternalError => Some(false),
        }
    }

    /// Whether the request may have had an effect although this is its answer: then only an idempotency key
    /// makes sending it again safe.
    pub fn may_have_taken_effect(self) -> bool {
        match self {
            Self::NotFound
            | Self::Unauthorized
            | Self::Forbidden
            | Self::InvalidRequest
            | Self::CapabilityUnavailable
            | Self::QueueFull
            | Self::CapacityReached
            | Self::ShuttingDown => false,
            Self::RateLimited
            | Self::DeadlineExceeded
            | Self::Cancelled
            | Self::ProviderUnavailable
            | Self::ProviderRefused
            | Self::ProviderProtocolError
            | Self::InternalError => true,
        }
    }
}

/// What the request was for: it decides what `provider_unavailable` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A submission, which meets no provider: there it means the node is stopping.
    Submit,
    /// An execution: no provider is met there either.
    Execution,
    /// Anything else.
    Other,
}

/// An error on its way out.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: ErrorCode,
    message: &'static str,
    provider_code: Option<String>,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: &'static str) -> Self {
        Self { code, message, provider_code: None }
    }

    pub fn invalid(message: &'static str) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    pub fn execution_not_found() -> Self {
        Self::new(ErrorCode::NotFound, "Execution not found")
    }

    pub fn route_not_found() -> Self {
        Self::new(ErrorCode::NotFound, "Route not found")
    }

    pub fn internal() -> Self {
        Self::new(ErrorCode::InternalError, "Runtime request could not be completed")
    }

    /// The engine's own error, whose sentence is public already.
    pub fn public(error: PublicError, asked: Asked) -> Self {
        let code = match error.code {
            PortableCode::InvalidRequest => ErrorCode::InvalidRequest,
            PortableCode::CapabilityUnavailable => ErrorCode::CapabilityUnavailable,
            PortableCode::QueueFull if error.retryable => ErrorCode::QueueFull,
            PortableCode::QueueFull => ErrorCode::CapacityReached,
            PortableCode::RateLimited => ErrorCode::RateLimited,
            PortableCode::DeadlineExceeded => ErrorCode::DeadlineExceeded,
            PortableCode::Cancelled => ErrorCode::Cancelled,
            PortableCode::ProviderUnavailable if !error.retryable => ErrorCode::ProviderRefused,
            PortableCode::ProviderUnavailable => match asked {
                Asked::Submit | Asked::Execution => ErrorCode::ShuttingDown,
                Asked::Other => ErrorCode::ProviderUnavailable,
            },
            PortableCode::ProviderProtocolError => ErrorCode::ProviderProtocolError,
            PortableCode::InternalError => ErrorCode::InternalError,
        };
        Self { code, message: error.message, provider_code: error.provider_code }
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_code: Option<&'a str>,
}

fn envelope(code: ErrorCode, message: &str, provider_code: Option<&str>) -> String {
    let retryable = code.retryable();
    let error = Body { code: code.as_str(), message, retryable, provider_code };
    serde_json::to_string(&Envelope { error }).expect("strings and booleans serialise")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = self.code;
        if code.may_have_taken_effect() {
            tracing::warn!(code = code.as_str(), "a request failed and may have taken effect");
        }
        let text = envelope(code, self.message, self.provider_code.as_deref());
        let mut response = json_answer(code.status(), text);
        if code.status() == StatusCode::SERVICE_UNAVAILABLE && code.retryable() == Some(true) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The whole answer, head and body, to a request head that could not be read; hyper chose the status.
/// `None` when the status is none that it chooses.
pub(crate) fn unread_head_answer(status: &[u8]) -> Option<Bytes> {
    let reason = match status {
        b"400" => "400 Bad Request",
        b"414" => "414 URI Too Long",
        b"431" => "431 Request Header Fields Too Large",
        _ => return None,
    };
    let body = envelope(ErrorCode::InvalidRequest, "Request head could not be read", None);
    let length = body.len();
    Some(Bytes::from(format!(
        "HTTP/1.1 {reason}\r\ncontent-type: {JSON}\r\nx-content-type-options: nosniff\r\n\
         cache-control: no-store\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PA-33.
    #[test]
    fn the_table_is_the_documented_one() {
        let rows: Vec<String> = ErrorCode::ALL
            .iter()
            .map(|code| {
                let retryable = code.retryable().map_or("-".to_owned(), |retryable| retryable.to_string());
                format!(
                    "{code:?} {} {} {retryable} {}",
                    code.as_str(),
                    code.status().as_u16(),
                    code.may_have_taken_effect()
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                "NotFound not_found 404 - false",
                "Unauthorized unauthorized 401 false false",
                "Forbidden forbidden 403 false false",
                "InvalidRequest invalid_request 400 false false",
                "CapabilityUnavailable capability_unavailable 500 false false",
                "QueueFull queue_full 503 true false",
                "CapacityReached queue_full 503 false false",
                "RateLimited rate_limited 500 true true",
                "DeadlineExceeded deadline_exceeded 500 false true",
                "Cancelled cancelled 500 false true",
                "ShuttingDown provider_unavailable 503 true false",
                "ProviderUnavailable provider_unavailable 500 true true",
                "ProviderRefused provider_unavailable 500 false true",
                "ProviderProtocolError provider_protocol_error 500 false true",
                "InternalError internal_error 500 false true",
            ]
        );
    }

    /// PA-33.
    #[test]
    fn not_found_has_no_retryable_member() {
        assert_eq!(
            envelope(ErrorCode::NotFound, "Route not found", None),
            r#"{"error":{"code":"not_found","message":"Route not found"}}"#
        );
        assert_eq!(
            envelope(ErrorCode::ProviderRefused, "No", Some("402")),
            r#"{"error":{"code":"provider_unavailable","message":"No","retryable":false,"provider_code":"402"}}"#
        );
    }

    #[test]
    fn only_hypers_own_statuses_are_replaced() {
        let answer = unread_head_answer(b"431").unwrap();
        let text = std::str::from_utf8(&answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 431 "));
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
        assert!(unread_head_answer(b"404").is_none());
    }
}
