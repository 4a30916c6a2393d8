//! What whoever runs the node asks: does it live, does it take work, what does it count.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use sealog_engine::RuntimeState;
use serde::Serialize;

use crate::answer::json_answer;
use crate::error::ApiError;
use crate::router::Api;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Serialize)]
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema))]
pub(crate) struct Readiness {
    ready: bool,
    reasons: Vec<&'static str>,
}

/// `GET /healthz`: whoever reads this answer knows all there is to know.
pub(crate) async fn health() -> Response {
    json_answer(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// `GET /readyz`: whether new work is taken. Stricter than `GET /v1/runtime`, which calls a full journal ready because
/// it serves.
pub(crate) async fn ready(State(api): State<Api>) -> Response {
    let state = api.engine.runtime_info().state;
    let mut reasons = Vec::new();
    if state == RuntimeState::Stopping {
        reasons.push("stopping");
    }
    if api.engine.fenced() {
        reasons.push("fenced");
    }
    reasons.extend(api.options.operation.iter().flat_map(|operation| operation.unready()));
    if state != RuntimeState::Ready && reasons.is_empty() {
        reasons.push("store_unavailable");
    }
    let ready = reasons.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let text = serde_json::to_string(&Readiness { ready, reasons }).unwrap_or_default();
    json_answer(status, text)
}

/// `GET /metrics`
pub(crate) async fn metrics(State(api): State<Api>) -> Response {
    let Some(operation) = &api.options.operation else { return ApiError::route_not_found().into_response() };
    let mut response = json_answer(StatusCode::OK, operation.metrics());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    response
}
