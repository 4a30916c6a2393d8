//! Time as an argument.

use std::time::Duration;

/// Wall time, monotonic time and the boot they belong to.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Milliseconds since the Unix epoch. May jump in both directions.
    fn wall_ms(&self) -> u64;

    /// Time since an arbitrary start; never goes back.
    fn monotonic(&self) -> Duration;

    /// Changes with every boot of the machine.
    fn boot_id(&self) -> [u8; 16];

    /// This process's number, for diagnostics and key hedging only.
    fn process_id(&self) -> u32;
}
