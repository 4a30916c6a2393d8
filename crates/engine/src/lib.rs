//! Sealog's execution engine: routes a request to a provider, turns what the provider reports into durable events,
//! and ends every execution with exactly one terminal event.
//!
//! The rules everything here keeps: nothing is visible before it is durable, nothing is asked of a provider before
//! the event that announces it is durable, and one task alone writes an execution's events.

mod catalog;
mod driver;
mod engine;
mod model;
mod observe;
mod public;
mod stop;
pub mod store;

pub use engine::{Engine, EngineOptions, Load};
pub use observe::{Fact, Failing, Following, Observer};
pub use public::{Features, PublicError, RuntimeInfo, RuntimeState, Submission};
pub use store::{Brief, EventStore, StoreError, StoredEvent, Watch};
