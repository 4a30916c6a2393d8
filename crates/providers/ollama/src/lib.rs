//! The native chat API of Ollama: `POST <base>/api/chat`, one JSON object a line.
//!
//! One attempt is one POST and one stream of lines. The adapter translates and checks; it never retries, routes or
//! keeps a key, and nothing an upstream writes in an error reaches a failure's text.

mod chunk;
mod conversation;
mod provider;
mod request;
mod translate;

pub use provider::{DEFAULT_ID, Ollama};
pub use request::EXTENSION;
