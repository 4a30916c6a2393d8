//! Standard output, and whether there is one. Owns the way to it: nothing else in this crate names it.
//!
//! Rust's runtime puts `/dev/null` in the place of a standard output that is closed, and its own writer takes a
//! descriptor that cannot be written for one that takes all. Both would make a lost result look like a success.

use std::io::{Error, Result, StdoutLock, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, fcntl_getfd};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Before the runtime, which comes after this array: afterwards a closed descriptor looks like any other.
#[used]
#[expect(unsafe_code, reason = "a place in the file is named; nothing safe runs before the runtime does")]
// SAFETY: the loader calls each function of this array once, before `main`, on the only thread there is. This one takes
// no argument, so that it does not matter which it is given, allocates nothing and cannot unwind.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let closed = fcntl_getfd(rustix::stdio::stdout()) == Err(Errno::BADF);
    CLOSED.store(closed, Ordering::Relaxed);
}

/// What data is written to.
///
/// # Errors
/// It was closed when the process began, or is open for reading only.
pub fn output() -> Result<StdoutLock<'static>> {
    let can_be_written = !CLOSED.load(Ordering::Relaxed)
        && fcntl_getfl(rustix::stdio::stdout())
            .is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR));
    if can_be_written { Ok(stdout().lock()) } else { Err(Error::from(Errno::BADF)) }
}

pub fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&stdout())
}
