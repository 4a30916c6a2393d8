//! A response that was asked for earlier: what became of it, its stream from a place on, and asking it to stop.
//!
//! Only executions that were asked for as responses are some; all others are not found.

use axum::extract::{Request, State};
use axum::response::Response;
use http::Uri;
use sealog_dialects::{Answer, ErrorAnswer, Head, Refusal};
use sealog_engine::store::Watch;
use sealog_events::{Dialect, ExecutionId};

use super::dialects::{error_response, failed, so_far, streamed, with_execution};
use crate::router::Api;
use crate::sse::Telling;

const DIALECT: Dialect = Dialect::OpenAiResponses;

/// `GET /v1/responses/{id}`, with `stream=true` the events, with `starting_after` those behind that number.
pub(crate) async fn retrieve(State(api): State<Api>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let answered = async {
        let (head, watch) = known(&api, &parts.uri).await?;
        let id = head.id;
        let query = Query::of(parts.uri.query().unwrap_or_default())?;
        let answer = Answer::new(head, false);
        let response = if query.stream {
            streamed(DIALECT, &api, &parts, watch, Telling::new(answer, query.starting_after), true).await?
        } else {
            so_far(DIALECT, &api, id, watch, answer).await?
        };
        Ok(with_execution(response, id))
    };
    answered.await.unwrap_or_else(error_response)
}

/// `POST /v1/responses/{id}/cancel`: answers once the execution has ended; one that had is answered as it is.
pub(crate) async fn cancel(State(api): State<Api>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let answered = async {
        let (head, mut watch) = known(&api, &parts.uri).await?;
        let id = head.id;
        api.engine.cancel(id).await.map_err(|error| failed(DIALECT, &error))?;
        // The engine ends what was asked to stop within bounds.
        while let Some(Ok(event)) = watch.next().await {
            if event.terminal {
                break;
            }
        }
        let again = watched(&api, id).await?;
        let answered = so_far(DIALECT, &api, id, again, Answer::new(head, false)).await;
        answered.map(|response| with_execution(response, id))
    };
    answered.await.unwrap_or_else(error_response)
}

/// The response that a path names, and its events: while they are watched it is kept.
async fn known(api: &Api, uri: &Uri) -> Result<(Head, Box<dyn Watch>), ErrorAnswer> {
    let segment = uri.path().split('/').nth(3).unwrap_or_default();
    let id: ExecutionId =
        sealog_dialects::execution_of(segment).ok_or_else(sealog_dialects::response_not_found)?;
    let watch = watched(api, id).await?;
    let unavailable = |error| failed(DIALECT, &error);
    let snapshot = api.engine.snapshot(id).await.map_err(unavailable)?;
    let origin = api.engine.origin(id).await.map_err(unavailable)?;
    match (origin, snapshot) {
        (Some(origin), Some(snapshot)) if origin.dialect == DIALECT => {
            Ok((Head { id, created_at: snapshot.created_at, origin }, watch))
        }
        (Some(_) | None, _) => Err(sealog_dialects::response_not_found()),
    }
}

async fn watched(api: &Api, id: ExecutionId) -> Result<Box<dyn Watch>, ErrorAnswer> {
    let watch = api.engine.watch(id, 0).await.map_err(|error| failed(DIALECT, &error))?;
    watch.ok_or_else(sealog_dialects::response_not_found)
}

struct Query {
    stream: bool,
    starting_after: Option<u64>,
}

impl Query {
    /// What else stands there changes nothing of what is answered.
    fn of(query: &str) -> Result<Query, ErrorAnswer> {
        let refused = |member| {
            let refusal = Refusal { member: Some(member), message: "Invalid value" };
            sealog_dialects::refused(DIALECT, &refusal)
        };
        let mut read = Query { stream: false, starting_after: None };
        for (name, value) in query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
            match name {
                "stream" => read.stream = value.parse().map_err(|_| refused("stream"))?,
                "starting_after" => {
                    let plain = value.bytes().all(|byte| byte.is_ascii_digit());
                    let number = value.parse().ok().filter(|_| plain);
                    read.starting_after = Some(number.ok_or_else(|| refused("starting_after"))?);
                }
                _ => {}
            }
        }
        Ok(read)
    }
}
