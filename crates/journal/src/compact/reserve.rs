//! `segments/reserve`: zeros that a full disk gives up so that compaction can make room (JD-8). Nothing relies on it.

use std::time::Duration;

use sealog_disk::{ErrorKind, Folder, Name, io};
use sealog_journal_format::names;

use crate::error::Result;
use crate::shared::Shared;
use crate::writer::frames::cause;

const STEP_BYTES: usize = 256 << 10;
/// Between two tries on a disk without room.
const REST: Duration = Duration::from_secs(30);
/// So many times its size must be free before it is made.
const ROOM: u64 = 4;

#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// The length that it was seen in, at least.
    bytes: u64,
    not_before: Duration,
}

fn name(file: &str) -> Name {
    Name::new(Folder::Segments, file).expect("a constant name is valid")
}

impl Reserve {
    /// Makes it if it is not there, or too short by now, and the disk has room.
    pub fn restore(&mut self, shared: &Shared) {
        let wanted = wanted_bytes(shared);
        let now = shared.clock.monotonic();
        if wanted <= self.bytes || now < self.not_before {
            return;
        }
        self.not_before = now + REST;
        match make(shared, wanted) {
            Ok(bytes) => self.bytes = bytes,
            Err(e) => {
                tracing::debug!(error = %e, "the reserve was not made");
                remove(shared, "reserve.tmp");
            }
        }
    }

    /// Frees its room. `false`: there was none.
    pub fn give_up(&mut self, shared: &Shared) -> bool {
        self.bytes = 0;
        self.not_before = shared.clock.monotonic() + REST;
        if !remove(shared, names::RESERVE) {
            return false;
        }
        match shared.store.disk.sync_folder(Folder::Segments) {
            Ok(()) => true,
            Err(e) => {
                shared.poison(cause(&e));
                false
            }
        }
    }
}

/// One rewrite takes no more than what there is to rewrite, and makes one file, which is no longer than a segment (JC-10).
/// In powers of two, so that a growing journal does not have it made anew all the time; 0: there is nothing to compact.
fn wanted_bytes(shared: &Shared) -> u64 {
    let catalog = shared.read();
    let held = if catalog.segments.len() < 2 { 0 } else { catalog.frame_bytes() };
    drop(catalog);
    if held == 0 || shared.tuning.reserve_bytes == 0 {
        return 0;
    }
    let grown = held.checked_next_power_of_two().unwrap_or(u64::MAX).max(shared.tuning.segment_bytes_min);
    grown.min(shared.tuning.reserve_bytes).min(shared.tuning.segment_bytes_max)
}

/// The length that it has now; 0 if there is none.
fn make(shared: &Shared, wanted: u64) -> Result<u64> {
    let disk = &*shared.store.disk;
    let there = match disk.open(&name(names::RESERVE)) {
        Ok(file) => file.length()?,
        Err(e) if e.kind == ErrorKind::NotFound => 0,
        Err(e) => return Err(e.into()),
    };
    // What it holds is free for it.
    let available = disk.space()?.available.saturating_add(there);
    let bytes = wanted.min(shared.tuning.segment_bytes_largest(available));
    if there >= bytes || available / ROOM < bytes {
        return Ok(there);
    }
    remove(shared, "reserve.tmp");
    remove(shared, names::RESERVE);
    let file = disk.create(&name("reserve.tmp"))?;
    let zeros = vec![0; STEP_BYTES.min(bytes as usize)];
    let mut at = 0;
    while at < bytes {
        let step = zeros.len().min((bytes - at) as usize);
        io::write_all_at(&*file, &zeros[..step], at)?;
        at += step as u64;
    }
    file.sync_all()?;
    file.close()?;
    disk.rename(&name("reserve.tmp"), &name(names::RESERVE))?;
    Ok(bytes)
}

fn remove(shared: &Shared, file: &str) -> bool {
    match shared.store.disk.remove(&name(file)) {
        Ok(()) => true,
        Err(e) => {
            if e.kind != ErrorKind::NotFound {
                tracing::debug!(kind = ?e.kind, "a file of the reserve was not removed");
            }
            false
        }
    }
}
