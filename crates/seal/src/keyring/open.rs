//! Opening: raw secrets before passphrases, then MAC, list and its rules. Everything that fails after a slot opened
//! is damage, never a wrong key.

use zeroize::Zeroizing;

use super::layout::{self, Parsed, ROOT_BYTES, SLOT_AAD_BYTES, StoredList, StoredSlot, slot_aad};
use super::{Keyring, KeyringError, Outline, SlotKind, only_active};
use crate::digest::hkdf;
use crate::ids::{KeyId, StoreId};
use crate::key::{KeyBytes, MacKey};
use crate::label;
use crate::root::{RootKey, RootState};
use crate::secret::Secret;
use crate::stretch::{StretchBounds, StretchError, stretch};
use crate::wrap::{OneTime, Unopened, unwrap_key};

pub(super) const STATE_ACTIVE: u8 = 1;
pub(super) const STATE_RETIRED: u8 = 2;

impl Keyring {
    /// Opens one copy of a keyring with the first of `secrets` that fits a slot. Raw secrets are tried before
    /// passphrases, since trying a passphrase costs an Argon2id run per slot.
    ///
    /// # Errors
    /// [`KeyringError`], in the order of `JK-31`. Damage is found before any secret is tried.
    pub fn open(
        bytes: &[u8],
        expect_store: Option<StoreId>,
        secrets: &[Secret],
    ) -> Result<Keyring, KeyringError> {
        Keyring::open_within(bytes, expect_store, secrets, StretchBounds::PRODUCTION)
    }

    /// [`Keyring::open`] under other bounds; outside tests there are none but [`StretchBounds::PRODUCTION`].
    ///
    /// # Errors
    /// As [`Keyring::open`].
    pub fn open_within(
        bytes: &[u8],
        expect_store: Option<StoreId>,
        secrets: &[Secret],
        bounds: StretchBounds,
    ) -> Result<Keyring, KeyringError> {
        let parsed = layout::parse(bytes, expect_store, &bounds)?;
        let (opened_slot, key) = open_a_slot(&parsed, secrets, &bounds)?;
        let store_id = parsed.outline.store_id;
        if mac_key(&key, &store_id).verify(parsed.under_mac, &parsed.mac).is_err() {
            return Err(KeyringError::DamagedBehindSlot);
        }
        let roots = open_list(&key, &store_id, &parsed.list).ok_or(KeyringError::DamagedBehindSlot)?;
        let active = only_active(&roots).ok_or(KeyringError::DamagedBehindSlot)?;
        Ok(Keyring {
            outline: parsed.outline,
            stored: parsed.slots,
            key,
            roots,
            active,
            opened_slot,
            bounds,
            bytes: bytes.to_vec(),
        })
    }
}

impl Outline {
    /// What `bytes` tell without a key.
    ///
    /// # Errors
    /// [`KeyringError`], every class that is found without a key.
    pub fn read(bytes: &[u8], expect_store: Option<StoreId>) -> Result<Outline, KeyringError> {
        layout::parse(bytes, expect_store, &StretchBounds::PRODUCTION).map(|parsed| parsed.outline)
    }

    /// The generation in a fixed part that is intact, whatever became of the bytes behind it. It proves nothing; it warns of
    /// putting an older keyring in the place of a damaged newer one.
    #[must_use]
    pub fn stated_generation(bytes: &[u8], store: StoreId) -> Option<u64> {
        layout::stated_generation(bytes, &store)
    }
}

fn open_a_slot(
    parsed: &Parsed<'_>,
    secrets: &[Secret],
    bounds: &StretchBounds,
) -> Result<(usize, KeyBytes), KeyringError> {
    let (raw, passphrases): (Vec<&Secret>, Vec<&Secret>) =
        secrets.iter().partition(|secret| matches!(secret, Secret::Raw(_)));
    for secret in raw.into_iter().chain(passphrases) {
        for (index, slot) in parsed.slots.iter().enumerate() {
            if let Some(key) = try_slot(&parsed.outline.store_id, slot, secret, bounds)? {
                return Ok((index, key));
            }
        }
    }
    Err(KeyringError::WrongKey)
}

/// Why a slot could not even be tried, or is not what was written.
pub(super) enum SlotError {
    Stretch(StretchError),
    /// The check is the secret's, the tag is not.
    Changed,
}

impl From<StretchError> for SlotError {
    fn from(error: StretchError) -> SlotError {
        SlotError::Stretch(error)
    }
}

impl From<SlotError> for KeyringError {
    fn from(error: SlotError) -> KeyringError {
        match error {
            SlotError::Stretch(error) => error.into(),
            SlotError::Changed => KeyringError::DamagedBehindSlot,
        }
    }
}

/// `None` if the secret is not this slot's. An equal check with a bad tag is damage.
pub(super) fn try_slot(
    store_id: &StoreId,
    slot: &StoredSlot,
    secret: &Secret,
    bounds: &StretchBounds,
) -> Result<Option<KeyBytes>, SlotError> {
    let wrapping = match (slot.kind, secret) {
        (SlotKind::Raw, Secret::Raw(bytes)) => KeyBytes::copy_of(bytes),
        (SlotKind::Passphrase(params), Secret::Passphrase(passphrase)) => {
            stretch(passphrase, &slot.stretch_salt, &params, bounds)?
        }
        (SlotKind::Raw, Secret::Passphrase(_)) | (SlotKind::Passphrase(_), Secret::Raw(_)) => {
            return Ok(None);
        }
    };
    let what = layout::what(label::SLOT, store_id);
    let aad: [u8; SLOT_AAD_BYTES] = slot_aad(&slot.record, &slot.wrapped.salt, &slot.wrapped.check);
    match unwrap_key(&wrapping, &what, &slot.wrapped, &aad) {
        Ok(key) => Ok(Some(key)),
        Err(Unopened::OtherKey) => Ok(None),
        Err(Unopened::Changed) => Err(SlotError::Changed),
    }
}

pub(super) fn mac_key(key: &KeyBytes, store_id: &StoreId) -> MacKey {
    MacKey::new(&hkdf(None, key.bytes(), &[label::KEYRING_MAC, &store_id.0]))
}

/// `None` if the list does not authenticate or breaks a rule.
fn open_list(key: &KeyBytes, store_id: &StoreId, list: &StoredList<'_>) -> Option<Vec<RootKey>> {
    let mut plain = Zeroizing::new(list.sealed.to_vec());
    OneTime::derive(key, &layout::what(label::ROOT_LIST, store_id), &list.salt)
        .open(&list.check, list.aad, &mut plain, &list.tag)
        .ok()?;
    let mut roots: Vec<RootKey> = Vec::with_capacity(plain.len() / ROOT_BYTES);
    for entry in plain.chunks_exact(ROOT_BYTES) {
        let id = KeyId(entry[0..16].try_into().ok()?);
        let state = match entry[16] {
            STATE_ACTIVE => RootState::Active,
            STATE_RETIRED => RootState::Retired,
            0 | 3..=255 => return None,
        };
        if entry[17..24] != [0; 7] || roots.iter().any(|earlier| earlier.id == id) {
            return None;
        }
        roots.push(RootKey { id, state, key: KeyBytes::copy_of(entry[24..56].try_into().ok()?) });
    }
    Some(roots)
}
