//! How long a file may become for this process (`ulimit -f`). The kernel ends whoever writes behind that by a signal, in the
//! middle of whatever it does; asked beforehand, it is an error like that of a full disk.

use std::sync::OnceLock;

use rustix::io::{Errno, Result};
use rustix::process::{Resource, getrlimit};

/// Whether a file may reach to `end`.
pub(super) fn within(end: u64) -> Result<()> {
    static LONGEST: OnceLock<Option<u64>> = OnceLock::new();
    let longest = LONGEST.get_or_init(|| getrlimit(Resource::Fsize).current);
    if longest.is_some_and(|longest| end > longest) { Err(Errno::FBIG) } else { Ok(()) }
}
