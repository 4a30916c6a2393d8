//! What can be wrong with a keyring or with a change of it. No variant holds a secret, and no text echoes input.

use crate::random::RandomUnavailable;
use crate::stretch::StretchError;

/// Why a keyring was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// The bytes are not what was written. Found without a key; never the verdict on a wrong key.
    #[error("the keyring is damaged ({field}, offset {offset})")]
    Damaged { field: &'static str, offset: usize },
    /// Written by a later release.
    #[error("the keyring has format version {0}, which this release cannot read")]
    UnsupportedVersion(u16),
    /// Intact, and of another store.
    #[error("the keyring belongs to another store")]
    WrongStore,
    /// Intact, and none of the given secrets opens a slot.
    #[error("no given key or passphrase opens the keyring")]
    WrongKey,
    /// A slot asks for Argon2id costs outside the bounds. No work was done.
    #[error("a slot of the keyring has key stretching parameters outside the allowed bounds")]
    BadParameters,
    /// More bytes, slots or root keys than a keyring may have.
    #[error("the keyring is larger than a keyring may be")]
    TooLarge,
    /// A slot opened, and something behind it did not authenticate or makes no sense.
    #[error("the keyring is damaged behind a slot that opened")]
    DamagedBehindSlot,
    /// The memory that a passphrase slot needs was not to be had.
    #[error("there is not enough memory to check the passphrase")]
    OutOfMemory,
    /// Neither copy exists.
    #[error("there is no keyring")]
    Missing,
}

/// Why a keyring was not made or changed. The old one is untouched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("a keyring needs at least one slot")]
    NoSlot,
    #[error("a keyring has at most 8 slots")]
    TooManySlots,
    #[error("a slot name is 1 to 64 printable ASCII characters without a space at either end")]
    BadName,
    #[error("two slots cannot have the same name")]
    DuplicateName,
    #[error("the key stretching parameters are outside the allowed bounds")]
    BadParameters,
    #[error("there is not enough memory to stretch the passphrase")]
    OutOfMemory,
    #[error("no randomness was available")]
    RandomUnavailable,
    #[error("there is no slot of that name")]
    UnknownSlot,
    #[error("the last slot cannot be removed")]
    LastSlot,
    /// The slots that are neither opened by a given secret nor named as ones to drop.
    #[error("a slot would be lost: give its key or say that it is to be dropped")]
    SlotNotCovered { names: Vec<String> },
    #[error("there is no root key of that id")]
    UnknownRootKey,
    #[error("the active root key cannot be dropped")]
    RootKeyActive,
    #[error("the keyring holds as many root keys as it can")]
    TooManyRootKeys,
    #[error("the keyring's generation cannot be counted further")]
    GenerationExhausted,
}

impl From<RandomUnavailable> for ChangeError {
    fn from(RandomUnavailable: RandomUnavailable) -> ChangeError {
        ChangeError::RandomUnavailable
    }
}

impl From<StretchError> for ChangeError {
    fn from(error: StretchError) -> ChangeError {
        match error {
            StretchError::BadParameters => ChangeError::BadParameters,
            StretchError::OutOfMemory => ChangeError::OutOfMemory,
        }
    }
}

impl From<StretchError> for KeyringError {
    fn from(error: StretchError) -> KeyringError {
        match error {
            StretchError::BadParameters => KeyringError::BadParameters,
            StretchError::OutOfMemory => KeyringError::OutOfMemory,
        }
    }
}
