//! From lines to a new journal. The input was checked before and is checked to be the same while it is written; the
//! journal counts for nothing until its maker has given it its place.

use std::collections::VecDeque;
use std::io::BufRead;

use sealog_events::RecordKind;
use sealog_events::{ExecutionId, Timestamp, body};
use sealog_journal::{
    Admission, Class, Config, Fence, Ignore, Journal, JournalError, NewRecord, Refusal, Ticket, Unit,
};
use sealog_journal_format::EndRecord;
use sealog_journal_format::journal_records::{KIND_RESTORED, KIND_UNFENCED, Restored, Unfenced};

use super::super::records;
use super::check::{Broken, Checked, Lines};
use super::lines::Line;

/// Units that wait for their sync at a time.
const OUTSTANDING_MAX: usize = 4096;

/// Why an import stopped. What was made until then is to be thrown away.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The input is not the one that was checked.
    #[error("the input changed while it was read")]
    Changed,
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    pub executions: u64,
    pub events: u64,
    /// The new journal is fenced: as the exported one was, or because work may be missing (JB-12).
    pub fenced: bool,
}

/// Writes what `checked` found whole into the empty journal of `config`, and closes it: all of it is durable then.
///
/// # Errors
/// [`ImportError`].
pub fn import(config: &Config, input: &mut dyn BufRead, checked: &Checked) -> Result<Imported, ImportError> {
    let (journal, _) = Journal::open(config, &mut Ignore)?;
    write_all(&journal, input, checked, config.clock.wall_ms(), &|_, ticket| ticket.wait())
}

/// As [`import`] on a journal without threads.
///
/// # Errors
/// As [`import`].
#[cfg(any(test, feature = "testing"))]
pub fn import_manual(
    config: &Config,
    input: &mut dyn BufRead,
    checked: &Checked,
) -> Result<Imported, ImportError> {
    let (journal, _) = Journal::open_manual(config, &mut Ignore)?;
    write_all(&journal, input, checked, config.clock.wall_ms(), &|journal, mut ticket| loop {
        if let Some(result) = ticket.try_result() {
            return result;
        }
        journal.turn();
    })
}

type Wait<'a> = &'a dyn Fn(&Journal, Ticket) -> Result<(), JournalError>;

fn write_all(
    journal: &Journal,
    input: &mut dyn BufRead,
    checked: &Checked,
    now_ms: u64,
    wait: Wait<'_>,
) -> Result<Imported, ImportError> {
    let (tickets, held, fence) = (VecDeque::new(), Vec::new(), Fence::default());
    let mut writer = Writer { journal, wait, checked, tickets, held, fence, done: ZERO };
    let mut lines = Lines::new(input);
    let mut ended = false;
    while let Some((line, digest)) = lines.next_line()? {
        if let Line::End { counts, digest: told } = line {
            ended = told == checked.digest && line == Line::end(counts, &digest);
        }
        writer.take(line)?;
    }
    writer.flush()?;
    // Behind all lines: whatever is open in them was open in a copy.
    if checked.partial || checked.gaps > 0 || !checked.incomplete.is_empty() {
        let restored = Restored { from: EndRecord::NONE, restored_ms: now_ms, fenced: true };
        writer.own(KIND_RESTORED, now_ms, restored.encode().to_vec())?;
    }
    while let Some(ticket) = writer.tickets.pop_front() {
        wait(journal, ticket)?;
    }
    if !ended {
        return Err(ImportError::Changed);
    }
    let done = writer.done;
    journal.close()?;
    Ok(done)
}

const ZERO: Imported = Imported { executions: 0, events: 0, fenced: false };

struct Writer<'a> {
    journal: &'a Journal,
    wait: Wait<'a>,
    checked: &'a Checked,
    tickets: VecDeque<Ticket>,
    /// A creation with its origin and labels, or a result: it is one unit with the event behind it.
    held: Vec<NewRecord>,
    fence: Fence,
    done: Imported,
}

impl Writer<'_> {
    fn take(&mut self, line: Line) -> Result<(), ImportError> {
        match line {
            Line::Execution { id, created } if self.wanted(id) => {
                self.flush()?;
                self.done.executions += 1;
                self.held = vec![records::created(id, created.created_at, created.identity)];
            }
            Line::Origin { id, origin } if self.wanted(id) => {
                let created = self.held.last().filter(|held| held.stream == Some(records::stream(id)));
                let time = created.map(|created| Timestamp(created.time_ms)).ok_or(ImportError::Changed)?;
                self.held.push(records::origin(id, time, &origin).map_err(|_| ImportError::Changed)?);
            }
            Line::Labels { id, labels } if self.wanted(id) => {
                let created = self.held.last().filter(|held| held.stream == Some(records::stream(id)));
                let time = created.map(|created| Timestamp(created.time_ms)).ok_or(ImportError::Changed)?;
                self.held.push(records::labels(id, time, &labels).map_err(|_| ImportError::Changed)?);
            }
            Line::Result { id, time_ms, result } if self.wanted(id) => {
                self.flush()?;
                self.held = vec![NewRecord {
                    kind: RecordKind::MaterializedResult.number(),
                    stream: Some(records::stream(id)),
                    class: Class::NONE,
                    event_number: 0,
                    time_ms,
                    logical_size: 0,
                    body: body::encode_result(&result).map_err(|_| ImportError::Changed)?,
                }];
            }
            Line::Evidence { id, time_ms, evidence } if self.wanted(id) => {
                self.flush()?;
                let record = records::evidence(id, &evidence, Timestamp(time_ms));
                self.submit(Unit::one(record.map_err(|_| ImportError::Changed)?))?;
            }
            Line::Event { id, event } if self.wanted(id) => {
                let record = records::prepare(id, &event).map_err(|_| ImportError::Changed)?.record;
                self.done.events += 1;
                if self.held.first().is_some_and(|held| held.stream != record.stream) {
                    self.flush()?;
                }
                let records = std::mem::take(&mut self.held).into_iter().chain([record]).collect();
                self.submit(Unit { records })?;
            }
            Line::Forget { time_ms, ids } => {
                self.flush()?;
                let ids: Vec<ExecutionId> = ids.into_iter().filter(|id| self.wanted(*id)).collect();
                if !ids.is_empty() {
                    let record =
                        records::forget(&ids, Timestamp(time_ms)).map_err(|_| ImportError::Changed)?;
                    self.submit(Unit::one(record))?;
                }
            }
            Line::Restored { time_ms, restored } => {
                self.own(KIND_RESTORED, time_ms, restored.encode().to_vec())?;
            }
            Line::Unfenced { time_ms } => self.own(KIND_UNFENCED, time_ms, Unfenced.encode().to_vec())?,
            Line::Execution { .. }
            | Line::Origin { .. }
            | Line::Labels { .. }
            | Line::Result { .. }
            | Line::Evidence { .. }
            | Line::Event { .. }
            | Line::Header { .. }
            | Line::Missing { .. }
            | Line::Gap { .. }
            | Line::End { .. } => {}
        }
        Ok(())
    }

    /// Writes a record of the journal's own that tells of its fence.
    fn own(&mut self, kind: u16, time_ms: u64, body: Vec<u8>) -> Result<(), ImportError> {
        self.flush()?;
        self.fence.take(kind, &body);
        self.done.fenced = self.fence.is_up();
        self.submit(Unit::one(NewRecord {
            kind,
            stream: None,
            class: Class::NONE,
            event_number: 0,
            time_ms,
            logical_size: 0,
            body,
        }))
    }

    fn wanted(&self, id: ExecutionId) -> bool {
        !self.checked.incomplete.contains(&id)
    }

    fn flush(&mut self) -> Result<(), ImportError> {
        let records = std::mem::take(&mut self.held);
        if records.is_empty() { Ok(()) } else { self.submit(Unit { records }) }
    }

    fn submit(&mut self, mut unit: Unit) -> Result<(), ImportError> {
        if self.tickets.len() >= OUTSTANDING_MAX {
            self.settle_one()?;
        }
        loop {
            match self.journal.submit(unit, Admission::Ordinary) {
                Ok(ticket) => {
                    self.tickets.push_back(ticket);
                    return Ok(());
                }
                Err(Refusal::Busy(back)) => {
                    unit = back;
                    self.settle_one()?;
                }
                Err(Refusal::TooLarge) => return Err(ImportError::Changed),
                Err(Refusal::Ended(error)) => return Err(error.into()),
            }
        }
    }

    fn settle_one(&mut self) -> Result<(), ImportError> {
        match self.tickets.pop_front() {
            Some(ticket) => Ok((self.wait)(self.journal, ticket)?),
            None => Err(JournalError::Full.into()),
        }
    }
}
