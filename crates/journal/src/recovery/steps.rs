//! The frames of one walk for whoever takes them in order: read where they are taken, or ahead of that on a thread of
//! its own. Either way the same frames, and the walker itself where the walk stops. It judges nothing.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::{Builder, Scope};

use crate::error::{JournalError, Result};
use crate::recovery::table::Found;
use crate::recovery::walk::{Expect, Step, Walked, Walker};

/// Bytes of plaintext that are handed over at once; a frame is never split.
const BATCH_BYTES: usize = 256 << 10;
/// Or so many frames.
const BATCH_FRAMES: usize = 1024;
/// Batches that wait for whoever takes them.
const BATCHES_AHEAD: usize = 4;
/// What is shorter than this is read before a thread has begun.
const AHEAD_BYTES_MIN: u64 = 512 << 10;

/// A frame that was read ahead, and how its walk stood behind it.
#[derive(Debug)]
struct Read {
    walked: Walked,
    plaintext: Range<usize>,
    next: Expect,
}

struct Batch<'s> {
    frames: Vec<Read>,
    plaintext: Vec<u8>,
    /// The last one: the walk stopped, or came to its bound.
    end: Option<(Walker<'s>, Result<Option<Found>>)>,
}

impl Batch<'_> {
    fn new() -> Self {
        Batch { frames: Vec::new(), plaintext: Vec::new(), end: None }
    }
}

pub(crate) struct Steps<'s> {
    /// At hand, unless a thread still has it.
    walker: Option<Walker<'s>>,
    ahead: Option<Receiver<Batch<'s>>>,
    batch: Batch<'s>,
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
        Steps { walker: Some(walker), ahead: None, batch: Batch::new(), taken: 0, next, stop: None }
    }

    /// At most `frames_max` frames are read ahead: where somebody names an end, nothing behind it is looked at.
    pub fn new<'scope, 'env: 'scope>(
        walker: Walker<'s>,
        threads: usize,
        frames_max: u64,
        scope: &'scope Scope<'scope, 'env>,
    ) -> Steps<'s>
    where
        's: 'env,
    {
        let next = walker.next;
        if threads < 2 || walker.window.length().saturating_sub(next.offset) < AHEAD_BYTES_MIN {
            return Steps::here(walker);
        }
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        // Handed over once the thread runs: where the system gives none, the walk goes on here.
        let (hand_over, handed) = sync_channel(1);
        let read = move || {
            if let Ok(walker) = handed.recv() {
                read_ahead(walker, frames_max, &sender);
            }
        };
        if Builder::new().spawn_scoped(scope, read).is_err() {
            return Steps::here(walker);
        }
        if let Err(SendError(walker)) = hand_over.send(walker) {
            return Steps::here(walker);
        }
        Steps { walker: None, ahead: Some(receiver), batch: Batch::new(), taken: 0, next, stop: None }
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
                (self.batch, self.taken) = (Batch::new(), 0);
                return walker.step();
            }
            self.receive()?;
        }
    }

    /// The plaintext of the frame that `step` returned last.
    pub fn plaintext(&self) -> &[u8] {
        let read = self.taken.checked_sub(1).and_then(|at| self.batch.frames.get(at));
        match (read, &self.walker) {
            (Some(read), _) => &self.batch.plaintext[read.plaintext.clone()],
            (None, Some(walker)) => walker.plaintext(),
            (None, None) => &[],
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
        let mut batch = self.ahead.as_ref().and_then(|ahead| ahead.recv().ok()).ok_or(OVER)?;
        if let Some((walker, stop)) = batch.end.take() {
            // Frames of this batch are still to be taken, so the walker stands behind them.
            self.stop = stop?;
            self.walker = Some(walker);
            self.ahead = None;
        }
        (self.batch, self.taken) = (batch, 0);
        Ok(())
    }
}

/// The thread that reads ahead has panicked, and so will whoever waits for its end.
const OVER: JournalError = JournalError::Misuse("a walk ended without a word");

fn read_ahead<'s>(mut walker: Walker<'s>, frames_max: u64, to: &SyncSender<Batch<'s>>) {
    let mut batch = Batch::new();
    let end = loop {
        if walker.next.index >= frames_max {
            break Ok(None);
        }
        match walker.step() {
            Ok(Step::Frame(walked)) => {
                let from = batch.plaintext.len();
                batch.plaintext.extend_from_slice(walker.plaintext());
                let plaintext = from..batch.plaintext.len();
                batch.frames.push(Read { walked, plaintext, next: walker.next });
            }
            Ok(Step::Stop(found)) => break Ok(Some(found)),
            Err(error) => break Err(error),
        }
        if batch.plaintext.len() >= BATCH_BYTES || batch.frames.len() >= BATCH_FRAMES {
            // Whoever took the frames has stopped listening: it has an error of its own.
            if to.send(std::mem::replace(&mut batch, Batch::new())).is_err() {
                return;
            }
        }
    };
    batch.end = Some((walker, end));
    let _ = to.send(batch);
}
