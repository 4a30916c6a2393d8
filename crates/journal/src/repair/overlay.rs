//! A data directory whose `store` is gone, shown with the one that its keyring names. Nothing is written through it.

use std::sync::Arc;

use sealog_disk::{
    Disk, DiskError, DiskLock, Entry, FileId, FileKind, Folder, LogFile, Name, Operation, Shows, Space,
};
use sealog_journal_format::store::StoreFile;
use sealog_seal::choose;

use crate::backup::{MemoryFile, read_only, refuses_changes};
use crate::create::look;
use crate::error::{JournalError, Result};
use crate::store::{keyring_error, keyring_name, read_optional, store_name};

/// The disk itself, or, where `store` is missing or damaged and a copy of the keyring reads, one that shows what the
/// keyring says.
///
/// # Errors
/// There is no journal; nothing tells whose the files are; a newer format.
pub fn salvage_view(disk: &Arc<dyn Disk>) -> Result<Arc<dyn Disk>> {
    match look(&**disk) {
        Err(JournalError::Missing { file } | JournalError::CorruptFile { file, .. }) if file == "store" => {}
        Err(e) => return Err(e),
        Ok(_) => return Ok(Arc::clone(disk)),
    }
    let copies = [read_optional(&**disk, &keyring_name(0))?, read_optional(&**disk, &keyring_name(1))?];
    let choice = choose([copies[0].as_deref(), copies[1].as_deref()], None).map_err(keyring_error)?;
    // When it was created nobody knows any more.
    let file = StoreFile { store_id: choice.outline.store_id.0, created_ms: 0 };
    let bytes = file.encode(|part| sealog_seal::sha256(&[part]));
    Ok(Arc::new(Overlay { disk: Arc::clone(disk), store: Arc::from(bytes.as_slice()) }))
}

#[derive(Debug)]
struct Overlay {
    disk: Arc<dyn Disk>,
    store: Arc<[u8]>,
}

type DiskResult<T> = std::result::Result<T, DiskError>;

impl Disk for Overlay {
    refuses_changes!();

    fn is_locked(&self) -> DiskResult<bool> {
        self.disk.is_locked()
    }

    fn check_identity(&self, _files: &[(Name, FileId)]) -> DiskResult<()> {
        self.disk.check_identity(&[])
    }

    fn list(&self, folder: Folder) -> DiskResult<Vec<Entry>> {
        let mut entries = self.disk.list(folder)?;
        if folder == Folder::Root {
            let file = store_name().file().to_owned();
            entries.retain(|entry| entry.file != file);
            entries.push(Entry { file, kind: FileKind::File, length: self.store.len() as u64 });
        }
        Ok(entries)
    }

    fn open(&self, name: &Name) -> DiskResult<Arc<dyn LogFile>> {
        if *name == store_name() {
            return Ok(Arc::new(MemoryFile::new(Arc::clone(&self.store))));
        }
        self.disk.open(name)
    }

    fn space(&self) -> DiskResult<Space> {
        self.disk.space()
    }

    fn shows(&self) -> Shows {
        Shows::MadeUp
    }
}
