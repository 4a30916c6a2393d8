//! The model APIs of others in front of executions: a request becomes an [`ExecutionRequest`], events become the
//! dialect's chunks, objects and errors.
//!
//! Everything here is pure: what comes out depends on the request, or on the durable events in their order, and on
//! nothing else, so that a stream can be told again from its beginning and gives the same frames with the same
//! numbers. No text of a caller or an upstream reaches an error.
//!
//! [`ExecutionRequest`]: sealog_execution::ExecutionRequest

mod answer;
mod asked;
mod blocks;
mod chat;
mod error;
mod members;
mod messages;
mod models;
mod paths;
mod responses;
mod stop;
mod told;
mod usage;

pub use answer::{Answer, Frame, Head};
pub use asked::{Asked, read};
pub use error::{ErrorAnswer, Refusal, failed, model_not_found, not_served, refused, response_not_found};
pub use models::{Choice, choose, list, one};
pub use paths::dialect_of;
pub use responses::{execution_of, response_id};
pub use told::{Failed, Told, What};
