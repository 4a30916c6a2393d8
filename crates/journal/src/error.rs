//! What can go wrong with a journal, by what the caller may do next. No text here holds a path, a key or a
//! byte of a record; places are numbers.

use std::fmt;

use sealog_disk::{DiskError, ErrorKind};

/// Where in the journal something was found: a segment, an offset in its file, the sequence expected there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub segment: u64,
    pub frame: u64,
    pub offset: u64,
    pub sequence: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {}, offset {}, sequence {}", self.segment, self.offset, self.sequence)
    }
}

/// Every way a journal refuses. Exit codes of the CLI follow from the variant alone.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    #[error("there is no journal here")]
    NoJournal,
    /// No journal to anybody, and no place for one (JB-4).
    #[error("there is no journal here, only files of a backup without its manifest")]
    NoManifest,
    /// An empty directory where a key file says that a journal must be.
    #[error("the key belongs to a journal that is not here")]
    JournalElsewhere,
    #[error("the journal is locked by another process")]
    Locked { holder: Option<String> },
    #[error("no key given here opens this journal")]
    WrongKey,
    #[error("the keyring is damaged in both copies")]
    KeyringDamaged,
    #[error("{file} is missing beside journal data")]
    Missing { file: String },
    #[error("damaged: {what} ({place}; rule {row})")]
    Corrupt { place: Place, row: u8, what: &'static str },
    #[error("damaged: {file}: {what}")]
    CorruptFile { file: String, what: &'static str },
    #[error("{file} has format {version}, newer than this program reads")]
    NewerFormat { file: String, version: u16 },
    #[error("the files belong to different journals")]
    WrongStore,
    #[error("the writer stopped after a storage failure; reopen the journal")]
    Poisoned { cause: &'static str },
    /// No room on the disk or in its budget.
    #[error("no space for this record")]
    Full,
    /// No room in the writer's queue, which is over in a moment.
    #[error("the writer's queue is full")]
    Busy,
    #[error("the journal is closed")]
    Closed,
    #[error("misuse: {0}")]
    Misuse(&'static str),
    #[error("the system gave no randomness")]
    NoRandomness,
    #[error("the system gave no threads")]
    NoThreads,
    /// Files went while they were read, again and again: what was found says nothing (JR-13).
    #[error("the journal changed while it was read")]
    Moved,
    #[error("there is not enough memory to check the passphrase")]
    OutOfMemory,
    #[error("there is a journal here already")]
    AlreadyExists,
    /// A change of the keyring that its rules refuse.
    #[error(transparent)]
    Slots(sealog_seal::ChangeError),
    #[error("this keyring is not put back: {0}")]
    KeyringRefused(crate::KeyringRefusal),
    /// A backup's target that holds something else.
    #[error("the directory holds other files")]
    NotEmpty,
    /// Two journals of one store that went apart.
    #[error("another history: {0}")]
    OtherHistory(&'static str),
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl JournalError {
    /// Whether the same call may succeed later without anything being repaired.
    pub fn is_temporary(&self) -> bool {
        match self {
            JournalError::Full
            | JournalError::Busy
            | JournalError::NoThreads
            | JournalError::Moved
            | JournalError::Poisoned { .. } => true,
            JournalError::Disk(e) => {
                matches!(e.kind, ErrorKind::Full | ErrorKind::Descriptors | ErrorKind::Io)
            }
            JournalError::NoJournal
            | JournalError::NoManifest
            | JournalError::JournalElsewhere
            | JournalError::Locked { .. }
            | JournalError::WrongKey
            | JournalError::KeyringDamaged
            | JournalError::Missing { .. }
            | JournalError::Corrupt { .. }
            | JournalError::CorruptFile { .. }
            | JournalError::NewerFormat { .. }
            | JournalError::WrongStore
            | JournalError::Closed
            | JournalError::Misuse(_)
            | JournalError::NoRandomness
            | JournalError::OutOfMemory
            | JournalError::AlreadyExists
            | JournalError::Slots(_)
            | JournalError::KeyringRefused(_)
            | JournalError::NotEmpty
            | JournalError::OtherHistory(_) => false,
        }
    }
}

pub type Result<T> = std::result::Result<T, JournalError>;
