//! SQLite in WAL mode with `synchronous=FULL`: one fsync of the log for each transaction. With the feature
//! `sqlcipher` the same under SQLCipher, with a raw key: no password is stretched at the open.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, params};
use sealog_benches::handover::Sink;
use sealog_benches::workload::Keyed;

pub const ENCRYPTED: bool = cfg!(feature = "sqlcipher");
const KEY: &str = "PRAGMA key = \"x'2DD29CA851E7B56E4697B0E1F08507293D761A05CE4D1B628663F411A8086D99'\"";
/// One tree, ordered by execution and number: no row id, no second index.
const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS events (key BLOB PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID";
const INSERT: &str = "INSERT INTO events (key, json) VALUES (?1, ?2)";

pub struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    pub fn open(folder: &Path) -> Result<Sqlite> {
        let connection = Connection::open(folder.join("events.db"))?;
        if ENCRYPTED {
            connection.execute_batch(KEY)?;
        }
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        anyhow::ensure!(mode == "wal", "no write-ahead log: {mode}");
        connection.execute_batch("PRAGMA synchronous = FULL")?;
        connection.execute_batch(TABLE)?;
        Ok(Sqlite { connection })
    }

    /// Reads every event in order; their number and bytes.
    pub fn scan(&self) -> Result<(u64, u64)> {
        let mut statement = self.connection.prepare("SELECT key, json FROM events ORDER BY key")?;
        let mut rows = statement.query([])?;
        let (mut events, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?.as_blob().context("a key is a blob")?;
            let json = row.get_ref(1)?.as_blob().context("an event is a blob")?;
            events += 1;
            bytes += (key.len() + json.len()) as u64;
        }
        Ok((events, bytes))
    }
}

impl Sink for Sqlite {
    fn commit(&mut self, group: &[Keyed]) -> Result<u64> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for event in group {
                insert.execute(params![&event.key[..], &event.json[..]])?;
            }
        }
        transaction.commit()?;
        Ok(0)
    }
}
