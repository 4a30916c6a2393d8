//! What an open journal takes of its disk. Only looks.

use std::sync::atomic::Ordering;

use super::Journal;

/// The journal's files at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of written frames.
    pub frame_bytes: u64,
    /// Of these, what is not forgotten: compaction can get rid of the rest. By the number of streams in each frame.
    pub live_bytes: u64,
    /// Most bytes of frames that may be written (`disk_bytes_max`).
    pub budget_bytes: u64,
    /// What the streams that are open are expected to take yet: a creation leaves it and a sixteenth of the budget (JC-10).
    pub expected_bytes: u64,
    /// Segment files.
    pub segments: u64,
}

impl Journal {
    /// What the journal takes now.
    pub fn usage(&self) -> Usage {
        let shared = &self.inner.shared;
        let catalog = shared.read();
        Usage {
            frame_bytes: catalog.frame_bytes(),
            live_bytes: catalog.live_bytes(),
            budget_bytes: shared.tuning.disk_bytes_max,
            expected_bytes: shared.expected_bytes.load(Ordering::Relaxed),
            segments: catalog.segments.len() as u64,
        }
    }
}
