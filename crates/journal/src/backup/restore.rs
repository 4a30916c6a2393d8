//! A journal made from a backup, or from a stopped copy of a data directory: the verified files, and one new segment of
//! a new lineage whose first record says where it came from (JB-7). It is built in a directory that nobody knows yet;
//! the caller gives it its name when this returns.

use std::sync::Arc;

use sealog_disk::{Disk, Folder, Name, io};
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::journal_records::{KIND_RESTORED, Restored as RestoredRecord};
use sealog_journal_format::store::StoreFile;

use super::ends::Ends;
use super::fence::write_one;
use super::files::{copy_exactly, wipe};
use super::take::{covered, length_of, name_of, refuse_damage, writer_of};
use super::view::BackupDisk;
use crate::audit::audit;
use crate::config::Config;
use crate::error::{JournalError, Result};
use crate::head::{self, HeadContent};
use crate::journal::Journal;
use crate::lock;
use crate::record::Ignore;
use crate::recovery::findings::TornTail;
use crate::store::{Store, keyring_name, root_name, store_name};

/// What a restore came to.
#[derive(Clone, Debug)]
pub struct Restored {
    pub store_id: [u8; 16],
    /// Of the new journal.
    pub lineage: [u8; 16],
    pub epoch: u64,
    /// Where the copy ended.
    pub from: EndRecord,
    /// The newest sequence now, that of the `restored` record.
    pub last_sequence: u64,
    pub segments: u64,
    pub bytes: u64,
    /// Streams without a closing record in the copy.
    pub interrupted: u64,
    /// A torn tail that was left behind.
    pub tail: Option<TornTail>,
}

/// Builds in `target` the journal that `source` is a copy of, fenced. `files` is the backup behind `source.disk`, where
/// it is one. Whatever an earlier try left in `target` is removed first.
///
/// # Errors
/// `Corrupt` if the copy is damaged anywhere, `Locked` if a node writes in it; storage errors. What stands in
/// `target` then is no journal that anybody may use.
pub fn restore(source: &Config, files: Option<&BackupDisk>, target: &Arc<dyn Disk>) -> Result<Restored> {
    if let Some(files) = files {
        files.authenticate(&source.secrets)?;
        if let Some(problem) = files.check_files()?.first() {
            let place = problem.place;
            return Err(JournalError::Corrupt { place, row: problem.row, what: problem.what });
        }
    }
    let store = Store::open(source)?;
    let (audit, ends) = audit(source, &mut Ends::default)?;
    if audit.live {
        return Err(lock::held(&*source.disk));
    }
    refuse_damage(&audit)?;
    let from = ends.horizon().map_or(EndRecord::NONE, |reached| reached.end);
    let held = lock::take(&**target, &*source.clock, source.tuning.lock_wait)?;
    begin(&**target)?;
    let (mut segments, mut bytes) = (0, 0);
    for facts in covered(&audit, &from) {
        let unnamed = JournalError::Misuse("a segment without a name");
        let segment = name_of(facts).ok_or(unnamed.clone())?;
        let name = Name::new(Folder::Segments, &segment.file_name()).ok_or(unnamed)?;
        let length = length_of(facts, &segment, &ends);
        copy_exactly(&*store.disk.open(&name)?, length, &**target, &name)?;
        (segments, bytes) = (segments + 1, bytes + length);
    }
    let (lineage, epoch) = writer_of(&audit, &from);
    finish(&store, &**target, &HeadContent::naming(&from, lineage, epoch, false))?;
    drop(held);
    let config = Config { disk: Arc::clone(target), ..source.clone() };
    let (interrupted, last_sequence) = mark(&config, from)?;
    let head = head::read(&**target, &store.keyring)?.slot;
    let (lineage, epoch) = head.map_or((lineage, epoch), |slot| (slot.lineage, slot.epoch));
    Ok(Restored {
        store_id: store.id().0,
        lineage,
        epoch,
        from,
        last_sequence,
        segments: segments + 1,
        bytes,
        interrupted,
        tail: audit.tail,
    })
}

/// An empty target with the folders of a journal.
pub(crate) fn begin(target: &dyn Disk) -> Result<()> {
    wipe(target)?;
    for folder in [Folder::Segments, Folder::Quarantine] {
        target.make_folder(folder)?;
    }
    Ok(())
}

/// What makes a journal of the segments that stand in `target`; `store` last, as in every creation (JD-2).
pub(crate) fn finish(store: &Store, target: &dyn Disk, head: &HeadContent) -> Result<()> {
    for folder in [Folder::Segments, Folder::Quarantine, Folder::Root] {
        target.sync_folder(folder)?;
    }
    let keyring = store.keyring.encode();
    for copy in [0, 1] {
        io::publish(target, &root_name("keyring.tmp"), &keyring_name(copy), &keyring)?;
    }
    let file = head::whole_file(&store.keyring, head);
    io::publish(target, &root_name("head.tmp"), &head::head_name(), &file)?;
    let file = StoreFile { store_id: store.id().0, created_ms: store.created_ms };
    let bytes = file.encode(|part| sealog_seal::sha256(&[part]));
    Ok(io::publish(target, &root_name("store.tmp"), &store_name(), &bytes)?)
}

/// The `restored` record, in a segment of a new lineage and epoch.
fn mark(config: &Config, from: EndRecord) -> Result<(u64, u64)> {
    let mut config = config.clone();
    config.tuning.first_segment_bytes = config.tuning.segment_bytes_min;
    let (journal, report) = Journal::open_manual(&config, &mut Ignore)?;
    let restored_ms = config.clock.wall_ms();
    let body = RestoredRecord { from, restored_ms, fenced: true }.encode().to_vec();
    write_one(&config, &journal, KIND_RESTORED, body)?;
    journal.close()?;
    Ok((report.interrupted.len() as u64, journal.durable_sequence()))
}
