//! The keyring's bytes, classes, changes and copies, at Argon2 costs that only tests can name. What the topics share.

use super::*;
use crate::digest::sha256;
use crate::testing::{SeededRandom, test_bounds, test_params};

mod arbitrary;
mod changes;
mod copies;
mod reading;

const STORE: StoreId = StoreId([0x51; 16]);

fn raw(byte: u8) -> Secret {
    Secret::raw([byte; 32])
}

fn phrase(text: &str) -> Secret {
    Secret::passphrase(text.as_bytes()).unwrap()
}

fn slot<'a>(name: &'a str, secret: &'a Secret) -> NewSlot<'a> {
    NewSlot { name, secret, params: test_params() }
}

fn create(slots: &[NewSlot<'_>]) -> Result<Keyring, ChangeError> {
    Keyring::create_within(STORE, slots, &mut SeededRandom::new(7), test_bounds())
}

/// One raw slot.
fn small() -> Keyring {
    create(&[slot("file", &raw(1))]).unwrap()
}

/// A raw slot and a passphrase slot.
fn pair() -> Keyring {
    create(&[slot("file", &raw(1)), slot("phrase", &phrase("horse"))]).unwrap()
}

fn open(bytes: &[u8], secrets: &[Secret]) -> Result<Keyring, KeyringError> {
    Keyring::open_within(bytes, Some(STORE), secrets, test_bounds())
}

/// The class of a refusal, or of success.
fn class(bytes: &[u8], secrets: &[Secret]) -> &'static str {
    match open(bytes, secrets) {
        Ok(_) => "opens",
        Err(error) => name(&error),
    }
}

fn name(error: &KeyringError) -> &'static str {
    match error {
        KeyringError::Damaged { .. } => "damaged",
        KeyringError::UnsupportedVersion(_) => "newer",
        KeyringError::WrongStore => "wrong store",
        KeyringError::WrongKey => "wrong key",
        KeyringError::BadParameters => "bad parameters",
        KeyringError::TooLarge => "too large",
        KeyringError::DamagedBehindSlot => "damaged behind a slot",
        KeyringError::OutOfMemory => "out of memory",
        KeyringError::Missing => "missing",
    }
}

/// The bytes with `change` made to them and both unkeyed sums right again, as only a writer or a forger makes them.
fn resummed(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    if bytes.len() >= 64 {
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        let hash_at = bytes.len() - 32;
        let hash = sha256(&[&bytes[..hash_at]]);
        bytes[hash_at..].copy_from_slice(&hash);
    }
    bytes
}

/// A keyring whose MAC is right too, as only the holder of the keyring key can make it.
fn forged_inside(ring: &Keyring, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    resummed(&ring.bytes, |bytes| {
        change(bytes);
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        let mac_at = bytes.len() - 64;
        let mac = super::open::mac_key(&ring.key, &STORE).mac(&bytes[..mac_at]);
        bytes[mac_at..mac_at + 32].copy_from_slice(&mac);
    })
}
