//! JSON answers. It must never set the two headers of every answer: the router's outermost layer does.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

/// The content type of every answer that is no event stream.
pub(crate) const JSON: &str = "application/json; charset=utf-8";

/// An answer with this JSON text.
pub(crate) fn json_answer(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
