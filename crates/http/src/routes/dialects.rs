//! The front doors for clients of other model APIs: a request is translated, submitted like any other, and its
//! execution is shown in the dialect it was asked for in.
//!
//! A client that goes away ends its own reading and never the execution. A stream's head is held back until there is
//! output, or the execution failed and is an error of its own, but never longer than a stream may be silent.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::MethodRouter;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use sealog_dialects::{Answer, Asked, ErrorAnswer, Head, Refusal};
use sealog_engine::store::{StoreError, Watch};
use sealog_engine::{PublicError, Submission};
use sealog_events::{Dialect, ExecutionId};
use tokio::time::sleep;

use super::id::decoded;
use super::submit::{IDEMPOTENCY_KEY, declares_json, idempotency_key};
use crate::answer::json_answer;
use crate::body::{BodyRefused, read_whole};
use crate::connection::Activity;
use crate::router::Api;
use crate::sse::{CONTENT_TYPE, Telling, ToldStream};

/// What the official clients are told about trying again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// What Anthropic's clients say in every request.
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const MODEL_PREFIX: &str = "/v1/models/";
/// Which execution it is, in our own API.
const EXECUTION: HeaderName = HeaderName::from_static("sealog-execution-id");

/// What there is for the clients of other model APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    ChatCompletions,
    Responses,
    Response,
    CancelResponse,
    Messages,
    Models,
    Model,
}

impl Door {
    /// Adds the handler under the method that the door has.
    pub(crate) fn on(self, only: MethodRouter<Api>) -> MethodRouter<Api> {
        match self {
            Door::ChatCompletions => only.post(chat),
            Door::Responses => only.post(responses),
            Door::Response => only.get(super::responses::retrieve),
            Door::CancelResponse => only.post(super::responses::cancel),
            Door::Messages => only.post(messages),
            Door::Models => only.get(models),
            Door::Model => only.get(model),
        }
    }
}

type Answered = Result<Response, ErrorAnswer>;

/// `POST /v1/chat/completions`
async fn chat(State(api): State<Api>, request: Request) -> Response {
    create(Dialect::OpenAiChat, &api, request).await
}

/// `POST /v1/responses`
async fn responses(State(api): State<Api>, request: Request) -> Response {
    create(Dialect::OpenAiResponses, &api, request).await
}

/// `POST /v1/messages`
async fn messages(State(api): State<Api>, request: Request) -> Response {
    create(Dialect::AnthropicMessages, &api, request).await
}

/// `GET /v1/models`: one list for the clients of all dialects.
async fn models(State(api): State<Api>, uri: Uri, headers: HeaderMap) -> Response {
    match api.engine.providers() {
        Ok(manifests) => json_answer(StatusCode::OK, sealog_dialects::list(&manifests)),
        Err(error) => error_response(failed(asked_in(&uri, &headers), &error)),
    }
}

/// `GET /v1/models/{id}`: an entry of the list. A name may have slashes, which come as they are or escaped.
async fn model(State(api): State<Api>, uri: Uri, headers: HeaderMap) -> Response {
    let dialect = asked_in(&uri, &headers);
    let name = uri.path().strip_prefix(MODEL_PREFIX).and_then(decoded);
    let found = api.engine.providers().map_err(|error| failed(dialect, &error)).and_then(|manifests| {
        let found = name.and_then(|name| sealog_dialects::one(&name, &manifests));
        found.ok_or_else(|| sealog_dialects::model_not_found(dialect))
    });
    match found {
        Ok(entry) => json_answer(StatusCode::OK, entry),
        Err(error) => error_response(error),
    }
}

/// The dialect whose clients ask on a path; `/v1/models` is in several, and only one of them sends its version.
pub(crate) fn dialect_of(path: &str, headers: &HeaderMap) -> Option<Dialect> {
    sealog_dialects::dialect_of(path, headers.contains_key(VERSION))
}

fn asked_in(uri: &Uri, headers: &HeaderMap) -> Dialect {
    dialect_of(uri.path(), headers).unwrap_or(Dialect::OpenAiChat)
}

/// The answer on a path or to a method that a dialect's interface has, or might have, and a node does not.
pub(crate) fn not_served(dialect: Dialect) -> Response {
    error_response(sealog_dialects::not_served(dialect))
}

/// The answer of an error.
pub(super) fn error_response(error: ErrorAnswer) -> Response {
    let ErrorAnswer { status, retry, body } = error;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_answer(status, body);
    let headers = response.headers_mut();
    headers.insert(SHOULD_RETRY, HeaderValue::from_static(if retry { "true" } else { "false" }));
    if retry && status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

pub(super) fn failed(dialect: Dialect, error: &PublicError) -> ErrorAnswer {
    sealog_dialects::failed(dialect, error.code, error.message, error.retryable)
}

/// Something of the store or of its events that only the log knows.
fn broken(dialect: Dialect) -> ErrorAnswer {
    failed(dialect, &PublicError::internal())
}

pub(super) fn with_execution(mut response: Response, id: ExecutionId) -> Response {
    if let Ok(id) = HeaderValue::try_from(id.to_string()) {
        response.headers_mut().insert(EXECUTION, id);
    }
    response
}

async fn create(dialect: Dialect, api: &Api, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match submit(dialect, api, &parts, body).await {
        Ok(submitted) => {
            let id = submitted.submission.execution_id;
            let answered = answer(dialect, api, &parts, submitted).await.map_err(|error| {
                // The key answers with this failure from now on: asked again, nothing else would come of it.
                let keyed = parts.headers.contains_key(IDEMPOTENCY_KEY);
                ErrorAnswer { retry: error.retry && !keyed, ..error }
            });
            with_execution(answered.unwrap_or_else(error_response), id)
        }
        Err(error) => error_response(error),
    }
}

/// A submission, and how it is to be answered.
struct Submitted {
    submission: Submission,
    watch: Box<dyn Watch>,
    answer: Answer,
    stream: bool,
    background: bool,
}

async fn submit(dialect: Dialect, api: &Api, parts: &Parts, body: Body) -> Result<Submitted, ErrorAnswer> {
    let refused = |message| sealog_dialects::refused(dialect, &Refusal { member: None, message });
    if !declares_json(&parts.headers) {
        return Err(refused("Content-Type must be application/json"));
    }
    let body = read_whole(body, api.options.body_read_timeout()).await.map_err(|body| {
        refused(match body {
            BodyRefused::TooLarge => "Request body is larger than 1 MiB",
            BodyRefused::Broken => "Request body could not be read",
            BodyRefused::TooSlow => "Request body did not arrive in time",
        })
    })?;
    let key = key(&parts.headers).ok_or_else(|| refused("Idempotency-Key must be one UTF-8 text"))?;
    let asked: Asked = sealog_dialects::read(dialect, &body)
        .map_err(|refusal| sealog_dialects::refused(dialect, &refusal))?;
    let manifests = api.engine.providers().map_err(|error| failed(dialect, &error))?;
    let choice = sealog_dialects::choose(&asked.model, &manifests);
    let choice = choice.ok_or_else(|| sealog_dialects::model_not_found(dialect))?;
    let Asked { stream, background, include_usage, fingerprint, .. } = asked;
    let origin = asked.origin();
    let mut request = asked.into_request(choice);
    request.origin = Some(origin.clone());
    let submitted = api.engine.submit_translated(request, fingerprint, key).await;
    let (submission, watch) = submitted.map_err(|error| failed(dialect, &error))?;
    let head = Head { id: submission.execution_id, created_at: submission.created_at, origin };
    let answer = Answer::new(head, include_usage);
    Ok(Submitted { submission, watch, answer, stream, background })
}

/// `None`: the header is there and is no key.
fn key(headers: &HeaderMap) -> Option<Option<&str>> {
    idempotency_key(headers).ok()
}

async fn answer(dialect: Dialect, api: &Api, parts: &Parts, submitted: Submitted) -> Answered {
    let Submitted { submission, watch, answer, stream, background } = submitted;
    let id = submission.execution_id;
    match (stream, background) {
        (true, _) => streamed(dialect, api, parts, watch, Telling::new(answer, None), background).await,
        // A new one is answered as it was accepted, however fast it is.
        (false, true) if !submission.idempotent_replay => through(dialect, watch, answer, 1).await,
        (false, true) => so_far(dialect, api, id, watch, answer).await,
        (false, false) => whole(dialect, watch, answer).await,
    }
}

/// The execution's answer once it has ended.
async fn whole(dialect: Dialect, mut watch: Box<dyn Watch>, answer: Answer) -> Answered {
    let mut telling = Telling::new(answer, None);
    while !telling.ended() {
        next(dialect, watch.as_mut(), &mut telling).await?;
    }
    match telling.answer.failure() {
        // What was said before is in the execution's snapshot; an answer that is cut off is none.
        Some(error) => Err(error),
        None => object(&telling.answer),
    }
}

/// The answer as far as it is durable now. `watch` is from the first event on; it also keeps the execution meanwhile.
pub(super) async fn so_far(
    dialect: Dialect,
    api: &Api,
    id: ExecutionId,
    watch: Box<dyn Watch>,
    answer: Answer,
) -> Answered {
    let snapshot = api.engine.snapshot(id).await.map_err(|error| failed(dialect, &error))?;
    let last_sequence = snapshot.ok_or_else(|| broken(dialect))?.last_sequence;
    through(dialect, watch, answer, last_sequence).await
}

/// The answer as the first events tell it.
async fn through(
    dialect: Dialect,
    mut watch: Box<dyn Watch>,
    answer: Answer,
    last_sequence: u64,
) -> Answered {
    let mut telling = Telling::new(answer, None);
    for _ in 0..last_sequence {
        next(dialect, watch.as_mut(), &mut telling).await?;
    }
    object(&telling.answer)
}

fn object(answer: &Answer) -> Answered {
    Ok(json_answer(StatusCode::OK, answer.object()?))
}

async fn next(dialect: Dialect, watch: &mut dyn Watch, telling: &mut Telling) -> Result<(), ErrorAnswer> {
    let event = watch.next().await.unwrap_or(Err(StoreError::Failed)).map_err(|_| broken(dialect))?;
    telling.tell(&event).map_err(|_| broken(dialect))
}

/// The answer as a stream. `at_once`: its head is sent whatever becomes of the execution.
pub(super) async fn streamed(
    dialect: Dialect,
    api: &Api,
    parts: &Parts,
    mut watch: Box<dyn Watch>,
    mut telling: Telling,
    at_once: bool,
) -> Answered {
    if !at_once {
        let mut patience = std::pin::pin!(sleep(api.options.heartbeat()));
        while !telling.answer.has_output() {
            tokio::select! {
                told = next(dialect, watch.as_mut(), &mut telling) => told?,
                () = &mut patience => break,
            }
            if let Some(error) = telling.answer.failure() {
                return Err(error);
            }
        }
    }
    let activity = parts.extensions.get::<Arc<Activity>>().map(Arc::clone);
    let stream = ToldStream::new(telling, watch, api.options.heartbeat(), activity);
    let mut response = Response::new(Body::new(stream));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    Ok(response)
}
