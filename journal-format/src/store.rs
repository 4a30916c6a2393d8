//! The file `store` (section 3, JF-1): the commit point of creation. SHA-256 is the caller's function.

use crate::checksum::crc32;
use crate::cursor::{array_at, check_least, check_length, check_zero, put, u16_at, u32_at, u64_at};
use crate::error::{FormatError, Why};
use crate::limits::STORE_BYTES;
use crate::version::{FORMAT_VERSION, check_version};

pub const STORE_MAGIC: [u8; 8] = *b"SEALOGST";

const CRC_AT: usize = 92;
const DIGEST_AT: usize = 96;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFile {
    pub store_id: [u8; 16],
    /// Milliseconds since the epoch.
    pub created_ms: u64,
}

impl StoreFile {
    /// The whole file. `sha256` hashes the bytes it is given.
    pub fn encode(&self, sha256: impl FnOnce(&[u8]) -> [u8; 32]) -> [u8; STORE_BYTES] {
        let mut out = [0; STORE_BYTES];
        put(&mut out, 0, STORE_MAGIC);
        put(&mut out, 8, FORMAT_VERSION.to_le_bytes());
        put(&mut out, 10, (STORE_BYTES as u16).to_le_bytes());
        put(&mut out, 16, self.store_id);
        put(&mut out, 32, self.created_ms.to_le_bytes());
        let crc = crc32(&out[..CRC_AT]);
        put(&mut out, CRC_AT, crc.to_le_bytes());
        let digest = sha256(&out[..DIGEST_AT]);
        put(&mut out, DIGEST_AT, digest);
        out
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// Magic, CRC, version, length, zeros, SHA-256, exact file length, in this order.
    pub fn decode(bytes: &[u8], sha256: impl FnOnce(&[u8]) -> [u8; 32]) -> Result<Self, FormatError> {
        check_least(bytes, STORE_BYTES, "store")?;
        if bytes[..8] != STORE_MAGIC {
            return Err(Why::Magic.of("magic", 0));
        }
        if u32_at(bytes, CRC_AT) != crc32(&bytes[..CRC_AT]) {
            return Err(Why::Crc.of("store crc", CRC_AT));
        }
        check_version(u16_at(bytes, 8), 8)?;
        if usize::from(u16_at(bytes, 10)) != STORE_BYTES {
            return Err(Why::OutOfRange.of("store length", 10));
        }
        check_zero(bytes, 12, 16, "store")?;
        check_zero(bytes, 40, CRC_AT, "store")?;
        if sha256(&bytes[..DIGEST_AT]) != array_at(bytes, DIGEST_AT) {
            return Err(Why::Digest.of("store digest", DIGEST_AT));
        }
        check_length(bytes, STORE_BYTES, "store")?;
        Ok(Self { store_id: array_at(bytes, 16), created_ms: u64_at(bytes, 32) })
    }
}

#[cfg(test)]
mod tests;
