//! The books read backwards: the youngest executions first.

use super::Ledger;
use crate::store::ListPosition;

impl Ledger {
    /// Up to `limit` places of executions created before `before`, the youngest first, also of those that expired: a
    /// bound on what is looked at must not depend on the clock.
    pub(crate) fn places_before(&self, before: Option<ListPosition>, limit: usize) -> Vec<ListPosition> {
        let accounts = &self.accounts;
        let key = before.map(|ListPosition { created_at, id }| (created_at, id));
        let slots = self.created.backwards(key.as_ref(), |slot| accounts[slot].by_creation());
        let places = slots.map(|slot| &accounts[slot]);
        places
            .map(|account| ListPosition { created_at: account.created_at, id: account.id })
            .take(limit)
            .collect()
    }
}
