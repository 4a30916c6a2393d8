//! Any OpenAI-compatible `/chat/completions` stream.
//!
//! One attempt is one POST and one event stream. The adapter translates and checks; it never retries, routes or
//! keeps a key, and nothing an upstream writes in an error reaches a failure's text.

mod chunk;
mod conversation;
mod provider;
mod request;
mod translate;

pub use provider::{DEFAULT_ID, OpenAiChat};
pub use request::EXTENSION;
