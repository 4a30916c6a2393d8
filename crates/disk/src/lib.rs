//! The seam between Sealog and the host: disk, clock, entropy.
//!
//! Product code above this crate reaches files, time and randomness only through the traits here, so that the
//! simulated disk can stand in for the kernel in every crash test. Nothing here knows what the bytes mean.

mod clock;
mod disk;
mod entropy;
mod error;
mod name;

pub use clock::Clock;
pub use disk::{Disk, DiskLock, Entry, FileKind, LogFile, Space};
pub use entropy::{Entropy, EntropyError};
pub use error::{DiskError, ErrorKind, Operation};
pub use name::{Folder, Name};
