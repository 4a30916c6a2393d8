//! Sealog's event vocabulary: types, record bodies, JSON text and the fold from events to a snapshot.
//!
//! Everything here is pure: time, randomness and bytes come in as arguments, nothing is read, written or waited for.
//! What other crates may rely on: a value that [`body::encode`] accepts is bounded, decodes to itself, renders to one
//! line of JSON that every client accepts, and a body that [`body::decode`] accepts was made by [`body::encode`].

#[cfg(test)]
mod arbitrary;
mod attempt;
pub mod body;
pub mod canonical;
mod event;
mod execution;
pub mod folded;
mod ids;
pub mod json;
mod json_text;
pub mod limits;
pub mod materialize;
mod output;
mod progress;
pub mod registry;
mod result;
mod route;
mod time;
mod usage;

pub use attempt::{Attempt, AttemptEvidence, Mark, RequestId};
pub use event::{Event, EventBody};
pub use execution::{Created, ErrorFact, Identity, Labels, Origin};
pub use ids::ExecutionId;
pub use json_text::{JsonText, JsonTextError};
pub use materialize::{Materializer, Snapshot};
pub use output::Artifact;
pub use progress::ProgressNumber;
pub use registry::{
    Dialect, Holds, Outcome, Phase, PortableCode, Reached, RecordKind, Status, StopReason, UsageSource,
};
pub use result::MaterializedResult;
pub use route::Target;
pub use time::Timestamp;
pub use usage::{Quantity, UsageFact};
