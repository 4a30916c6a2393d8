//! From the files of a stopped (or running) journal to a verdict, without changing a byte: `scan` reads, `table`
//! decides, `apply` is the only part that writes.

pub(crate) mod apply;
pub(crate) mod evidence;
pub(crate) mod findings;
pub(crate) mod group;
pub(crate) mod merge;
pub(crate) mod scan;
pub(crate) mod set_aside;
mod steps;
pub(crate) mod sweep;
pub(crate) mod table;
pub(crate) mod walk;
