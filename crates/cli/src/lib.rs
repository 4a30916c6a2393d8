//! What of the binary must be reachable from outside: the configuration file's reader, which a fuzzer feeds, and the
//! failures, exit codes and suggested commands that it speaks in. Everything else belongs to the binary alone.

pub mod again;
pub mod config;
pub mod exit;
pub mod failure;
