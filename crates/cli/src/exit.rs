//! The exit codes, and which one a failure of the layers below gets. Owns the numbers; they are never reused and
//! never given another meaning. Must never look at an error's text.

use std::process::ExitCode;

use sealog_disk::{DiskError, ErrorKind};
use sealog_journal::{JournalError, KeyringRefusal};
use sealog_seal::ChangeError;

/// How a verb ended. Scripts rely on the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Success,
    Failed,
    Usage,
    NotFound,
    NoJournal,
    Locked,
    WrongKey,
    Damaged,
    NewerFormat,
    ExecutionFailed,
    OutcomeUnknown,
    Cancelled,
    TryAgain,
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NotFound => 4,
            Exit::NoJournal => 10,
            Exit::Locked => 11,
            Exit::WrongKey => 12,
            Exit::Damaged => 13,
            Exit::NewerFormat => 14,
            Exit::ExecutionFailed => 20,
            Exit::OutcomeUnknown => 21,
            Exit::Cancelled => 22,
            Exit::TryAgain => 75,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// The exit code of a refused journal and the stable word for it.
pub fn of_journal(error: &JournalError) -> (Exit, &'static str) {
    match error {
        JournalError::NoJournal | JournalError::NoManifest => (Exit::NoJournal, "no_journal"),
        JournalError::JournalElsewhere => (Exit::NoJournal, "journal_elsewhere"),
        JournalError::Locked { .. } => (Exit::Locked, "locked"),
        JournalError::WrongKey => (Exit::WrongKey, "wrong_key"),
        JournalError::KeyringDamaged => (Exit::Damaged, "keyring_damaged"),
        JournalError::Missing { .. } => (Exit::Damaged, "file_missing"),
        JournalError::Corrupt { .. } | JournalError::CorruptFile { .. } => (Exit::Damaged, "damaged"),
        JournalError::WrongStore => (Exit::Damaged, "wrong_store"),
        JournalError::NewerFormat { .. } => (Exit::NewerFormat, "newer_format"),
        JournalError::Poisoned { .. } => (Exit::TryAgain, "writer_stopped"),
        JournalError::Full => (Exit::TryAgain, "full"),
        JournalError::Busy => (Exit::TryAgain, "busy"),
        JournalError::OutOfMemory => (Exit::TryAgain, "out_of_memory"),
        JournalError::NoRandomness => (Exit::TryAgain, "no_randomness"),
        JournalError::NoThreads => (Exit::TryAgain, "no_threads"),
        JournalError::Moved => (Exit::TryAgain, "journal_moved"),
        JournalError::Closed => (Exit::Failed, "closed"),
        JournalError::Misuse(_) => (Exit::Failed, "internal"),
        JournalError::AlreadyExists => (Exit::Failed, "already_exists"),
        JournalError::Slots(error) => of_change(error),
        JournalError::KeyringRefused(KeyringRefusal::NotNewer { .. }) => (Exit::Failed, "keyring_not_newer"),
        JournalError::KeyringRefused(KeyringRefusal::LacksKeys) => (Exit::Failed, "keyring_lacks_keys"),
        JournalError::NotEmpty => (Exit::NoJournal, "not_empty"),
        JournalError::OtherHistory(_) => (Exit::Damaged, "diverged"),
        JournalError::Disk(error) => of_disk(error),
    }
}

/// The exit code of a refused change of the keyring and the stable word for it.
fn of_change(error: &ChangeError) -> (Exit, &'static str) {
    match error {
        ChangeError::UnknownSlot => (Exit::NotFound, "no_such_slot"),
        ChangeError::BadName => (Exit::Usage, "bad_slot_name"),
        ChangeError::BadParameters => (Exit::Usage, "bad_stretch"),
        ChangeError::DuplicateName => (Exit::Failed, "slot_exists"),
        ChangeError::TooManySlots => (Exit::Failed, "too_many_slots"),
        ChangeError::LastSlot | ChangeError::NoSlot => (Exit::Failed, "last_slot"),
        ChangeError::SlotNotCovered { .. } => (Exit::Failed, "slot_not_covered"),
        ChangeError::TooManyRootKeys | ChangeError::GenerationExhausted => (Exit::Failed, "keyring_full"),
        ChangeError::OutOfMemory => (Exit::TryAgain, "out_of_memory"),
        ChangeError::RandomUnavailable => (Exit::TryAgain, "no_randomness"),
        ChangeError::UnknownRootKey | ChangeError::RootKeyActive => (Exit::Failed, "internal"),
    }
}

/// The exit code of a failed storage call and the stable word for it.
pub fn of_disk(error: &DiskError) -> (Exit, &'static str) {
    match error.kind {
        ErrorKind::NotFound => (Exit::NoJournal, "no_journal"),
        ErrorKind::Contended => (Exit::Locked, "locked"),
        ErrorKind::Full => (Exit::TryAgain, "disk_full"),
        ErrorKind::Descriptors => (Exit::TryAgain, "too_many_files"),
        ErrorKind::Io => (Exit::TryAgain, "storage_failed"),
        ErrorKind::Interrupted => (Exit::TryAgain, "storage_interrupted"),
        ErrorKind::ReadOnly => (Exit::Failed, "read_only"),
        ErrorKind::PermissionDenied => (Exit::Failed, "permission_denied"),
        ErrorKind::Unsafe => (Exit::Failed, "unsafe_directory"),
        ErrorKind::AlreadyExists | ErrorKind::Unsupported | ErrorKind::ShortRead => {
            (Exit::Failed, "storage_refused")
        }
    }
}

/// The exit code of a file beside the journal that cannot be written, and the stable word: `otherwise` where trying
/// again would say the same.
pub fn of_outside(error: &DiskError, otherwise: &'static str) -> (Exit, &'static str) {
    match of_disk(error) {
        (Exit::TryAgain, word) => (Exit::TryAgain, word),
        _ => (Exit::Failed, otherwise),
    }
}

#[cfg(test)]
mod tests {
    use sealog_disk::Operation;
    use sealog_journal::Place;

    use super::*;

    #[track_caller]
    fn check(error: JournalError, code: u8, word: &str) {
        let (exit, found) = of_journal(&error);
        assert_eq!((exit.code(), found), (code, word), "{error:?}");
    }

    #[test]
    fn every_refusal_of_a_journal_has_its_code() {
        check(JournalError::NoJournal, 10, "no_journal");
        check(JournalError::NoManifest, 10, "no_journal");
        check(JournalError::JournalElsewhere, 10, "journal_elsewhere");
        check(JournalError::Locked { holder: None }, 11, "locked");
        check(JournalError::WrongKey, 12, "wrong_key");
        check(JournalError::KeyringDamaged, 13, "keyring_damaged");
        check(JournalError::Missing { file: "store".into() }, 13, "file_missing");
        check(JournalError::Corrupt { place: Place::default(), row: 8, what: "" }, 13, "damaged");
        check(JournalError::CorruptFile { file: "store".into(), what: "" }, 13, "damaged");
        check(JournalError::WrongStore, 13, "wrong_store");
        check(JournalError::NewerFormat { file: "store".into(), version: 2 }, 14, "newer_format");
        check(JournalError::Poisoned { cause: "" }, 75, "writer_stopped");
        check(JournalError::Full, 75, "full");
        check(JournalError::Busy, 75, "busy");
        check(JournalError::NoThreads, 75, "no_threads");
        check(JournalError::Moved, 75, "journal_moved");
        check(JournalError::Disk(DiskError::new(Operation::Sync, ErrorKind::Io, None)), 75, "storage_failed");
        check(
            JournalError::Disk(DiskError::new(Operation::Open, ErrorKind::NotFound, None)),
            10,
            "no_journal",
        );
        check(JournalError::AlreadyExists, 1, "already_exists");
        check(JournalError::Slots(ChangeError::UnknownSlot), 4, "no_such_slot");
        check(JournalError::Slots(ChangeError::LastSlot), 1, "last_slot");
        check(JournalError::Slots(ChangeError::BadName), 2, "bad_slot_name");
        check(JournalError::KeyringRefused(KeyringRefusal::LacksKeys), 1, "keyring_lacks_keys");
        check(JournalError::NotEmpty, 10, "not_empty");
        check(JournalError::OtherHistory(""), 13, "diverged");
    }

    #[test]
    fn a_file_outside_says_try_again_only_where_that_helps() {
        let outside = |kind| of_outside(&DiskError::new(Operation::Create, kind, None), "file_not_written");
        assert_eq!(outside(ErrorKind::Full), (Exit::TryAgain, "disk_full"));
        assert_eq!(outside(ErrorKind::Descriptors), (Exit::TryAgain, "too_many_files"));
        for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnly, ErrorKind::NotFound] {
            assert_eq!(outside(kind), (Exit::Failed, "file_not_written"));
        }
    }

    #[test]
    fn what_is_temporary_says_try_again() {
        for error in [JournalError::Full, JournalError::NoThreads, JournalError::Poisoned { cause: "" }] {
            assert!(error.is_temporary());
            assert_eq!(of_journal(&error).0, Exit::TryAgain);
        }
        for kind in [ErrorKind::Full, ErrorKind::Descriptors, ErrorKind::Io] {
            let error = JournalError::Disk(DiskError::new(Operation::Write, kind, None));
            assert!(error.is_temporary());
            assert_eq!(of_journal(&error).0, Exit::TryAgain);
        }
    }
}
