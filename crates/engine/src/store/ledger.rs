//! The books of a store: who owns which key, how many logical bytes are kept, what may be let go, in what order.
//!
//! Pure: no lock, no clock, no event is kept here. Both stores keep theirs by it, so they admit, refuse, expire and
//! evict alike. Nothing becomes visible through the ledger; what is durable is the store's to know.

mod accounts;
mod listing;

use sealog_events::limits::TERMINAL_JSON_BYTES_MAX;
use sealog_events::{ExecutionId, Identity, Status, Timestamp};

use self::accounts::{Account, Accounts, Order};
use super::{Brief, ListPosition, StoreError};

/// Logical bytes every execution counts besides its events' JSON.
pub(crate) const EXECUTION_BYTES: u64 = 256;

/// Logical bytes that no execution exceeds, whatever its store may: clients refuse a snapshot or a result above 4 MiB.
/// What those say once more beside the events' own text (ids, times, target, error, the terminal event) has its room
/// below that.
const EXECUTION_BYTES_CEILING: u64 = StoreLimits::EXECUTION_BYTES_MAX - (16 << 10);

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
    /// Bytes of frames on the disk; a store without one does not ask. What is kept stays under seven eighths of it.
    pub max_disk_bytes: u64,
}

impl StoreLimits {
    /// The largest `max_execution_bytes` that means anything: more could be kept of an execution, and not read by any
    /// client. An execution that comes within 16 KiB of it is full, since its snapshot says more than its events.
    pub const EXECUTION_BYTES_MAX: u64 = 4 << 20;

    /// What a node keeps in its journal.
    pub const NODE: StoreLimits = StoreLimits {
        max_executions: 100_000,
        max_bytes: 2 << 30,
        max_execution_bytes: 4_194_304,
        max_events: 4096,
        retention_ms: 7 * 86_400_000,
        min_key_age_ms: 600_000,
        max_disk_bytes: 4 << 30,
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
            max_disk_bytes: 268_435_456,
        }
    }
}

/// What is known of an execution that an earlier process left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) created_at: Timestamp,
    pub(crate) identity: Option<Identity>,
    pub(crate) bytes: u64,
    pub(crate) sequence: u64,
    pub(crate) status: Status,
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
    accounts: Accounts,
    /// By creation.
    created: Order,
    ended: Ended,
    /// Expired while they were read, and read no longer.
    released: Vec<ExecutionId>,
    bytes: u64,
}

/// Executions that ended and have not expired, the longest ended first. Those with a key stand apart: the young ones
/// among them are passed over at once.
#[derive(Debug, Default)]
struct Ended {
    keyed: Order,
    keyless: Order,
}

impl Ended {
    fn of(&mut self, account: &Account) -> &mut Order {
        if account.identity.is_some() { &mut self.keyed } else { &mut self.keyless }
    }

    fn first(&self, accounts: &Accounts) -> Option<u32> {
        let firsts = [self.keyed.first(), self.keyless.first()].into_iter().flatten();
        firsts.min_by_key(|slot| accounts[*slot].by_end())
    }

    /// In the order of their ends, those with a key only as far as they ended at or before `keyed_until`.
    fn evictable<'a>(
        &'a self,
        accounts: &'a Accounts,
        keyed_until: Timestamp,
    ) -> impl Iterator<Item = u32> + 'a {
        let end = |slot: &u32| accounts[*slot].by_end();
        let young = move |slot: &u32| end(slot).0 > keyed_until;
        let mut keyed = self.keyed.iter().take_while(move |slot| !young(slot)).peekable();
        let mut keyless = self.keyless.iter().peekable();
        std::iter::from_fn(move || {
            let keyed_first = match (keyed.peek(), keyless.peek()) {
                (Some(keyed), Some(keyless)) => end(keyed) < end(keyless),
                (keyed, _) => keyed.is_some(),
            };
            if keyed_first { keyed.next() } else { keyless.next() }
        })
    }
}

impl Ledger {
    pub(crate) fn new(limits: StoreLimits) -> Ledger {
        let max_execution_bytes = limits.max_execution_bytes.min(EXECUTION_BYTES_CEILING);
        let limits = StoreLimits { max_execution_bytes, ..limits };
        Ledger {
            limits,
            accounts: Accounts::default(),
            created: Order::default(),
            ended: Ended::default(),
            released: Vec::new(),
            bytes: 0,
        }
    }

    /// Whether new calls see the execution: it is kept and has not expired.
    pub(crate) fn visible(&self, id: ExecutionId, now: Timestamp) -> bool {
        self.accounts.get(id).is_some_and(|account| !self.expired(account, now))
    }

    /// The execution that owns the identity's key.
    pub(crate) fn owner(&self, identity: &Identity, now: Timestamp) -> Option<Owner> {
        let account =
            self.accounts.of_key(&identity.key_hash).filter(|account| !self.expired(account, now))?;
        let owned = account.identity?;
        Some(Owner { id: account.id, same_request: owned.fingerprint == identity.fingerprint })
    }

    /// Up to `limit` visible executions behind `after`, oldest first.
    pub(crate) fn list(&self, after: Option<ListPosition>, limit: usize, now: Timestamp) -> Vec<ExecutionId> {
        let accounts = &self.accounts;
        let from = after.map_or(0, |ListPosition { created_at, id }| {
            self.created.behind(&(created_at, id), |slot| accounts[slot].by_creation())
        });
        let behind = self.created.iter().skip(from).map(|slot| &accounts[slot]);
        behind.filter(|account| !self.expired(account, now)).map(|account| account.id).take(limit).collect()
    }

    /// The short facts of an execution that has ended durably; `None` for any other.
    pub(crate) fn ended(&self, id: ExecutionId) -> Option<Brief> {
        let account = self.accounts.get(id).filter(|account| account.ended.is_some())?;
        let Account { created_at, status, sequence: last_sequence, .. } = *account;
        Some(Brief { id, created_at, status, last_sequence })
    }

    /// Removes everything expired that nobody reads, and names it. What is read is seen by its readers only from
    /// here on, and named once they are gone.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<ExecutionId> {
        let mut gone = std::mem::take(&mut self.released);
        while let Some(slot) = self.ended.first(&self.accounts)
            && is_over(self.accounts[slot].by_end().0, self.limits.retention_ms, now)
        {
            let accounts = &self.accounts;
            self.ended.of(&accounts[slot]).remove(slot, |slot| accounts[slot].by_end());
            let account = &mut self.accounts[slot];
            account.over = true;
            if account.pins == 0 {
                gone.push(account.id);
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
        if first.sequence != 1 || first.terminal || self.accounts.get(id).is_some() {
            return Err(StoreError::OutOfOrder);
        }
        if bytes > self.limits.max_execution_bytes || self.limits.max_events == 0 {
            return Err(StoreError::ExecutionFull);
        }
        let evicted = self.make_room(None, 1, bytes, now)?;
        self.add(Account::new(id, created_at, identity, bytes, 1));
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
        let account = self.accounts.get(id).ok_or(StoreError::Unknown)?;
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
        if let Some(account) = self.accounts.get_mut(id) {
            account.sequence = event.sequence;
            account.bytes += event.json_bytes;
            account.closed = event.terminal;
            self.bytes += event.json_bytes;
        }
        Ok(evicted)
    }

    /// Takes back what [`Ledger::admit`] let in: the event did not become durable and never will.
    pub(crate) fn withdraw(&mut self, id: ExecutionId, event: Weight) {
        if let Some(account) = self.accounts.get_mut(id).filter(|account| account.sequence == event.sequence)
        {
            account.sequence -= 1;
            account.bytes -= event.json_bytes;
            account.closed = false;
            self.bytes -= event.json_bytes;
        }
    }

    /// Opens an account as an earlier process left it; limits do not apply to what is there already. `bytes` is
    /// all of it, `ended` the time of its terminal event. A key belongs to the one restored last.
    pub(crate) fn restore(&mut self, id: ExecutionId, kept: Kept) {
        let Kept { created_at, identity, bytes, sequence, status, ended } = kept;
        self.remove(id);
        self.add(Account {
            closed: ended.is_some(),
            ..Account::new(id, created_at, identity, bytes, sequence)
        });
        if let Some(ended) = ended {
            self.settle(id, status, ended);
        }
    }

    /// More of what [`Ledger::restore`] left of an execution that has ended: records behind its terminal event.
    pub(crate) fn restore_more(&mut self, id: ExecutionId, bytes: u64) -> Option<()> {
        let account = self.accounts.get_mut(id)?;
        account.bytes = account.bytes.checked_add(bytes)?;
        self.bytes = self.bytes.checked_add(bytes)?;
        Some(())
    }

    fn add(&mut self, account: Account) {
        self.bytes += account.bytes;
        let slot = self.accounts.insert(account);
        let accounts = &self.accounts;
        self.created.insert(slot, |slot| accounts[slot].by_creation());
    }

    /// How many are kept, ended ones included.
    pub(crate) fn executions(&self) -> usize {
        self.accounts.len()
    }

    /// When the execution was created.
    pub(crate) fn created_at(&self, id: ExecutionId) -> Option<Timestamp> {
        self.accounts.get(id).map(|account| account.created_at)
    }

    /// Notes that the terminal event is durable: from here on the execution may expire and be evicted.
    pub(crate) fn settle(&mut self, id: ExecutionId, status: Status, ended: Timestamp) {
        let Some(slot) = self.accounts.slot(id) else { return };
        let account = &mut self.accounts[slot];
        (account.status, account.ended) = (status, Some(ended));
        let accounts = &self.accounts;
        self.ended.of(&accounts[slot]).insert(slot, |slot| accounts[slot].by_end());
    }

    /// Protects the execution from eviction and removal until the matching [`Ledger::unpin`].
    pub(crate) fn pin(&mut self, id: ExecutionId) {
        if let Some(account) = self.accounts.get_mut(id) {
            account.pins += 1;
        }
    }

    pub(crate) fn unpin(&mut self, id: ExecutionId) {
        if let Some(account) = self.accounts.get_mut(id) {
            account.pins = account.pins.saturating_sub(1);
            if account.over && account.pins == 0 {
                self.released.push(id);
            }
        }
    }

    fn expired(&self, account: &Account, now: Timestamp) -> bool {
        account.over || account.ended.is_some_and(|ended| is_over(ended, self.limits.retention_ms, now))
    }

    /// Evicts the executions that ended longest ago until what is kept takes its share of the disk again, where it takes
    /// `live` bytes of it now: all of them, if it never does. Above the share new work would soon be refused, however
    /// long what is in its way has been over: what runs is expected to take `expected` bytes yet, of which a quarter at
    /// most is made room for. One sixteenth goes at once, so that whole segments are left empty.
    pub(crate) fn relieve(&mut self, live: u64, expected: u64, now: Timestamp) -> Vec<ExecutionId> {
        let sixteenth = self.limits.max_disk_bytes / 16;
        let share = sixteenth * 14 - expected.min(sixteenth * 4);
        if live <= share {
            return Vec::new();
        }
        // What an execution takes of the disk is not known, only what all of them do.
        let too_much = u128::from(self.bytes) * u128::from(live - (share - sixteenth));
        let mut left = u64::try_from(too_much / u128::from(live)).unwrap_or(u64::MAX);
        let mut evicted = Vec::new();
        let keyed_until = Timestamp(now.0.saturating_sub(self.limits.min_key_age_ms));
        for slot in self.ended.evictable(&self.accounts, keyed_until) {
            let account = &self.accounts[slot];
            if left == 0 {
                break;
            }
            if account.pins == 0 {
                left = left.saturating_sub(account.bytes);
                evicted.push(account.id);
            }
        }
        for id in &evicted {
            self.remove(*id);
        }
        evicted
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
        let keyed_until = Timestamp(now.0.saturating_sub(self.limits.min_key_age_ms));
        let mut evictable = self.ended.evictable(&self.accounts, keyed_until);
        while over(count, total)
            && let Some(slot) = evictable.next()
        {
            let account = &self.accounts[slot];
            if account.pins == 0 && Some(account.id) != writing {
                count -= 1;
                total -= account.bytes;
                evicted.push(account.id);
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
        let Some(slot) = self.accounts.slot(id) else { return };
        let accounts = &self.accounts;
        let account = &accounts[slot];
        self.bytes -= account.bytes;
        self.created.remove(slot, |slot| accounts[slot].by_creation());
        // One that has expired went out of that order before.
        if account.ended.is_some() && !account.over {
            self.ended.of(account).remove(slot, |slot| accounts[slot].by_end());
        }
        self.accounts.remove(slot);
    }
}

/// New requests do not see an execution from its expiry time on.
fn is_over(ended: Timestamp, retention_ms: u64, now: Timestamp) -> bool {
    now.0 >= ended.0.saturating_add(retention_ms)
}

#[cfg(test)]
mod tests;
