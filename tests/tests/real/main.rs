//! Tests that need more than the Rust toolchain and a C compiler: one module per topic.
//!
//! A tool that is missing is a failure here, never a reason to skip.
#![expect(clippy::unwrap_used, reason = "a test's own functions are tests as well")]

mod browser;
mod clients;
mod contract;
mod dialects;
mod full_disk;
mod full_disk_verbs;
mod local_model;
mod main_job;
mod packaging;
mod panic_text;
mod small;
mod story;
mod strace;
mod system_calls;
mod tools;
