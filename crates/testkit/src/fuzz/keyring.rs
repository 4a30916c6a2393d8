//! Keyrings: damage is never taken for a wrong key, and nothing but the original opens.

use std::sync::OnceLock;

use sealog_journal_format::checksum::crc32;
use sealog_seal::testing::{SeededRandom, test_bounds, test_params};
use sealog_seal::{
    KEYRING_BYTES_MAX, Keyring, KeyringError, NewSlot, Outline, ROOT_KEYS_MAX, SLOTS_MAX, Secret, StoreId,
    choose, sha256,
};

use super::allocation::within;
use super::input::{Input, put};

const STORE: StoreId = StoreId([5; 16]);
const FIXED_BYTES: usize = 64;
const HASH_BYTES: usize = 32;
/// Work area of the dearest slot that the test bounds allow, and the parts of a keyring.
const MEMORY_MAX: usize = (1 << 20) + 16 * KEYRING_BYTES_MAX;

/// First byte even: the bytes as they are, and put right. Odd: edits of a good keyring, put right.
pub(super) fn keyring(data: &[u8]) {
    let mut input = Input::new(data);
    if input.byte().is_multiple_of(2) {
        let bytes = input.rest();
        judge(bytes);
        judge(&put_right(bytes.to_vec()));
    } else {
        copies(input.clone());
        let bytes = edited(original(), input);
        judge(&bytes);
        judge(&put_right(bytes));
    }
}

fn edited(bytes: &[u8], mut edits: Input<'_>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    while !edits.is_empty() {
        let at = edits.up_to(bytes.len() as u64 - 1) as usize;
        bytes[at] ^= edits.byte();
    }
    bytes
}

/// One raw slot and nothing that would need test bounds.
fn plain() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let raw = raw();
        let slots = [NewSlot { name: "key", secret: &raw, params: test_params() }];
        let made = Keyring::create(STORE, &slots, &mut SeededRandom::new(2));
        made.expect("a named slot makes a keyring").encode()
    })
}

/// One raw slot, one passphrase slot, one root key.
fn original() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let (raw, phrase) = (raw(), phrase());
        let slots = [
            NewSlot { name: "key", secret: &raw, params: test_params() },
            NewSlot { name: "phrase", secret: &phrase, params: test_params() },
        ];
        let made = Keyring::create_within(STORE, &slots, &mut SeededRandom::new(1), test_bounds());
        made.expect("two named slots make a keyring").encode()
    })
}

fn raw() -> Secret {
    Secret::raw([9; 32])
}

fn phrase() -> Secret {
    Secret::passphrase(b"correct horse").expect("it is text and not empty")
}

/// Checksum, length and hash as a writer would leave them, so that what lies behind them is reached.
fn put_right(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < FIXED_BYTES + HASH_BYTES {
        return bytes;
    }
    put(&mut bytes, 0, *b"SEALOGKR");
    let length = bytes.len() as u32;
    put(&mut bytes, 12, length.to_le_bytes());
    let crc = crc32(&bytes[..60]);
    put(&mut bytes, 60, crc.to_le_bytes());
    let hash_at = bytes.len() - HASH_BYTES;
    let hash = sha256(&[&bytes[..hash_at]]);
    put(&mut bytes, hash_at, hash);
    bytes
}

fn judge(bytes: &[u8]) {
    if let Ok(outline) = Outline::read(bytes, None) {
        assert!((1..=SLOTS_MAX).contains(&outline.slots.len()));
        assert!((1..=ROOT_KEYS_MAX).contains(&outline.root_keys));
        assert!(outline.generation > 0 && bytes.len() <= KEYRING_BYTES_MAX);
        let other = Outline::read(bytes, Some(StoreId([6; 16])));
        assert!(outline.store_id == StoreId([6; 16]) || other == Err(KeyringError::WrongStore));
    }
    let secrets = [Secret::raw([8; 32]), raw(), phrase()];
    for secrets in [&secrets[..1], &secrets[1..2], &secrets[2..], &secrets[..]] {
        let opened = within(MEMORY_MAX, || Keyring::open_within(bytes, Some(STORE), secrets, test_bounds()));
        match opened {
            Ok(keyring) => {
                assert!(bytes == original(), "only what was sealed opens");
                assert_eq!(keyring.encode(), bytes);
                assert!(!secrets.is_empty() && keyring.root(&keyring.active_root().id()).is_some());
            }
            Err(error) => {
                let wrong_key = bytes == original() && error == KeyringError::WrongKey;
                assert!(bytes != original() || wrong_key, "{error}");
                assert!(!error.to_string().contains("correct horse"));
            }
        }
    }
}

/// Any copy beside a good one: whatever is chosen and opens is the good one, and damage never hides it.
fn copies(edits: Input<'_>) {
    let damaged = edited(plain(), edits);
    for other in [put_right(damaged.clone()), damaged] {
        let state = Outline::read(&other, Some(STORE));
        for copies in [[Some(plain()), Some(&other[..])], [Some(&other[..]), Some(plain())]] {
            match choose(copies, Some(STORE)) {
                Ok(choice) => {
                    assert_eq!(copies[choice.used], Some(choice.bytes));
                    let opened = choice.open(&[raw()]);
                    assert!(opened.is_err() || choice.bytes == plain(), "only what was sealed opens");
                    let damaged = matches!(state, Err(KeyringError::Damaged { .. } | KeyringError::TooLarge));
                    assert!(!damaged || opened.is_ok(), "damage of one copy hides the other");
                    assert_eq!(choice.level, other != plain());
                }
                // A copy that must not be overwritten stops everything; two of one generation are damage.
                Err(error) => assert!(state.is_ok() || state == Err(error)),
            }
        }
    }
}
