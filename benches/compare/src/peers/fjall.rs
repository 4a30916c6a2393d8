//! fjall: one batch a group, its journal synced by fdatasync.

use std::path::Path;

use anyhow::Result;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use sealog_benches::handover::Sink;
use sealog_benches::workload::Keyed;

pub struct Fjall {
    database: Database,
    events: Keyspace,
}

impl Fjall {
    pub fn open(folder: &Path) -> Result<Fjall> {
        let database = Database::builder(folder.join("events")).open()?;
        let events = database.keyspace("events", KeyspaceCreateOptions::default)?;
        Ok(Fjall { database, events })
    }
}

impl Sink for Fjall {
    fn commit(&mut self, group: &[Keyed]) -> Result<u64> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for event in group {
            batch.insert(&self.events, &event.key[..], &event.json[..]);
        }
        batch.commit()?;
        Ok(0)
    }
}
