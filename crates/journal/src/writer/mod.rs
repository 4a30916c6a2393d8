//! The write side: a queue of units, a state machine that turns them into synced frames, the preparation of the next
//! segment, and the two threads that drive them.

mod budget;
pub(crate) mod core;
pub(crate) mod frames;
pub(crate) mod maintain;
pub(crate) mod prepare;
pub(crate) mod queue;
pub(crate) mod threads;
