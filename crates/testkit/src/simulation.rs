//! The seeded simulation: engine, journal and HTTP projection in one deterministic process, with random clients, a
//! scripted provider and everything that may happen to a machine. Same seed, same run, byte for byte.
//!
//! Owns the scheduler and the oracle. Must never use a thread, the real clock or the order of a hash map for a decision.

mod aside;
mod campaign;
mod class;
mod client;
mod host;
mod log;
mod node;
mod offline;
mod pages;
mod plan;
mod random;
mod run;
mod script;
mod shrink;
mod world;

pub use campaign::{Campaign, Failing};
pub use class::{Class, Met, Totals};
pub use offline::{Change, Cut, Offline};
pub use plan::{Action, Manner, Plan, Pump, Step, Swarm};
pub use run::{Finished, run};
pub use shrink::shrink;
