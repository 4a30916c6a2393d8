//! The host itself: files, clock and randomness of a Linux system.
//!
//! Owns every system call of the product. Must never retry one, and must never reach a file of the data
//! directory by a path: all access is relative to directories opened once.

mod close;
mod directory;
mod errno;
mod file;
mod file_system;
mod host;
mod lock;
mod longest;
mod measure;
mod outside;
mod sibling;
mod socket;
mod uncached;

pub use directory::{FOREIGN_OWNER, OPEN_TO_OTHERS, OpenOptions, RealDisk};
pub use file_system::{Ground, Warning, ground, is_network};
pub use host::{RealClock, RealEntropy};
pub use measure::{Series, SyncTimes, measure_syncs};
pub use outside::{
    FileContent, NewFile, Turn, create_secret_file, open_regular, read_fd, read_file, read_regular,
    replace_secret_file, sweep_unnamed, take_turn, write_failed,
};
pub use sibling::{NotCommitted, Sibling, remove_emptied};
pub use socket::SocketFile;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests disturb the directory from outside")]
mod tests;
