//! Which root keys the files of a journal name, by their own word: a retired key that nothing names can go (JK-56).

use std::collections::BTreeMap;

use sealog_disk::{Disk, ErrorKind, FileKind, Folder, LogFile, Name, io};
use sealog_journal_format::head::HeadSlot;
use sealog_journal_format::limits::{HEAD_SLOT_BYTES, HEADER_BYTES};
use sealog_journal_format::names;
use sealog_journal_format::segment::SegmentHeader;
use sealog_seal::{KeyId, Keyring, RootState};

use crate::error::Result;
use crate::head;
use crate::store;

/// How many files name a root key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootUse {
    /// Published segments, the prepared one, and what compaction is making.
    pub segments: u64,
    /// Slots of the head.
    pub head_slots: u64,
    /// Tails that recoveries cut.
    pub quarantined: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Uses {
    named: BTreeMap<[u8; 16], RootUse>,
    /// Something does not tell which key it names.
    pub unreadable: bool,
}

impl Uses {
    /// Reads the headers of all files that hold anything under a root key. A file that goes meanwhile names nothing.
    pub fn look(disk: &dyn Disk) -> Result<Uses> {
        let mut uses = Uses::default();
        uses.head(disk)?;
        for entry in store::list(disk, Folder::Segments)? {
            if entry.file.ends_with(".idx") || entry.file == names::RESERVE {
                continue;
            }
            uses.segment(disk, Folder::Segments, &entry, &[0, HEADER_BYTES as u64])?;
        }
        for entry in store::list(disk, Folder::Quarantine)? {
            if !entry.file.ends_with(".txt") {
                uses.segment(disk, Folder::Quarantine, &entry, &[0])?;
            }
        }
        Ok(uses)
    }

    pub fn of(&self, id: &KeyId) -> RootUse {
        self.named.get(&id.0).copied().unwrap_or_default()
    }

    /// The retired root keys that can go.
    pub fn unused(&self, keyring: &Keyring) -> Vec<KeyId> {
        if self.unreadable {
            return Vec::new();
        }
        let retired = keyring.roots().iter().filter(|root| root.state() == RootState::Retired);
        retired.map(sealog_seal::RootKey::id).filter(|id| !self.named.contains_key(&id.0)).collect()
    }

    /// Whether files name a root key that `keyring` does not hold.
    pub fn lacking(&self, keyring: &Keyring) -> bool {
        self.named.keys().any(|id| keyring.root(&KeyId(*id)).is_none())
    }

    fn head(&mut self, disk: &dyn Disk) -> Result<()> {
        let Some(bytes) = store::read_optional(disk, &head::head_name())? else {
            self.unreadable = true;
            return Ok(());
        };
        for (index, slot) in bytes.chunks_exact(HEAD_SLOT_BYTES).enumerate() {
            match HeadSlot::decode(slot, (index * HEAD_SLOT_BYTES) as u64) {
                Ok((slot, _)) => self.named.entry(slot.key_id).or_default().head_slots += 1,
                Err(_) => self.unreadable = true,
            }
        }
        Ok(())
    }

    /// Every header copy counts, each for itself: a damaged one may be all that names a key.
    fn segment(
        &mut self,
        disk: &dyn Disk,
        folder: Folder,
        entry: &sealog_disk::Entry,
        copies: &[u64],
    ) -> Result<()> {
        let Some(name) = Name::new(folder, &entry.file).filter(|_| entry.kind == FileKind::File) else {
            self.unreadable = true;
            return Ok(());
        };
        let file = match disk.open(&name) {
            Ok(file) => file,
            Err(e) if e.kind == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let mut before = None;
        for offset in copies {
            match key_id(&*file, *offset)? {
                None => self.unreadable = true,
                Some(id) if before == Some(id) => {}
                Some(id) => {
                    let named = self.named.entry(id).or_default();
                    match folder {
                        Folder::Quarantine => named.quarantined += 1,
                        Folder::Root | Folder::Segments => named.segments += 1,
                    }
                    before = Some(id);
                }
            }
        }
        Ok(())
    }
}

fn key_id(file: &dyn LogFile, offset: u64) -> Result<Option<[u8; 16]>> {
    let mut bytes = [0; HEADER_BYTES];
    let read = io::read_up_to(file, &mut bytes, offset)?;
    let header = (read == bytes.len()).then(|| SegmentHeader::decode(&bytes).ok()).flatten();
    Ok(header.map(|header| header.key_id))
}
