//! Looking for plaintext where none may be.
//!
//! Every secret of a test holds the marker, so that a piece of one is found as well. Nothing here writes into a
//! node's directory.
#![expect(clippy::disallowed_methods, reason = "looks at a node's files from outside")]

use std::fs;
use std::path::Path;

/// Part of every secret text. Digits and letters only, so that no escaping and no encoding of text hides it.
pub const MARKER: &str = "canary7f3a91c0";

/// A secret text with its own name.
pub fn secret(name: &str) -> String {
    format!("{MARKER}{name}")
}

/// Where one of the needles stands in the bytes: its place in the list and its offset. Case does not matter.
pub fn find(bytes: &[u8], needles: &[Vec<u8>]) -> Option<(usize, usize)> {
    // One pass over megabytes: only few places begin like any needle.
    let mut begins = [false; 256];
    for first in needles.iter().filter_map(|needle| needle.first()) {
        begins[usize::from(first.to_ascii_lowercase())] = true;
        begins[usize::from(first.to_ascii_uppercase())] = true;
    }
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| begins[usize::from(**byte)]) {
        let stands = |needle: &Vec<u8>| {
            bytes[at..].get(..needle.len()).is_some_and(|here| here.eq_ignore_ascii_case(needle))
        };
        if let Some(which) = needles.iter().position(stands) {
            return Some((which, at));
        }
    }
    None
}

/// The forms in which raw bytes could be written down: as they are, in hexadecimal, and in either order of a word.
pub fn forms(bytes: &[u8]) -> Vec<Vec<u8>> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
    vec![
        bytes.to_vec(),
        bytes[..bytes.len() / 2].to_vec(),
        hex.into_bytes(),
        // How a byte array looks in a debug print.
        list[..list.len() / 2].join(", ").into_bytes(),
    ]
}

/// Reads every file below `folder`, names included, and returns how many bytes that were.
///
/// # Panics
/// When a needle is found, naming file and offset.
#[track_caller]
pub fn assert_clean(folder: &Path, needles: &[Vec<u8>]) -> u64 {
    let mut bytes_read = 0;
    for entry in fs::read_dir(folder).expect("a folder that can be listed") {
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        let name = entry.file_name();
        let found = find(name.as_encoded_bytes(), needles);
        assert!(found.is_none(), "a secret in the name of {}", path.display());
        // A file that goes while a node works is no longer there to be looked at.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            bytes_read += assert_clean(&path, needles);
        } else if let Ok(bytes) = fs::read(&path) {
            if let Some((which, at)) = find(&bytes, needles) {
                panic!("needle {which} stands in {} at offset {at}", path.display());
            }
            bytes_read += bytes.len() as u64;
        }
    }
    bytes_read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_form_and_every_file() {
        let dir = tempfile::tempdir().unwrap();
        let key = [7_u8, 8, 9, 200];
        let needles = [vec![secret("x").into_bytes()], forms(&key)].concat();
        assert_eq!(needles.len(), 5);
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("clean"), b"nothing").unwrap();
        assert_eq!(assert_clean(dir.path(), &needles), 7);
        for text in [secret("x").to_uppercase().as_bytes(), &key, b"070809c8", b"[7, 8, 9, 200]"] {
            fs::write(inner.join("dirty"), [b"..", text].concat()).unwrap();
            let found = std::panic::catch_unwind(|| assert_clean(dir.path(), &needles));
            assert!(found.is_err(), "{text:?}");
        }
    }
}
