//! The one error of this crate: which field, where, and what was wrong with it. Copy, allocates nothing, and never
//! carries a byte of what was read (a version or suite number excepted).

/// Bytes that are not what the format prescribes, or a value that the format cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} at byte {offset}: {why}")]
pub struct FormatError {
    /// Name of the field in `spec/journal.md`.
    pub field: &'static str,
    /// Byte offset inside the slice that was decoded; 0 for errors of an encoder.
    pub offset: usize,
    pub why: Why,
}

/// What was wrong. `name` is the word that test vectors use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("the bytes end too early")]
    Short,
    #[error("bytes follow where the end must be")]
    Trailing,
    #[error("not the magic number")]
    Magic,
    #[error("the checksum does not match")]
    Crc,
    #[error("the SHA-256 does not match")]
    Digest,
    #[error("format version {0} is newer than this build reads")]
    NewerVersion(u16),
    #[error("number {0} is not supported")]
    Unsupported(u16),
    #[error("bytes that must be zero are not")]
    NotZero,
    #[error("the value is out of range")]
    OutOfRange,
    #[error("not the shortest form")]
    NotMinimal,
    #[error("longer than the limit")]
    TooLong,
    #[error("contradicts another field")]
    Mismatch,
}

impl Why {
    /// The word of this class of failure in test vectors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Trailing => "trailing",
            Self::Magic => "magic",
            Self::Crc => "crc",
            Self::Digest => "digest",
            Self::NewerVersion(_) => "newer",
            Self::Unsupported(_) => "unsupported",
            Self::NotZero => "not-zero",
            Self::OutOfRange => "out-of-range",
            Self::NotMinimal => "not-minimal",
            Self::TooLong => "too-long",
            Self::Mismatch => "mismatch",
        }
    }

    pub(crate) const fn of(self, field: &'static str, offset: usize) -> FormatError {
        FormatError { field, offset, why: self }
    }
}

impl FormatError {
    /// The same error, seen from a slice in which the decoded one starts at `base`.
    #[must_use]
    pub const fn shifted(self, base: usize) -> Self {
        Self { offset: self.offset + base, ..self }
    }
}
