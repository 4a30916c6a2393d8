//! `POST /v1/chat/completions` of OpenAI.

pub(crate) mod answer;
pub(crate) mod request;
