//! The model machine's decisions, as pure functions: no clock, no task, no store. The driver asks, they answer.

pub(crate) mod attempt;
pub(crate) mod deadline;
pub(crate) mod output;
pub(crate) mod route;
