//! Where the accounts of a ledger lie: each once, found by its execution's id and by its key, and put in order by
//! numbers of four bytes. A node keeps hundreds of thousands of them for days, so their memory is counted (R27).

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::ops::{Index, IndexMut};

use sealog_events::{ExecutionId, Identity, Status, Timestamp};
use sealog_journal::{Slab, SlotTable};

/// One execution's account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) id: ExecutionId,
    pub(super) created_at: Timestamp,
    pub(super) identity: Option<Identity>,
    pub(super) bytes: u64,
    /// The newest sequence that was let in.
    pub(super) sequence: u64,
    /// How it ended; of no meaning before.
    pub(super) status: Status,
    /// The terminal event was let in.
    pub(super) closed: bool,
    /// When the terminal event, now durable, happened.
    pub(super) ended: Option<Timestamp>,
    /// It expired while it was read: nobody else sees it, whatever the clock says later.
    pub(super) over: bool,
    pub(super) pins: u32,
}

const _: () = assert!(size_of::<Account>() == 128);

impl Account {
    pub(super) fn new(
        id: ExecutionId,
        created_at: Timestamp,
        identity: Option<Identity>,
        bytes: u64,
        sequence: u64,
    ) -> Account {
        Account {
            id,
            created_at,
            identity,
            bytes,
            sequence,
            status: Status::Accepted,
            closed: false,
            ended: None,
            over: false,
            pins: 0,
        }
    }

    pub(super) fn by_creation(&self) -> Key {
        (self.created_at, self.id)
    }

    pub(super) fn by_end(&self) -> Key {
        (self.ended.unwrap_or_default(), self.id)
    }
}

/// What accounts are put in order by.
type Key = (Timestamp, ExecutionId);

#[derive(Debug, Default)]
pub(super) struct Accounts {
    all: Slab<Account>,
    by_id: SlotTable,
    /// Owners alone: who has lost its key to a younger one is not here.
    by_key: SlotTable,
    /// Callers choose keys, so they must not be able to choose places.
    hasher: RandomState,
}

impl Accounts {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    fn hash(&self, id: &ExecutionId) -> u64 {
        self.hasher.hash_one(id.as_bytes())
    }

    fn key_hash(&self, slot: u32) -> u64 {
        self.all[slot].identity.map_or(0, |identity| self.hasher.hash_one(identity.key_hash))
    }

    pub(super) fn slot(&self, id: ExecutionId) -> Option<u32> {
        self.by_id.find(self.hash(&id), |slot| self.all[slot].id == id)
    }

    pub(super) fn get(&self, id: ExecutionId) -> Option<&Account> {
        self.slot(id).map(|slot| &self.all[slot])
    }

    pub(super) fn get_mut(&mut self, id: ExecutionId) -> Option<&mut Account> {
        self.slot(id).map(|slot| &mut self.all[slot])
    }

    fn owner(&self, key_hash: &[u8; 32]) -> Option<u32> {
        let own = |slot: u32| self.all[slot].identity.is_some_and(|identity| identity.key_hash == *key_hash);
        self.by_key.find(self.hasher.hash_one(key_hash), own)
    }

    pub(super) fn of_key(&self, key_hash: &[u8; 32]) -> Option<&Account> {
        self.owner(key_hash).map(|slot| &self.all[slot])
    }

    /// An account that is not here; its key is its own from now on.
    pub(super) fn insert(&mut self, account: Account) -> u32 {
        let before = account.identity.and_then(|identity| self.owner(&identity.key_hash));
        if let Some(before) = before {
            self.disown(before);
        }
        let keyed = account.identity.is_some();
        let slot = self.all.insert(account);
        let mut by_id = std::mem::take(&mut self.by_id);
        by_id.insert(self.hash(&self.all[slot].id), slot, |slot| self.hash(&self.all[slot].id));
        self.by_id = by_id;
        if keyed {
            let mut by_key = std::mem::take(&mut self.by_key);
            by_key.insert(self.key_hash(slot), slot, |slot| self.key_hash(slot));
            self.by_key = by_key;
        }
        slot
    }

    /// Takes the key from this account, if it is its own.
    fn disown(&mut self, slot: u32) {
        if self.all[slot].identity.is_some() {
            let mut by_key = std::mem::take(&mut self.by_key);
            by_key.remove(self.key_hash(slot), |held| held == slot, |slot| self.key_hash(slot));
            self.by_key = by_key;
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        // An expired execution that was still read may have lost its key to a younger one.
        self.disown(slot);
        let mut by_id = std::mem::take(&mut self.by_id);
        by_id.remove(
            self.hash(&self.all[slot].id),
            |held| held == slot,
            |slot| self.hash(&self.all[slot].id),
        );
        self.by_id = by_id;
        let nobody = Account::new(ExecutionId::from_bytes([0; 16]), Timestamp(0), None, 0, 0);
        self.all.take(slot, nobody);
    }

    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.all.memory_bytes() + self.by_id.memory_bytes() + self.by_key.memory_bytes()
    }

    #[cfg(test)]
    pub(super) fn owners(&self) -> usize {
        self.by_key.len()
    }
}

impl Index<u32> for Accounts {
    type Output = Account;

    fn index(&self, slot: u32) -> &Account {
        &self.all[slot]
    }
}

impl IndexMut<u32> for Accounts {
    fn index_mut(&mut self, slot: u32) -> &mut Account {
        &mut self.all[slot]
    }
}

/// Accounts by a key that never changes while they are here. What comes is nearly always the newest, and what goes is
/// nearly always the oldest, so both are cheap.
#[derive(Debug, Default)]
pub(super) struct Order {
    slots: VecDeque<u32>,
}

impl Order {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.slots.front().copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().copied()
    }

    /// The place of the first one behind `key`.
    pub(super) fn behind(&self, key: &Key, key_of: impl Fn(u32) -> Key) -> usize {
        self.slots.partition_point(|slot| key_of(*slot) <= *key)
    }

    /// Those in front of `key`, or all of them, from the back.
    pub(super) fn backwards(
        &self,
        key: Option<&Key>,
        key_of: impl Fn(u32) -> Key,
    ) -> impl Iterator<Item = u32> {
        let end = key.map_or(self.slots.len(), |key| self.slots.partition_point(|slot| key_of(*slot) < *key));
        self.slots.range(..end).rev().copied()
    }

    pub(super) fn insert(&mut self, slot: u32, key_of: impl Fn(u32) -> Key) {
        let key = key_of(slot);
        if self.slots.back().is_none_or(|last| key_of(*last) < key) {
            self.slots.push_back(slot);
        } else {
            let place = self.behind(&key, key_of);
            self.slots.insert(place, slot);
        }
    }

    pub(super) fn remove(&mut self, slot: u32, key_of: impl Fn(u32) -> Key) {
        let key = key_of(slot);
        let place = self.slots.partition_point(|held| key_of(*held) < key);
        if self.slots.get(place) == Some(&slot) {
            self.slots.remove(place);
        }
    }
}
