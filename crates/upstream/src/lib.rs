//! Bounded HTTP to model providers and their event streams.
//!
//! Every byte that comes from an upstream passes through here and is counted: heads, bodies, single events and
//! silences have bounds. Nothing here retries, follows a redirect, uses a proxy or knows a vendor's protocol.

pub mod base_url;
pub mod client;
pub mod credential;
pub mod error;
mod lines;
pub mod model;
pub mod response;
pub mod secrets;
pub mod sending;
pub mod sse;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use base_url::{BaseUrl, BaseUrlError, Endpoint};
pub use client::{Client, ClientError, Post, Timeouts};
pub use credential::{Credential, CredentialError, CredentialSource, EnvironmentName};
pub use error::UpstreamError;
pub use response::{BODY_BYTES_MAX, Response};
pub use secrets::Secrets;
pub use sending::{Head, Sending, Step};
pub use sse::{EVENT_BYTES_MAX, EventStream, ServerEvent};
