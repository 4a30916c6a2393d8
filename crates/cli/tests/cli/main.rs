//! The real binary from outside: exit codes, golden cases, nodes that are killed and come back.
//!
//! Nothing here reads the home directory: every case has its own folder and its own environment.

#![expect(clippy::unwrap_used, reason = "what a test prepares must work, in its helpers too")]

mod access;
mod advice;
mod anchors;
mod asking;
mod backup;
mod bench;
mod codes;
mod compact;
mod configuring;
mod demo;
mod doctor;
mod facts;
mod golden;
mod init;
mod keys;
mod listening;
mod lost_output;
mod node;
mod operation;
mod page;
mod reaching;
mod read_only;
mod reading;
mod rekey;
mod repair;
mod restore;
mod run;
mod scrub;
mod service;
mod suggested;
mod transfer;
