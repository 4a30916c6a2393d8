//! What an operator may know of the journal below the store. Only looks.

use sealog_journal::{Counters, Health, Usage};

use super::JournalStore;

impl JournalStore {
    /// The writer's counters since the journal was opened.
    pub fn counters(&self) -> Counters {
        self.shared.journal.counters()
    }

    /// Whether the writer still writes.
    pub fn health(&self) -> Health {
        self.shared.journal.health()
    }

    /// What the journal takes of its disk.
    pub fn usage(&self) -> Usage {
        self.shared.journal.usage()
    }

    /// Executions that an earlier process left unfinished and that cannot be ended yet.
    pub fn unended(&self) -> usize {
        self.shared.lock().unended.len()
    }

    /// Executions that are kept, ended ones included.
    pub fn executions(&self) -> usize {
        self.shared.lock().ledger.executions()
    }
}
