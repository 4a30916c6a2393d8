//! Opened frames shared by readers: bounded by bytes of memory, one decryption for concurrent readers of a frame.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hint::black_box;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealog_journal_format::FrameHeader;

use crate::error::Result;
use crate::index::FrameRef;

/// What a cached frame takes besides its plaintext: header, slot, map entry, place in the order. Rounded up.
const FRAME_OVERHEAD_BYTES: usize = 512;

/// The opened body of a frame: not shown, and wiped when it goes.
pub(crate) struct Plaintext(Vec<u8>);

impl Plaintext {
    pub fn new(bytes: Vec<u8>) -> Plaintext {
        Plaintext(bytes)
    }
}

impl Deref for Plaintext {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plaintext({} bytes)", self.0.len())
    }
}

impl Drop for Plaintext {
    /// The writer lets go of an old frame with each new one, so this is one fill of memory and not, as for a key, a
    /// write for each byte that no compiler may join.
    fn drop(&mut self) {
        self.0.fill(0);
        black_box(&self.0);
    }
}

/// A frame after its tags were checked.
#[derive(Debug)]
pub(crate) struct OpenedFrame {
    pub header: FrameHeader,
    pub epoch: u64,
    pub plaintext: Plaintext,
}

impl OpenedFrame {
    /// Memory that it takes in the cache.
    fn bytes(&self) -> usize {
        self.plaintext.0.capacity() + FRAME_OVERHEAD_BYTES
    }
}

/// A place in one file: a compacted segment has the number of its first source, and another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub generation: u64,
    pub at: FrameRef,
}

/// Filled by the first reader that wants it; the others wait on the mutex.
type Slot = Arc<Mutex<Option<Arc<OpenedFrame>>>>;

#[derive(Debug, Default)]
struct State {
    slots: HashMap<CacheKey, Slot>,
    order: VecDeque<(CacheKey, usize)>,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct FrameCache {
    bytes_max: usize,
    state: Mutex<State>,
}

impl FrameCache {
    pub fn new(bytes_max: usize) -> FrameCache {
        FrameCache { bytes_max, state: Mutex::default() }
    }

    /// The frame at `at`, opened by `open` if nobody has it.
    pub fn get(&self, at: CacheKey, open: impl FnOnce() -> Result<OpenedFrame>) -> Result<Arc<OpenedFrame>> {
        let slot = Arc::clone(self.lock().slots.entry(at).or_default());
        let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(frame) = &*held {
            return Ok(Arc::clone(frame));
        }
        let frame = match open() {
            Ok(frame) => Arc::new(frame),
            Err(e) => {
                self.lock().slots.remove(&at);
                return Err(e);
            }
        };
        *held = Some(Arc::clone(&frame));
        drop(held);
        self.account(at, frame.bytes());
        Ok(frame)
    }

    /// The frame at `at`, if somebody has opened it already and it is still here.
    pub fn peek(&self, at: CacheKey) -> Option<Arc<OpenedFrame>> {
        let slot = Arc::clone(self.lock().slots.get(&at)?);
        let held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(Arc::clone)
    }

    /// What the writer has just made durable; readers of the tail want it next.
    pub fn put(&self, at: CacheKey, frame: OpenedFrame) {
        let bytes = frame.bytes();
        self.lock().slots.insert(at, Arc::new(Mutex::new(Some(Arc::new(frame)))));
        self.account(at, bytes);
    }

    fn account(&self, at: CacheKey, bytes: usize) {
        let mut state = self.lock();
        state.bytes += bytes;
        state.order.push_back((at, bytes));
        while state.bytes > self.bytes_max {
            let Some((oldest, bytes)) = state.order.pop_front() else { break };
            state.bytes -= bytes;
            state.slots.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
