//! redb with immediate durability: one transaction a group.

use std::path::Path;

use anyhow::Result;
use redb::{Database, Durability, TableDefinition};
use sealog_benches::handover::Sink;
use sealog_benches::workload::Keyed;

const EVENTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("events");

pub struct Redb {
    database: Database,
}

impl Redb {
    pub fn open(folder: &Path) -> Result<Redb> {
        Ok(Redb { database: Database::create(folder.join("events.redb"))? })
    }
}

impl Sink for Redb {
    fn commit(&mut self, group: &[Keyed]) -> Result<u64> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            let mut table = transaction.open_table(EVENTS)?;
            for event in group {
                table.insert(&event.key[..], &event.json[..])?;
            }
        }
        transaction.commit()?;
        Ok(0)
    }
}
