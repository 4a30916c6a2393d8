//! Root keys: they wrap the data keys of segments and give the MAC keys of files beside them.

use std::fmt;

use crate::digest::hkdf;
use crate::ids::{KeyId, StoreId};
use crate::key::{DataKey, KeyBytes, MacKey};
use crate::label;
use crate::rejected::Rejected;
use crate::wrap::{Wrapped, unwrap_key, wrap_key};

/// Whether new segments are created under a root key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootState {
    /// New segments use it. Exactly one root key of a keyring is active.
    Active,
    /// It only opens segments that already name it.
    Retired,
}

/// A root key out of an opened keyring.
pub struct RootKey {
    pub(crate) id: KeyId,
    pub(crate) state: RootState,
    pub(crate) key: KeyBytes,
}

impl RootKey {
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    #[must_use]
    pub fn state(&self) -> RootState {
        self.state
    }

    /// Wraps a data key. `what` is the domain label, store id, format version and suite of the thing that owns the
    /// key; `salt` is 32 fresh random bytes; `aad` receives the key check and returns every other byte of the header
    /// (salt and check included).
    #[must_use]
    pub fn wrap(
        &self,
        what: &[u8],
        salt: [u8; 32],
        key: &DataKey,
        aad: impl FnOnce(&[u8; 32]) -> Vec<u8>,
    ) -> Wrapped {
        wrap_key(&self.key, what, salt, &key.0, aad)
    }

    /// Undoes [`RootKey::wrap`]: the check is compared in constant time before anything is opened.
    ///
    /// # Errors
    /// [`Rejected`] if key, purpose, salt, check, tag or associated data are not the ones of the wrap.
    pub fn unwrap(&self, what: &[u8], wrapped: &Wrapped, aad: &[u8]) -> Result<DataKey, Rejected> {
        unwrap_key(&self.key, what, wrapped, aad).map(DataKey).map_err(|_| Rejected)
    }

    /// The key that authenticates one kind of file of one store.
    #[must_use]
    pub fn mac_key(&self, label: &[u8], store: &StoreId) -> MacKey {
        MacKey::new(&hkdf(None, self.key.bytes(), &[label::MAC, label, &store.0]))
    }

    /// A second copy under another state, for the next generation of a keyring.
    pub(crate) fn copy_as(&self, state: RootState) -> RootKey {
        RootKey { id: self.id, state, key: KeyBytes::copy_of(self.key.bytes()) }
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootKey").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}
