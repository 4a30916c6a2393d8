//! The keyring: slots that wrap the keyring key, and the list of root keys it wraps.
//!
//! Owns the rules of `keyring.0` and `keyring.1`: bytes (`layout`), opening (`open`), the next generation
//! (`change`), and which of two copies counts (`copies`). Never touches a file.

mod change;
mod copies;
mod error;
mod layout;
mod open;
#[cfg(test)]
mod tests;

use std::fmt;

pub use copies::{Choice, CopyState, choose};
pub use error::{ChangeError, KeyringError};
pub use layout::{KEYRING_BYTES_MAX, ROOT_KEYS_MAX, SLOTS_MAX};

use crate::ids::{KeyId, StoreId};
use crate::key::KeyBytes;
use crate::root::{RootKey, RootState};
use crate::secret::Secret;
use crate::stretch::{SlotParams, StretchBounds};

/// How a slot wraps the keyring key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Under 32 raw bytes.
    Raw,
    /// Under a passphrase, stretched at this cost.
    Passphrase(SlotParams),
}

/// What a slot says of itself. Readable without any key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotInfo {
    /// 1 to 64 bytes of printable ASCII, unique in its keyring.
    pub name: String,
    pub kind: SlotKind,
}

/// A slot to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewSlot<'a> {
    /// 1 to 64 bytes of printable ASCII, no space at either end.
    pub name: &'a str,
    pub secret: &'a Secret,
    /// Used only where the secret is a passphrase.
    pub params: SlotParams,
}

/// What an intact keyring tells without a key. Not authenticated: damage is excluded, a forger is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    pub store_id: StoreId,
    /// Counts the changes of the keyring, from 1.
    pub generation: u64,
    pub slots: Vec<SlotInfo>,
    pub root_keys: usize,
}

/// An opened keyring. Holds its own encoded bytes, so that both copies on disk get the same ones.
pub struct Keyring {
    outline: Outline,
    /// The slots as stored; same order as `outline.slots`.
    stored: Vec<layout::StoredSlot>,
    key: KeyBytes,
    roots: Vec<RootKey>,
    /// Index of the active root in `roots`; `open` and `change` establish that there is exactly one.
    active: usize,
    opened_slot: usize,
    bounds: StretchBounds,
    bytes: Vec<u8>,
}

impl Keyring {
    /// The bytes of both copies; the same at every call.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    #[must_use]
    pub fn store_id(&self) -> StoreId {
        self.outline.store_id
    }

    #[must_use]
    pub fn generation(&self) -> u64 {
        self.outline.generation
    }

    /// The slots, in their stored order.
    #[must_use]
    pub fn slots(&self) -> &[SlotInfo] {
        &self.outline.slots
    }

    /// The slot that a secret opened; for a keyring just made, its first one.
    #[must_use]
    pub fn opened_slot(&self) -> &SlotInfo {
        &self.outline.slots[self.opened_slot]
    }

    /// The root key for new segments.
    #[must_use]
    pub fn active_root(&self) -> &RootKey {
        &self.roots[self.active]
    }

    /// The root key a file names.
    #[must_use]
    pub fn root(&self, id: &KeyId) -> Option<&RootKey> {
        self.roots.iter().find(|root| root.id == *id)
    }

    /// All root keys, in their stored order.
    #[must_use]
    pub fn roots(&self) -> &[RootKey] {
        &self.roots
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("outline", &self.outline)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

/// The position of the one active root, if there is exactly one.
fn only_active(roots: &[RootKey]) -> Option<usize> {
    let mut active = roots.iter().enumerate().filter(|(_, root)| root.state == RootState::Active);
    match (active.next(), active.next()) {
        (Some((index, _)), None) => Some(index),
        (None | Some(_), _) => None,
    }
}
