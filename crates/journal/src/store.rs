//! What every verb opens first: the `store` file and the keyring. Reading only; a damaged keyring copy is levelled
//! by the writer after its verdict.

use std::sync::Arc;

use sealog_disk::{Disk, ErrorKind, FileKind, Folder, Name, io};
use sealog_journal_format::Why;
use sealog_journal_format::names::{self, SegmentName};
use sealog_journal_format::store::StoreFile;
use sealog_seal::{CopyState, KEYRING_BYTES_MAX, Keyring, KeyringError, StoreId, choose};

use crate::codec::Codec;
use crate::config::Config;
use crate::error::{JournalError, Result};
use crate::head;

pub(crate) fn root_name(file: &str) -> Name {
    Name::new(Folder::Root, file).expect("a constant name is valid")
}

pub(crate) fn store_name() -> Name {
    root_name("store")
}

pub(crate) fn keyring_name(copy: usize) -> Name {
    root_name(if copy == 0 { "keyring.0" } else { "keyring.1" })
}

/// How one copy of the keyring was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyringCopy {
    Good,
    /// Intact and of an older generation than the other.
    Stale,
    Damaged,
    Missing,
}

#[derive(Debug)]
pub(crate) struct Store {
    pub disk: Arc<dyn Disk>,
    pub keyring: Keyring,
    pub codec: Arc<dyn Codec>,
    pub created_ms: u64,
    pub copies: [KeyringCopy; 2],
}

impl Store {
    pub fn id(&self) -> StoreId {
        self.keyring.store_id()
    }

    /// Opens `store` and the keyring; the order of tests is that of `spec/keys.md`.
    pub fn open(config: &Config) -> Result<Store> {
        let disk = Arc::clone(&config.disk);
        let (store, copies) = read_keyring(&*disk)?;
        let choice = choose([copies[0].as_deref(), copies[1].as_deref()], Some(StoreId(store.store_id)))
            .map_err(keyring_error)?;
        let keyring = choice.open(&config.secrets).map_err(keyring_error)?;
        let state = |at: usize| match (choice.copies[at], choice.copies[choice.used]) {
            (CopyState::Missing, _) => KeyringCopy::Missing,
            (CopyState::Damaged { .. }, _) => KeyringCopy::Damaged,
            (here, used) if here == used => KeyringCopy::Good,
            (CopyState::Intact { .. }, _) => KeyringCopy::Stale,
        };
        let copies = [state(0), state(1)];
        let codec = Arc::clone(&config.codec);
        Ok(Store { disk, keyring, codec, created_ms: store.created_ms, copies })
    }

    /// The published segments by number. Anything in the folder that is neither a segment nor a known companion
    /// is left alone.
    ///
    /// # Errors
    /// A segment that is no regular file.
    pub fn segment_files(&self) -> Result<SegmentFiles> {
        self.segment_files_without(&[])
    }

    /// As [`Store::segment_files`], as if some of them were not there.
    pub fn segment_files_without(&self, absent: &[&Name]) -> Result<SegmentFiles> {
        let mut files = Vec::new();
        for entry in list(&*self.disk, Folder::Segments)? {
            let refuse = |what| {
                let file = format!("{}/{}", names::SEGMENTS, entry.file);
                Err(JournalError::CorruptFile { file, what })
            };
            match SegmentName::parse(&entry.file) {
                None => continue,
                Some(_) if entry.kind != FileKind::File => return refuse("not a regular file"),
                Some(segment) => {
                    let name = Name::new(Folder::Segments, &entry.file);
                    files.extend(name.filter(|name| !absent.contains(&name)).map(|name| (segment, name)));
                }
            }
        }
        Ok(SegmentFiles::arrange(files))
    }
}

/// `store` and the copies of the keyring, at least one of which is there.
fn read_keyring(disk: &dyn Disk) -> Result<(StoreFile, [Option<Vec<u8>>; 2])> {
    let data = has_data(disk)?;
    let store = read_store(disk, data)?;
    let copies = [read_optional(disk, &keyring_name(0))?, read_optional(disk, &keyring_name(1))?];
    if copies.iter().all(Option::is_none) {
        return Err(absent("keyring", data));
    }
    Ok((store, copies))
}

/// What a journal needs beside its segments, as far as it can be told without a key. Changes nothing.
///
/// # Errors
/// As an open of the journal, for `store` and the keyring; `Missing` for a head that is not there.
pub fn examine(disk: &dyn Disk) -> Result<()> {
    let (store, copies) = read_keyring(disk)?;
    choose([copies[0].as_deref(), copies[1].as_deref()], Some(StoreId(store.store_id)))
        .map_err(keyring_error)?;
    match read_optional(disk, &head::head_name())? {
        Some(_) => Ok(()),
        None => Err(JournalError::Missing { file: "head".into() }),
    }
}

/// The segment files of a directory, by what they mean for each other.
#[derive(Debug, Default)]
pub(crate) struct SegmentFiles {
    /// Ascending, none inside another one.
    pub chain: Vec<(SegmentName, Name)>,
    /// Inside a compacted one of the chain, of a lower generation: what it replaced.
    pub superseded: Vec<Name>,
    /// Neither: ranges that cross, or a generation that does not lie below the one around it.
    pub crossing: Vec<SegmentName>,
}

impl SegmentFiles {
    /// Compacted files of the chain, by name.
    pub fn compacted(&self) -> impl Iterator<Item = &(SegmentName, Name)> {
        self.chain.iter().filter(|(segment, _)| generation(segment) > 0)
    }

    fn arrange(mut files: Vec<(SegmentName, Name)>) -> SegmentFiles {
        // The widest first where several begin.
        files.sort_by_key(|(name, _)| (name.first(), std::cmp::Reverse((name.last(), generation(name)))));
        let mut arranged = SegmentFiles::default();
        for (segment, name) in files {
            match arranged.chain.last() {
                Some((around, _)) if segment.first() <= around.last() => {
                    let nested = segment.last() <= around.last() && generation(&segment) < generation(around);
                    match nested {
                        true => arranged.superseded.push(name),
                        false => arranged.crossing.push(segment),
                    }
                }
                Some(_) | None => arranged.chain.push((segment, name)),
            }
        }
        arranged
    }
}

/// 0 for a log segment.
pub(crate) fn generation(name: &SegmentName) -> u64 {
    match *name {
        SegmentName::Log { .. } => 0,
        SegmentName::Compacted { generation, .. } => generation,
    }
}

/// The entries of a folder; none if it is absent.
pub(crate) fn list(disk: &dyn Disk, folder: Folder) -> Result<Vec<sealog_disk::Entry>> {
    match disk.list(folder) {
        Ok(entries) => Ok(entries),
        Err(e) if e.kind == ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e.into()),
    }
}

/// JD-3: whether there are segments here, or a head that names one.
pub(crate) fn has_data(disk: &dyn Disk) -> Result<bool> {
    let entries = list(disk, Folder::Segments)?;
    if entries.iter().any(|e| e.file.ends_with(".seg")) {
        return Ok(true);
    }
    let head = read_optional(disk, &head::head_name())?;
    Ok(head.as_deref().is_some_and(head::names_a_segment))
}

pub(crate) fn read_optional(disk: &dyn Disk, name: &Name) -> Result<Option<Vec<u8>>> {
    match disk.open(name) {
        // One byte more than any of these files may have: a longer one then fails its own length check.
        Ok(file) => {
            let length = file.length()?.min(KEYRING_BYTES_MAX as u64 + 1);
            let mut bytes = vec![0; length as usize];
            io::read_exact_at(&*file, &mut bytes, 0)?;
            Ok(Some(bytes))
        }
        Err(e) if e.kind == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn absent(file: &str, data: bool) -> JournalError {
    if data { JournalError::Missing { file: file.into() } } else { JournalError::NoJournal }
}

pub(crate) fn read_store(disk: &dyn Disk, data: bool) -> Result<StoreFile> {
    let bytes = read_optional(disk, &store_name())?.ok_or_else(|| absent("store", data))?;
    StoreFile::decode(&bytes, |part| sealog_seal::sha256(&[part])).map_err(|e| match e.why {
        Why::NewerVersion(version) => JournalError::NewerFormat { file: "store".into(), version },
        _ => JournalError::CorruptFile { file: "store".into(), what: "it does not read back" },
    })
}

pub(crate) fn keyring_error(e: KeyringError) -> JournalError {
    match e {
        KeyringError::WrongKey => JournalError::WrongKey,
        KeyringError::UnsupportedVersion(version) => {
            JournalError::NewerFormat { file: "keyring".into(), version }
        }
        KeyringError::WrongStore => JournalError::WrongStore,
        KeyringError::OutOfMemory => JournalError::OutOfMemory,
        KeyringError::Missing => JournalError::Missing { file: "keyring".into() },
        KeyringError::Damaged { .. }
        | KeyringError::DamagedBehindSlot
        | KeyringError::BadParameters
        | KeyringError::TooLarge => JournalError::KeyringDamaged,
    }
}
