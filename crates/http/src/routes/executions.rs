//! What an execution is, what came of it, and asking it to stop.

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use sealog_events::json::{result_json, snapshot_json};
use sealog_events::{ExecutionId, Snapshot, Status};

use super::id::{BadId, execution_id};
use crate::answer::json_answer;
use crate::error::{ApiError, Asked};
use crate::router::Api;
use crate::wire::outcome::{CANCELLATION_REQUESTED, NOT_FOUND, unfinished_json};

async fn known(api: &Api, id: ExecutionId) -> Result<Snapshot, ApiError> {
    let snapshot =
        api.engine.snapshot(id).await.map_err(|error| ApiError::public(error, Asked::Execution))?;
    snapshot.ok_or_else(ApiError::execution_not_found)
}

/// `GET /v1/executions/{id}`
pub(crate) async fn snapshot(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    let snapshot = known(&api, execution_id(request.uri())?).await?;
    Ok(json_answer(StatusCode::OK, snapshot_json(&snapshot)))
}

/// `GET /v1/executions/{id}/result`: only what succeeded has one; a failed execution's partial output is
/// evidence, to be had from its snapshot.
pub(crate) async fn result(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    let snapshot = known(&api, execution_id(request.uri())?).await?;
    Ok(match snapshot.status {
        Status::Succeeded => json_answer(StatusCode::OK, result_json(&snapshot)),
        Status::Accepted | Status::Routing | Status::Running | Status::Failed | Status::Cancelled => {
            json_answer(StatusCode::CONFLICT, unfinished_json(&snapshot))
        }
    })
}

/// `POST /v1/executions/{id}/cancel`: body and content type are ignored.
pub(crate) async fn cancel(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    let cancelled = match execution_id(request.uri()) {
        Ok(id) => api.engine.cancel(id).await.map_err(|error| ApiError::public(error, Asked::Execution))?,
        Err(BadId::Unknown) => false,
        Err(bad @ (BadId::Absent | BadId::Undecodable)) => return Err(bad.into()),
    };
    Ok(if cancelled {
        json_answer(StatusCode::ACCEPTED, CANCELLATION_REQUESTED)
    } else {
        json_answer(StatusCode::NOT_FOUND, NOT_FOUND)
    })
}
