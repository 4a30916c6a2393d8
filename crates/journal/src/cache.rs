//! Opened frames shared by readers: bounded by bytes of plaintext, one decryption for concurrent readers of a frame.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealog_journal_format::FrameHeader;
use zeroize::Zeroizing;

use crate::error::Result;
use crate::index::FrameRef;

/// A frame after its tags were checked.
#[derive(Debug)]
pub(crate) struct OpenedFrame {
    pub header: FrameHeader,
    pub epoch: u64,
    pub plaintext: Zeroizing<Vec<u8>>,
}

/// Filled by the first reader that wants it; the others wait on the mutex.
type Slot = Arc<Mutex<Option<Arc<OpenedFrame>>>>;

#[derive(Debug, Default)]
struct State {
    slots: HashMap<FrameRef, Slot>,
    order: VecDeque<(FrameRef, usize)>,
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
    pub fn get(&self, at: FrameRef, open: impl FnOnce() -> Result<OpenedFrame>) -> Result<Arc<OpenedFrame>> {
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
        self.account(at, frame.plaintext.len());
        Ok(frame)
    }

    /// What the writer has just made durable; readers of the tail want it next.
    pub fn put(&self, at: FrameRef, frame: OpenedFrame) {
        let bytes = frame.plaintext.len();
        self.lock().slots.insert(at, Arc::new(Mutex::new(Some(Arc::new(frame)))));
        self.account(at, bytes);
    }

    fn account(&self, at: FrameRef, bytes: usize) {
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
