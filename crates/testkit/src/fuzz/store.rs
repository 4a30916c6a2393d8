//! The file `store`.

use sealog_journal_format::checksum::crc32;
use sealog_journal_format::limits::STORE_BYTES;
use sealog_journal_format::store::STORE_MAGIC;
use sealog_journal_format::{FormatError, StoreFile, Why};

use super::input::{fitted, put};

/// Decodes the bytes as they are, and again with magic, checksum and hash put right.
pub(super) fn store(data: &[u8]) {
    let _ = judge(data);
    let mut bytes: [u8; STORE_BYTES] = fitted(data);
    put(&mut bytes, 0, STORE_MAGIC);
    let crc = crc32(&bytes[..92]);
    put(&mut bytes, 92, crc.to_le_bytes());
    let digest = sealog_seal::sha256(&[&bytes[..96]]);
    put(&mut bytes, 96, digest);
    if let Err(error) = judge(&bytes) {
        assert!(!matches!(error.why, Why::Crc | Why::Magic | Why::Short | Why::Digest), "{error}");
    }
}

fn judge(bytes: &[u8]) -> Result<StoreFile, FormatError> {
    let hash = |part: &[u8]| sealog_seal::sha256(&[part]);
    let file = StoreFile::decode(bytes, hash)?;
    assert!(bytes == file.encode(hash), "a store file has one spelling");
    Ok(file)
}
