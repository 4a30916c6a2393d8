//! What the writer, its helper and the readers of one open journal have in common.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::thread::Thread;
use std::time::Duration;

use sealog_disk::{Clock, Entropy, ErrorKind, FileId, Name};
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::limits;

use crate::cache::FrameCache;
use crate::compact::policy::View;
use crate::completion::Completion;
use crate::config::Tuning;
use crate::counters::Counting;
use crate::error::JournalError;
use crate::head::HeadWriter;
use crate::index::Index;
use crate::recovery::apply::Leftovers;
use crate::segment::Segment;
use crate::store::Store;
use crate::writer::prepare::Preparing;
use crate::writer::queue::Queue;

/// How far apart the places are where reading by sequence may begin.
pub(crate) const MARK_DISTANCE_BYTES: u64 = 64 << 10;

/// Segments that keep their file open between reads.
const OPEN_FILES_MAX: usize = 64;

/// The durable state, changed only after a sync.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub segments: BTreeMap<u64, Arc<Segment>>,
    pub index: Index,
    pub durable: Durable,
    /// (first sequence, segment, offset) of a frame about every 64 KiB, for reading by sequence.
    pub marks: Vec<Mark>,
    /// End offsets of the segments that get no more frames.
    pub ends: BTreeMap<u64, u64>,
    /// How often files were replaced. Whoever holds a place from before looks again.
    pub switches: u64,
    /// The segment that this writer writes, by name.
    pub active: Option<(Name, FileId)>,
    recent: VecDeque<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub sequence: u64,
    pub segment: u64,
    pub offset: u64,
}

/// How far the journal is durable, and when (monotonic) that was last moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durable {
    pub end: EndRecord,
    pub lineage: [u8; 16],
    pub epoch: u64,
    pub moved: Duration,
}

impl Catalog {
    pub fn new(durable: Durable) -> Catalog {
        Catalog {
            segments: BTreeMap::new(),
            index: Index::default(),
            durable,
            marks: Vec::new(),
            ends: BTreeMap::new(),
            switches: 0,
            active: None,
            recent: VecDeque::new(),
        }
    }

    pub fn mark(&mut self, mark: Mark) {
        let far = self.marks.last().is_none_or(|last| {
            last.segment != mark.segment || mark.offset - last.offset >= MARK_DISTANCE_BYTES
        });
        if far {
            self.marks.push(mark);
        }
    }

    /// Bytes of all frames on disk, links and seals included.
    pub fn frame_bytes(&self) -> u64 {
        self.frames().map(|(_, bytes)| bytes).sum()
    }

    /// What of these bytes is not forgotten, as far as counts of streams can tell.
    pub fn live_bytes(&self) -> u64 {
        let live = |(number, bytes)| {
            let tally = self.index.tally(number);
            View { bytes, all: tally.all, dead: tally.dead, ..View::default() }.live_bytes()
        };
        self.frames().map(live).sum()
    }

    /// Each segment, and how many bytes of frames it holds.
    fn frames(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let frames = |end_offset: u64| end_offset.saturating_sub(limits::DATA_START);
        let last = self.durable.end;
        let ended = self.ends.iter().filter(move |(number, _)| **number != last.segment);
        let ended = ended.map(move |(number, end_offset)| (*number, frames(*end_offset)));
        ended.chain([(last.segment, frames(last.end_offset))])
    }

    /// Notes that a segment is being read and lets the file of the one read longest ago go.
    pub fn touch(&mut self, segment: u64) {
        if self.recent.back() == Some(&segment) {
            return;
        }
        self.recent.retain(|held| *held != segment);
        self.recent.push_back(segment);
        let surplus = self.recent.len() > OPEN_FILES_MAX;
        let oldest = if surplus { self.recent.pop_front() } else { None };
        if let Some(segment) = oldest.and_then(|number| self.segments.get(&number)) {
            segment.release();
        }
    }
}

/// Whether the writer still writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Ready,
    /// New work is refused for want of space; the writer resumes by itself.
    Full,
    /// A sync has been running for longer than ten seconds.
    Stalled,
    /// A storage call failed for good: reads go on, writing needs a new open.
    Poisoned {
        cause: &'static str,
    },
    Closed,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub tuning: Tuning,
    pub catalog: RwLock<Catalog>,
    pub cache: FrameCache,
    pub queue: Queue,
    pub completion: Arc<Completion>,
    pub counting: Counting,
    pub preparation: Preparing,
    pub head: Mutex<Head>,
    /// What the start has left for later.
    pub leftovers: Mutex<Leftovers>,
    /// What must stay under its name as long as this journal is open, beside the active segment.
    pub named: Vec<(Name, FileId)>,
    pub status: Mutex<Status>,
    pub durable_sequence: AtomicU64,
    pub moved: Condvar,
    pub stop_helper: AtomicBool,
    /// The thread that prepares segments, once it runs.
    pub helper: OnceLock<Thread>,
    /// The next frame begins a new segment: the active one has held what was forgotten for long.
    pub roll_wanted: AtomicBool,
    /// What the streams that are open are expected to take yet, in frames.
    pub expected_bytes: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Head {
    pub writer: HeadWriter,
    pub rewritten: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Status {
    pub poisoned: Option<&'static str>,
    /// The damage that stopped the writer, if that was the reason.
    pub damage: Option<JournalError>,
    pub closed: bool,
    /// New work is refused: for want of a segment, or of budget.
    pub full: bool,
    /// No segment could be had for what was asked last.
    lacks_segment: bool,
    /// The frame that the budget had no room for; 0: there was none.
    pub beyond_budget: u64,
    /// Why the next segment could not be prepared the last time that was tried.
    pub shortage: Option<ErrorKind>,
    pub sync_since: Option<Duration>,
    pub stall_said: Option<Duration>,
    /// Threads that wait for `moved`.
    pub waiting_for_sequence: usize,
}

impl Status {
    pub fn lacking(&mut self, segment: bool, beyond_budget: u64) {
        (self.lacks_segment, self.beyond_budget) = (segment, beyond_budget);
        self.full = segment || beyond_budget > 0;
    }

    /// A segment is ready; the budget may still be used up.
    pub fn has_segment(&mut self) {
        self.lacking(false, self.beyond_budget);
    }

    /// The budget has room again for what it refused last.
    pub fn has_budget(&mut self) {
        self.lacking(self.lacks_segment, 0);
    }
}

/// Every guarded value here stays consistent between its statements, so a panic elsewhere does not spoil it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn read(&self) -> RwLockReadGuard<'_, Catalog> {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Catalog> {
        self.catalog.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// JC-8: whether everything that a later start relies on is still where it would look.
    pub fn in_place(&self) -> bool {
        let mut files = self.named.clone();
        files.extend(self.read().active.clone());
        self.store.disk.check_identity(&files).is_ok()
    }

    /// F2: a failed sync is final. Pending units fail, readers go on, nothing is written any more.
    pub fn poison(&self, cause: &'static str) {
        let first = lock(&self.status).poisoned.replace(cause).is_none();
        if first {
            tracing::error!(cause, "the journal's writer stopped");
        }
        let error = JournalError::Poisoned { cause };
        self.queue.end(error.clone());
        self.completion.end(error);
        self.moved.notify_all();
    }

    /// Damage to what is durable was found: the writer stops, and says why to whoever asks.
    pub fn damaged(&self, error: &JournalError) {
        lock(&self.status).damage.get_or_insert_with(|| error.clone());
        tracing::error!(error = %error, "damage was found");
        self.poison("damage was found while reading");
    }

    pub fn poisoned(&self) -> Option<&'static str> {
        lock(&self.status).poisoned
    }

    pub fn health(&self) -> Health {
        const STALL: Duration = Duration::from_secs(10);
        let status = lock(&self.status);
        let stalled = status.sync_since.is_some_and(|t| self.clock.monotonic().saturating_sub(t) > STALL);
        match *status {
            Status { poisoned: Some(cause), .. } => Health::Poisoned { cause },
            Status { closed: true, .. } => Health::Closed,
            _ if stalled => Health::Stalled,
            Status { full: true, .. } => Health::Full,
            _ => Health::Ready,
        }
    }

    pub fn publish_sequence(&self, sequence: u64) {
        self.durable_sequence.store(sequence, Ordering::Release);
        // The lock orders this store with a waiter that has just looked. A notice is a system call even where nobody
        // waits, so it is not made for nobody.
        let waiting = lock(&self.status).waiting_for_sequence > 0;
        if waiting {
            self.moved.notify_all();
        }
    }
}
