//! The fence that a restore sets up, as the records say (JB-8), and its removal.

use sealog_journal_format::journal_records::{KIND_RESTORED, KIND_UNFENCED, Restored, Unfenced};

use crate::audit::audit;
use crate::config::Config;
use crate::error::{JournalError, Result};
use crate::journal::{Journal, Refusal};
use crate::record::{Class, NewRecord, Record, Replay, Unit};
use crate::recovery::findings::{FrameView, Sink};
use crate::writer::core::Turn;
use crate::writer::queue::Admission;

/// Whether a journal is fenced, told by its `restored` and `unfenced` records in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    restored: Option<Restored>,
    up: bool,
}

impl Fence {
    /// Takes the next record of the journal; others than the two change nothing.
    pub fn take(&mut self, kind: u16, body: &[u8]) {
        if kind == KIND_UNFENCED {
            self.up = false;
        }
        if kind == KIND_RESTORED
            && let Ok(restored) = Restored::decode(body)
        {
            self.restored = Some(restored);
            // A copy without a fence of its own does not lift the one that its source had.
            self.up |= restored.fenced;
        }
    }

    /// The fence stands: what this journal does not know, another one may.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// The newest restore.
    pub fn restored(&self) -> Option<&Restored> {
        self.restored.as_ref()
    }
}

impl Sink for Fence {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        self.take(record.kind, &record.body);
    }
}

impl Replay for Fence {
    fn record(&mut self, record: &Record) {
        self.take(record.kind, &record.body);
    }
}

/// What [`unfence`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfencing {
    /// `false`: there was no fence, and nothing was written.
    pub was_fenced: bool,
    /// The newest sequence now.
    pub sequence: u64,
}

/// Writes the record that lifts the fence; durable on return.
///
/// # Errors
/// As an open for writing: `Locked` beside a running node, damage, a wrong key.
pub fn unfence(config: &Config) -> Result<Unfencing> {
    let (audit, fence) = audit(config, &mut Fence::default)?;
    super::take::refuse_damage(&audit)?;
    if !fence.is_up() {
        return Ok(Unfencing { was_fenced: false, sequence: audit.last_sequence });
    }
    let mut fence = Fence::default();
    let (journal, report) = Journal::open_manual(config, &mut fence)?;
    if !fence.is_up() {
        journal.close()?;
        return Ok(Unfencing { was_fenced: false, sequence: report.last_sequence });
    }
    write_one(config, &journal, KIND_UNFENCED, Unfenced.encode().to_vec())?;
    journal.close()?;
    Ok(Unfencing { was_fenced: true, sequence: journal.durable_sequence() })
}

/// Commits one record of the journal's own on a journal without threads.
pub(crate) fn write_one(config: &Config, journal: &Journal, kind: u16, body: Vec<u8>) -> Result<()> {
    let record = NewRecord {
        kind,
        stream: None,
        class: Class::NONE,
        event_number: 0,
        time_ms: config.clock.wall_ms(),
        logical_size: 0,
        body,
    };
    write_unit(journal, Unit::one(record))
}

/// Commits one unit on a journal without threads.
pub(crate) fn write_unit(journal: &Journal, unit: Unit) -> Result<()> {
    let mut ticket = journal.submit(unit, Admission::Reserved).map_err(|refusal| match refusal {
        Refusal::Busy(_) => JournalError::Full,
        Refusal::TooLarge => JournalError::Misuse("the unit is too large"),
        Refusal::Ended(e) => e,
    })?;
    loop {
        if let Some(result) = ticket.try_result() {
            return result;
        }
        if journal.turn() == Turn::Ended {
            return ticket.try_result().unwrap_or(Err(JournalError::Closed));
        }
    }
}
