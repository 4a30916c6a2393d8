//! The books of a store: who owns which key, how many logical bytes are kept, what may be let go, in what order.
//!
//! Pure: no lock, no clock, no event is kept here. Both stores keep theirs by it, so they admit, refuse, expire and
//! evict alike. Nothing becomes visible through the ledger; what is durable is the store's to know.

use std::collections::{BTreeSet, HashMap};

use sealog_events::limits::TERMINAL_JSON_BYTES_MAX;
use sealog_events::{ExecutionId, Identity, Timestamp};

use super::{ListPosition, StoreError};

/// Logical bytes every execution counts besides its events' JSON.
pub(crate) const EXECUTION_BYTES: u64 = 256;

/// What a store keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Executions, terminal ones included.
    pub max_executions: usize,
    /// Logical bytes of all executions: 256 each and the UTF-8 bytes of every event's JSON.
    pub max_bytes: u64,
    /// Logical bytes of one execution.
    pub max_execution_bytes: u64,
    /// Events of one execution that are not terminal.
    pub max_events: u64,
    /// How long an execution is kept after its terminal event; `u64::MAX` keeps it.
    pub retention_ms: u64,
    /// How long after its terminal event an execution with a key is safe from eviction: whoever asks again for it
    /// in that time must not pay twice, so a full store refuses new work instead. 0 protects nothing.
    pub min_key_age_ms: u64,
}

impl StoreLimits {
    /// What a node keeps in its journal.
    pub const NODE: StoreLimits = StoreLimits {
        max_executions: 100_000,
        max_bytes: 2 << 30,
        max_execution_bytes: 4_194_304,
        max_events: 4096,
        retention_ms: 7 * 86_400_000,
        min_key_age_ms: 600_000,
    };
}

impl Default for StoreLimits {
    fn default() -> StoreLimits {
        StoreLimits {
            max_executions: 1000,
            max_bytes: 67_108_864,
            max_execution_bytes: 4_194_304,
            max_events: 4096,
            retention_ms: 86_400_000,
            min_key_age_ms: 0,
        }
    }
}

/// One execution's account.
#[derive(Clone, Debug)]
struct Account {
    created_at: Timestamp,
    identity: Option<Identity>,
    bytes: u64,
    /// The newest sequence that was let in.
    sequence: u64,
    /// The terminal event was let in.
    closed: bool,
    /// When the terminal event, now durable, happened.
    ended: Option<Timestamp>,
    /// It expired while it was read: nobody else sees it, whatever the clock says later.
    over: bool,
    pins: u32,
}

impl Account {
    fn new(
        created_at: Timestamp,
        identity: Option<Identity>,
        bytes: u64,
        sequence: u64,
        closed: bool,
    ) -> Account {
        Account { created_at, identity, bytes, sequence, closed, ended: None, over: false, pins: 0 }
    }
}

/// What is known of an execution that an earlier process left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) created_at: Timestamp,
    pub(crate) identity: Option<Identity>,
    pub(crate) bytes: u64,
    pub(crate) sequence: u64,
    pub(crate) ended: Option<Timestamp>,
}

/// Who owns a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) id: ExecutionId,
    pub(crate) same_request: bool,
}

/// An event as the ledger sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    pub(crate) sequence: u64,
    pub(crate) terminal: bool,
    pub(crate) json_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    limits: StoreLimits,
    accounts: HashMap<ExecutionId, Account>,
    keys: HashMap<[u8; 32], ExecutionId>,
    created: BTreeSet<ListPosition>,
    ended: Ended,
    /// Expired while they were read, and read no longer.
    released: Vec<ExecutionId>,
    bytes: u64,
}

/// Executions that ended and have not expired, the longest ended first. Those with a key stand apart: the young ones
/// among them are passed over at once.
#[derive(Debug, Default)]
struct Ended {
    keyed: BTreeSet<(Timestamp, ExecutionId)>,
    keyless: BTreeSet<(Timestamp, ExecutionId)>,
}

impl Ended {
    fn of(&mut self, account: &Account) -> &mut BTreeSet<(Timestamp, ExecutionId)> {
        if account.identity.is_some() { &mut self.keyed } else { &mut self.keyless }
    }

    fn first(&self) -> Option<(Timestamp, ExecutionId)> {
        [self.keyed.first(), self.keyless.first()].into_iter().flatten().min().copied()
    }

    /// In the order of their ends, those with a key only as far as they ended at or before `keyed_until`.
    fn evictable(&self, keyed_until: Timestamp) -> impl Iterator<Item = ExecutionId> {
        let mut keyed = self.keyed.iter().take_while(move |(ended, _)| *ended <= keyed_until).peekable();
        let mut keyless = self.keyless.iter().peekable();
        std::iter::from_fn(move || {
            let keyed_first = match (keyed.peek(), keyless.peek()) {
                (Some(keyed), Some(keyless)) => keyed < keyless,
                (keyed, _) => keyed.is_some(),
            };
            let next = if keyed_first { keyed.next() } else { keyless.next() };
            next.map(|(_, id)| *id)
        })
    }
}

impl Ledger {
    pub(crate) fn new(limits: StoreLimits) -> Ledger {
        Ledger {
            limits,
            accounts: HashMap::new(),
            keys: HashMap::new(),
            created: BTreeSet::new(),
            ended: Ended::default(),
            released: Vec::new(),
            bytes: 0,
        }
    }

    /// Whether new calls see the execution: it is kept and has not expired.
    pub(crate) fn visible(&self, id: ExecutionId, now: Timestamp) -> bool {
        self.accounts.get(&id).is_some_and(|account| !self.expired(account, now))
    }

    /// The execution that owns the identity's key.
    pub(crate) fn owner(&self, identity: &Identity, now: Timestamp) -> Option<Owner> {
        let id = *self.keys.get(&identity.key_hash)?;
        let account = self.accounts.get(&id).filter(|account| !self.expired(account, now))?;
        let owned = account.identity?;
        Some(Owner { id, same_request: owned.fingerprint == identity.fingerprint })
    }

    /// Up to `limit` visible executions behind `after`, oldest first.
    pub(crate) fn list(&self, after: Option<ListPosition>, limit: usize, now: Timestamp) -> Vec<ExecutionId> {
        let behind = |position: &&ListPosition| after.is_none_or(|after| **position > after);
        let from =
            after.unwrap_or(ListPosition { created_at: Timestamp(0), id: ExecutionId::from_bytes([0; 16]) });
        self.created
            .range(from..)
            .filter(behind)
            .map(|position| position.id)
            .filter(|id| self.visible(*id, now))
            .take(limit)
            .collect()
    }

    /// Removes everything expired that nobody reads, and names it. What is read is seen by its readers only from
    /// here on, and named once they are gone.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<ExecutionId> {
        let mut gone = std::mem::take(&mut self.released);
        while let Some((ended, id)) = self.ended.first()
            && is_over(ended, self.limits.retention_ms, now)
        {
            let Some(account) = self.accounts.get_mut(&id) else { break };
            self.ended.of(account).remove(&(ended, id));
            account.over = true;
            if account.pins == 0 {
                gone.push(id);
            }
        }
        for id in &gone {
            self.remove(*id);
        }
        gone
    }

    /// Opens an account for an execution and its first event, making room if need be. Names what was evicted.
    ///
    /// # Errors
    /// The first event exceeds the execution's own limit, or there is no room and not enough that may be evicted;
    /// nothing was evicted then.
    pub(crate) fn open(
        &mut self,
        id: ExecutionId,
        created_at: Timestamp,
        identity: Option<Identity>,
        first: Weight,
        now: Timestamp,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let bytes = EXECUTION_BYTES + first.json_bytes;
        if first.sequence != 1 || first.terminal || self.accounts.contains_key(&id) {
            return Err(StoreError::OutOfOrder);
        }
        if bytes > self.limits.max_execution_bytes || self.limits.max_events == 0 {
            return Err(StoreError::ExecutionFull);
        }
        let evicted = self.make_room(None, 1, bytes, now)?;
        if let Some(identity) = &identity {
            self.keys.insert(identity.key_hash, id);
        }
        self.created.insert(ListPosition { created_at, id });
        self.bytes += bytes;
        let account = Account::new(created_at, identity, bytes, 1, false);
        self.accounts.insert(id, account);
        Ok(evicted)
    }

    /// Lets the next event of an execution in, making room if need be. Names what was evicted.
    ///
    /// # Errors
    /// The execution is not kept or has its terminal event, the sequence is not the next one, or a limit would be
    /// exceeded. Nothing was evicted and nothing counted then.
    pub(crate) fn admit(
        &mut self,
        id: ExecutionId,
        event: Weight,
        now: Timestamp,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let account = self.accounts.get(&id).ok_or(StoreError::Unknown)?;
        if account.closed {
            return Err(StoreError::Ended);
        }
        if event.sequence != account.sequence + 1 {
            return Err(StoreError::OutOfOrder);
        }
        let evicted = if event.terminal {
            // The reserve: an execution can always end, whatever else is full.
            if event.json_bytes > TERMINAL_JSON_BYTES_MAX as u64 {
                return Err(StoreError::TerminalTooLarge);
            }
            Vec::new()
        } else {
            let full = account.sequence >= self.limits.max_events
                || account.bytes + event.json_bytes > self.limits.max_execution_bytes;
            if full {
                return Err(StoreError::ExecutionFull);
            }
            self.make_room(Some(id), 0, event.json_bytes, now)?
        };
        if let Some(account) = self.accounts.get_mut(&id) {
            account.sequence = event.sequence;
            account.bytes += event.json_bytes;
            account.closed = event.terminal;
            self.bytes += event.json_bytes;
        }
        Ok(evicted)
    }

    /// Takes back what [`Ledger::admit`] let in: the event did not become durable and never will.
    pub(crate) fn withdraw(&mut self, id: ExecutionId, event: Weight) {
        if let Some(account) = self.accounts.get_mut(&id).filter(|account| account.sequence == event.sequence)
        {
            account.sequence -= 1;
            account.bytes -= event.json_bytes;
            account.closed = false;
            self.bytes -= event.json_bytes;
        }
    }

    /// Opens an account as an earlier process left it; limits do not apply to what is there already. `bytes` is
    /// all of it, `ended` the time of its terminal event.
    pub(crate) fn restore(&mut self, id: ExecutionId, kept: Kept) {
        let Kept { created_at, identity, bytes, sequence, ended } = kept;
        if let Some(identity) = &identity {
            self.keys.insert(identity.key_hash, id);
        }
        self.created.insert(ListPosition { created_at, id });
        self.bytes += bytes;
        let closed = ended.is_some();
        self.accounts.insert(id, Account::new(created_at, identity, bytes, sequence, closed));
        if let Some(ended) = ended {
            self.settle(id, ended);
        }
    }

    /// When the execution was created.
    pub(crate) fn created_at(&self, id: ExecutionId) -> Option<Timestamp> {
        self.accounts.get(&id).map(|account| account.created_at)
    }

    /// Notes that the terminal event is durable: from here on the execution may expire and be evicted.
    pub(crate) fn settle(&mut self, id: ExecutionId, ended: Timestamp) {
        if let Some(account) = self.accounts.get_mut(&id) {
            account.ended = Some(ended);
            self.ended.of(account).insert((ended, id));
        }
    }

    /// Protects the execution from eviction and removal until the matching [`Ledger::unpin`].
    pub(crate) fn pin(&mut self, id: ExecutionId) {
        if let Some(account) = self.accounts.get_mut(&id) {
            account.pins += 1;
        }
    }

    pub(crate) fn unpin(&mut self, id: ExecutionId) {
        if let Some(account) = self.accounts.get_mut(&id) {
            account.pins = account.pins.saturating_sub(1);
            if account.over && account.pins == 0 {
                self.released.push(id);
            }
        }
    }

    fn expired(&self, account: &Account, now: Timestamp) -> bool {
        account.over || account.ended.is_some_and(|ended| is_over(ended, self.limits.retention_ms, now))
    }

    /// Evicts the executions that ended longest ago until so much more fits. Never `writing`, an active one, one
    /// that is read, or one whose key is too young.
    fn make_room(
        &mut self,
        writing: Option<ExecutionId>,
        executions: usize,
        bytes: u64,
        now: Timestamp,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let mut count = self.accounts.len() + executions;
        let mut total = self.bytes + bytes;
        let over =
            |count: usize, total: u64| count > self.limits.max_executions || total > self.limits.max_bytes;
        let mut evicted = Vec::new();
        let mut evictable = self.ended.evictable(Timestamp(now.0.saturating_sub(self.limits.min_key_age_ms)));
        while over(count, total)
            && let Some(id) = evictable.next()
        {
            if let Some(account) = self.accounts.get(&id).filter(|account| account.pins == 0)
                && Some(id) != writing
            {
                count -= 1;
                total -= account.bytes;
                evicted.push(id);
            }
        }
        drop(evictable);
        if over(count, total) {
            return Err(StoreError::Full);
        }
        for id in &evicted {
            self.remove(*id);
        }
        Ok(evicted)
    }

    /// Closes an account: its key is free and its bytes are gone.
    pub(crate) fn remove(&mut self, id: ExecutionId) {
        let Some(account) = self.accounts.remove(&id) else { return };
        self.bytes -= account.bytes;
        self.created.remove(&ListPosition { created_at: account.created_at, id });
        if let Some(ended) = account.ended {
            self.ended.of(&account).remove(&(ended, id));
        }
        // An expired execution that was still read may have lost its key to a newer one.
        if let Some(identity) = account.identity
            && self.keys.get(&identity.key_hash) == Some(&id)
        {
            self.keys.remove(&identity.key_hash);
        }
    }
}

/// New requests do not see an execution from its expiry time on.
fn is_over(ended: Timestamp, retention_ms: u64, now: Timestamp) -> bool {
    now.0 >= ended.0.saturating_add(retention_ms)
}

#[cfg(test)]
mod tests;
