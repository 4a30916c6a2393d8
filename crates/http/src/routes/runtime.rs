//! The node itself: its state and its providers.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use crate::answer::json_answer;
use crate::error::{ApiError, Asked};
use crate::router::Api;
use crate::wire::runtime::{is_ready, providers_json, runtime_json};

/// `GET /v1/runtime`: the same body whether ready (200) or not (503).
pub(crate) async fn runtime(State(api): State<Api>) -> Response {
    let info = api.engine.runtime_info();
    let status = if is_ready(&info) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_answer(status, runtime_json(&info))
}

/// `GET /v1/providers`
pub(crate) async fn providers(State(api): State<Api>) -> Result<Response, ApiError> {
    let manifests = api.engine.providers().map_err(|error| ApiError::public(error, Asked::Other))?;
    Ok(json_answer(StatusCode::OK, providers_json(&manifests)))
}
