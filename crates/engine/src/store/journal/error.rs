//! What a journal's error means for a store. The journal's own words go to the log, never further.

use sealog_journal::JournalError;

use crate::StoreError;

/// Logs what the journal said and gives the store's word for it.
pub(super) fn failed(what: &'static str, error: &JournalError) -> StoreError {
    match error {
        JournalError::Full => StoreError::Full,
        JournalError::Busy => StoreError::Busy,
        JournalError::Closed => StoreError::Closed,
        JournalError::Misuse(_) => {
            tracing::error!(%error, what);
            StoreError::Unstorable
        }
        JournalError::Poisoned { .. }
        | JournalError::Corrupt { .. }
        | JournalError::CorruptFile { .. }
        | JournalError::Missing { .. }
        | JournalError::Disk(_)
        | JournalError::NoJournal
        | JournalError::NoManifest
        | JournalError::JournalElsewhere
        | JournalError::Locked { .. }
        | JournalError::WrongKey
        | JournalError::KeyringDamaged
        | JournalError::NewerFormat { .. }
        | JournalError::WrongStore
        | JournalError::NoRandomness
        | JournalError::NoThreads
        | JournalError::Moved
        | JournalError::OutOfMemory
        | JournalError::AlreadyExists
        | JournalError::Slots(_)
        | JournalError::KeyringRefused(_)
        | JournalError::NotEmpty
        | JournalError::OtherHistory(_) => {
            tracing::error!(%error, what);
            StoreError::Failed
        }
    }
}
