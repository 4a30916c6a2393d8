//! Keys and authenticated encryption of the Sealog journal.
//!
//! Pure: random bytes, file bytes and store ids come in as arguments, sealed bytes go out. This crate never reads a
//! file, a clock or the system's randomness, and no type here shows a secret in `Debug`, in an error or in a panic.
//! The byte tables and derivations are normative in `spec/keys.md` (clauses `JK-n`).
//!
//! The chain of keys: a [`Secret`] opens a slot of the [`Keyring`]; the keyring holds [`RootKey`]s; a root key wraps
//! the [`DataKey`] of one segment; the data key gives the segment's [`BodyKey`], [`HeaderKey`] and [`SummaryKey`]. Only [`SealOnce`]
//! seals, so that no (key, nonce) pair can be used twice.

mod aead;
mod digest;
mod ids;
mod key;
mod key_file;
mod keyring;
mod label;
mod limits;
mod nonce;
mod random;
mod recovery;
mod rejected;
mod root;
mod secret;
mod stretch;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod wrap;

pub use digest::{RunningSha256, chain, sha256};
pub use ids::{KeyId, StoreId};
pub use key::{BodyKey, DataKey, HeaderKey, MacKey, SegmentKeys, SummaryKey, SummaryOf};
pub use key_file::{KEY_FILE_LENGTH, KeyFile, KeyFileError};
pub use keyring::{
    ChangeError, Choice, CopyState, KEYRING_BYTES_MAX, Keyring, KeyringError, NewSlot, Outline,
    ROOT_KEYS_MAX, SLOTS_MAX, SlotInfo, SlotKind, choose,
};
pub use limits::SealLimits;
pub use nonce::{SealError, SealOnce};
pub use random::{RandomBytes, RandomUnavailable};
pub use recovery::recovery_text;
pub use rejected::Rejected;
pub use root::{RootKey, RootState};
pub use secret::{Passphrase, Secret, SecretError};
pub use stretch::{SlotParams, StretchBounds};
pub use wrap::Wrapped;
