//! A bounded view of a file that moves forward: the only way recovery reads frames.

use std::sync::Arc;
use std::thread::Builder;

use sealog_disk::{AlignedBuf, DIRECT_ALIGN, LogFile, io};

use crate::error::Result;
use crate::read_ahead::{HEADROOM_BYTES, ReadAhead};

const CHUNK_BYTES: usize = 64 << 10;
/// Many windows see no more than the first frame.
const FIRST_CHUNK_BYTES: usize = 16 << 10;
/// Zeros that are read past the cache as well. Few in tests, whose segments are short.
const ZEROS_PAST_CACHE_BYTES: u64 = if cfg!(test) { 4 << 10 } else { 256 << 10 };
/// So many zeros are looked at by two.
const ZEROS_SHARED_BYTES_MIN: u64 = if cfg!(test) { 8 << 10 } else { 4 << 20 };
/// Each read past the cache has a price of its own. With the lead, whole.
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
    /// Of the file, in `memory` from `at` on: `held` bytes.
    start: u64,
    memory: AlignedBuf,
    at: usize,
    held: usize,
    ahead: Option<ReadAhead>,
    /// The page cache shows something where the device has zeros.
    pub stale: bool,
}

impl Window {
    pub fn new(file: Arc<dyn LogFile>, length: u64, uncached: bool) -> Window {
        let memory = AlignedBuf::zeroed(0);
        Window { file, length, uncached, start: 0, memory, at: 0, held: 0, ahead: None, stale: false }
    }

    /// What is read past the cache is read before it is asked for, from `from` on, by a thread of its own.
    pub fn read_ahead(&mut self, from: u64) {
        if self.uncached {
            let from = from - from % DIRECT_ALIGN as u64;
            (self.start, self.held) = (from, 0);
            let to = self.zeros_begin(from).saturating_add(ZEROS_PAST_CACHE_BYTES).min(self.length);
            self.ahead = ReadAhead::start(Arc::clone(&self.file), from, to);
        }
    }

    /// About where prepared zeros begin, by a few looks into the page cache: behind that is little to be read ahead. What is
    /// there is not for this to say.
    fn zeros_begin(&self, from: u64) -> u64 {
        let is_data = |at: u64| {
            let mut bytes = [0; 512];
            let read = io::read_up_to(&*self.file, &mut bytes, at);
            read.map_or(true, |read| !is_zero(&bytes[..read]))
        };
        let (mut data, mut zeros) = (from, self.length);
        while zeros - data > ZEROS_PAST_CACHE_BYTES {
            let middle = data + (zeros - data) / 2;
            if is_data(middle) { data = middle } else { zeros = middle }
        }
        zeros
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// What is asked for next is read anew.
    pub fn forget(&mut self) {
        self.held = 0;
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
        let at = self.at + (offset - self.start) as usize;
        Ok(self.memory[..self.at + self.held].get(at..at + len))
    }

    fn load(&mut self, offset: u64, len: usize) -> Result<()> {
        if let Some(ahead) = self.ahead.take()
            && self.take_ahead(&ahead, offset, len)?
        {
            self.ahead = Some(ahead);
            return Ok(());
        }
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
        (self.start, self.at, self.held) = (start, 0, 0);
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

    /// Holds `len` bytes at `offset`, the next piece of the thread that reads ahead behind what is left of the one before.
    /// `false`: they do not come from there.
    fn take_ahead(&mut self, ahead: &ReadAhead, offset: u64, len: usize) -> Result<bool> {
        let Some(left) = (self.start + self.held as u64).checked_sub(offset).filter(|_| offset >= self.start)
        else {
            return Ok(false);
        };
        let (left, behind) = (left as usize, self.at + self.held);
        if left > HEADROOM_BYTES {
            return Ok(false);
        }
        let Some(mut piece) = ahead.next().transpose()? else { return Ok(false) };
        let first = HEADROOM_BYTES - left;
        piece.memory[first..HEADROOM_BYTES].copy_from_slice(&self.memory[behind - left..behind]);
        ahead.done(std::mem::replace(&mut self.memory, piece.memory));
        (self.at, self.start, self.held) = (first, offset, left + piece.len);
        Ok(self.held >= len)
    }

    /// Whether every byte from `offset` to the end of the file is zero. Of prepared zeros only the first are read past the
    /// page cache: what a failed sync leaves in it is newer than what the device has, and before these zeros there was
    /// nothing. Right behind the data a stale page would hide what was written last.
    pub fn zero_from(&mut self, offset: u64) -> Result<bool> {
        let first = offset.saturating_add(ZEROS_PAST_CACHE_BYTES);
        if !self.zero_between(offset, first)? {
            return Ok(false);
        }
        self.ahead = None;
        if !self.uncached {
            return self.zero_between(first, u64::MAX);
        }
        self.stale = !self.cached().zero_between(offset, first)?;
        let left = self.length.saturating_sub(first);
        if left < ZEROS_SHARED_BYTES_MIN {
            return self.cached().zero_between(first, u64::MAX);
        }
        let (middle, [mut here, mut there]) = (first + left / 2, [(); 2].map(|()| self.cached()));
        std::thread::scope(|scope| {
            let rest = move || there.zero_between(middle, u64::MAX);
            let beside = Builder::new().spawn_scoped(scope, rest);
            let zero = here.zero_between(first, middle)?;
            let rest = match beside {
                Ok(beside) => beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(_) => here.zero_between(middle, u64::MAX),
            };
            Ok(zero && rest?)
        })
    }

    fn cached(&self) -> Window {
        Window::new(Arc::clone(&self.file), self.length, false)
    }

    fn zero_between(&mut self, offset: u64, end: u64) -> Result<bool> {
        let mut at = offset;
        while at < self.length.min(end) {
            let len = ((self.length.min(end) - at) as usize).min(CHUNK_BYTES);
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
