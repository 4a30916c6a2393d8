//! How a refusal is said: in the node's own envelope, and on a front door's path in that dialect's.
//!
//! It must never repeat what was sent.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use sealog_events::Dialect;
use serde_json::json;

use super::judge::Refused;
use crate::answer::json_answer;
use crate::error::{ApiError, ErrorCode};
use crate::routes::dialects::dialect_of;

impl Refused {
    fn code(self) -> ErrorCode {
        match self {
            Refused::Host | Refused::Origin | Refused::Forbidden => ErrorCode::Forbidden,
            Refused::Unauthenticated => ErrorCode::Unauthorized,
        }
    }

    fn message(self) -> &'static str {
        match self {
            Refused::Host => "Host is not one of this node's names",
            Refused::Origin => "Origin may not use this node",
            Refused::Unauthenticated => "A valid bearer token is required",
            Refused::Forbidden => "The token does not have the scope for this",
        }
    }
}

pub(super) fn answer(refused: Refused, path: &str, headers: &HeaderMap) -> Response {
    let (code, message) = (refused.code(), refused.message());
    let unauthenticated = refused == Refused::Unauthenticated;
    let mut response = match dialect_of(path, headers) {
        None => ApiError::new(code, message).into_response(),
        Some(Dialect::OpenAiChat | Dialect::OpenAiResponses) => {
            let word = if unauthenticated { "invalid_api_key" } else { "permission_denied" };
            let error =
                json!({"message": message, "type": "invalid_request_error", "param": null, "code": word});
            json_answer(code.status(), json!({ "error": error }).to_string())
        }
        Some(Dialect::AnthropicMessages) => {
            let word = if unauthenticated { "authentication_error" } else { "permission_error" };
            let error = json!({"type": word, "message": message});
            json_answer(code.status(), json!({"type": "error", "error": error}).to_string())
        }
    };
    if unauthenticated {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
