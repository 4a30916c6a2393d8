//! The responses API of OpenAI, and of whoever speaks it: `POST <base>/responses`, streamed.
//!
//! One attempt is one POST and one event stream. The adapter translates and checks; it never retries, routes or
//! keeps a key, and nothing an upstream writes in an error reaches a failure's text.

mod chunk;
mod conversation;
mod provider;
mod request;
mod translate;

pub use provider::{DEFAULT_ID, OpenAiResponses};
pub use request::EXTENSION;
