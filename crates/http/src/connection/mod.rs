//! One accepted connection: what it may cost and how long it may wait.
//!
//! hyper speaks the protocol; this folder owns only the bounds hyper does not have. It must never look at
//! a request beyond its version, and never decide what is answered.

mod activity;
mod drive;
mod executor;
mod io;

pub(crate) use activity::{Activity, FrameGate};
pub(crate) use drive::{Lifetime, serve};

#[cfg(test)]
mod tests;
