//! A client of a Sealog node: submit, follow, cancel, look, list.
//!
//! It speaks HTTP to one given node and to nobody else, over TLS, a socket in the file system or a plain connection:
//! no certificate goes unchecked, no token goes to another machine in the clear, no redirect is followed, nothing is
//! resent. A
//! broken event stream is resumed from its last sequence; everything else that fails is the caller's decision.

mod base_url;
mod cancel;
mod client;
mod error;
mod follow;
mod greeting;
mod listing;
mod readiness;
#[cfg(test)]
mod script;
mod snapshot;
mod sse;
mod submit;
mod tls;
mod transport;

pub use client::{Client, ClientOptions};
pub use error::{ApiFailure, ClientError, Distrust};
pub use follow::{Event, Follow};
pub use listing::{ListPage, ListQuery};
pub use snapshot::{Outcome, Snapshot};
pub use sse::FRAME_BYTES_MAX;
pub use submit::Submission;
pub use transport::ANSWER_BYTES_MAX;

#[cfg(test)]
mod tests;
