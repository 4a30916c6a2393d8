//! One file per resource. A handler reads the request, asks the engine once and renders; it must never decide
//! what the engine decides.

pub(crate) mod dialects;
pub(crate) mod events;
pub(crate) mod executions;
mod id;
pub(crate) mod listing;
pub(crate) mod operation;
mod responses;
pub(crate) mod runtime;
pub(crate) mod submit;
