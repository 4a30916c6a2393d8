//! The routes of the model API, and what is true of every answer.
//!
//! The table [`ROUTES`] is what exists; the router is built from nothing else. It must never answer 405, and
//! never serve HEAD for a GET route: whatever is not in the table is not found.

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use http::{HeaderMap, HeaderValue, Uri, Version, header};
use sealog_engine::Engine;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::body::SharedBody;
use crate::error::ApiError;
use crate::guard::guarded;
use crate::options::ServerOptions;
use crate::request_id::identified;
use crate::routes;
use crate::routes::dialects::{Door, dialect_of, not_served};
use crate::stats::counted;

/// What a handler needs.
#[derive(Clone)]
pub(crate) struct Api {
    pub engine: Engine,
    pub options: Arc<ServerOptions>,
}

/// One row of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// `GET` or `POST`.
    pub method: Method,
    /// With `{id}` where an id stands; a model's may have slashes.
    pub path: &'static str,
    handler: Handler,
}

/// The two methods the API knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Submits or cancels.
    Post,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handler {
    Runtime,
    Providers,
    Submit,
    List,
    Snapshot,
    Events,
    Outcome,
    Cancel,
    Door(Door),
    Health,
    Ready,
    Metrics,
}

const fn get(path: &'static str, handler: Handler) -> Route {
    Route { method: Method::Get, path, handler }
}

const fn post(path: &'static str, handler: Handler) -> Route {
    Route { method: Method::Post, path, handler }
}

/// Every route of the model API.
pub const ROUTES: [Route; 18] = [
    get("/healthz", Handler::Health),
    get("/readyz", Handler::Ready),
    get("/metrics", Handler::Metrics),
    get("/v1/runtime", Handler::Runtime),
    get("/v1/providers", Handler::Providers),
    post("/v1/executions", Handler::Submit),
    get("/v1/executions", Handler::List),
    get("/v1/executions/{id}", Handler::Snapshot),
    get("/v1/executions/{id}/events", Handler::Events),
    get("/v1/executions/{id}/result", Handler::Outcome),
    post("/v1/executions/{id}/cancel", Handler::Cancel),
    post("/v1/chat/completions", Handler::Door(Door::ChatCompletions)),
    post("/v1/responses", Handler::Door(Door::Responses)),
    get("/v1/responses/{id}", Handler::Door(Door::Response)),
    post("/v1/responses/{id}/cancel", Handler::Door(Door::CancelResponse)),
    post("/v1/messages", Handler::Door(Door::Messages)),
    get("/v1/models", Handler::Door(Door::Models)),
    get("/v1/models/{id}", Handler::Door(Door::Model)),
];

/// `any` first: it keeps axum from adding an `Allow` header, and without the HEAD row a GET route answers HEAD.
fn no_method() -> MethodRouter<Api> {
    any(route_not_found).head(route_not_found)
}

/// Every path once, with all its methods.
fn paths() -> Vec<(&'static str, MethodRouter<Api>)> {
    let mut paths: Vec<(&str, MethodRouter<Api>)> = Vec::new();
    for route in ROUTES {
        match paths.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, methods)) => *methods = with_method(std::mem::take(methods), route),
            None => paths.push((route.path, with_method(no_method(), route))),
        }
    }
    paths
}

fn with_method(only: MethodRouter<Api>, route: Route) -> MethodRouter<Api> {
    match (route.method, route.handler) {
        (Method::Get | Method::Post, Handler::Door(door)) => door.on(only),
        (Method::Get, Handler::Health) => only.get(routes::operation::health),
        (Method::Get, Handler::Ready) => only.get(routes::operation::ready),
        (Method::Get, Handler::Metrics) => only.get(routes::operation::metrics),
        (Method::Get, Handler::Runtime) => only.get(routes::runtime::runtime),
        (Method::Get, Handler::Providers) => only.get(routes::runtime::providers),
        (Method::Get, Handler::List) => only.get(routes::listing::executions),
        (Method::Get, Handler::Snapshot) => only.get(routes::executions::snapshot),
        (Method::Get, Handler::Events) => only.get(routes::events::events),
        (Method::Get, Handler::Outcome) => only.get(routes::executions::result),
        (Method::Post, Handler::Submit) => only.post(routes::submit::submit),
        (Method::Post, Handler::Cancel) => only.post(routes::executions::cancel),
        (Method::Get, Handler::Submit | Handler::Cancel)
        | (
            Method::Post,
            Handler::Health
            | Handler::Ready
            | Handler::Metrics
            | Handler::Runtime
            | Handler::Providers
            | Handler::List
            | Handler::Snapshot
            | Handler::Events
            | Handler::Outcome,
        ) => only,
    }
}

/// In the words of whoever's interface the path belongs to.
async fn route_not_found(uri: Uri, headers: HeaderMap) -> Response {
    match dialect_of(uri.path(), &headers) {
        Some(dialect) => not_served(dialect),
        None => ApiError::route_not_found().into_response(),
    }
}

/// A path as axum matches it.
fn pattern(path: &'static str) -> &'static str {
    if path == "/v1/models/{id}" { "/v1/models/{*id}" } else { path }
}

/// The model API of `engine` as a router, complete with what every answer has.
pub fn router(engine: Engine, options: Arc<ServerOptions>) -> Router {
    let mut routes = Router::new();
    for (path, methods) in paths() {
        routes = routes.route(pattern(path), methods);
    }
    let api = Api { engine, options: Arc::clone(&options) };
    wrapped(routes.fallback(route_not_found).with_state(api), options)
}

/// What every answer has, from the inside out: whoever may not ask is refused, unread bodies are thrown away, a panic
/// is turned into an answer, and the two headers stand on whatever comes out of that.
fn wrapped(router: Router, options: Arc<ServerOptions>) -> Router {
    let fixed = |name, value| SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value));
    router
        .layer(from_fn_with_state(Arc::clone(&options), guarded))
        .layer(from_fn_with_state(Arc::clone(&options), discard_unread))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(fixed(header::CACHE_CONTROL, "no-store"))
        .layer(from_fn_with_state(Arc::clone(&options), counted))
        .layer(from_fn_with_state(options, identified))
}

/// The panic's text stays in the log of the panic hook.
fn panicked(_payload: Box<dyn Any + Send + 'static>) -> Response {
    ApiError::internal().into_response()
}

async fn discard_unread(State(options): State<Arc<ServerOptions>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if http_body::Body::is_end_stream(&body) {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let (version, waits_for_go) = (parts.version, parts.headers.contains_key(header::EXPECT));
    let body = SharedBody::new(body);
    let mut response = next.run(Request::from_parts(parts, Body::new(body.clone()))).await;
    // Reading would tell a client that asked first to send the body after all.
    let invited = !waits_for_go || body.polled();
    if !(invited && body.discard(&options).await) && version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests;
