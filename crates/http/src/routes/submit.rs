//! `POST /v1/executions`.
//!
//! The order of the checks is part of the protocol: content type, body, key, then the engine's own. It must
//! never send a byte of an event stream before the execution is durable.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

use super::events::watched;
use crate::answer::json_answer;
use crate::body::{BodyRefused, read_whole};
use crate::error::{ApiError, Asked};
use crate::router::Api;
use crate::wire::submission::submission_json;

pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";

pub(crate) async fn submit(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    if !declares_json(&parts.headers) {
        return Err(ApiError::invalid("Content-Type must be application/json"));
    }
    let body = whole_body(body, &api).await?;
    let key = idempotency_key(&parts.headers)?;
    let refused = |error| ApiError::public(error, Asked::Submit);
    if accepts_events(&parts.headers) {
        let (_, watch) = api.engine.submit_watching(&body, key).await.map_err(refused)?;
        return Ok(watched(&api, watch, &parts));
    }
    let submission = api.engine.submit(&body, key).await.map_err(refused)?;
    let status = if submission.idempotent_replay { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(json_answer(status, submission_json(&submission)).into_response())
}

async fn whole_body(body: Body, api: &Api) -> Result<bytes::Bytes, ApiError> {
    read_whole(body, api.options.body_read_timeout()).await.map_err(|refused| {
        ApiError::invalid(match refused {
            BodyRefused::TooLarge => "Request body is larger than 1 MiB",
            BodyRefused::Broken => "Request body could not be read",
            BodyRefused::TooSlow => "Request body did not arrive in time",
        })
    })
}

pub(super) fn declares_json(headers: &HeaderMap) -> bool {
    const JSON: &[u8] = b"application/json";
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.as_bytes().get(..JSON.len()))
        .is_some_and(|start| start.eq_ignore_ascii_case(JSON))
}

/// Two keys are none: which one counts would depend on who reads them. How long one may be the engine knows.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (std::str::from_utf8(value.as_bytes()), values.next()) {
        (Ok(key), None) => Ok(Some(key)),
        (Ok(_), Some(_)) | (Err(_), _) => Err(ApiError::invalid("Idempotency-Key must be one UTF-8 text")),
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    headers
        .get_all(header::ACCEPT)
        .iter()
        .any(|value| value.as_bytes().windows(EVENTS.len()).any(|window| window.eq_ignore_ascii_case(EVENTS)))
}
