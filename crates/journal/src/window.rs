//! A bounded view of a file that moves forward: the only way recovery reads frames.

use std::sync::Arc;

use sealog_disk::{AlignedBuf, DIRECT_ALIGN, LogFile, io};

use crate::error::Result;

const CHUNK_BYTES: usize = 256 << 10;
/// Many windows see no more than the first frame.
const FIRST_CHUNK_BYTES: usize = 16 << 10;
/// Each read past the cache has a price of its own.
const UNCACHED_CHUNK_BYTES: usize = (1 << 20) - 4096;

/// Compared in blocks: most of what is asked about is zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|block| *block == ZEROS[..block.len()])
}

/// Reads a file in chunks, optionally past the page cache (after a failed sync the cache may hold what the device
/// never got).
#[derive(Debug)]
pub(crate) struct Window {
    file: Arc<dyn LogFile>,
    length: u64,
    uncached: bool,
    start: u64,
    memory: AlignedBuf,
    /// Bytes of it that were read.
    held: usize,
}

impl Window {
    pub fn new(file: Arc<dyn LogFile>, length: u64, uncached: bool) -> Window {
        Window { file, length, uncached, start: 0, memory: AlignedBuf::zeroed(0), held: 0 }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// `len` bytes at `offset`, or `None` if the file ends before them. `len` is bounded by the caller.
    pub fn slice(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.length => {}
            _ => return Ok(None),
        }
        let held = offset >= self.start && offset + len as u64 <= self.start + self.held as u64;
        if !held {
            self.load(offset, len)?;
        }
        let at = (offset - self.start) as usize;
        Ok(self.memory[..self.held].get(at..at + len))
    }

    fn load(&mut self, offset: u64, len: usize) -> Result<()> {
        let chunk = match (self.uncached, self.held == 0) {
            (true, false) => UNCACHED_CHUNK_BYTES,
            (false, false) => CHUNK_BYTES,
            (_, true) => FIRST_CHUNK_BYTES,
        };
        // From where it can be read without a copy.
        let lead = if self.uncached { (offset % DIRECT_ALIGN as u64) as usize } else { 0 };
        let start = offset - lead as u64;
        let want = ((lead + len).max(chunk) as u64).min(self.length - start) as usize;
        if self.memory.len() < want {
            self.memory = AlignedBuf::zeroed(want);
        }
        let into = &mut self.memory[..want];
        (self.start, self.held) = (start, 0);
        if self.uncached {
            self.file.read_uncached(into, start)?;
            self.held = want;
            return Ok(());
        }
        self.held = io::read_up_to(&*self.file, into, start)?;
        if self.held < want {
            // A live writer has trimmed the file since its length was taken.
            self.length = start + self.held as u64;
        }
        Ok(())
    }

    /// Whether every byte from `offset` to the end of the file is zero.
    pub fn zero_from(&mut self, offset: u64) -> Result<bool> {
        let mut at = offset;
        while at < self.length {
            let len = ((self.length - at) as usize).min(CHUNK_BYTES);
            match self.slice(at, len)? {
                Some(bytes) if is_zero(bytes) => at += len as u64,
                Some(_) => return Ok(false),
                // The file was trimmed meanwhile; `length` says where it ends now.
                None => {}
            }
        }
        Ok(true)
    }
}
