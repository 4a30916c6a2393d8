//! What the benches share: one workload, and the systems that commit it, measured in short interleaved slices.
//!
//! Every number is worth only as much as the run it came from, so the systems of a run stand behind the same
//! hand-over, on the same directory, and are compared slice by slice.
#![expect(
    clippy::disallowed_methods,
    reason = "the floor and the bare loop are what the journal is compared with"
)]

pub mod executions;
pub mod floor;
pub mod handover;
pub mod host;
pub mod memory;
pub mod report;
pub mod sealed;
pub mod slice;
pub mod workload;
