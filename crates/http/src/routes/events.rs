//! `GET /v1/executions/{id}/events`, and the stream a submission may ask for.
//!
//! Closing the stream ends the watch only, never the execution.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Uri, Version, header};
use sealog_engine::Watch;
use sealog_events::ExecutionId;

use super::id::execution_id;
use crate::connection::Activity;
use crate::cursor::{BadCursor, parse_cursor, query_cursor};
use crate::error::{ApiError, Asked};
use crate::router::Api;
use crate::sse::{CONTENT_TYPE, EventStream};

const LAST_EVENT_ID: &str = "last-event-id";

pub(crate) async fn events(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    let id = execution_id(request.uri())?;
    let (parts, _) = request.into_parts();
    match cursor(&parts.uri, &parts.headers) {
        Ok(after) => event_stream(&api, id, after, &parts).await,
        Err(BadCursor) => {
            // An unknown execution is reported before a bad cursor.
            let known =
                api.engine.watch(id, 0).await.map_err(|error| ApiError::public(error, Asked::Execution))?;
            Err(if known.is_some() {
                ApiError::invalid("Event cursor must be a non-negative integer")
            } else {
                ApiError::execution_not_found()
            })
        }
    }
}

fn cursor(uri: &Uri, headers: &HeaderMap) -> Result<u64, BadCursor> {
    if let Some(after) = query_cursor(uri.query().unwrap_or_default())? {
        return Ok(after);
    }
    let mut values = headers.get_all(LAST_EVENT_ID).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(0),
        (Some(value), None) => parse_cursor(std::str::from_utf8(value.as_bytes()).map_err(|_| BadCursor)?),
        (Some(_), Some(_)) => Err(BadCursor),
    }
}

/// The events of an execution with sequences above `after`, as the answer to the request with that head.
async fn event_stream(api: &Api, id: ExecutionId, after: u64, request: &Parts) -> Result<Response, ApiError> {
    let watch =
        api.engine.watch(id, after).await.map_err(|error| ApiError::public(error, Asked::Execution))?;
    let watch = watch.ok_or_else(ApiError::execution_not_found)?;
    Ok(watched(api, watch, request))
}

/// What a watch tells, as the answer to the request with that head.
pub(super) fn watched(api: &Api, watch: Box<dyn Watch>, request: &Parts) -> Response {
    let activity = request.extensions.get::<Arc<Activity>>().map(Arc::clone);
    let stream = EventStream::new(watch, api.options.heartbeat(), activity);
    let mut response = Response::new(Body::new(stream));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    // Said aloud for intermediaries. HTTP/2 forbids the header, HTTP/1.0 ends a stream by closing, and a client that
    // speaks of its connection gets the answer to what it said.
    if request.version == Version::HTTP_11 && !request.headers.contains_key(header::CONNECTION) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("keep-alive"));
    }
    response
}
