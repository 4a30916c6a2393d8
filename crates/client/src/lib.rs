//! A client of a Sealog node: submit, follow, cancel, look, list.
//!
//! It speaks plain HTTP to one given host and to nobody else: no redirect is followed, nothing is resent. A
//! broken event stream is resumed from its last sequence; everything else that fails is the caller's decision.

mod base_url;
mod cancel;
mod client;
mod error;
mod follow;
mod listing;
#[cfg(test)]
mod script;
mod snapshot;
mod sse;
mod submit;
mod transport;

pub use client::{Client, ClientOptions};
pub use error::{ApiFailure, ClientError};
pub use follow::{Event, Follow};
pub use listing::{ListPage, ListQuery};
pub use snapshot::{Outcome, Snapshot};
pub use sse::FRAME_BYTES_MAX;
pub use submit::Submission;
pub use transport::ANSWER_BYTES_MAX;

#[cfg(test)]
mod tests;
