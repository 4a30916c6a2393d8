//! The seam between Sealog and the host: disk, clock, entropy.
//!
//! Product code above this crate reaches files, time and randomness only through the traits here, so that the
//! simulated disk can stand in for the kernel in every crash test. Nothing here knows what the bytes mean.

mod aligned;
mod clock;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod disk;
mod entropy;
mod error;
pub mod io;
mod name;
pub mod real;
#[cfg(any(test, feature = "testing"))]
pub mod scramble;
#[cfg(any(test, feature = "testing"))]
pub mod sim;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use aligned::{AlignedBuf, DIRECT_ALIGN};
pub use clock::Clock;
pub use disk::{Disk, DiskLock, Entry, FileId, FileKind, LogFile, Shows, Space};
pub use entropy::{Entropy, EntropyError};
pub use error::{DiskError, ErrorKind, Operation};
pub use name::{Folder, Name};
