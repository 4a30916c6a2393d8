//! Errors in each dialect's own shape and status. Every sentence is fixed; a member is named only if its name is ours.

use sealog_events::{Dialect, PortableCode};
use serde_json::{Value, json};

/// A request that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The member that it is about.
    pub member: Option<&'static str>,
    pub message: &'static str,
}

impl Refusal {
    pub(crate) fn invalid(member: &'static str) -> Refusal {
        Refusal { member: Some(member), message: "Invalid value" }
    }

    pub(crate) fn missing(member: &'static str) -> Refusal {
        Refusal { member: Some(member), message: "Missing required parameter" }
    }

    pub(crate) fn unsupported(member: &'static str) -> Refusal {
        Refusal { member: Some(member), message: "This value is not supported here" }
    }

    pub(crate) fn unknown() -> Refusal {
        Refusal { member: None, message: "The request has a parameter that is not known here" }
    }

    pub(crate) fn body() -> Refusal {
        Refusal { member: None, message: "The request body is not strict JSON of at most 1 MiB" }
    }
}

/// An error as it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorAnswer {
    pub status: u16,
    /// Whether the client is told to try again; the official ones do as they are told.
    pub retry: bool,
    pub body: String,
}

/// What an error is, in the words of the dialects.
struct Words {
    status: u16,
    openai: &'static str,
    anthropic: &'static str,
}

const fn words(status: u16, openai: &'static str, anthropic: &'static str) -> Words {
    Words { status, openai, anthropic }
}

fn words_of(code: PortableCode) -> Words {
    match code {
        PortableCode::InvalidRequest | PortableCode::CapabilityUnavailable => {
            words(400, "invalid_request_error", "invalid_request_error")
        }
        PortableCode::RateLimited => words(429, "rate_limit_error", "rate_limit_error"),
        PortableCode::QueueFull => words(503, "server_error", "overloaded_error"),
        PortableCode::ProviderUnavailable => words(503, "server_error", "api_error"),
        PortableCode::ProviderProtocolError => words(502, "server_error", "api_error"),
        PortableCode::DeadlineExceeded => words(504, "server_error", "timeout_error"),
        PortableCode::Cancelled => words(409, "invalid_request_error", "invalid_request_error"),
        PortableCode::InternalError => words(500, "server_error", "api_error"),
    }
}

/// The error object of a dialect, as it stands in an answer or in a stream.
fn object(dialect: Dialect, words: &Words, code: &str, message: &str, member: Option<&str>) -> Value {
    let named = match member {
        Some(member) => format!("{message}: '{member}'"),
        None => message.to_owned(),
    };
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => {
            json!({"error": {"message": named, "type": words.openai, "param": member, "code": code}})
        }
        Dialect::AnthropicMessages => {
            json!({"type": "error", "error": {"type": words.anthropic, "message": named}, "request_id": null})
        }
    }
}

/// The text of [`failed`]'s body.
pub(crate) fn failed_object(dialect: Dialect, code: PortableCode, message: &str) -> String {
    object(dialect, &words_of(code), code.as_str(), message, None).to_string()
}

/// A call or an execution that failed.
pub fn failed(dialect: Dialect, code: PortableCode, message: &str, retryable: bool) -> ErrorAnswer {
    let body = failed_object(dialect, code, message);
    ErrorAnswer { status: words_of(code).status, retry: retryable, body }
}

/// A request that was not taken.
pub fn refused(dialect: Dialect, refusal: &Refusal) -> ErrorAnswer {
    let code = PortableCode::InvalidRequest;
    let words = words_of(code);
    let body = object(dialect, &words, code.as_str(), refusal.message, refusal.member).to_string();
    ErrorAnswer { status: words.status, retry: false, body }
}

/// No model, no provider's model and no ability has that name.
pub fn model_not_found(dialect: Dialect) -> ErrorAnswer {
    not_found(dialect, "model_not_found", "The model does not exist", Some("model"))
}

fn not_found(dialect: Dialect, code: &str, message: &str, member: Option<&'static str>) -> ErrorAnswer {
    let words = words(404, "invalid_request_error", "not_found_error");
    ErrorAnswer {
        status: 404,
        retry: false,
        body: object(dialect, &words, code, message, member).to_string(),
    }
}

/// The dialect's interface has it, and a node does not. Its clients take 404 for final and never for a fault of the
/// server's, which 501 would be to them.
pub fn not_served(dialect: Dialect) -> ErrorAnswer {
    not_found(dialect, "endpoint_not_served", "This node does not serve this endpoint", None)
}

/// No response of that id is kept.
pub fn response_not_found() -> ErrorAnswer {
    not_found(Dialect::OpenAiResponses, "response_not_found", "The response does not exist", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_status_and_the_shapes_are_the_dialects() {
        let statuses: Vec<u16> = PortableCode::ALL
            .iter()
            .map(|code| failed(Dialect::OpenAiChat, *code, "m", true).status)
            .collect();
        assert_eq!(statuses, [400, 400, 503, 429, 504, 409, 503, 502, 500]);
        let openai = failed(Dialect::OpenAiResponses, PortableCode::RateLimited, "m", true);
        assert_eq!(
            openai.body,
            r#"{"error":{"code":"rate_limited","message":"m","param":null,"type":"rate_limit_error"}}"#
        );
        let anthropic = refused(Dialect::AnthropicMessages, &Refusal::invalid("top_k"));
        assert_eq!(
            anthropic.body,
            r#"{"error":{"message":"Invalid value: 'top_k'","type":"invalid_request_error"},"request_id":null,"type":"error"}"#
        );
        assert!(!anthropic.retry && openai.retry);
        for (dialect, word) in [
            (Dialect::OpenAiChat, r#""code":"endpoint_not_served""#),
            (Dialect::OpenAiResponses, r#""code":"endpoint_not_served""#),
            (Dialect::AnthropicMessages, r#""type":"not_found_error""#),
        ] {
            let answer = not_served(dialect);
            assert!(answer.status == 404 && !answer.retry && answer.body.contains(word), "{answer:?}");
        }
        assert!(response_not_found().body.contains("response_not_found"));
        assert!(model_not_found(Dialect::OpenAiChat).body.contains(r#""param":"model""#));
    }
}
