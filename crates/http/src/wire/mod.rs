//! The JSON of what is not an event: one file per resource. Events, snapshots and results are rendered by
//! `sealog_events::json` alone.

pub(crate) mod outcome;
pub(crate) mod runtime;
pub(crate) mod submission;
