//! What opens a slot: 32 raw bytes or a passphrase. Owns the passphrase rules; never prints either.

use std::fmt;

use zeroize::{Zeroize, Zeroizing};

/// Bytes that are not a passphrase. Says why, never what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("the passphrase is empty")]
    Empty,
    #[error("the passphrase is not valid UTF-8")]
    NotUtf8,
}

/// A checked passphrase: not empty, valid UTF-8, taken byte for byte (no normalisation).
#[derive(Clone)]
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// The exact bytes of a passphrase file or prompt minus one trailing newline (`\n`).
    ///
    /// # Errors
    /// [`SecretError`] if nothing is left, or it is not UTF-8.
    pub fn from_bytes(bytes: &[u8]) -> Result<Passphrase, SecretError> {
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if text.is_empty() {
            return Err(SecretError::Empty);
        }
        if std::str::from_utf8(text).is_err() {
            return Err(SecretError::NotUtf8);
        }
        // Allocated once at its final size: growing would leave copies behind.
        Ok(Passphrase(Zeroizing::new(text.to_vec())))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

/// What a caller holds to open a keyring.
#[derive(Clone)]
pub enum Secret {
    /// 32 bytes from a key file, a descriptor or a credential.
    Raw(Zeroizing<[u8; 32]>),
    /// Stretched with Argon2id before use.
    Passphrase(Passphrase),
}

impl Secret {
    #[must_use]
    pub fn raw(mut bytes: [u8; 32]) -> Secret {
        let secret = Secret::Raw(Zeroizing::new(bytes));
        bytes.zeroize();
        secret
    }

    /// See [`Passphrase::from_bytes`].
    ///
    /// # Errors
    /// [`SecretError`] if the bytes are empty or not UTF-8.
    pub fn passphrase(bytes: &[u8]) -> Result<Secret, SecretError> {
        Passphrase::from_bytes(bytes).map(Secret::Passphrase)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Raw(_) => f.write_str("Secret::Raw(..)"),
            Secret::Passphrase(_) => f.write_str("Secret::Passphrase(..)"),
        }
    }
}
