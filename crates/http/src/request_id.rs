//! The id of a request: the caller's if it can stand in a log, else one of ours; and the one log line of each request.
//!
//! It must never log a path, a header or a body: what stands in a line is the id, the method, the route and the
//! status.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sealog_events::Dialect;
use tokio::time::Instant;

use crate::options::ServerOptions;
use crate::routes::dialects::dialect_of;

/// The header, in requests and in every answer.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The same where the clients of this API look for it.
const ANTHROPIC_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const LENGTH_MAX: usize = 128;

/// Where ids come from: what tells this server from others, and a number.
#[derive(Debug)]
pub struct RequestIds {
    server: String,
    next: AtomicU64,
}

impl RequestIds {
    /// `server` is part of every id: letters and digits.
    pub fn new(server: &str) -> RequestIds {
        RequestIds {
            server: server.chars().filter(char::is_ascii_alphanumeric).collect(),
            next: AtomicU64::new(1),
        }
    }

    fn next(&self) -> String {
        format!("{}-{}", self.server, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for RequestIds {
    fn default() -> RequestIds {
        RequestIds::new("local")
    }
}

/// The caller's own id, unless it is long or has anything in it but letters, digits, `-`, `_` and `.`.
fn given(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut values = headers.get_all(REQUEST_ID).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let bytes = value.as_bytes();
    ((1..=LENGTH_MAX).contains(&bytes.len()) && bytes.iter().all(is_plain)).then_some(value)
}

/// A method is the caller's text unless it is one of these.
fn known(method: &Method) -> &str {
    const KNOWN: [Method; 7] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    if KNOWN.contains(method) { method.as_str() } else { "other" }
}

/// The outermost layer.
pub(crate) async fn identified(
    State(options): State<Arc<ServerOptions>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = match given(request.headers()) {
        Some(id) => id.clone(),
        None => match HeaderValue::try_from(options.request_ids.next()) {
            Ok(id) => id,
            Err(_) => HeaderValue::from_static("local"),
        },
    };
    let method = request.method().clone();
    let dialect = dialect_of(request.uri().path(), request.headers());
    let is_anthropic = dialect == Some(Dialect::AnthropicMessages);
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    // An id that may have slashes is an id as any other.
    let route = route.replace("{*", "{");
    let mut response = next.run(request).await;
    tracing::info!(
        request_id = id.to_str().unwrap_or_default(),
        method = known(&method),
        route,
        status = response.status().as_u16(),
        ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "request answered"
    );
    if is_anthropic {
        response.headers_mut().insert(ANTHROPIC_REQUEST_ID, id.clone());
    }
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&str], expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(REQUEST_ID, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(given(&headers).map(|value| value.to_str().unwrap()), expected, "{values:?}");
    }

    #[test]
    fn only_what_can_stand_in_a_log_is_taken_over() {
        check(&["req-1_a.B"], Some("req-1_a.B"));
        check(&[&"a".repeat(128)], Some(&"a".repeat(128)));
        check(&[&"a".repeat(129)], None);
        for bad in ["", "a b", "a\"b", "{x}", "a;b", "a=b", "\t"] {
            check(&[bad], None);
        }
        check(&["a", "a"], None);
        check(&[], None);
    }

    #[test]
    fn our_own_are_all_different() {
        let ids = RequestIds::new("0a:\n9");
        assert_eq!([ids.next(), ids.next()], ["0a9-1", "0a9-2"]);
    }
}
