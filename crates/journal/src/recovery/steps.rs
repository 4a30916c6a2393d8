//! The frames of one walk for whoever takes them in order: read where they are taken, or ahead of that on other threads.
//! Either way the same frames, and the walker itself where the walk stops. It judges nothing.
//!
//! Ahead of their taker, headers, chain values and CRCs are checked by one thread after the other, since each stands on
//! what is before it; what was read then is opened and decoded by many at once, and given out in order again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use crate::error::{JournalError, Result};
use crate::recovery::group::{self, Entry, Group};
use crate::recovery::table::Found;
use crate::recovery::walk::{Expect, Step, Walked, Walker};
use crate::segment::Segment;
use crate::shared::lock;

/// Bytes of bodies that are opened by one thread at once; a frame is never split.
const BATCH_BYTES: usize = 64 << 10;
/// Or so many frames. Few in tests, whose segments are short.
const BATCH_FRAMES: usize = if cfg!(test) { 2 } else { 512 };
/// Batches that are begun or wait for whoever takes them.
const BATCHES_AHEAD: usize = if cfg!(test) { 2 } else { 16 };
/// What is shorter than this is read before a thread has begun.
const AHEAD_BYTES_MIN: u64 = if cfg!(test) { 1 } else { 512 << 10 };

/// A frame that was read ahead, and how its walk stood behind it.
#[derive(Debug)]
struct Read {
    walked: Walked,
    body: Range<usize>,
    entries: Range<usize>,
    next: Expect,
}

/// Frames in order. `bytes` are their bodies, which `open` opens where they are.
#[derive(Debug, Default)]
struct Batch {
    frames: Vec<Read>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The last one: behind its frames the walk stopped, or came to its bound.
    end: Option<Result<Option<Found>>>,
    /// The place of a frame that does not open: the walk stops there and came here in vain.
    rejected: Option<Expect>,
}

impl Batch {
    fn clear(&mut self) {
        self.frames.clear();
        self.bytes.clear();
        self.entries.clear();
        (self.end, self.rejected) = (None, None);
    }

    /// Frames from where the walk stands, bodies of groups closed.
    fn read(&mut self, walker: &mut Walker<'_>, frames_max: u64) {
        self.clear();
        while self.bytes.len() < BATCH_BYTES && self.frames.len() < BATCH_FRAMES {
            if walker.next.index >= frames_max {
                self.end = Some(Ok(None));
                return;
            }
            let stop = match walker.step() {
                Ok(Step::Frame(walked)) => match walker.closed_body(&walked) {
                    Ok(body) => {
                        let from = self.bytes.len();
                        self.bytes.extend_from_slice(body);
                        let (body, next) = (from..self.bytes.len(), walker.next);
                        self.frames.push(Read { walked, body, entries: 0..0, next });
                        continue;
                    }
                    Err(error) => Err(error),
                },
                Ok(Step::Stop(found)) => Ok(Some(found)),
                Err(error) => Err(error),
            };
            self.end = Some(stop);
            return;
        }
    }

    /// Opens the bodies and decodes their records, up to the first that is not what its header says. `from` is where the
    /// first frame stands.
    fn open(&mut self, segment: &Segment, from: Expect) {
        let Batch { frames, bytes, entries, .. } = self;
        let mut place = from;
        for (at, read) in frames.iter_mut().enumerate() {
            let (header, first) = (&read.walked.header, entries.len());
            let body = bytes.get_mut(read.body.clone()).unwrap_or_default();
            let opens = body.is_empty()
                || (segment.open_body(header, body) && group::decode(body, header.record_count, entries));
            if !opens {
                self.rejected = Some(place);
                frames.truncate(at);
                return;
            }
            read.entries = first..entries.len();
            place = read.next;
        }
    }
}

pub(crate) struct Steps<'s> {
    /// At hand, unless other threads still have it.
    walker: Option<Walker<'s>>,
    ahead: Option<Arc<Ahead<'s>>>,
    batch: Batch,
    /// Frames of the batch that were taken.
    taken: usize,
    next: Expect,
    /// Where the walk that was read ahead stopped, not taken yet.
    stop: Option<Found>,
}

impl<'s> Steps<'s> {
    /// Read where they are taken.
    pub fn here(walker: Walker<'s>) -> Steps<'s> {
        let next = walker.next;
        Steps { walker: Some(walker), ahead: None, batch: Batch::default(), taken: 0, next, stop: None }
    }

    /// At most `frames_max` frames are read ahead: where somebody names an end, nothing behind it is looked at.
    pub fn new(mut walker: Walker<'s>, threads: usize, frames_max: u64) -> Steps<'s> {
        let next = walker.next;
        let bytes = walker.window.length().saturating_sub(next.offset);
        if threads < 2 || bytes < AHEAD_BYTES_MIN || !walker.opens() {
            return Steps::here(walker);
        }
        walker.window.read_ahead(next.offset);
        let ahead = Some(Arc::new(Ahead::new(walker, frames_max)));
        Steps { walker: None, ahead, batch: Batch::default(), taken: 0, next, stop: None }
    }

    /// For another thread, which reads ahead until everything was read or taken. Without one, the batches are read where
    /// they are taken.
    pub fn helper(&self) -> Option<Helper<'s>> {
        self.ahead.clone().map(Helper)
    }

    /// Runs `take` with helpers beside it.
    pub fn with_helpers<T>(self, threads: usize, take: impl FnOnce(&mut Steps<'s>) -> T) -> T {
        std::thread::scope(|scope| {
            // Its end is theirs.
            let mut steps = self;
            let start =
                |helper: Helper<'s>| Builder::new().spawn_scoped(scope, move || helper.work()).is_ok();
            // Where the system gives no thread, the batches are read where they are taken.
            let _started = (1..threads).map_while(|_| steps.helper()).all(start);
            take(&mut steps)
        })
    }

    /// Reads a batch ahead of its turn. `false`: there is none, or enough of them are there.
    pub fn read_on(&self) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| ahead.read_on())
    }

    /// What comes behind the last frame that was taken.
    pub fn next(&self) -> &Expect {
        match &self.walker {
            Some(walker) if self.taken == self.batch.frames.len() => &walker.next,
            Some(_) | None => &self.next,
        }
    }

    pub fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(read) = self.batch.frames.get(self.taken) {
                self.taken += 1;
                self.next = read.next;
                return Ok(Step::Frame(read.walked.clone()));
            }
            if let Some(found) = self.stop.take() {
                return Ok(Step::Stop(found));
            }
            if let Some(walker) = &mut self.walker {
                self.batch.clear();
                self.taken = 0;
                return walker.step();
            }
            self.receive()?;
        }
    }

    /// What the frame that `step` returned last holds.
    pub fn group(&self) -> Group<'_> {
        let read = self.taken.checked_sub(1).and_then(|at| self.batch.frames.get(at));
        match (read, &self.walker) {
            (Some(read), _) => Group {
                plaintext: &self.batch.bytes[read.body.clone()],
                entries: &self.batch.entries[read.entries.clone()],
            },
            (None, Some(walker)) => walker.group(),
            (None, None) => Group::NONE,
        }
    }

    /// The walker behind the last frame that was taken; only after a stop, or at the bound.
    pub fn walker(&mut self) -> Result<&mut Walker<'s>> {
        while self.walker.is_none() {
            self.receive()?;
        }
        self.walker.as_mut().ok_or(OVER)
    }

    /// Only when every frame of the present batch was taken.
    fn receive(&mut self) -> Result<()> {
        let ahead = self.ahead.as_ref().ok_or(OVER)?;
        (self.batch, self.taken) = (ahead.take(std::mem::take(&mut self.batch)).ok_or(OVER)?, 0);
        let rejected = self.batch.rejected.take();
        // What is wrong with a body counts before what a walk over headers came to behind it.
        let stop = match (rejected, self.batch.end.take()) {
            (Some(_), _) => Some(Found::Foreign),
            (None, Some(stop)) => stop?,
            (None, None) => return Ok(()),
        };
        let mut walker = ahead.end().ok_or(OVER)?.opening();
        if let Some(place) = rejected {
            walker.go_back(place);
        }
        // Frames of this batch are still to be taken, so the walker stands behind them.
        (self.walker, self.stop, self.ahead) = (Some(walker), stop, None);
        Ok(())
    }
}

impl Drop for Steps<'_> {
    /// Whoever took the frames may have an error of its own and want no more.
    fn drop(&mut self) {
        if let Some(ahead) = &self.ahead {
            ahead.stop();
        }
    }
}

/// What another thread needs to help.
pub(crate) struct Helper<'s>(Arc<Ahead<'s>>);

impl Helper<'_> {
    pub fn work(&self) {
        self.0.work();
    }
}

/// A thread that read ahead has panicked, and so will whoever waits for its end.
const OVER: JournalError = JournalError::Misuse("a walk ended without a word");

/// What the threads that read ahead share with whoever takes the batches.
struct Ahead<'s> {
    segment: &'s Segment,
    frames_max: u64,
    reading: Mutex<Reading<'s>>,
    state: Mutex<State>,
    changed: Condvar,
}

struct Reading<'s> {
    /// None: it was taken back.
    walker: Option<Walker<'s>>,
    /// Batches read so far.
    batches: usize,
    ended: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the batch that is wanted next.
    wanted: usize,
    done: BTreeMap<usize, Batch>,
    /// Memory to be used again.
    free: Vec<Batch>,
    over: bool,
}

impl<'s> Ahead<'s> {
    fn new(walker: Walker<'s>, frames_max: u64) -> Ahead<'s> {
        let segment = walker.segment();
        let reading = Reading { walker: Some(walker.summed()), batches: 0, ended: false };
        let (reading, state) = (Mutex::new(reading), Mutex::default());
        Ahead { segment, frames_max, reading, state, changed: Condvar::new() }
    }

    fn work(&self) {
        let _over = StopOnPanic(self);
        while let Some(read) = self.read() {
            self.open(read);
        }
    }

    fn open(&self, (number, mut batch, from): (usize, Batch, Expect)) {
        batch.open(self.segment, from);
        let mut state = lock(&self.state);
        state.done.insert(number, batch);
        drop(state);
        self.changed.notify_all();
    }

    /// The next batch, with its number and where it begins. `None`: there is none, or nobody wants it.
    fn read(&self) -> Option<(usize, Batch, Expect)> {
        let reading = lock(&self.reading);
        let full = |state: &mut State| !state.over && reading.batches >= state.wanted + BATCHES_AHEAD;
        let state = self.changed.wait_while(lock(&self.state), full);
        self.read_next(reading, state.unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads and opens one for whoever takes the batches, who is never held up, neither by who reads nor because there are
    /// enough. `false`: there is none for now.
    fn read_on(&self) -> bool {
        let Ok(reading) = self.reading.try_lock() else { return false };
        let state = lock(&self.state);
        if reading.batches >= state.wanted + BATCHES_AHEAD {
            return false;
        }
        self.read_next(reading, state).map(|read| self.open(read)).is_some()
    }

    fn read_next(
        &self,
        mut reading: MutexGuard<'_, Reading<'s>>,
        mut state: MutexGuard<'_, State>,
    ) -> Option<(usize, Batch, Expect)> {
        let Reading { walker, batches, ended } = &mut *reading;
        if state.over || *ended {
            return None;
        }
        let mut batch = state.free.pop().unwrap_or_default();
        drop(state);
        let walker = walker.as_mut()?;
        let (number, from) = (*batches, walker.next);
        batch.read(walker, self.frames_max);
        (*batches, *ended) = (number + 1, batch.end.is_some());
        Some((number, batch, from))
    }

    /// The next batch in order, for one that was used up. `None`: it will not come.
    fn take(&self, used: Batch) -> Option<Batch> {
        let mut state = lock(&self.state);
        state.free.push(used);
        loop {
            let wanted = state.wanted;
            if let Some(batch) = state.done.remove(&wanted) {
                state.wanted += 1;
                drop(state);
                self.changed.notify_all();
                return Some(batch);
            }
            if state.over {
                return None;
            }
            drop(state);
            let more = self.read_on();
            state = lock(&self.state);
            if !more && !state.over && !state.done.contains_key(&wanted) {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn stop(&self) {
        lock(&self.state).over = true;
        self.changed.notify_all();
    }

    /// The walker, once nobody reads any more.
    fn end(&self) -> Option<Walker<'s>> {
        self.stop();
        lock(&self.reading).walker.take()
    }
}

struct StopOnPanic<'a, 's>(&'a Ahead<'s>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
