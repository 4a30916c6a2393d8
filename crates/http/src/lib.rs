//! Sealog's HTTP projection: the model API over the engine, with its own accept loop.
//!
//! What this crate promises: every answer carries `nosniff` and `no-store`; every error is one of a closed set
//! of codes with a fixed sentence; an event stream sends only durable events, one frame at a time, and ends
//! cleanly only after the terminal one; no peer can make the server wait or hold without a bound.
//!
//! Nothing here reads configuration, files or the environment, and nothing here decides what an execution does.

mod accept;
mod answer;
mod body;
mod connection;
pub mod cursor;
#[cfg(any(test, feature = "contract"))]
pub mod document;
mod error;
mod guard;
mod operation;
mod options;
mod request_id;
mod router;
mod routes;
mod server;
mod sse;
mod stats;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

pub use error::ErrorCode;
pub use guard::{
    AllowedNames, BadName, DEFAULT_LISTEN, DIGEST_BYTES, Guard, NonLoopbackRefused, Scope, Scopes,
    TOKEN_LENGTH_MAX, TokenSet, Tokens, check_listen, digest,
};
pub use operation::{Operation, READY_REASONS};
pub use options::{HEARTBEAT_MS_CEILING, ServerOptions};
pub use request_id::RequestIds;
pub use router::{Method, ROUTES, Route, router};
pub use server::{BindError, ListenerBroke, Server, Shutdown};
pub use sse::{CONTENT_TYPE as SSE_CONTENT_TYPE, HEARTBEAT as SSE_HEARTBEAT, sse_frame};
pub use stats::{ServerCounts, ServerStats};
pub use tls::{BadTls, Tls};
