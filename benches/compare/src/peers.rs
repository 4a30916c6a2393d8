//! The other stores, each behind [`Sink`]. All of them keep an event under the same key, so that an execution's
//! events can be read in order from each; all of them make a group durable before they answer.

mod fjall;
mod okaywal;
mod redb;
pub mod sqlite;

use std::path::Path;

use anyhow::{Result, bail};
use sealog_benches::handover::Sink;

/// The store of that name, and how many events one commit may hold.
pub fn start(system: &str, folder: &Path) -> Result<(Box<dyn Sink>, usize)> {
    Ok(match system {
        "sqlite-1txn" if !sqlite::ENCRYPTED => (Box::new(sqlite::Sqlite::open(folder)?), 1),
        "sqlite-group" if !sqlite::ENCRYPTED => (Box::new(sqlite::Sqlite::open(folder)?), usize::MAX),
        "sqlcipher-group" if sqlite::ENCRYPTED => (Box::new(sqlite::Sqlite::open(folder)?), usize::MAX),
        "redb-group" => (Box::new(redb::Redb::open(folder)?), usize::MAX),
        "fjall-group" => (Box::new(fjall::Fjall::open(folder)?), usize::MAX),
        "okaywal-group" => (Box::new(okaywal::OkayWal::open(folder)?), usize::MAX),
        _ => bail!("no system is called {system} in this build"),
    })
}
