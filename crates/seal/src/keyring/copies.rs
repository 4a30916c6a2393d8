//! Which of `keyring.0` and `keyring.1` counts. The verdict needs no key: of the intact copies the one with the
//! higher generation; the other is levelled by the next writer.

use super::layout::{self, Parsed};
use super::{Keyring, KeyringError, Outline};
use crate::ids::StoreId;
use crate::secret::Secret;
use crate::stretch::StretchBounds;

/// What one copy looks like without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    Missing,
    Damaged { field: &'static str, offset: usize },
    Intact { generation: u64 },
}

/// The verdict over both copies.
#[derive(Debug)]
pub struct Choice<'a> {
    /// 0 or 1: the copy that counts.
    pub used: usize,
    /// The bytes of that copy.
    pub bytes: &'a [u8],
    /// True if the other copy is missing, damaged or older: a start for writing replaces it with `bytes`.
    pub level: bool,
    /// Both copies as found, for the report.
    pub copies: [CopyState; 2],
    /// What the used copy tells without a key.
    pub outline: Outline,
    bounds: StretchBounds,
}

/// Judges the two copies (`None`: the file does not exist).
///
/// # Errors
/// [`KeyringError::Missing`] if neither exists, [`KeyringError::Damaged`] if none is intact or two intact ones of the
/// same generation differ. A copy of a newer format, of another store or with refused parameters is never passed
/// over in favour of the other one: levelling would destroy it.
pub fn choose<'a>(
    copies: [Option<&'a [u8]>; 2],
    expect_store: Option<StoreId>,
) -> Result<Choice<'a>, KeyringError> {
    choose_within(copies, expect_store, StretchBounds::PRODUCTION)
}

pub(super) fn choose_within<'a>(
    copies: [Option<&'a [u8]>; 2],
    expect_store: Option<StoreId>,
    bounds: StretchBounds,
) -> Result<Choice<'a>, KeyringError> {
    let [first, second] = copies;
    let (first, second) = (look(first, expect_store, &bounds)?, look(second, expect_store, &bounds)?);
    let states = [first.state(), second.state()];
    let chosen = |used: usize, bytes: &'a [u8], outline: Outline, level: bool| {
        Ok(Choice { used, bytes, level, copies: states, outline, bounds })
    };
    match (first, second) {
        (Look::Intact(a, a_is), Look::Intact(b, b_is)) => {
            // Without an expected store the two must at least name the same one.
            if a_is.store_id != b_is.store_id {
                return Err(KeyringError::WrongStore);
            }
            if a_is.generation == b_is.generation && a != b {
                // No writer makes two keyrings of one generation: it levels before it changes anything.
                return Err(KeyringError::Damaged { field: "generation", offset: 32 });
            }
            if a_is.generation >= b_is.generation {
                chosen(0, a, a_is, a != b)
            } else {
                chosen(1, b, b_is, true)
            }
        }
        (Look::Intact(a, a_is), Look::Missing | Look::Damaged { .. }) => chosen(0, a, a_is, true),
        (Look::Missing | Look::Damaged { .. }, Look::Intact(b, b_is)) => chosen(1, b, b_is, true),
        (Look::Damaged { field, offset }, Look::Missing | Look::Damaged { .. })
        | (Look::Missing, Look::Damaged { field, offset }) => Err(KeyringError::Damaged { field, offset }),
        (Look::Missing, Look::Missing) => Err(KeyringError::Missing),
    }
}

impl Choice<'_> {
    /// Opens the copy that counts. The other one is not tried: the keyring alone judges the key.
    ///
    /// # Errors
    /// [`KeyringError::WrongKey`] if no slot opens, [`KeyringError::DamagedBehindSlot`] for anything after that.
    pub fn open(&self, secrets: &[Secret]) -> Result<Keyring, KeyringError> {
        Keyring::open_within(self.bytes, Some(self.outline.store_id), secrets, self.bounds)
    }
}

enum Look<'a> {
    Missing,
    Damaged { field: &'static str, offset: usize },
    Intact(&'a [u8], Outline),
}

impl Look<'_> {
    fn state(&self) -> CopyState {
        match self {
            Look::Missing => CopyState::Missing,
            Look::Damaged { field, offset } => CopyState::Damaged { field, offset: *offset },
            Look::Intact(_, outline) => CopyState::Intact { generation: outline.generation },
        }
    }
}

/// An error here is one that must not be passed over.
fn look<'a>(
    copy: Option<&'a [u8]>,
    expect_store: Option<StoreId>,
    bounds: &StretchBounds,
) -> Result<Look<'a>, KeyringError> {
    let Some(bytes) = copy else { return Ok(Look::Missing) };
    match layout::parse(bytes, expect_store, bounds) {
        Ok(Parsed { outline, .. }) => Ok(Look::Intact(bytes, outline)),
        Err(KeyringError::Damaged { field, offset }) => Ok(Look::Damaged { field, offset }),
        // Bytes behind the end, or counts that no writer makes.
        Err(KeyringError::TooLarge) => Ok(Look::Damaged { field: "length", offset: 12 }),
        Err(
            error @ (KeyringError::UnsupportedVersion(_)
            | KeyringError::WrongStore
            | KeyringError::BadParameters
            | KeyringError::WrongKey
            | KeyringError::DamagedBehindSlot
            | KeyringError::OutOfMemory
            | KeyringError::Missing),
        ) => Err(error),
    }
}
