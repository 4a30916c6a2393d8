//! A journal opened for reading in this process: a stopped one, or a backup of one, with its index and its readers and
//! without a writer. No lock is taken and no byte is changed, so it works on read-only media.

use super::{Build, assemble, fill_catalog, verdict};
use crate::config::Config;
use crate::error::{JournalError, Result};
use crate::head::{self, HeadWriter};
use crate::journal::Journal;
use crate::lock;
use crate::record::Replay;
use crate::recovery::scan::{self, ScanOptions};
use crate::shared;
use crate::store::Store;

impl Journal {
    /// Opens for reading what nobody writes. Every record is handed to `replay` in order; a torn tail is left out and left
    /// where it is. Whatever is submitted is refused as `Closed`.
    ///
    /// # Errors
    /// `Locked` beside a writer; damage, as for an open for writing.
    pub fn open_reading(config: &Config, replay: &mut dyn Replay) -> Result<Journal> {
        lock::nobody_holds(&*config.disk)?;
        let store = Store::open(config)?;
        let head = head::read(&*store.disk, &store.keyring)?;
        let mut build = Build::new(replay);
        let options = ScanOptions {
            uncached_last: true,
            threads: config.tuning.check_threads,
            ..ScanOptions::default()
        };
        let scan = scan::scan(&store, &head, options, &mut build)?;
        verdict(&scan, &head)?;
        let mut catalog = build.catalog;
        let epoch = scan.epoch();
        fill_catalog(&mut catalog, &scan, epoch, config.clock.monotonic());
        let writer = HeadWriter::idle(&*store.disk, &store.keyring, &head)?;
        let journal = assemble(config, store, writer, &scan, catalog, epoch, None)?;
        let shared = &journal.inner.shared;
        shared::lock(&shared.status).closed = true;
        shared.queue.end(JournalError::Closed);
        shared.completion.end(JournalError::Closed);
        Ok(journal)
    }
}
