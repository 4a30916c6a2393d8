//! The key file that `serve` and `init` write, and the plain 32-byte form. Owns the bytes; never touches a file.

use std::fmt;

use zeroize::Zeroizing;

use crate::ids::StoreId;
use crate::random::{RandomBytes, RandomUnavailable};
use crate::secret::Secret;

/// Length of the written form in bytes.
pub const KEY_FILE_LENGTH: usize = 64;

const MAGIC: &[u8; 8] = b"SEALOGKF";
const VERSION: u16 = 1;
const RAW_LENGTH: usize = 32;

/// Bytes that are not a key file. Says why, never what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// Neither 32 nor 64 bytes.
    #[error("a key file has 32 or 64 bytes")]
    WrongLength,
    /// 64 bytes that do not begin as a key file does.
    #[error("this is not a Sealog key file")]
    NotAKeyFile,
    /// The checksum or a byte that must be zero is wrong.
    #[error("the key file is damaged")]
    Damaged,
    /// Written by a later release.
    #[error("the key file has format version {0}, which this release cannot read")]
    UnsupportedVersion(u16),
}

/// A key made for one store.
pub struct KeyFile {
    store_id: StoreId,
    secret: Zeroizing<[u8; 32]>,
}

impl KeyFile {
    /// A fresh key for `store_id`.
    ///
    /// # Errors
    /// [`RandomUnavailable`] if the source has nothing to give.
    pub fn generate(store_id: StoreId, random: &mut dyn RandomBytes) -> Result<KeyFile, RandomUnavailable> {
        let mut secret = Zeroizing::new([0u8; 32]);
        random.fill(secret.as_mut_slice())?;
        Ok(KeyFile { store_id, secret })
    }

    #[must_use]
    pub fn store_id(&self) -> StoreId {
        self.store_id
    }

    #[must_use]
    pub fn secret(&self) -> Secret {
        Secret::Raw(self.secret.clone())
    }

    /// The 64 bytes of the file (`JK-60`).
    #[must_use]
    pub fn encode(&self) -> Zeroizing<[u8; KEY_FILE_LENGTH]> {
        let mut bytes = Zeroizing::new([0u8; KEY_FILE_LENGTH]);
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.store_id.0);
        bytes[28..60].copy_from_slice(self.secret.as_slice());
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads either form: 32 raw bytes, without a store id, or the 64 bytes of [`KeyFile::encode`].
    ///
    /// # Errors
    /// [`KeyFileError`]; no byte of the input is in it.
    pub fn parse(bytes: &[u8]) -> Result<(Option<StoreId>, Secret), KeyFileError> {
        if let Ok(raw) = <&[u8; RAW_LENGTH]>::try_from(bytes) {
            return Ok((None, Secret::Raw(Zeroizing::new(*raw))));
        }
        let bytes: &[u8; KEY_FILE_LENGTH] = bytes.try_into().map_err(|_| KeyFileError::WrongLength)?;
        if &bytes[0..8] != MAGIC {
            return Err(KeyFileError::NotAKeyFile);
        }
        if crc32fast::hash(&bytes[..60]).to_le_bytes() != bytes[60..64] {
            return Err(KeyFileError::Damaged);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(KeyFileError::UnsupportedVersion(version));
        }
        if bytes[10..12] != [0, 0] {
            return Err(KeyFileError::Damaged);
        }
        let mut store_id = [0u8; 16];
        store_id.copy_from_slice(&bytes[12..28]);
        let mut secret = Zeroizing::new([0u8; 32]);
        secret.copy_from_slice(&bytes[28..60]);
        Ok((Some(StoreId(store_id)), Secret::Raw(secret)))
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile").field("store_id", &self.store_id).finish_non_exhaustive()
    }
}
