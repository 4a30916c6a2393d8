//! What a start checks of ended segments without opening their bodies, on several cores, with the results in journal
//! order. It only ever says "sound" where the walk of `scan` would say so as well, as far as it looked (JR-20);
//! everything else is left to that walk, which judges.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::Builder;

use sealog_disk::Disk;
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::frame::FrameKind;
use sealog_journal_format::limits;
use sealog_journal_format::names::SegmentName;

use crate::codec::Codec;
use crate::error::Result;
use crate::recovery::evidence;
use crate::recovery::findings::{Part, Parts, Sink};
use crate::recovery::scan::{hand_out, hand_out_merged};
use crate::recovery::walk::{Bodies, Step, Walker};
use crate::segment::Segment;
use crate::shared::lock;
use crate::store::Store;
use crate::summary::{self, Summary};

/// Summaries that wait for their turn, in bytes: what is being made comes on top.
const HELD_BYTES_MAX: u64 = 24 << 20;
/// Parts that wait for their turn, in bytes of the frames they are made of: no more than one of the longest segments.
const PARTS_BYTES_MAX: u64 = 64 << 20;

/// What is asked of ended segments before they are walked.
#[derive(Clone, Debug)]
pub(crate) enum Sweep {
    /// Their summaries, by a start that takes digests of this version. `bytes_max`: how much of them is read, the newest
    /// first, in bytes of frames.
    Summaries { digest_version: u32, bytes_max: u64 },
    /// Whether they are sound to the last byte, bodies opened; nothing else is wanted.
    Verdicts,
    /// The same, and what is in them.
    Contents(Parts),
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
    /// Sound to the last byte, with what was wanted of it.
    Sound { end: EndRecord, records: u64, part: Option<Box<dyn Part>> },
    /// Sound, with what its summary says. `read`: every header and every stored byte; otherwise only segment header,
    /// link and seal.
    Summarised { read: bool, summary: Summary },
}

impl Swept {
    /// What counts against `Ahead::held_max`.
    fn bytes(&self) -> u64 {
        match self {
            Swept::Unknown | Swept::Sound { part: None, .. } => 0,
            Swept::Sound { end, part: Some(_), .. } => data_bytes(end),
            Swept::Summarised { summary, .. } => summary.bytes() as u64,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    next: usize,
    wanted: usize,
    done: BTreeMap<usize, Swept>,
    held_bytes: u64,
    over: bool,
}

/// The jobs of a sweep, done ahead of whoever takes the results.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// With whether all of it is to be read.
    jobs: Vec<(Job, bool)>,
    sweep: Sweep,
    held_max: u64,
    disk: Arc<dyn Disk>,
    codec: Arc<dyn Codec>,
    state: Mutex<State>,
    changed: Condvar,
    /// Beside the one that takes the results, which does jobs as well while it has none to take.
    threads: usize,
}

impl Ahead {
    pub fn new(store: &Store, jobs: Vec<Job>, sweep: Option<Sweep>, threads: usize) -> Ahead {
        let jobs = match &sweep {
            None => Vec::new(),
            Some(Sweep::Summaries { bytes_max, .. }) => newest_read(jobs, *bytes_max),
            Some(Sweep::Verdicts | Sweep::Contents(_)) => newest_read(jobs, u64::MAX),
        };
        let held_max =
            if matches!(sweep, Some(Sweep::Contents(_))) { PARTS_BYTES_MAX } else { HELD_BYTES_MAX };
        let sweep = sweep.unwrap_or(Sweep::Verdicts);
        let threads = threads.saturating_sub(1);
        let (disk, codec) = (Arc::clone(&store.disk), Arc::clone(&store.codec));
        Ahead {
            jobs,
            sweep,
            held_max,
            disk,
            codec,
            state: Mutex::default(),
            changed: Condvar::new(),
            threads,
        }
    }

    /// Runs `consume` with the workers beside it, which do `afterwards` when no job is left.
    pub fn with_workers<T>(&self, afterwards: Option<impl Fn() + Sync>, consume: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            // Also when `consume` panics or ends early, nobody goes on waiting.
            let _over = Over(self);
            let work = || {
                self.work();
                afterwards.iter().for_each(|work| work());
            };
            let useful = if afterwards.is_some() { self.threads } else { self.jobs.len() };
            let start = || Builder::new().spawn_scoped(scope, work).is_ok();
            // A system that gives no thread makes a start slow, not impossible: who takes the results does the jobs.
            (0..self.threads.min(useful)).take_while(|_| start()).for_each(drop);
            consume()
        })
    }

    /// The result for the segment at this place of the chain. Places are asked for in order. As long as it is not there,
    /// `meanwhile` is done while that says that there is more, then the jobs that nobody has begun.
    pub fn take(&self, at: usize, meanwhile: &mut dyn FnMut() -> bool) -> Swept {
        let Ok(wanted) = self.jobs.binary_search_by_key(&at, |(job, _)| job.at) else {
            return Swept::Unknown;
        };
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
            drop(state);
            let more = meanwhile();
            state = lock(&self.state);
            if more || state.over || state.done.contains_key(&wanted) {
                continue;
            }
            // What nobody has begun is not waited for.
            state = match self.help(state) {
                Ok(state) => state,
                Err(state) => self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner),
            };
        }
    }

    /// Does the next job. `Err`: there is none, or no room for what comes of it.
    fn help<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> std::result::Result<MutexGuard<'a, State>, MutexGuard<'a, State>> {
        let job = state.next;
        let room = job == state.wanted || state.held_bytes < self.held_max;
        if state.over || job >= self.jobs.len() || !room {
            return Err(state);
        }
        state.next += 1;
        drop(state);
        let swept = self.run(job);
        let mut state = lock(&self.state);
        state.held_bytes += swept.bytes();
        state.done.insert(job, swept);
        Ok(state)
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
            while !state.over && state.wanted < job && state.held_bytes + swept.bytes() > self.held_max {
                state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            state.held_bytes += swept.bytes();
            state.done.insert(job, swept);
            self.changed.notify_all();
        }
    }

    /// What cannot be read is for the walk to find again.
    fn run(&self, job: usize) -> Swept {
        let Some((Job { segment, start, end, .. }, read)) = self.jobs.get(job) else {
            return Swept::Unknown;
        };
        let (read, codec) = (*read, &*self.codec);
        let swept = own_end(segment, start, end, codec).ok().flatten().and_then(|end| match &self.sweep {
            Sweep::Summaries { digest_version, .. } => {
                // First what is there or not, then what takes long.
                let summary = summary::load(&*self.disk, segment, &end, *digest_version)?;
                let sound = match read {
                    true => is_sound(segment, start, &end, Bodies::Summed, codec, None).ok()?.is_some(),
                    false => segment.length >= end.end_offset,
                };
                sound.then_some(Swept::Summarised { read, summary })
            }
            Sweep::Verdicts => {
                let records = is_sound(segment, start, &end, Bodies::Opened, codec, None).ok()??;
                Some(Swept::Sound { end, records, part: None })
            }
            Sweep::Contents(parts) => {
                // What a part was given before something turned out not to be sound goes with the part.
                let mut part = parts.make();
                let records =
                    is_sound(segment, start, &end, Bodies::Opened, codec, Some(&mut part)).ok()??;
                Some(Swept::Sound { end, records, part: Some(part) })
            }
        });
        segment.release();
        swept.unwrap_or(Swept::Unknown)
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
        let between = names[at + 1].first() == segment.last() + 1
            && end.segment == segment.last()
            && !(segment.number..=segment.last()).contains(&named)
            && segment.damaged_copy.is_none();
        between.then_some(Job { at, segment, start, end })
    };
    (0..chain.len().saturating_sub(1)).filter_map(job).collect()
}

/// The newest segments are read until the bytes are used up; of the older ones only the ends.
fn newest_read(jobs: Vec<Job>, bytes_max: u64) -> Vec<(Job, bool)> {
    let mut bytes = 0_u64;
    let read = |job: Job| {
        bytes = bytes.saturating_add(job_bytes(&job));
        (job, bytes <= bytes_max)
    };
    let mut tasks: Vec<(Job, bool)> = jobs.into_iter().rev().map(read).collect();
    tasks.reverse();
    tasks
}

/// Bytes of its frames.
fn job_bytes(job: &Job) -> u64 {
    match job.segment.is_compacted() {
        true => job.segment.length.saturating_sub(limits::DATA_START),
        false => data_bytes(&job.end),
    }
}

/// Bytes of frames.
pub(crate) fn data_bytes(end: &EndRecord) -> u64 {
    end.end_offset.saturating_sub(limits::DATA_START)
}

/// How many records there are, if every header authenticates and links, every body keeps its CRC, or opens and keeps the
/// rules, and the segment ends exactly at `end`, then zeros or nothing; of a compacted one nothing. `sink` gets what a walk
/// that goes on would hand out until then.
fn is_sound(
    segment: &Segment,
    start: &EndRecord,
    end: &EndRecord,
    bodies: Bodies,
    codec: &dyn Codec,
    mut sink: Option<&mut dyn Sink>,
) -> Result<Option<u64>> {
    let walker = Walker::new(segment, start, false, codec)?;
    let mut walker = if bodies == Bodies::Summed { walker.summed() } else { walker };
    let mut records = 0;
    while walker.next.index != end.frames {
        match walker.step()? {
            Step::Frame(frame) => {
                records += u64::from(frame.header.record_count);
                let ready = walker.take_ready();
                if let Some(sink) = &mut sink {
                    hand_out(*sink, segment, &frame.header, frame.offset, walker.group());
                    hand_out_merged(*sink, segment, ready);
                }
            }
            Step::Stop(_) => return Ok(None),
        }
    }
    if let (Some(sink), Some(sources)) = (sink, &walker.sources) {
        sink.sources(sources);
    }
    let behind = match segment.is_compacted() {
        true => walker.window.length() == walker.next.offset,
        false => walker.window.zero_from(walker.next.offset)?,
    };
    Ok((behind && walker.end() == *end).then_some(records))
}

/// The end by which a segment's summary calls it: of a log segment the one that its successor's link names, of a
/// compacted one where its seal stands. A seal is read, and must be what is named. `None`: it is not so.
pub(crate) fn own_end(
    segment: &Segment,
    start: &EndRecord,
    named: &EndRecord,
    codec: &dyn Codec,
) -> Result<Option<EndRecord>> {
    let sealed_at = match segment.is_compacted() {
        true if segment.header.link_in != *start || segment.header.link_out != *named => return Ok(None),
        true => segment.length,
        false if named.how != How::Sealed => return Ok(Some(*named)),
        false => named.end_offset,
    };
    let mut walker = Walker::new(segment, &EndRecord::NONE, false, codec)?.summed();
    let offset = sealed_at.saturating_sub(limits::FRAME_BYTES_MIN).max(limits::DATA_START);
    let bytes = walker.window.slice(offset, limits::FRAME_HEADER_BYTES)?;
    let Some(bytes) = bytes.and_then(|bytes| bytes.first_chunk()) else { return Ok(None) };
    let Some(header) = evidence::authentic(segment, bytes).filter(|header| header.kind == FrameKind::Seal)
    else {
        return Ok(None);
    };
    walker.resume_at(offset, &header);
    let sealed = matches!(walker.step()?, Step::Frame(_));
    let end = Some(walker.end()).filter(|end| sealed && end.end_offset == sealed_at);
    Ok(end.filter(|end| segment.is_compacted() || end == named))
}
