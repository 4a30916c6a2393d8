//! What a start checks of ended segments without opening their bodies, on several cores, with the results in journal
//! order. It only ever says "sound" where the walk of `scan` would say so as well, as far as it looked (JR-20);
//! everything else is left to that walk, which judges.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

use sealog_disk::Disk;
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::frame::FrameKind;
use sealog_journal_format::limits;
use sealog_journal_format::names::SegmentName;

use crate::codec::Codec;
use crate::error::Result;
use crate::recovery::evidence;
use crate::recovery::walk::{Step, Walker};
use crate::segment::Segment;
use crate::shared::lock;
use crate::store::Store;
use crate::summary::{self, Summary};

/// Summaries that wait for their turn, in bytes: what is being made comes on top.
const HELD_BYTES_MAX: usize = 24 << 20;

/// Which segments of one start were found sound, and how much of them was read.
pub(crate) type Judged = BTreeMap<u64, Sound>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sound {
    pub start: EndRecord,
    pub end: EndRecord,
    /// Every header and every stored byte; otherwise only segment header, link and seal.
    pub read: bool,
}

/// One of the two scans of a start.
#[derive(Debug)]
pub(crate) enum Sweep<'a> {
    /// Finds out which ended segments are sound and have a summary. `bytes_max`: how much of them is read, the newest
    /// first. What has none is walked in this scan already, so that what refuses a start does it before any sync.
    Judge { judged: &'a mut Judged, digest_version: u32, bytes_max: u64 },
    /// Takes the summaries of those, with digests of this version.
    Take { judged: &'a Judged, digest_version: u32 },
}

/// An ended segment between two links.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its place in the chain.
    pub at: usize,
    pub segment: Arc<Segment>,
    pub start: EndRecord,
    pub end: EndRecord,
}

/// What came of a job.
#[derive(Debug)]
pub(crate) enum Swept {
    /// The segment has to be walked.
    Unknown,
    Sound {
        read: bool,
    },
    Summarised {
        read: bool,
        summary: Summary,
    },
}

impl Swept {
    fn bytes(&self) -> usize {
        match self {
            Swept::Unknown | Swept::Sound { .. } => 0,
            Swept::Summarised { summary, .. } => summary.bytes(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    next: usize,
    wanted: usize,
    done: BTreeMap<usize, Swept>,
    held_bytes: usize,
    over: bool,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Check { read: bool, digest_version: u32 },
    Load { read: bool, digest_version: u32 },
}

/// The jobs of a sweep, done ahead of whoever takes the results.
#[derive(Debug)]
pub(crate) struct Ahead {
    jobs: Vec<(Job, Task)>,
    disk: Arc<dyn Disk>,
    codec: Arc<dyn Codec>,
    state: Mutex<State>,
    changed: Condvar,
    threads: usize,
}

impl Ahead {
    pub fn new(store: &Store, jobs: Vec<Job>, sweep: Option<&Sweep<'_>>, threads: usize) -> Ahead {
        let jobs = match sweep {
            None => Vec::new(),
            Some(Sweep::Judge { bytes_max, digest_version, .. }) => checks(jobs, *bytes_max, *digest_version),
            Some(Sweep::Take { judged, digest_version }) => loads(jobs, judged, *digest_version),
        };
        let threads = if threads < 2 || jobs.len() < 2 { 0 } else { threads.min(jobs.len()) };
        let (disk, codec) = (Arc::clone(&store.disk), Arc::clone(&store.codec));
        Ahead { jobs, disk, codec, state: Mutex::default(), changed: Condvar::new(), threads }
    }

    /// Runs `consume` with the workers beside it.
    pub fn with_workers<T>(&self, consume: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            // Also when `consume` panics or ends early, nobody goes on waiting.
            let _over = Over(self);
            for _ in 0..self.threads {
                scope.spawn(|| self.work());
            }
            consume()
        })
    }

    /// The result for the segment at this place of the chain. Places are asked for in order.
    pub fn take(&self, at: usize) -> Swept {
        let Ok(wanted) = self.jobs.binary_search_by_key(&at, |(job, _)| job.at) else {
            return Swept::Unknown;
        };
        if self.threads == 0 {
            return self.run(wanted);
        }
        let mut state = lock(&self.state);
        state.wanted = wanted;
        self.changed.notify_all();
        loop {
            if let Some(swept) = state.done.remove(&wanted) {
                state.held_bytes -= swept.bytes();
                self.changed.notify_all();
                return swept;
            }
            if state.over {
                return Swept::Unknown;
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn work(&self) {
        let _over = OverOnPanic(self);
        loop {
            let mut state = lock(&self.state);
            let job = state.next;
            if state.over || job >= self.jobs.len() {
                return;
            }
            state.next += 1;
            drop(state);
            let swept = self.run(job);
            let mut state = lock(&self.state);
            // Jobs are begun in order, so the one that is wanted is always being done or done, and is never held up.
            while !state.over && state.wanted < job && state.held_bytes + swept.bytes() > HELD_BYTES_MAX {
                state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            state.held_bytes += swept.bytes();
            state.done.insert(job, swept);
            self.changed.notify_all();
        }
    }

    /// What cannot be read is for the walk to find again.
    fn run(&self, job: usize) -> Swept {
        let Some((Job { segment, start, end, .. }, task)) = self.jobs.get(job) else {
            return Swept::Unknown;
        };
        let swept = match *task {
            Task::Check { read, digest_version } => {
                let summarised = summary::load(&*self.disk, segment, end, digest_version).is_some();
                let sound = || {
                    if read {
                        is_sound(segment, start, end, &*self.codec)
                    } else {
                        ends_well(segment, end, &*self.codec)
                    }
                };
                match summarised && sound().unwrap_or(false) {
                    true => Swept::Sound { read },
                    false => Swept::Unknown,
                }
            }
            Task::Load { read, digest_version } => {
                match summary::load(&*self.disk, segment, end, digest_version) {
                    Some(summary) => Swept::Summarised { read, summary },
                    None => Swept::Unknown,
                }
            }
        };
        segment.release();
        swept
    }

    fn end(&self) {
        lock(&self.state).over = true;
        self.changed.notify_all();
    }
}

struct Over<'a>(&'a Ahead);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct OverOnPanic<'a>(&'a Ahead);

impl Drop for OverOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

/// The ended segments that stand between two links that read; not the one that the head speaks of (`named`).
pub(crate) fn jobs(
    named: u64,
    names: &[SegmentName],
    chain: &[Option<Arc<Segment>>],
    links: &[Option<EndRecord>],
) -> Vec<Job> {
    let job = |at: usize| {
        let segment = Arc::clone(chain[at].as_ref()?);
        let (start, end) = (links[at]?, links[at + 1]?);
        let between = names[at + 1].first() == segment.number + 1
            && !segment.is_compacted()
            && end.segment == segment.number
            && segment.number != named
            && segment.damaged_copy.is_none();
        between.then_some(Job { at, segment, start, end })
    };
    (0..chain.len().saturating_sub(1)).filter_map(job).collect()
}

/// The newest segments are read until the bytes are used up; of the older ones only the ends.
fn checks(jobs: Vec<Job>, bytes_max: u64, digest_version: u32) -> Vec<(Job, Task)> {
    let mut bytes = 0_u64;
    let mut tasks: Vec<(Job, Task)> = jobs
        .into_iter()
        .rev()
        .map(|job| {
            bytes = bytes.saturating_add(data_bytes(&job.end));
            (job, Task::Check { read: bytes <= bytes_max, digest_version })
        })
        .collect();
    tasks.reverse();
    tasks
}

fn loads(jobs: Vec<Job>, judged: &Judged, digest_version: u32) -> Vec<(Job, Task)> {
    let task = |job: Job| {
        let sound = judged.get(&job.segment.number)?;
        let same = sound.start == job.start && sound.end == job.end;
        same.then_some((job, Task::Load { read: sound.read, digest_version }))
    };
    jobs.into_iter().filter_map(task).collect()
}

/// Bytes of frames.
pub(crate) fn data_bytes(end: &EndRecord) -> u64 {
    end.end_offset.saturating_sub(limits::DATA_START)
}

/// Whether every header authenticates and links, every body keeps its CRC, and the segment ends exactly at `end`, then
/// zeros or nothing.
fn is_sound(segment: &Segment, start: &EndRecord, end: &EndRecord, codec: &dyn Codec) -> Result<bool> {
    let mut walker = Walker::new(segment, start, false, codec)?.summed();
    while walker.next.index != end.frames {
        match walker.step()? {
            Step::Frame(_) => {}
            Step::Stop(_) => return Ok(false),
        }
    }
    Ok(walker.end() == *end && walker.window.zero_from(walker.next.offset)?)
}

/// Whether the segment is as long as its end says and its seal, if it has one, is what the successor's link names. Its
/// link was read before.
fn ends_well(segment: &Segment, end: &EndRecord, codec: &dyn Codec) -> Result<bool> {
    if segment.length < end.end_offset {
        return Ok(false);
    }
    if end.how != How::Sealed {
        return Ok(true);
    }
    let mut walker = Walker::new(segment, &EndRecord::NONE, false, codec)?.summed();
    let offset = end.end_offset.saturating_sub(limits::FRAME_BYTES_MIN);
    let bytes = walker.window.slice(offset, limits::FRAME_HEADER_BYTES)?;
    let Some(bytes) = bytes.and_then(|bytes| bytes.first_chunk()) else { return Ok(false) };
    let Some(header) = evidence::authentic(segment, bytes) else { return Ok(false) };
    if header.kind != FrameKind::Seal {
        return Ok(false);
    }
    walker.resume_at(offset, &header);
    let sealed = matches!(walker.step()?, Step::Frame(_));
    Ok(sealed && walker.end() == *end)
}
