//! Media tasks on the queue of fal: one is submitted, asked for until it is done, and fetched.
//!
//! A task costs money once it is accepted, so it is submitted once, and given up with one bounded cancel when nobody
//! will fetch it. Its artifacts are named, never fetched. Nothing an upstream writes in an error reaches a failure's
//! text.

mod answers;
mod provider;
mod request;
mod task;

pub use provider::{DEFAULT_ID, FalQueue, Polling};
pub use request::EXTENSION;
