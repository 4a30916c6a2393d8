//! The raw floor: one thread overwrites a zero-filled file and calls fdatasync, event by event.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::slice::{Slice, Watch, us_since};
use crate::workload::Deltas;

/// A zero-filled file in the page cache, written round and round.
#[derive(Debug)]
pub struct Filled {
    file: File,
    length: u64,
    offset: u64,
}

impl Filled {
    /// # Errors
    /// Whatever the file system says.
    pub fn new(path: &Path, length: u64) -> Result<Filled> {
        const STEP: usize = 1 << 20;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let zeros = vec![0; STEP];
        for at in (0..length).step_by(STEP) {
            file.write_all_at(&zeros[..(length - at).min(STEP as u64) as usize], at)?;
        }
        file.sync_all()?;
        Ok(Filled { file, length, offset: 0 })
    }

    /// Writes at the next offset and makes it durable.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn commit(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.offset + bytes.len() as u64 > self.length {
            self.offset = 0;
        }
        self.file.write_all_at(bytes, self.offset)?;
        self.file.sync_data()?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// One slice on the calling thread. There is one producer by nature.
///
/// # Errors
/// Whatever the file system says.
pub fn slice(filled: &mut Filled, length: Duration, seed: u64) -> Result<Slice> {
    let mut deltas = Deltas::new(seed);
    let mut slice = Slice::default();
    let watch = Watch::start(length);
    while !watch.is_over() {
        let bytes = deltas.next_json();
        let start = Instant::now();
        filled.commit(&bytes)?;
        slice.latencies_us.push(us_since(start));
        slice.bytes += bytes.len() as u64;
        slice.events += 1;
    }
    slice.groups = slice.events;
    slice.disk_seconds = slice.latencies_us.iter().map(|us| f64::from(*us) / 1e6).sum();
    (slice.seconds, slice.cpu_seconds) = watch.stop();
    Ok(slice)
}
