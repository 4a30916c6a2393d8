//! The manifest of a backup.

use sealog_journal_format::checksum::crc32;
use sealog_journal_format::head::HEAD_MAGIC;
use sealog_journal_format::manifest::{
    MANIFEST_BYTES_MAX, MANIFEST_FIXED_BYTES, MANIFEST_MAGIC, Manifest, authenticated_part,
};
use sealog_journal_format::{FormatError, Why};

use super::allocation::within;
use super::input::put;

const FILE_BYTES: usize = 96;
const TRAILER_BYTES: usize = 36;
const SLOTS_AT: [usize; 2] = [152, 664];
/// Of a slot, before its checksum.
const SLOT_CHECKED_BYTES: usize = 160;

/// Decodes the bytes as they are, and again with what any maker gets right: magic, lengths and checksums.
pub(super) fn manifest(data: &[u8]) {
    let _ = judge(data);
    if let Err(error) = judge(&put_right(data)) {
        assert!(!matches!(error.why, Why::Crc | Why::Magic | Why::Short | Why::Trailing), "{error}");
    }
}

fn judge(bytes: &[u8]) -> Result<Manifest, FormatError> {
    let (manifest, mac) = within(8 * bytes.len() + 4096, || Manifest::decode(bytes))?;
    assert!(bytes.len() <= MANIFEST_BYTES_MAX);
    assert_eq!(manifest.check(), Ok(()));
    let head = manifest.head().expect("it was checked");
    assert_eq!(head.segment, manifest.files.last().map_or(0, |file| file.segment.last()));
    let authenticated = authenticated_part(bytes);
    assert!(bytes[authenticated.len()..bytes.len() - 4] == mac, "the MAC stands behind what it covers");
    let again = manifest.encode(|part| {
        assert!(part == authenticated, "writer and reader mean the same part");
        mac
    });
    assert_eq!(again.as_deref(), Ok(bytes), "a manifest has one spelling");
    let mut names: Vec<String> = manifest.files.iter().map(|file| file.file_name()).collect();
    assert!(
        names
            .iter()
            .all(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte)))
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), manifest.files.len(), "no two files of a backup share a name");
    Ok(manifest)
}

/// Whatever is behind the fixed part is a keyring of less than one file's length, then files.
fn put_right(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    bytes.resize(data.len().max(MANIFEST_FIXED_BYTES + TRAILER_BYTES), 0);
    let behind = bytes.len() - MANIFEST_FIXED_BYTES - TRAILER_BYTES;
    put(&mut bytes, 0, MANIFEST_MAGIC);
    put(&mut bytes, 12, u32::try_from(behind % FILE_BYTES).unwrap_or(0).to_le_bytes());
    put(&mut bytes, 16, u32::try_from(behind / FILE_BYTES).unwrap_or(0).to_le_bytes());
    for at in SLOTS_AT {
        put(&mut bytes, at, HEAD_MAGIC);
        let crc = crc32(&bytes[at..at + SLOT_CHECKED_BYTES]);
        put(&mut bytes, at + SLOT_CHECKED_BYTES, crc.to_le_bytes());
    }
    let end = bytes.len() - 4;
    let crc = crc32(&bytes[..end]);
    put(&mut bytes, end, crc.to_le_bytes());
    bytes
}
