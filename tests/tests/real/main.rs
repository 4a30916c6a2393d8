//! Tests that need more than the Rust toolchain and a C compiler: one module per topic.
//!
//! A tool that is missing is a failure here, never a reason to skip.

mod local_model;
mod tools;
