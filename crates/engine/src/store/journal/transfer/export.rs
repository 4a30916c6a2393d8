//! From a journal to lines. Two scans: the first finds what was forgotten, so that none of it travels; the second writes.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::rc::Rc;

use sealog_events::{Event, ExecutionId, Holds, RecordKind, Timestamp, body};
use sealog_journal::{Audit, Config, FrameView, JournalError, Record, Sink, audit};
use sealog_journal_format::journal_records::{
    Forget, KIND_FORGET, KIND_JOURNAL_MAX, KIND_RESTORED, KIND_UNFENCED, Restored,
};

use super::lines::{Counts, Line, link};

/// Why an export did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the output cannot be written")]
    Output(#[source] std::io::Error),
    /// A record that this program cannot interpret.
    #[error("the record with sequence {sequence} is not one this program knows")]
    UnknownRecord { sequence: u64 },
    /// What was read while it was written is not there any more.
    #[error("the journal changed while it was read")]
    Moved,
}

/// What was written. The journal's own verdict is in `audit`: a damaged one is exported as far as it reads.
#[derive(Debug)]
pub struct Exported {
    pub audit: Audit,
    pub executions: u64,
    pub events: u64,
    pub forgotten: u64,
    /// Runs of events that could not be read.
    pub missing: u64,
    /// There may be executions that the lines do not tell of (JB-12): an import stands behind a fence.
    pub partial: bool,
}

/// Writes all executions, or `only` one, in journal order.
///
/// # Errors
/// What keeps the journal from being read at all, and [`ExportError`]'s own. Damage is in the answer.
pub fn export(
    config: &Config,
    only: Option<ExecutionId>,
    output: &mut dyn Write,
) -> Result<Exported, ExportError> {
    let (before, forgotten) = audit(config, &mut Forgotten::default)?;
    let state = Rc::new(RefCell::new(State::new(output, only, forgotten.ids)));
    state.borrow_mut().line(&Line::Header {
        store_id: before.store_id,
        created_ms: before.created_ms,
        last_sequence: before.last_sequence,
    });
    // A scan that is made again, because of damage or beside a writer, finds its lines written.
    let mut first = true;
    let mut make = || Writing { state: std::mem::take(&mut first).then(|| Rc::clone(&state)) };
    let (found, _) = audit(config, &mut make)?;
    let mut state = state.borrow_mut();
    if let Some(sequence) = state.unknown {
        return Err(ExportError::UnknownRecord { sequence });
    }
    if found.is_sound() && state.missing > 0 {
        return Err(ExportError::Moved);
    }
    for gap in &found.gaps {
        let &sealog_journal::Gap { segment, offset, first_sequence, last_sequence } = gap;
        state.line(&Line::Gap { segment, offset, first_sequence, last_sequence });
    }
    let forgotten = state.gone.len() as u64;
    let (executions, events) = (state.executions, state.events);
    // What a writer does meanwhile is not here, nor what it did behind a backup, nor what did not read, nor what was not
    // asked for.
    let partial = only.is_some() || before.live || found.live || found.may_lack_work();
    let counts = Counts { executions, events, forgotten, partial };
    let end = Line::end(counts, &state.digest);
    state.line(&end);
    if state.failed.is_none() {
        state.failed = state.output.flush().err();
    }
    match state.failed.take() {
        Some(error) => Err(ExportError::Output(error)),
        None => {
            let missing = state.missing;
            Ok(Exported { audit: found, executions, events, forgotten, missing, partial })
        }
    }
}

/// The first scan.
#[derive(Default)]
struct Forgotten {
    ids: HashSet<ExecutionId>,
}

impl Sink for Forgotten {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        if record.kind == KIND_FORGET
            && let Ok(ids) = Forget::ids(&record.body)
        {
            self.ids.extend(ids.map(ExecutionId::from_bytes));
        }
    }
}

/// The second scan: writes, or sees that everything was written.
struct Writing<'a> {
    state: Option<Rc<RefCell<State<'a>>>>,
}

impl Sink for Writing<'_> {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        if let Some(state) = &self.state {
            state.borrow_mut().record(record);
        }
    }
}

struct State<'a> {
    output: &'a mut dyn Write,
    only: Option<ExecutionId>,
    gone: HashSet<ExecutionId>,
    /// The number of the next event of each execution that has begun.
    next: HashMap<ExecutionId, u64>,
    digest: [u8; 32],
    executions: u64,
    events: u64,
    missing: u64,
    failed: Option<std::io::Error>,
    unknown: Option<u64>,
}

impl<'a> State<'a> {
    fn new(output: &'a mut dyn Write, only: Option<ExecutionId>, gone: HashSet<ExecutionId>) -> State<'a> {
        let next = HashMap::new();
        let (digest, failed, unknown) = ([0; 32], None, None);
        State { output, only, gone, next, digest, executions: 0, events: 0, missing: 0, failed, unknown }
    }

    fn line(&mut self, line: &Line) {
        if self.failed.is_some() {
            return;
        }
        let mut text = line.spell();
        self.digest = link(&self.digest, text.as_bytes());
        text.push('\n');
        self.failed = self.output.write_all(text.as_bytes()).err();
    }

    fn record(&mut self, record: &Record) {
        if record.kind <= KIND_JOURNAL_MAX {
            return self.own(record);
        }
        let Some(id) = record.stream.map(|stream| ExecutionId::from_bytes(stream.0)) else {
            return self.not_known(record);
        };
        if self.gone.contains(&id) || self.only.is_some_and(|only| only != id) {
            return;
        }
        if self.write(id, record).is_none() {
            self.not_known(record);
        }
    }

    /// A record of the journal's own.
    fn own(&mut self, record: &Record) {
        match record.kind {
            KIND_FORGET => self.forget(record),
            KIND_RESTORED => match Restored::decode(&record.body) {
                Ok(restored) => self.line(&Line::Restored { time_ms: record.time_ms, restored }),
                Err(_) => self.not_known(record),
            },
            KIND_UNFENCED => self.line(&Line::Unfenced { time_ms: record.time_ms }),
            _later => self.not_known(record),
        }
    }

    fn not_known(&mut self, record: &Record) {
        self.unknown.get_or_insert(record.sequence);
    }

    /// Forgotten while this was being written: what reads it forgets as well.
    fn forget(&mut self, record: &Record) {
        let Ok(ids) = Forget::ids(&record.body) else { return self.not_known(record) };
        let ids: Vec<ExecutionId> =
            ids.map(ExecutionId::from_bytes).filter(|id| self.next.contains_key(id)).collect();
        if !ids.is_empty() {
            ids.iter().for_each(|id| {
                self.next.remove(id);
            });
            self.gone.extend(&ids);
            self.line(&Line::Forget { time_ms: record.time_ms, ids });
        }
    }

    fn write(&mut self, id: ExecutionId, record: &Record) -> Option<()> {
        let line = match RecordKind::from_number(record.kind)?.holds() {
            Holds::Creation => {
                let created = body::decode_created(&record.body).ok()?;
                self.next.insert(id, 1);
                self.executions += 1;
                Line::Execution { id, created }
            }
            Holds::Origin => Line::Origin { id, origin: body::decode_origin(&record.body).ok()? },
            Holds::Labels => Line::Labels { id, labels: body::decode_labels(&record.body).ok()? },
            Holds::Result => {
                let result = body::decode_result(&record.body).ok()?;
                self.up_to(id, 0);
                Line::Result { id, time_ms: record.time_ms, result }
            }
            Holds::Evidence => {
                let evidence = body::decode_evidence(&record.body).ok()?;
                self.up_to(id, 0);
                Line::Evidence { id, time_ms: record.time_ms, evidence }
            }
            Holds::Event => {
                let body = body::decode(record.kind, &record.body).ok()?;
                let number = record.event_number;
                self.up_to(id, number);
                self.next.insert(id, number + 1);
                self.events += 1;
                Line::Event { id, event: Event { sequence: number, time: Timestamp(record.time_ms), body } }
            }
        };
        self.line(&line);
        Some(())
    }

    /// Says what is missing before event `number`; 0: before a record that has no number.
    fn up_to(&mut self, id: ExecutionId, number: u64) {
        let first = self.next.get(&id).copied().unwrap_or(0);
        let missing = match first {
            // Its creation stands where nothing reads.
            0 => true,
            _ => number > first,
        };
        if missing {
            let last = number.saturating_sub(1);
            self.missing += 1;
            self.next.insert(id, last + 1);
            self.line(&Line::Missing { id, first, last });
        }
    }
}
