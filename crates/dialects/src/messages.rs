//! `POST /v1/messages` of Anthropic.

pub(crate) mod answer;
pub(crate) mod request;
