//! Judges a request's head: the name it was sent to, the page it comes from, the token it carries.
//!
//! It must never look at a body, and never let a request through because something could not be read.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, header};

use super::hosts::AllowedNames;
use super::refusal;
use super::tokens::{Scope, Scopes, TokenSet, Tokens};
use crate::options::ServerOptions;

const API_KEY: &str = "x-api-key";
/// What tells only whether the node lives and takes work: whoever restarts nodes has no token.
const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];
const OPERATION_PATHS: [&str; 1] = ["/metrics"];

/// The rules for every request.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// The names this server answers to.
    pub names: AllowedNames,
    /// `None`: whoever reaches the server may do everything.
    pub tokens: Option<Tokens>,
}

/// Which rule refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Sent to a name that is not ours.
    Host,
    /// Sent by a page of another origin.
    Origin,
    /// Without a token, or with one that is not known.
    Unauthenticated,
    /// The token is known and lacks the scope.
    Forbidden,
}

impl Refused {
    pub const ALL: [Refused; 4] =
        [Refused::Host, Refused::Origin, Refused::Unauthenticated, Refused::Forbidden];

    /// The word for the rule.
    pub fn word(self) -> &'static str {
        match self {
            Refused::Host => "host",
            Refused::Origin => "origin",
            Refused::Unauthenticated => "token",
            Refused::Forbidden => "scope",
        }
    }
}

impl Guard {
    /// Judges a request by its head.
    pub(crate) fn judge<B>(&self, request: &http::Request<B>) -> Result<(), Refused> {
        let headers = request.headers();
        let named = Authority::try_from(only(headers, header::HOST)?.unwrap_or_default());
        // The target of an HTTP/2 request, and of one in absolute form; `Host` may stand beside it.
        let target = request.uri().authority();
        let authority = match (target, &named) {
            (Some(target), _) => target,
            (None, Ok(named)) => named,
            (None, Err(_)) => return Err(Refused::Host),
        };
        let host_fits = match &named {
            Ok(named) => self.names.has_host(named),
            Err(_) => !headers.contains_key(header::HOST),
        };
        if !host_fits || !self.names.has_host(authority) {
            return Err(Refused::Host);
        }
        if headers.contains_key(header::ORIGIN) {
            let origin =
                only(headers, header::ORIGIN).ok().flatten().and_then(|text| str::from_utf8(text).ok());
            if !origin.is_some_and(|origin| self.names.has_origin(origin, authority)) {
                return Err(Refused::Origin);
            }
        }
        let Some(tokens) = &self.tokens else { return Ok(()) };
        let Some(needed) = needed(request.method(), request.uri().path()) else { return Ok(()) };
        let held = held(headers, &tokens.now()).ok_or(Refused::Unauthenticated)?;
        if held.contain(needed) { Ok(()) } else { Err(Refused::Forbidden) }
    }
}

/// The one value of a header. Two of them are none: which one counts would depend on who reads them.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&[u8]>, Refused> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(HeaderValue::as_bytes)),
        (_, Some(_)) => Err(Refused::Host),
    }
}

/// `None`: no token at all.
fn needed(method: &Method, path: &str) -> Option<Scope> {
    if OPEN_PATHS.contains(&path) {
        return None;
    }
    if OPERATION_PATHS.contains(&path) {
        return Some(Scope::Admin);
    }
    Some(if method == Method::GET || method == Method::HEAD { Scope::Read } else { Scope::Write })
}

/// What the tokens of a request may do together. Clients of one dialect send `x-api-key`, of another
/// `Authorization`; some send both, of which one may be somebody else's.
fn held(headers: &HeaderMap, tokens: &TokenSet) -> Option<Scopes> {
    let bearer = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| bearer(value.as_bytes()));
    let keys = headers.get_all(API_KEY).iter().map(HeaderValue::as_bytes);
    // More than a few is somebody who guesses.
    bearer.take(2).chain(keys.take(2)).filter_map(|token| tokens.find(token)).reduce(Scopes::and)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}

/// The layer around every route.
pub(crate) async fn guarded(
    State(options): State<Arc<ServerOptions>>,
    request: Request,
    next: Next,
) -> Response {
    match options.guard.judge(&request) {
        Ok(()) => next.run(request).await,
        Err(refused) => {
            options.stats.refused(refused);
            tracing::info!(rule = refused.word(), "a request was refused");
            refusal::answer(refused, request.uri().path(), request.headers())
        }
    }
}
