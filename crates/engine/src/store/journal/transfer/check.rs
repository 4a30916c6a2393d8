//! Whether lines make an export: their order, each execution whole or said not to be, results that are what the events
//! give, counts and digest. Reads everything before anything is made of it, and writes nothing.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};

use sealog_events::{Event, ExecutionId, MaterializedResult, Materializer};

use super::lines::{Counts, LINE_BYTES_MAX, Line, LineError, link};

/// Why an input is not an export, and where. Lines count from 1.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("line {line}: {why}")]
    Line { line: u64, why: LineError },
    #[error("line {line}: {what}")]
    Order { line: u64, what: &'static str },
    #[error("the input ends before its last line")]
    CutShort,
    #[error("the input cannot be read")]
    Input(#[source] std::io::Error),
}

/// What a whole input was found to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub store_id: [u8; 16],
    /// Executions that are there from creation to the last event that is told.
    pub whole: u64,
    pub events: u64,
    pub gaps: u64,
    /// The export says that it may lack executions.
    pub partial: bool,
    /// Executions of which something is missing, or may be.
    pub incomplete: HashSet<ExecutionId>,
    pub digest: [u8; 32],
}

/// Reads an input to its end.
///
/// # Errors
/// [`Broken`] at the first thing that is not as an export has it.
pub fn check(input: &mut dyn BufRead) -> Result<Checked, Broken> {
    let mut lines = Lines::new(input);
    let mut checker = Checker::default();
    while let Some((line, digest)) = lines.next_line()? {
        checker.take(line, digest).map_err(|what| Broken::Order { line: lines.number, what })?;
    }
    checker.finish()
}

/// Lines one by one, each bounded before it is kept.
pub(super) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    pub number: u64,
    digest: [u8; 32],
    buffer: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub fn new(input: &'a mut dyn BufRead) -> Lines<'a> {
        Lines { input, number: 0, digest: [0; 32], buffer: Vec::new() }
    }

    /// The next line, and the digest over all lines before it.
    pub fn next_line(&mut self) -> Result<Option<(Line, [u8; 32])>, Broken> {
        self.buffer.clear();
        let bound = LINE_BYTES_MAX as u64 + 1;
        let read =
            (&mut *self.input).take(bound).read_until(b'\n', &mut self.buffer).map_err(Broken::Input)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let refuse = |why| Broken::Line { line: self.number, why };
        let Some(bytes) = self.buffer.strip_suffix(b"\n") else {
            return Err(if read as u64 == bound { refuse(LineError::TooLong) } else { Broken::CutShort });
        };
        let line = Line::parse(bytes).map_err(refuse)?;
        let before = self.digest;
        self.digest = link(&before, bytes);
        Ok(Some((line, before)))
    }
}

#[derive(Default)]
struct Checker {
    store_id: Option<[u8; 16]>,
    executions: HashMap<ExecutionId, Progress>,
    /// Ids never come back, forgotten ones neither.
    forgotten: HashSet<ExecutionId>,
    created: u64,
    events: u64,
    gaps: u64,
    partial: bool,
    ended: Option<[u8; 32]>,
}

struct Progress {
    next: u64,
    ended: bool,
    /// While nothing is missing.
    fold: Option<Box<Materializer>>,
    whole: bool,
    result: Option<MaterializedResult>,
    /// Where it came from was told.
    origin: bool,
    /// What it is found by was told.
    labels: bool,
}

impl Progress {
    fn new(next: u64, fold: Option<Box<Materializer>>) -> Progress {
        let whole = fold.is_some();
        Progress { next, ended: false, fold, whole, result: None, origin: false, labels: false }
    }

    fn origin(&mut self) -> Step {
        if self.next != 1 || std::mem::replace(&mut self.origin, true) {
            return Err("an origin stands once and before the events of its execution");
        }
        Ok(())
    }

    fn labels(&mut self) -> Step {
        if self.next != 1 || std::mem::replace(&mut self.labels, true) {
            return Err("labels stand once and before the events of their execution");
        }
        Ok(())
    }
}

type Step = Result<(), &'static str>;

impl Checker {
    fn take(&mut self, line: Line, digest: [u8; 32]) -> Step {
        if self.ended.is_some() {
            return Err("something follows the last line");
        }
        if self.store_id.is_none() != matches!(line, Line::Header { .. }) {
            return Err("the header is the first line and no other");
        }
        if self.gaps > 0 && !matches!(line, Line::Gap { .. } | Line::End { .. }) {
            return Err("only the end follows the gaps");
        }
        match line {
            Line::Header { store_id, .. } => self.store_id = Some(store_id),
            Line::Execution { id, created } => {
                let fold = Some(Box::new(Materializer::new(id, created.created_at)));
                self.created += 1;
                return self.begin(id, Progress::new(1, fold));
            }
            Line::Origin { id, .. } => {
                return self.executions.get_mut(&id).ok_or(UNKNOWN)?.origin();
            }
            Line::Labels { id, .. } => {
                return self.executions.get_mut(&id).ok_or(UNKNOWN)?.labels();
            }
            Line::Event { id, event } => {
                self.events += 1;
                return self.executions.get_mut(&id).ok_or(UNKNOWN)?.event(&event);
            }
            Line::Result { id, result, .. } => {
                let execution = self.executions.get_mut(&id).ok_or(UNKNOWN)?;
                if execution.ended || execution.result.replace(result).is_some() {
                    return Err("a result stands once and before the event that ends its execution");
                }
            }
            Line::Evidence { id, .. } => {
                let execution = self.executions.get(&id).ok_or(UNKNOWN)?;
                if execution.ended || execution.result.is_some() {
                    return Err("evidence of an attempt stands before the end of its execution");
                }
            }
            Line::Forget { ids, .. } => {
                for id in ids {
                    self.executions.remove(&id).ok_or(UNKNOWN)?;
                    self.forgotten.insert(id);
                }
            }
            Line::Missing { id, first: 0, last } => {
                return self.begin(id, Progress::new(last + 1, None));
            }
            Line::Missing { id, first, last } => {
                let execution = self.executions.get_mut(&id).ok_or(UNKNOWN)?;
                if execution.ended || execution.next != first {
                    return Err("what is missing is not where it is missing");
                }
                (execution.next, execution.whole, execution.fold) = (last + 1, false, None);
            }
            // Where they stand says which executions were open in the copy.
            Line::Restored { .. } | Line::Unfenced { .. } => {}
            Line::Gap { .. } => self.gaps += 1,
            Line::End { counts, digest: told } => {
                let right = Counts { executions: self.created, events: self.events, ..counts };
                if Line::end(right, &digest) != (Line::End { counts, digest: told }) {
                    return Err("the counts or the digest are not those of the lines before");
                }
                (self.ended, self.partial) = (Some(told), counts.partial);
            }
        }
        Ok(())
    }

    fn begin(&mut self, id: ExecutionId, progress: Progress) -> Step {
        if self.forgotten.contains(&id) || self.executions.contains_key(&id) {
            return Err("an execution begins twice");
        }
        self.executions.insert(id, progress);
        Ok(())
    }

    fn finish(self) -> Result<Checked, Broken> {
        let (Some(store_id), Some(digest)) = (self.store_id, self.ended) else {
            return Err(Broken::CutShort);
        };
        // Behind a gap the rest of an execution that goes on may have been lost.
        let gaps = self.gaps;
        let incomplete = |progress: &Progress| !progress.whole || (gaps > 0 && !progress.ended);
        let (incomplete, whole): (Vec<_>, Vec<_>) =
            self.executions.into_iter().partition(|(_, progress)| incomplete(progress));
        Ok(Checked {
            store_id,
            whole: whole.len() as u64,
            events: self.events,
            gaps,
            partial: self.partial,
            incomplete: incomplete.into_iter().map(|(id, _)| id).collect(),
            digest,
        })
    }
}

const UNKNOWN: &str = "it speaks of an execution that has not begun";

impl Progress {
    fn event(&mut self, event: &Event) -> Step {
        if self.ended {
            return Err("an event behind the one that ended its execution");
        }
        if event.sequence != self.next {
            return Err("an execution's events are not numbered one by one");
        }
        self.next += 1;
        if let Some(fold) = &mut self.fold {
            fold.push(event);
        }
        if !event.body.is_terminal() {
            // Only the ending unit has a result, directly before the terminal event.
            return if self.result.is_some() { Err("a result without its end") } else { Ok(()) };
        }
        self.ended = true;
        let (Some(fold), result) = (self.fold.take(), self.result.take()) else { return Ok(()) };
        match result.map(|result| result.agrees_with(&fold.into_snapshot())) {
            None => Err("an execution ends without its result"),
            Some(Some(false)) => Err("a result is not what its events give"),
            Some(Some(true) | None) => Ok(()),
        }
    }
}
