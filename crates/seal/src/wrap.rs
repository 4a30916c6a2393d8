//! Wrapping one key under another: a one-time key from a fresh salt, a stored check that commits to the key, the
//! zero nonce. Owns the derivation; never decides what is associated data, that is the owner of the bytes.

use crate::aead::{self, ZERO_NONCE};
use crate::digest::{equal, hkdf};
use crate::key::KeyBytes;
use crate::label;

/// A wrapped 32-byte key as it is stored. Nothing in it is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapped {
    /// 32 fresh random bytes; never used for a second wrap.
    pub salt: [u8; 32],
    /// The key, encrypted.
    pub sealed: [u8; 32],
    /// Poly1305 tag over `sealed` and the associated data.
    pub tag: [u8; 16],
    /// Commits to the wrapping key, salt and purpose; compared in constant time before anything is opened.
    pub check: [u8; 32],
}

/// Why an unwrap failed. A differing check means another key; a bad tag behind an equal check means changed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    OtherKey,
    Changed,
}

/// The one-time key and the check of one wrap.
pub(crate) struct OneTime {
    key: KeyBytes,
    check: [u8; 32],
}

impl OneTime {
    pub(crate) fn derive(wrapping: &KeyBytes, what: &[u8], salt: &[u8; 32]) -> OneTime {
        let key = hkdf(Some(salt), wrapping.bytes(), &[label::WRAP, what]);
        let check = hkdf(Some(salt), wrapping.bytes(), &[label::CHECK, what]);
        OneTime { key, check: *check.bytes() }
    }

    pub(crate) fn check(&self) -> &[u8; 32] {
        &self.check
    }

    /// Encrypts `buf` in place. Consumes the key: it seals once.
    pub(crate) fn seal(self, aad: &[u8], buf: &mut [u8]) -> [u8; 16] {
        aead::seal(&self.key, ZERO_NONCE, aad, buf)
    }

    /// Compares the check, then decrypts `buf` in place.
    pub(crate) fn open(
        self,
        check: &[u8; 32],
        aad: &[u8],
        buf: &mut [u8],
        tag: &[u8; 16],
    ) -> Result<(), Unopened> {
        if !equal(&self.check, check) {
            return Err(Unopened::OtherKey);
        }
        aead::open(&self.key, ZERO_NONCE, aad, buf, tag).map_err(|_| Unopened::Changed)
    }
}

/// Wraps a 32-byte key; `aad` is asked for once the check is known, since the check is part of it.
pub(crate) fn wrap_key(
    wrapping: &KeyBytes,
    what: &[u8],
    salt: [u8; 32],
    key: &KeyBytes,
    aad: impl FnOnce(&[u8; 32]) -> Vec<u8>,
) -> Wrapped {
    let once = OneTime::derive(wrapping, what, &salt);
    let check = *once.check();
    let aad = aad(&check);
    // The plaintext key stands here until it is encrypted in place.
    let mut sealed = *key.bytes();
    let tag = once.seal(&aad, &mut sealed);
    Wrapped { salt, sealed, tag, check }
}

/// Undoes [`wrap_key`].
pub(crate) fn unwrap_key(
    wrapping: &KeyBytes,
    what: &[u8],
    wrapped: &Wrapped,
    aad: &[u8],
) -> Result<KeyBytes, Unopened> {
    let mut key = KeyBytes::copy_of(&wrapped.sealed);
    OneTime::derive(wrapping, what, &wrapped.salt).open(
        &wrapped.check,
        aad,
        key.bytes_mut(),
        &wrapped.tag,
    )?;
    Ok(key)
}
