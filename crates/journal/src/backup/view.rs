//! A backup shown as the data directory that it is a copy of, so that the one scan judges it and every read-only verb
//! reads it as it is. Nothing is written through it, and nothing here says what is damaged but the manifest itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use sealog_disk::{
    Disk, DiskError, DiskLock, Entry, ErrorKind, FileId, FileKind, Folder, LogFile, Name, Operation, Shows,
    Space, io,
};
use sealog_journal_format::Why;
use sealog_journal_format::head::{HeadSlot, slot_offset};
use sealog_journal_format::limits::HEAD_BYTES;
use sealog_journal_format::manifest::{MANIFEST_BYTES_MAX, Manifest, authenticated_part};
use sealog_seal::{KeyId, Keyring, Secret, choose};

use super::files::hash_of;
use super::memory::{MemoryFile, read_only, refuses_changes};
use crate::error::{JournalError, Place, Result};
use crate::head::head_name;
use crate::recovery::findings::Problem;
use crate::store::{keyring_error, keyring_name, root_name, store_name};

pub(crate) fn manifest_name() -> Name {
    root_name("manifest")
}

/// What a backup's directory holds, under the names of a journal's.
#[derive(Debug)]
pub struct BackupDisk {
    disk: Arc<dyn Disk>,
    pub(crate) manifest: Manifest,
    mac: [u8; 32],
    authenticated: Vec<u8>,
    small: BTreeMap<Name, Arc<[u8]>>,
    /// The name in the backup, by the journal's.
    segments: BTreeMap<Name, Name>,
}

impl BackupDisk {
    /// `None` if the directory holds no manifest: it is no backup.
    ///
    /// # Errors
    /// A manifest that does not read back, or of a newer format.
    pub fn open(disk: &Arc<dyn Disk>) -> Result<Option<BackupDisk>> {
        let file = match disk.open(&manifest_name()) {
            Ok(file) => file,
            Err(e) if e.kind == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let bytes = match io::read_to_vec(&*file, MANIFEST_BYTES_MAX) {
            Err(e) if e.kind == ErrorKind::Unsupported => {
                return Err(damaged("it is longer than one can be"));
            }
            other => other?,
        };
        let (manifest, mac) = Manifest::decode(&bytes).map_err(|e| match e.why {
            Why::NewerVersion(version) => JournalError::NewerFormat { file: "manifest".into(), version },
            _ => damaged("it does not read back"),
        })?;
        let authenticated = authenticated_part(&bytes).to_vec();
        let small = small_files(&manifest);
        let mut segments = BTreeMap::new();
        for file in &manifest.files {
            let shown = Name::new(Folder::Segments, &file.segment.file_name());
            let stored = Name::new(Folder::Segments, &file.file_name());
            let (Some(shown), Some(stored)) = (shown, stored) else {
                return Err(damaged("it lists a file that has no name"));
            };
            segments.insert(shown, stored);
        }
        Ok(Some(BackupDisk { disk: Arc::clone(disk), manifest, mac, authenticated, small, segments }))
    }

    /// Checks the manifest's MAC with the keyring that it carries.
    ///
    /// # Errors
    /// `WrongKey`; `CorruptFile` if it is not what the holder of the key wrote.
    pub fn authenticate(&self, secrets: &[Secret]) -> Result<()> {
        let bytes = self.manifest.keyring.as_slice();
        let keyring = choose([Some(bytes), Some(bytes)], None)
            .and_then(|choice| choice.open(secrets))
            .map_err(keyring_error)?;
        self.authenticate_with(&keyring)
    }

    pub(crate) fn authenticate_with(&self, keyring: &Keyring) -> Result<()> {
        let root = keyring
            .root(&KeyId(self.manifest.key_id))
            .ok_or_else(|| damaged("it names a key that the keyring does not hold"))?;
        root.mac_key(b"manifest", &keyring.store_id())
            .verify(&self.authenticated, &self.mac)
            .map_err(|_| damaged("it does not authenticate"))
    }

    /// Reads every file that the manifest lists and holds it against length and SHA-256.
    ///
    /// # Errors
    /// Storage errors; a difference is in the answer.
    pub fn check_files(&self) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        for file in &self.manifest.files {
            let shown = Name::new(Folder::Segments, &file.segment.file_name());
            let what = match shown.as_ref().map(|name| self.open(name)) {
                None => Some((11, "a file of the backup is missing")),
                Some(Err(e)) if e.kind == ErrorKind::NotFound => {
                    Some((11, "a file of the backup is missing"))
                }
                Some(Err(e)) => return Err(e.into()),
                Some(Ok(stored)) if stored.length()? != file.length => {
                    Some((3, "a file of the backup has another length than its manifest says"))
                }
                Some(Ok(stored)) if hash_of(&*stored, file.length)? != file.sha256 => {
                    Some((3, "a file of the backup is not the one that its manifest names"))
                }
                Some(Ok(_)) => None,
            };
            let place = Place { segment: file.segment.first(), ..Place::default() };
            problems.extend(what.map(|(row, what)| Problem { place, row, what }));
        }
        Ok(problems)
    }

    /// When the backup was taken, ms since the epoch.
    pub fn taken_ms(&self) -> u64 {
        self.manifest.taken_ms
    }

    /// Where the copy ends.
    ///
    /// # Errors
    /// None after [`BackupDisk::open`].
    pub(crate) fn head(&self) -> Result<HeadSlot> {
        self.manifest.head().map_err(|_| damaged("its head does not read back"))
    }
}

pub(crate) fn damaged(what: &'static str) -> JournalError {
    JournalError::CorruptFile { file: "manifest".into(), what }
}

fn small_files(manifest: &Manifest) -> BTreeMap<Name, Arc<[u8]>> {
    let mut head = vec![0; HEAD_BYTES];
    for (slot, counter) in manifest.slots.iter().zip([1, 2]) {
        let at = slot_offset(counter) as usize;
        head[at..at + slot.len()].copy_from_slice(slot);
    }
    BTreeMap::from([
        (store_name(), Arc::from(manifest.store.as_slice())),
        (keyring_name(0), Arc::from(manifest.keyring.as_slice())),
        (keyring_name(1), Arc::from(manifest.keyring.as_slice())),
        (head_name(), Arc::from(head)),
    ])
}

type DiskResult<T> = std::result::Result<T, DiskError>;

impl Disk for BackupDisk {
    refuses_changes!();

    /// What a manifest names does not change while a newer backup is taken.
    fn is_locked(&self) -> DiskResult<bool> {
        Ok(false)
    }

    fn check_identity(&self, _files: &[(Name, FileId)]) -> DiskResult<()> {
        self.disk.check_identity(&[])
    }

    fn list(&self, folder: Folder) -> DiskResult<Vec<Entry>> {
        let file = |name: &Name, length| Entry { file: name.file().to_owned(), kind: FileKind::File, length };
        match folder {
            Folder::Root => {
                Ok(self.small.iter().map(|(name, bytes)| file(name, bytes.len() as u64)).collect())
            }
            Folder::Segments => {
                let stored = match self.disk.list(Folder::Segments) {
                    // The whole folder is gone: so is each of the files that the manifest names.
                    Err(e) if e.kind == ErrorKind::NotFound => Vec::new(),
                    listed => listed?,
                };
                let lengths: BTreeMap<&str, u64> =
                    stored.iter().map(|entry| (entry.file.as_str(), entry.length)).collect();
                let shown = self.segments.iter().filter_map(|(name, stored)| {
                    lengths.get(stored.file()).map(|length| file(name, *length))
                });
                Ok(shown.collect())
            }
            Folder::Quarantine => Err(DiskError::new(Operation::List, ErrorKind::NotFound, None)),
        }
    }

    fn open(&self, name: &Name) -> DiskResult<Arc<dyn LogFile>> {
        if let Some(bytes) = self.small.get(name) {
            return Ok(Arc::new(MemoryFile::new(Arc::clone(bytes))));
        }
        match self.segments.get(name) {
            Some(stored) => self.disk.open(stored),
            None => Err(DiskError::new(Operation::Open, ErrorKind::NotFound, Some(name))),
        }
    }

    fn space(&self) -> DiskResult<Space> {
        self.disk.space()
    }

    fn shows(&self) -> Shows {
        Shows::Copy
    }
}
