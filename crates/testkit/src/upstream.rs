//! The scripted upstream server, for tests of any crate.
//!
//! It lives in `sealog-upstream` behind the feature `testing`, because that crate's own tests need it and must not
//! see their crate twice; this module is the name everybody else uses.

pub use sealog_upstream::testing::{Gate, Recorded, Script, ScriptedServer};
