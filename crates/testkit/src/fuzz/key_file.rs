//! Key files and passphrases.

use sealog_journal_format::checksum::crc32;
use sealog_seal::{KEY_FILE_LENGTH, KeyFile, KeyFileError, RandomUnavailable, Secret};

use super::input::{fitted, put};

/// Reads the bytes as they are, again with magic and checksum put right, and as a passphrase.
pub(super) fn key_file(data: &[u8]) {
    judge(data);
    let mut bytes: [u8; KEY_FILE_LENGTH] = fitted(data);
    put(&mut bytes, 0, *b"SEALOGKF");
    let crc = crc32(&bytes[..60]);
    put(&mut bytes, 60, crc.to_le_bytes());
    judge(&bytes);
    passphrase(data);
}

fn judge(bytes: &[u8]) {
    match KeyFile::parse(bytes) {
        Ok((None, Secret::Raw(secret))) => assert_eq!(secret.as_slice(), bytes, "32 raw bytes are the key"),
        Ok((Some(store_id), Secret::Raw(secret))) => {
            let mut random = |into: &mut [u8]| {
                into.copy_from_slice(secret.as_slice());
                Ok::<(), RandomUnavailable>(())
            };
            let again = KeyFile::generate(store_id, &mut random).expect("this randomness is always there");
            assert_eq!(again.encode().as_slice(), bytes, "a key file has one spelling");
        }
        Ok((_, Secret::Passphrase(_))) => panic!("a key file holds no passphrase"),
        Err(error) => {
            let length = bytes.len() != 32 && bytes.len() != KEY_FILE_LENGTH;
            assert_eq!(length, error == KeyFileError::WrongLength);
        }
    }
}

fn passphrase(data: &[u8]) {
    let text = data.strip_suffix(b"\n").unwrap_or(data);
    let allowed = !text.is_empty() && std::str::from_utf8(text).is_ok();
    let read = Secret::passphrase(data);
    assert_eq!(read.is_ok(), allowed);
    // Nothing that is printed of a secret depends on it.
    assert!(read.map_or(true, |secret| format!("{secret:?}") == "Passphrase(..)"
        || format!("{secret:?}") == "Secret::Passphrase(..)"));
}
