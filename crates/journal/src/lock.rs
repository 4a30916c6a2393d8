//! The one-writer lock: a flock on the data directory. The text in `LOCK` is for people.

use std::time::Duration;

use sealog_disk::{Clock, Disk, DiskLock, ErrorKind, io};

use crate::error::{JournalError, Result};
use crate::store::{read_optional, root_name};

const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Takes the lock, retrying for `wait`: an orderly predecessor may still be letting go.
pub(crate) fn take(disk: &dyn Disk, clock: &dyn Clock, wait: Duration) -> Result<Box<dyn DiskLock>> {
    let start = clock.monotonic();
    loop {
        match disk.lock() {
            Ok(lock) => return Ok(lock),
            Err(e) if e.kind == ErrorKind::Contended => {
                if clock.monotonic().saturating_sub(start) >= wait {
                    return Err(held(disk));
                }
                std::thread::sleep(RETRY_PAUSE);
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// Nobody writes here; takes nothing.
///
/// # Errors
/// `Locked`, with who it is.
pub(crate) fn nobody_holds(disk: &dyn Disk) -> Result<()> {
    match disk.is_locked()? {
        true => Err(held(disk)),
        false => Ok(()),
    }
}

/// The refusal beside a writer, with who it is.
pub(crate) fn held(disk: &dyn Disk) -> JournalError {
    JournalError::Locked { holder: holder(disk) }
}

/// What `LOCK` says, if it reads as the short text that a writer leaves.
fn holder(disk: &dyn Disk) -> Option<String> {
    let bytes = read_optional(disk, &root_name("LOCK")).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    let plain = text.len() <= 256 && text.chars().all(|c| c.is_ascii_graphic() || c == ' ' || c == '\n');
    plain.then(|| text.trim_end().replace('\n', ", "))
}

/// Leaves a note about this writer. Nothing depends on it, so its errors are nobody's concern.
pub(crate) fn note(disk: &dyn Disk, clock: &dyn Clock) {
    let name = root_name("LOCK");
    let text = format!("pid {}\nstarted {} ms\n", clock.process_id(), clock.wall_ms());
    let file = match disk.open_for_write(&name) {
        Ok(file) => Ok(file),
        Err(_) => disk.create(&name),
    };
    if let Ok(file) = file {
        let written = io::write_all_at(&*file, text.as_bytes(), 0);
        if written.is_ok() && file.set_length(text.len() as u64).is_err() {
            tracing::debug!("the note in LOCK was not trimmed");
        }
    }
}
