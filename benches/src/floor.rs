//! The raw floors: one thread overwrites a zero-filled file, or appends to a growing one, and calls fdatasync.

use std::fs::{File, OpenOptions};
use std::io::Write;
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

/// A file that grows with each commit.
#[derive(Debug)]
pub struct Grown {
    file: File,
}

impl Grown {
    /// # Errors
    /// Whatever the file system says.
    pub fn new(path: &Path) -> Result<Grown> {
        Ok(Grown { file: OpenOptions::new().append(true).create_new(true).open(path)? })
    }

    /// Appends and makes it durable.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn commit(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }
}

/// One slice on the calling thread, `batch` events a commit. There is one producer by nature; a commit's latency is
/// that of each of its events.
///
/// # Errors
/// Whatever the file system says.
pub fn slice(
    commit: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    batch: u64,
    length: Duration,
    seed: u64,
) -> Result<Slice> {
    let mut deltas = Deltas::new(seed);
    let mut slice = Slice::default();
    let mut bytes = Vec::new();
    let watch = Watch::start(length);
    while !watch.is_over() {
        bytes.clear();
        for _ in 0..batch {
            bytes.extend_from_slice(&deltas.next_json());
        }
        let start = Instant::now();
        commit(&bytes)?;
        slice.latencies_us.push(us_since(start));
        slice.bytes += bytes.len() as u64;
        slice.events += batch;
        slice.groups += 1;
    }
    slice.disk_seconds = slice.latencies_us.iter().map(|us| f64::from(*us) / 1e6).sum();
    watch.stop(&mut slice);
    Ok(slice)
}
