//! A scripted upstream server for tests: it sends exactly the bytes a script says, or breaks off as it says.
//!
//! It speaks raw TCP, because the cases worth testing (half heads, wrong lengths, resets, silence) are those a
//! correct HTTP server cannot produce. Nothing here sleeps: a script waits for a [`Gate`] that the test opens.
//! [`odd_cases`] runs all of them against one adapter.

pub mod odd_cases;
mod script;
mod server;

pub use script::{Gate, Script};
pub use server::{Recorded, ScriptedServer};
