//! `segments/reserve`: zeros that a full disk gives up so that compaction can make room. Nothing relies on it.

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
    /// It was seen in its full length.
    there: bool,
    not_before: Duration,
}

fn name(file: &str) -> Name {
    Name::new(Folder::Segments, file).expect("a constant name is valid")
}

impl Reserve {
    /// Makes it if it is not there and the disk has room.
    pub fn restore(&mut self, shared: &Shared) {
        let bytes = shared.tuning.reserve_bytes;
        let now = shared.clock.monotonic();
        // Not before there is anything to compact.
        let needless = shared.read().segments.len() < 2;
        if bytes == 0 || self.there || now < self.not_before || needless {
            return;
        }
        self.not_before = now + REST;
        match make(shared, bytes) {
            Ok(there) => self.there = there,
            Err(e) => {
                tracing::debug!(error = %e, "the reserve was not made");
                remove(shared, "reserve.tmp");
            }
        }
    }

    /// Frees its room. `false`: there was none.
    pub fn give_up(&mut self, shared: &Shared) -> bool {
        self.there = false;
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

fn make(shared: &Shared, bytes: u64) -> Result<bool> {
    let disk = &*shared.store.disk;
    match disk.open(&name(names::RESERVE)) {
        Ok(file) if file.length()? >= bytes => return Ok(true),
        Err(e) if e.kind != ErrorKind::NotFound => return Err(e.into()),
        Ok(_) | Err(_) => {}
    }
    if disk.space()?.available / ROOM < bytes {
        return Ok(false);
    }
    remove(shared, "reserve.tmp");
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
    Ok(true)
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
