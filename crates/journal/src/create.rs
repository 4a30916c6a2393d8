//! Making a journal. `store` is written last and is the commit point (JD-2): until it stands there is no journal,
//! and what an interrupted creation left behind is completed or written anew.

use std::sync::Arc;

use sealog_disk::{Clock, Disk, Entropy, Folder, io};
use sealog_journal_format::manifest::BackupFile;
use sealog_journal_format::store::StoreFile;
use sealog_seal::{ChangeError, Keyring, NewSlot, RandomUnavailable, Secret, SlotParams, StoreId, choose};

use crate::error::{JournalError, Result};
use crate::head;
use crate::store::{self, keyring_name, root_name, store_name};

/// What stands in a data directory, without any key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing of a journal.
    Empty,
    /// An interrupted creation; the store id of its keyring, where that reads.
    Leftovers { store_id: Option<StoreId> },
    /// A journal, possibly a damaged one.
    Journal { store_id: StoreId },
}

/// Looks without changing anything.
///
/// # Errors
/// `NoManifest` for what a first backup left that did not come to its manifest (JB-4): nothing yet, and no place for a
/// journal. `Missing` if `store` is not there beside segments or a head that names one (JD-3); `CorruptFile`, `NewerFormat`
/// for a `store` that does not read.
pub fn look(disk: &dyn Disk) -> Result<Contents> {
    let data = store::has_data(disk)?;
    match store::read_store(disk, data) {
        Ok(file) => return Ok(Contents::Journal { store_id: StoreId(file.store_id) }),
        Err(JournalError::NoJournal | JournalError::Missing { .. }) if is_unfinished_backup(disk)? => {
            return Err(JournalError::NoManifest);
        }
        Err(JournalError::NoJournal) => {}
        Err(e) => return Err(e),
    }
    let head = store::read_optional(disk, &head::head_name())?;
    let copies =
        [store::read_optional(disk, &keyring_name(0))?, store::read_optional(disk, &keyring_name(1))?];
    if copies.iter().all(Option::is_none) {
        return Ok(if head.is_some() { Contents::Leftovers { store_id: None } } else { Contents::Empty });
    }
    let outline = choose([copies[0].as_deref(), copies[1].as_deref()], None).map(|c| c.outline.store_id);
    Ok(Contents::Leftovers { store_id: outline.ok() })
}

/// Files of a backup and nothing of a journal, nor a manifest that would name them.
fn is_unfinished_backup(disk: &dyn Disk) -> Result<bool> {
    let journals = |file: &str| file == "head" || file == "manifest" || file.starts_with("keyring.");
    if store::list(disk, Folder::Root)?.iter().any(|entry| journals(&entry.file)) {
        return Ok(false);
    }
    let segments = store::list(disk, Folder::Segments)?;
    let named = |file: &str| file.ends_with(".seg") || file.ends_with(".tail");
    let mut files = segments.iter().map(|entry| entry.file.as_str()).filter(|file| named(file)).peekable();
    Ok(files.peek().is_some() && files.all(BackupFile::is_file_name))
}

/// What a new journal is made from.
#[derive(Debug)]
pub struct Create<'a> {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub store_id: StoreId,
    pub slot_name: &'a str,
    pub secret: &'a Secret,
    /// Used only for a passphrase.
    pub params: SlotParams,
}

impl Create<'_> {
    /// Makes the journal. `before_commit` runs after keyrings and head are durable and before `store`: there the
    /// caller makes its key file durable.
    ///
    /// Leftovers that carry `store_id` and open with `secret` are completed; all others are written anew.
    ///
    /// # Errors
    /// `AlreadyExists` if there is a journal; `Locked`; whatever the disk said. Until the last step nothing that
    /// counts as a journal exists.
    pub fn run(&self, before_commit: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let disk = &*self.disk;
        let _lock = crate::lock::take(disk, &*self.clock, std::time::Duration::ZERO)?;
        let leftovers = match look(disk)? {
            Contents::Journal { .. } => return Err(JournalError::AlreadyExists),
            Contents::Empty => None,
            Contents::Leftovers { store_id } => store_id,
        };
        let keyring = match leftovers.filter(|id| *id == self.store_id) {
            Some(_) => self.leftover_keyring()?,
            None => None,
        };
        let keyring = match keyring {
            Some(keyring) => keyring,
            None => self.new_keyring()?,
        };
        let bytes = keyring.encode();
        for copy in [0, 1] {
            io::publish(disk, &root_name("keyring.tmp"), &keyring_name(copy), &bytes)?;
        }
        io::publish(disk, &root_name("head.tmp"), &head::head_name(), &head::first_file(&keyring))?;
        disk.make_folder(Folder::Segments)?;
        disk.make_folder(Folder::Quarantine)?;
        disk.sync_folder(Folder::Root)?;
        before_commit()?;
        let file = StoreFile { store_id: self.store_id.0, created_ms: self.clock.wall_ms() };
        let bytes = file.encode(|part| sealog_seal::sha256(&[part]));
        io::publish(disk, &root_name("store.tmp"), &store_name(), &bytes).inspect_err(|_| {
            // The lock is still held, and nobody was told of a journal: whoever is told of a failure finds none, as far as
            // that can be. After a crash there may be one all the same, whole.
            let _ = disk.remove(&store_name());
        })?;
        Ok(())
    }

    fn leftover_keyring(&self) -> Result<Option<Keyring>> {
        let copies = [
            store::read_optional(&*self.disk, &keyring_name(0))?,
            store::read_optional(&*self.disk, &keyring_name(1))?,
        ];
        let opened = choose([copies[0].as_deref(), copies[1].as_deref()], Some(self.store_id))
            .and_then(|choice| choice.open(std::slice::from_ref(self.secret)));
        Ok(opened.ok())
    }

    fn new_keyring(&self) -> Result<Keyring> {
        let slot = NewSlot { name: self.slot_name, secret: self.secret, params: self.params };
        let mut random = |buf: &mut [u8]| self.entropy.fill(buf).map_err(|_| RandomUnavailable);
        Keyring::create(self.store_id, &[slot], &mut random).map_err(|e| match e {
            ChangeError::RandomUnavailable => JournalError::NoRandomness,
            ChangeError::OutOfMemory => JournalError::OutOfMemory,
            _ => JournalError::Misuse("the key slot is not acceptable"),
        })
    }
}
