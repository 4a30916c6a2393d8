//! Changing the keyring of a stopped journal: slots, rotation, what has become superfluous (`spec/keys.md`, JK-45 to JK-56).
//!
//! Owns the order of a change: lock, level, make the next generation in memory, prove that it opens, write both copies,
//! open them again. Must never touch a segment or the head: what it changes is which keys there are, never what they seal.

mod hedged;
mod transfer;
mod uses;

use sealog_disk::DiskLock;
use sealog_seal::{ChangeError, KeyId, Keyring, NewSlot, RootState, SlotInfo};

use crate::config::Config;
use crate::error::{JournalError, Result};
use crate::store::{KeyringCopy, Store};
use crate::{keyring_files, lock};

use hedged::Hedged;
pub use transfer::{Imported, KeyringRefusal, export_keyring, import_keyring};
pub use uses::RootUse;
use uses::Uses;

/// What the keyring of a journal holds, without anything secret.
#[derive(Clone, Debug)]
pub struct KeyFacts {
    pub store_id: [u8; 16],
    pub generation: u64,
    pub copies: [KeyringCopy; 2],
    pub slots: Vec<SlotInfo>,
    /// The slot that a given secret opened; `None` behind a change.
    pub opened_slot: Option<String>,
    pub roots: Vec<RootFacts>,
    /// Some file does not tell which key it was made with: nothing is dropped then.
    pub unreadable: bool,
}

/// One root key, by its id, and what names it.
#[derive(Clone, Debug)]
pub struct RootFacts {
    pub id: [u8; 16],
    pub active: bool,
    pub named_by: RootUse,
}

/// Looks at the keyring and at what names its root keys. Changes nothing and needs no lock.
///
/// # Errors
/// As every opening: no journal, wrong key, damage, newer format, or a storage error.
pub fn key_facts(config: &Config) -> Result<KeyFacts> {
    let store = Store::open(config)?;
    let uses = Uses::look(&*store.disk)?;
    Ok(facts(&store, &uses, true))
}

fn facts(store: &Store, uses: &Uses, opened: bool) -> KeyFacts {
    let root = |root: &sealog_seal::RootKey| RootFacts {
        id: root.id().0,
        active: root.state() == RootState::Active,
        named_by: uses.of(&root.id()),
    };
    KeyFacts {
        store_id: store.id().0,
        generation: store.keyring.generation(),
        copies: store.copies,
        slots: store.keyring.slots().to_vec(),
        opened_slot: opened.then(|| store.keyring.opened_slot().name.clone()),
        roots: store.keyring.roots().iter().map(root).collect(),
        unreadable: uses.unreadable,
    }
}

/// What a change came to.
#[derive(Clone, Debug)]
pub struct Rekeyed {
    pub facts: KeyFacts,
    /// Slots that are no longer there.
    pub removed_slots: Vec<String>,
    /// Retired root keys that no file named any more.
    pub dropped_roots: Vec<[u8; 16]>,
}

/// The keyring of a stopped journal, under its lock. One change, then it is over: after a failed one the files are looked
/// at anew (F2).
#[derive(Debug)]
pub struct Rekey {
    config: Config,
    store: Store,
    uses: Uses,
    _lock: Box<dyn DiskLock>,
}

impl Rekey {
    /// Takes the lock, opens the keyring and levels its copies.
    ///
    /// # Errors
    /// `Locked` beside a running node; otherwise as [`key_facts`].
    pub fn open(config: &Config) -> Result<Rekey> {
        let held = lock::take(&*config.disk, &*config.clock, config.tuning.lock_wait)?;
        let mut store = Store::open(config)?;
        lock::note(&*config.disk, &*config.clock);
        let uses = Uses::look(&*store.disk)?;
        keyring_files::level(&store)?;
        store.copies = [KeyringCopy::Good; 2];
        Ok(Rekey { config: config.clone(), store, uses, _lock: held })
    }

    pub fn keyring(&self) -> &Keyring {
        &self.store.keyring
    }

    /// Adds a slot; with `replacing` in the place of another one, in one step (JK-45). The journal has been opened through
    /// it when this returns.
    ///
    /// # Errors
    /// `Slots` for a slot that breaks a rule; a storage error, after which either keyring may count.
    pub fn add_slot(self, slot: &NewSlot<'_>, replacing: Option<&str>) -> Result<Rekeyed> {
        let (base, dropped) = self.without_unused_roots(&self.store.keyring)?;
        let base = base.as_ref().unwrap_or(&self.store.keyring);
        let mut random = Hedged::new(&self.config);
        let next = match replacing {
            Some(old) => base.replace_slot(old, slot, &mut random),
            None => base.add_slot(slot, &mut random),
        };
        let removed = replacing.map(ToOwned::to_owned).into_iter().collect();
        self.write(next.map_err(change_error)?, &[slot], removed, dropped)
    }

    /// Removes a slot; another one stays.
    ///
    /// # Errors
    /// `Slots`, or a storage error, after which either keyring may count.
    pub fn remove_slot(self, name: &str) -> Result<Rekeyed> {
        let (base, dropped) = self.without_unused_roots(&self.store.keyring)?;
        let base = base.as_ref().unwrap_or(&self.store.keyring);
        let next = base.remove_slot(name, &mut Hedged::new(&self.config)).map_err(change_error)?;
        self.write(next, &[], vec![name.to_owned()], dropped)
    }

    /// A new keyring key and a new root key for everything that is written from now on. Slots that a given secret opens
    /// are kept; `drop` names those that go. With `recovery` all others go as well and that slot comes.
    ///
    /// # Errors
    /// `Slots` with `SlotNotCovered` for a slot that would be lost unsaid; a storage error, after which either keyring may
    /// count.
    pub fn rotate(self, drop: &[&str], recovery: Option<&NewSlot<'_>>) -> Result<Rekeyed> {
        let (base, dropped) = self.without_unused_roots(&self.store.keyring)?;
        let base = base.as_ref().unwrap_or(&self.store.keyring);
        let secrets = &self.config.secrets;
        let mut gone: Vec<String> = drop.iter().map(|name| (*name).to_owned()).collect();
        if let Some(recovery) = recovery {
            gone.extend(base.uncovered_slots(secrets).map_err(change_error)?);
            gone.extend(
                base.slots().iter().map(|slot| slot.name.clone()).filter(|name| name == recovery.name),
            );
            gone.sort();
            gone.dedup();
        }
        let names: Vec<&str> = gone.iter().map(String::as_str).collect();
        let more: Vec<NewSlot<'_>> = recovery.into_iter().copied().collect();
        let next = base
            .rotate_adding(secrets, &names, &more, &mut Hedged::new(&self.config))
            .map_err(change_error)?;
        // The key that was active until now goes at once if nothing was written under it.
        let (lean, more_dropped) = self.without_unused_roots(&next)?;
        let dropped = [dropped, more_dropped].concat();
        let added: Vec<&NewSlot<'_>> = more.iter().collect();
        self.write(lean.unwrap_or(next), &added, gone, dropped)
    }

    /// The generation without the retired root keys that nothing names (JK-56); `None`: there are none.
    fn without_unused_roots(&self, keyring: &Keyring) -> Result<(Option<Keyring>, Vec<[u8; 16]>)> {
        let unused: Vec<KeyId> = self.uses.unused(keyring);
        if unused.is_empty() {
            return Ok((None, Vec::new()));
        }
        let next = keyring.drop_roots(&unused, &mut Hedged::new(&self.config));
        Ok((Some(next.map_err(change_error)?), unused.into_iter().map(|id| id.0).collect()))
    }

    /// Writes `next`; it is opened through each of `added` before and after.
    fn write(
        self,
        next: Keyring,
        added: &[&NewSlot<'_>],
        removed_slots: Vec<String>,
        dropped_roots: Vec<[u8; 16]>,
    ) -> Result<Rekeyed> {
        let bytes = next.encode();
        for slot in added {
            let opened = Keyring::open(&bytes, Some(self.store.id()), std::slice::from_ref(slot.secret));
            opened.map_err(|_| JournalError::Misuse("the new keyring does not open through its new slot"))?;
        }
        keyring_files::write_both(&*self.store.disk, &bytes)?;
        for slot in added {
            let secrets = vec![slot.secret.clone()];
            Store::open(&Config { secrets, ..self.config.clone() })?;
        }
        let store = Store { keyring: next, ..self.store };
        Ok(Rekeyed { facts: facts(&store, &self.uses, false), removed_slots, dropped_roots })
    }
}

/// JK-56: a start drops the retired root keys that no file names any more; how many. Both copies hold the same when this
/// is called, and this one writes under neither of those that go. A full disk may leave it to a later start.
///
/// # Errors
/// A storage error, after which either keyring may count.
pub(crate) fn drop_unused_roots(config: &Config, store: &mut Store) -> Result<usize> {
    // Copies that a full disk kept unequal would stop the next start (JK-55).
    const ROOM_BYTES: u64 = 1 << 20;
    let retired = store.keyring.roots().iter().any(|root| root.state() == RootState::Retired);
    if !retired || store.disk.space()?.available < ROOM_BYTES {
        return Ok(0);
    }
    let unused = Uses::look(&*store.disk)?.unused(&store.keyring);
    if unused.is_empty() {
        return Ok(0);
    }
    let next = store.keyring.drop_roots(&unused, &mut Hedged::new(config)).map_err(change_error)?;
    keyring_files::write_both(&*store.disk, &next.encode())?;
    store.keyring = next;
    Ok(unused.len())
}

/// What stands in the way of a change, apart from what every opening can meet.
pub(crate) fn change_error(e: ChangeError) -> JournalError {
    match e {
        ChangeError::RandomUnavailable => JournalError::NoRandomness,
        ChangeError::OutOfMemory => JournalError::OutOfMemory,
        ChangeError::NoSlot
        | ChangeError::TooManySlots
        | ChangeError::BadName
        | ChangeError::DuplicateName
        | ChangeError::BadParameters
        | ChangeError::UnknownSlot
        | ChangeError::LastSlot
        | ChangeError::SlotNotCovered { .. }
        | ChangeError::UnknownRootKey
        | ChangeError::RootKeyActive
        | ChangeError::TooManyRootKeys
        | ChangeError::GenerationExhausted => JournalError::Slots(e),
    }
}
