//! Making a keyring and its next generations. Pure: each change gives a new keyring and leaves the old one as it is;
//! the caller makes both copies durable before the change counts.

use zeroize::Zeroizing;

use super::layout::{self, LIST_HEAD_BYTES, ROOT_BYTES, ROOT_KEYS_MAX, SLOTS_MAX, StoredSlot};
use super::open::{STATE_ACTIVE, STATE_RETIRED, SlotError, mac_key, try_slot};
use super::{ChangeError, Keyring, NewSlot, Outline, SlotInfo, SlotKind, only_active};
use crate::digest::sha256;
use crate::ids::{KeyId, StoreId};
use crate::key::KeyBytes;
use crate::label;
use crate::random::{RandomBytes, draw};
use crate::root::{RootKey, RootState};
use crate::secret::Secret;
use crate::stretch::{SlotParams, StretchBounds, stretch};
use crate::wrap::{OneTime, wrap_key};

/// Everything of the next generation but its bytes.
struct Draft {
    outline: Outline,
    stored: Vec<StoredSlot>,
    key: KeyBytes,
    roots: Vec<RootKey>,
    bounds: StretchBounds,
}

impl Keyring {
    /// A new keyring, generation 1, with one fresh active root key and the given slots.
    ///
    /// # Errors
    /// [`ChangeError`] for slots that break a rule or without randomness or memory.
    pub fn create(
        store_id: StoreId,
        slots: &[NewSlot<'_>],
        random: &mut dyn RandomBytes,
    ) -> Result<Keyring, ChangeError> {
        Keyring::create_within(store_id, slots, random, StretchBounds::PRODUCTION)
    }

    /// [`Keyring::create`] under other bounds; outside tests there are none but [`StretchBounds::PRODUCTION`].
    ///
    /// # Errors
    /// As [`Keyring::create`].
    pub fn create_within(
        store_id: StoreId,
        slots: &[NewSlot<'_>],
        random: &mut dyn RandomBytes,
        bounds: StretchBounds,
    ) -> Result<Keyring, ChangeError> {
        let outline = Outline { store_id, generation: 1, slots: Vec::new(), root_keys: 0 };
        let key = KeyBytes::random(random)?;
        let roots = vec![fresh_root(random)?];
        let mut draft = Draft { outline, stored: Vec::new(), key, roots, bounds };
        for slot in slots {
            draft.add(slot, random)?;
        }
        draft.finish(random)
    }

    /// The next generation, with one more slot. The caller re-opens it through that slot before relying on it.
    ///
    /// # Errors
    /// [`ChangeError`] if the slot breaks a rule, or without randomness or memory.
    pub fn add_slot(&self, slot: &NewSlot<'_>, random: &mut dyn RandomBytes) -> Result<Keyring, ChangeError> {
        let mut draft = self.next()?;
        draft.add(slot, random)?;
        draft.finish(random)
    }

    /// The next generation, without the slot `name`. Whoever saw an older copy can still open that one: only
    /// [`Keyring::rotate`] changes keys.
    ///
    /// # Errors
    /// [`ChangeError::UnknownSlot`], or [`ChangeError::LastSlot`] if none would stay.
    pub fn remove_slot(&self, name: &str, random: &mut dyn RandomBytes) -> Result<Keyring, ChangeError> {
        let mut draft = self.next()?;
        let index = self.slot_index(name)?;
        if self.outline.slots.len() == 1 {
            return Err(ChangeError::LastSlot);
        }
        draft.outline.slots.remove(index);
        draft.stored.remove(index);
        draft.finish(random)
    }

    /// The next generation, with `slot` in the place of the slot `old`: what was opened by one is opened by the other, and
    /// at no moment by neither.
    ///
    /// # Errors
    /// [`ChangeError::UnknownSlot`], and as [`Keyring::add_slot`].
    pub fn replace_slot(
        &self,
        old: &str,
        slot: &NewSlot<'_>,
        random: &mut dyn RandomBytes,
    ) -> Result<Keyring, ChangeError> {
        let mut draft = self.next()?;
        let index = self.slot_index(old)?;
        draft.outline.slots.remove(index);
        draft.stored.remove(index);
        draft.add(slot, random)?;
        draft.finish(random)
    }

    /// The same slots and root keys as the generation above `generation` and above this one: an older keyring that is to
    /// count again, although a later one was seen.
    ///
    /// # Errors
    /// [`ChangeError::GenerationExhausted`], or without randomness.
    pub fn reissue_above(
        &self,
        generation: u64,
        random: &mut dyn RandomBytes,
    ) -> Result<Keyring, ChangeError> {
        let mut draft = self.next()?;
        let above = generation.checked_add(1).ok_or(ChangeError::GenerationExhausted)?;
        draft.outline.generation = draft.outline.generation.max(above);
        draft.finish(random)
    }

    /// The names of the slots that none of `secrets` opens, in their stored order.
    ///
    /// # Errors
    /// [`ChangeError::OutOfMemory`].
    pub fn uncovered_slots(&self, secrets: &[Secret]) -> Result<Vec<String>, ChangeError> {
        let mut names = Vec::new();
        for (info, stored) in self.outline.slots.iter().zip(&self.stored) {
            if self.secret_of(stored, secrets)?.is_none() {
                names.push(info.name.clone());
            }
        }
        Ok(names)
    }

    /// The next generation under a new keyring key, with a new active root key; the old root keys are retired. Every
    /// slot that one of `secrets` opens is wrapped anew; the slots named in `drop` are left out.
    ///
    /// # Errors
    /// [`ChangeError::SlotNotCovered`] with all slots that are neither opened nor dropped, [`ChangeError::UnknownSlot`] for a
    /// name in `drop` that no slot has, [`ChangeError::LastSlot`] if none would stay, and as [`Keyring::add_slot`].
    pub fn rotate(
        &self,
        secrets: &[Secret],
        drop: &[&str],
        random: &mut dyn RandomBytes,
    ) -> Result<Keyring, ChangeError> {
        self.rotate_adding(secrets, drop, &[], random)
    }

    /// [`Keyring::rotate`] with more slots in the same generation; a name that is dropped may be used again.
    ///
    /// # Errors
    /// As [`Keyring::rotate`] and [`Keyring::add_slot`].
    pub fn rotate_adding(
        &self,
        secrets: &[Secret],
        drop: &[&str],
        more: &[NewSlot<'_>],
        random: &mut dyn RandomBytes,
    ) -> Result<Keyring, ChangeError> {
        for name in drop {
            self.slot_index(name)?;
        }
        let mut draft = self.next()?;
        draft.outline.slots.clear();
        draft.stored.clear();
        draft.key = KeyBytes::random(random)?;
        draft.roots = Vec::with_capacity(self.roots.len() + 1);
        draft.roots.extend(self.roots.iter().map(|root| root.copy_as(RootState::Retired)));
        draft.roots.push(fresh_root(random)?);
        let mut uncovered = Vec::new();
        for (info, stored) in self.outline.slots.iter().zip(&self.stored) {
            if drop.contains(&info.name.as_str()) {
                continue;
            }
            let Some(secret) = self.secret_of(stored, secrets)? else {
                uncovered.push(info.name.clone());
                continue;
            };
            let params = match info.kind {
                SlotKind::Raw => SlotParams::DEFAULT,
                SlotKind::Passphrase(params) => params,
            };
            draft.add(&NewSlot { name: &info.name, secret, params }, random)?;
        }
        if !uncovered.is_empty() {
            return Err(ChangeError::SlotNotCovered { names: uncovered });
        }
        for slot in more {
            draft.add(slot, random)?;
        }
        if draft.stored.is_empty() {
            return Err(ChangeError::LastSlot);
        }
        draft.finish(random)
    }

    /// The next generation, without a retired root key. The caller has made sure that no file names it.
    ///
    /// # Errors
    /// [`ChangeError::UnknownRootKey`], or [`ChangeError::RootKeyActive`].
    pub fn drop_root(&self, id: &KeyId, random: &mut dyn RandomBytes) -> Result<Keyring, ChangeError> {
        self.drop_roots(std::slice::from_ref(id), random)
    }

    /// As [`Keyring::drop_root`], several in one generation.
    ///
    /// # Errors
    /// As [`Keyring::drop_root`].
    pub fn drop_roots(&self, ids: &[KeyId], random: &mut dyn RandomBytes) -> Result<Keyring, ChangeError> {
        for id in ids {
            match self.root(id).map(RootKey::state) {
                None => return Err(ChangeError::UnknownRootKey),
                Some(RootState::Active) => return Err(ChangeError::RootKeyActive),
                Some(RootState::Retired) => {}
            }
        }
        let mut draft = self.next()?;
        draft.roots.retain(|root| !ids.contains(&root.id));
        draft.finish(random)
    }

    fn slot_index(&self, name: &str) -> Result<usize, ChangeError> {
        self.outline.slots.iter().position(|slot| slot.name == name).ok_or(ChangeError::UnknownSlot)
    }

    fn secret_of<'s>(
        &self,
        stored: &StoredSlot,
        secrets: &'s [Secret],
    ) -> Result<Option<&'s Secret>, ChangeError> {
        for secret in secrets {
            match try_slot(&self.outline.store_id, stored, secret, &self.bounds) {
                Ok(Some(_)) => return Ok(Some(secret)),
                Err(SlotError::Stretch(error)) => return Err(error.into()),
                Ok(None) | Err(SlotError::Changed) => {}
            }
        }
        Ok(None)
    }

    fn next(&self) -> Result<Draft, ChangeError> {
        let mut outline = self.outline.clone();
        outline.generation = outline.generation.checked_add(1).ok_or(ChangeError::GenerationExhausted)?;
        Ok(Draft {
            outline,
            stored: self.stored.clone(),
            key: KeyBytes::copy_of(self.key.bytes()),
            roots: self.roots.iter().map(|root| root.copy_as(root.state)).collect(),
            bounds: self.bounds,
        })
    }
}

fn fresh_root(random: &mut dyn RandomBytes) -> Result<RootKey, ChangeError> {
    Ok(RootKey { id: KeyId(draw(random)?), state: RootState::Active, key: KeyBytes::random(random)? })
}

impl Draft {
    fn add(&mut self, slot: &NewSlot<'_>, random: &mut dyn RandomBytes) -> Result<(), ChangeError> {
        if !layout::name_allowed(slot.name) {
            return Err(ChangeError::BadName);
        }
        if self.outline.slots.iter().any(|earlier| earlier.name == slot.name) {
            return Err(ChangeError::DuplicateName);
        }
        if self.stored.len() == SLOTS_MAX {
            return Err(ChangeError::TooManySlots);
        }
        let (kind, stretch_salt, wrapping) = match slot.secret {
            Secret::Raw(bytes) => (SlotKind::Raw, [0; 16], KeyBytes::copy_of(bytes)),
            Secret::Passphrase(passphrase) => {
                let salt = draw(random)?;
                let key = stretch(passphrase, &salt, &slot.params, &self.bounds)?;
                (SlotKind::Passphrase(slot.params), salt, key)
            }
        };
        let mut record = layout::slot_record(slot.name, kind, &stretch_salt);
        let what = layout::what(label::SLOT, &self.outline.store_id);
        let salt = draw(random)?;
        let wrapped = wrap_key(&wrapping, &what, salt, &self.key, |check| {
            layout::slot_aad(&record, &salt, check).to_vec()
        });
        layout::put_wrap(&mut record, &wrapped);
        self.stored.push(StoredSlot { kind, stretch_salt, wrapped, record });
        self.outline.slots.push(SlotInfo { name: slot.name.to_owned(), kind });
        Ok(())
    }

    /// Seals the root key list under a fresh one-time key and closes the bytes with MAC and SHA-256.
    fn finish(mut self, random: &mut dyn RandomBytes) -> Result<Keyring, ChangeError> {
        if self.stored.is_empty() {
            return Err(ChangeError::NoSlot);
        }
        if self.roots.len() > ROOT_KEYS_MAX {
            return Err(ChangeError::TooManyRootKeys);
        }
        self.outline.root_keys = self.roots.len();
        let active = only_active(&self.roots).ok_or(ChangeError::UnknownRootKey)?;
        let store_id = self.outline.store_id;
        let total = layout::total_bytes(self.stored.len(), self.roots.len());
        let mut bytes = Vec::with_capacity(total);
        bytes.extend_from_slice(&layout::fixed_part(
            &store_id,
            self.outline.generation,
            self.stored.len(),
            self.roots.len(),
        ));
        self.stored.iter().for_each(|slot| bytes.extend_from_slice(&slot.record));

        let salt = draw(random)?;
        let once = OneTime::derive(&self.key, &layout::what(label::ROOT_LIST, &store_id), &salt);
        bytes.extend_from_slice(&salt);
        bytes.extend_from_slice(once.check());
        let mut list = root_list(&self.roots);
        let tag = once.seal(&bytes, &mut list);
        bytes.extend_from_slice(&tag);
        bytes.extend_from_slice(&list);

        let mac = mac_key(&self.key, &store_id).mac(&bytes);
        bytes.extend_from_slice(&mac);
        let hash = sha256(&[&bytes]);
        bytes.extend_from_slice(&hash);
        debug_assert_eq!(bytes.len(), total);
        debug_assert_eq!(LIST_HEAD_BYTES, salt.len() + 32 + tag.len());
        let Draft { outline, stored, key, roots, bounds } = self;
        Ok(Keyring { outline, stored, key, roots, active, opened_slot: 0, bounds, bytes })
    }
}

/// The plaintext of the list, allocated once at its final size.
fn root_list(roots: &[RootKey]) -> Zeroizing<Vec<u8>> {
    let mut list = Zeroizing::new(Vec::with_capacity(roots.len() * ROOT_BYTES));
    for root in roots {
        list.extend_from_slice(&root.id.0);
        list.push(match root.state {
            RootState::Active => STATE_ACTIVE,
            RootState::Retired => STATE_RETIRED,
        });
        list.extend_from_slice(&[0; 7]);
        list.extend_from_slice(root.key.bytes());
    }
    list
}
