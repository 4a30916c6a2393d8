//! One request to one origin: no redirects, no retries, no proxy, a bound on every wait.
//!
//! reqwest would resend requests by itself, follow redirects and obey proxy variables; all three are switched off
//! here and nowhere else is a client built. There is deliberately no timeout over a whole stream: an answer may
//! take as long as its execution's deadline, only silence is bounded.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;
use sealog_execution::AbortSignal;

use crate::sending::{Head, Sending, Watched, request_id};
use crate::{BaseUrl, Endpoint, Response, Secrets, UpstreamError};

/// How long each stage may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Name resolution, TCP and TLS together.
    pub connect: Duration,
    /// From the call to the response head. Some servers send it only with the first token, so it also covers
    /// queueing and reading the prompt.
    pub head: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(10),
            head: Duration::from_secs(300),
            idle: Duration::from_secs(300),
        }
    }
}

/// Why no client could be built. No detail: the causes are local and go to tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("this machine offers no usable root certificates")]
    NoRootCertificates,
    #[error("the HTTP client could not be set up")]
    Setup,
}

/// Servers commonly close an idle connection after five seconds; leaving first keeps a request from meeting the
/// close half way, which could not be told from a lost answer.
const POOL_IDLE: Duration = Duration::from_secs(4);
const USER_AGENT: &str = concat!("sealog/", env!("CARGO_PKG_VERSION"));

/// A client for one upstream.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    timeouts: Timeouts,
}

/// A POST with a JSON body. Not `Debug`: the headers hold a credential, the body a caller's content.
#[expect(missing_debug_implementations, reason = "holds a credential and a caller's content")]
pub struct Post {
    pub endpoint: Endpoint,
    /// The media type that is asked for.
    pub accept: &'static str,
    /// Credentials and vendor headers; their values are marked sensitive by whoever made them.
    pub headers: HeaderMap<HeaderValue>,
    pub body: Vec<u8>,
}

impl Post {
    pub fn new(endpoint: Endpoint, accept: &'static str, body: Vec<u8>) -> Post {
        Post { endpoint, accept, headers: HeaderMap::new(), body }
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Post {
        self.headers.insert(name, value);
        self
    }
}

impl Client {
    /// # Errors
    /// [`ClientError::NoRootCertificates`] for an https base on a machine without trusted roots.
    pub fn new(base: &BaseUrl, timeouts: Timeouts) -> Result<Client, ClientError> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(base)?)
            .https_only(base.is_https())
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(timeouts.connect)
            .pool_idle_timeout(POOL_IDLE)
            .user_agent(USER_AGENT)
            .build()
            .map_err(|error| {
                tracing::debug!(error = %error, "no HTTP client");
                ClientError::Setup
            })?;
        Ok(Client { http, timeouts })
    }

    /// Sends the request once and waits for the response head. Nothing is sent when `abort` is already set;
    /// when it fires, or when the future is dropped, the connection of the request is closed.
    ///
    /// # Errors
    /// Everything but a 2xx head. The body of a refusal is dropped unread: its connection is closed, not drained.
    pub async fn post(&self, post: Post, abort: &AbortSignal) -> Result<Response, UpstreamError> {
        let request = self.request(&post).body(post.body);
        self.send(request, abort).await
    }

    /// As [`Client::post`], telling how far it came. Nothing happens before it is asked.
    pub fn post_watched(&self, post: Post, abort: &AbortSignal) -> Sending {
        let request = self.request(&post);
        let (body, sent) = Watched::new(post.body);
        let request = request.body(reqwest::Body::wrap(body));
        let (timeouts, abort, secrets) = (self.timeouts, abort.clone(), Secrets::of(&post.headers));
        let answer = async move {
            let mut head = head(request, timeouts, &abort).await?;
            head.request_id = head.request_id.filter(|id| !secrets.stand_in(id.as_str()));
            Ok(head)
        };
        Sending::new(Box::pin(answer), sent)
    }

    fn request(&self, post: &Post) -> reqwest::RequestBuilder {
        self.http
            .post(post.endpoint.url().clone())
            .headers(post.headers.clone())
            .header(ACCEPT, HeaderValue::from_static(post.accept))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// As [`Client::post`], for a JSON document that stands at `endpoint`.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub async fn get(
        &self,
        endpoint: &Endpoint,
        headers: HeaderMap<HeaderValue>,
        abort: &AbortSignal,
    ) -> Result<Response, UpstreamError> {
        let request = self.http.get(endpoint.url().clone()).headers(headers);
        self.send(request.header(ACCEPT, HeaderValue::from_static("application/json")), abort).await
    }

    /// As [`Client::post`], for a PUT without a body.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub async fn put(
        &self,
        endpoint: &Endpoint,
        headers: HeaderMap<HeaderValue>,
        abort: &AbortSignal,
    ) -> Result<Response, UpstreamError> {
        let request = self.http.put(endpoint.url().clone()).headers(headers);
        self.send(request.header(CONTENT_LENGTH, HeaderValue::from_static("0")), abort).await
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        abort: &AbortSignal,
    ) -> Result<Response, UpstreamError> {
        head(request, self.timeouts, abort).await?.accept()
    }
}

/// Sends the request once and waits for the head of its answer.
async fn head(
    request: reqwest::RequestBuilder,
    timeouts: Timeouts,
    abort: &AbortSignal,
) -> Result<Head, UpstreamError> {
    let answer = tokio::select! {
        biased;
        () = abort.cancelled() => return Err(UpstreamError::Aborted),
        answer = tokio::time::timeout(timeouts.head, request.send()) => answer,
    };
    let response = match answer {
        Err(_elapsed) => return Err(UpstreamError::NoAnswer),
        Ok(Err(error)) => return Err(transport(&error)),
        Ok(Ok(response)) => response,
    };
    let request_id = request_id(response.headers());
    let accepted = match response.status().as_u16() {
        200..=299 => Ok(Response::new(response, abort.clone(), timeouts.idle)),
        status @ 300..=399 => Err(UpstreamError::Redirect(status)),
        status => Err(UpstreamError::Status(status)),
    };
    Ok(Head { accepted, request_id })
}

/// Before a response head: either no connection came about, or it ended after the request.
fn transport(error: &reqwest::Error) -> UpstreamError {
    tracing::debug!(connect = error.is_connect(), timeout = error.is_timeout(), "upstream call failed");
    if error.is_connect() { UpstreamError::Unreachable } else { UpstreamError::BrokenBeforeAnswer }
}

/// TLS 1.2 and 1.3 over ring, handed in ready: with no provider named, rustls takes whatever the process
/// installed, and panics if two are linked.
fn tls(base: &BaseUrl) -> Result<rustls::ClientConfig, ClientError> {
    let provider = Arc::new(ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|_| ClientError::Setup)?;
    // A plain-HTTP base never opens TLS, so it must work on a machine without any root certificate.
    let mut config = if base.is_https() {
        let verifier = Verifier::new(provider).map_err(|error| {
            tracing::debug!(error = %error, "no root certificates");
            ClientError::NoRootCertificates
        })?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests;
