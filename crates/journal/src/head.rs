//! The head file: two slots, synced alternately, that say how far the journal provably came.

use std::sync::Arc;

use sealog_disk::{Disk, ErrorKind, Folder, LogFile, Name, io};
use sealog_journal_format::Why;
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::head::{self, HeadSlot, HeadState as SlotState};
use sealog_journal_format::limits::{HEAD_BYTES, HEAD_SLOT_BYTES};
use sealog_seal::{KeyId, Keyring, MacKey, StoreId};

use crate::error::{JournalError, Result};

pub(crate) fn head_name() -> Name {
    Name::new(Folder::Root, "head").expect("a constant name is valid")
}

/// The head as it was found: the good slot with the higher counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeadState {
    pub present: bool,
    pub good_slots: u8,
    pub slot: Option<HeadSlot>,
}

/// Reads and authenticates both slots. A newer format is an error, damage is a state.
pub(crate) fn read(disk: &dyn Disk, keyring: &Keyring) -> Result<HeadState> {
    let file = match disk.open(&head_name()) {
        Ok(file) => file,
        Err(e) if e.kind == ErrorKind::NotFound => return Ok(HeadState::default()),
        Err(e) => return Err(e.into()),
    };
    let mut bytes = vec![0; HEAD_BYTES];
    let length = (file.length()?.min(HEAD_BYTES as u64)) as usize;
    io::read_exact_at(&*file, &mut bytes[..length], 0)?;
    let mut state = HeadState { present: true, ..HeadState::default() };
    let mut newer = None;
    for (index, slot) in bytes[..length].chunks_exact(HEAD_SLOT_BYTES).enumerate() {
        match good_slot(keyring, (index * HEAD_SLOT_BYTES) as u64, slot) {
            Ok(Some(slot)) => {
                state.good_slots += 1;
                if state.slot.as_ref().is_none_or(|best| best.counter < slot.counter) {
                    state.slot = Some(slot);
                }
            }
            Ok(None) => {}
            Err(version) => newer = Some(version),
        }
    }
    match newer {
        // However sound the other slot is: rewriting it would go back behind what a newer program wrote.
        Some(version) => Err(JournalError::NewerFormat { file: head_name().to_string(), version }),
        None => Ok(state),
    }
}

/// Whether any slot of `head`, by its own unauthenticated word, names a segment.
pub(crate) fn names_a_segment(head: &[u8]) -> bool {
    head.chunks_exact(HEAD_SLOT_BYTES)
        .enumerate()
        .filter_map(|(index, slot)| HeadSlot::decode(slot, (index * HEAD_SLOT_BYTES) as u64).ok())
        .any(|(slot, _)| slot.segment != 0)
}

/// JF-2; `Err` is the version of a slot that a newer program wrote.
fn good_slot(keyring: &Keyring, offset: u64, bytes: &[u8]) -> std::result::Result<Option<HeadSlot>, u16> {
    let (slot, mac) = match HeadSlot::decode(bytes, offset) {
        Ok(decoded) => decoded,
        Err(e) => {
            return match e.why {
                Why::NewerVersion(version) => Err(version),
                _ => Ok(None),
            };
        }
    };
    let ours = slot.store_id == keyring.store_id().0;
    let Some(root) = keyring.root(&KeyId(slot.key_id)) else { return Ok(None) };
    let key = head_key(root, &keyring.store_id());
    let authentic = key.verify(&slot.encode_unsealed(), &mac).is_ok();
    Ok((ours && authentic).then_some(slot))
}

fn head_key(root: &sealog_seal::RootKey, store_id: &StoreId) -> MacKey {
    root.mac_key(b"head", store_id)
}

/// What a slot says, without the parts that the writer fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadContent {
    pub lineage: [u8; 16],
    pub epoch: u64,
    pub segment: u64,
    pub frames: u64,
    pub last_sequence: u64,
    pub chain: [u8; 16],
    pub closed: bool,
}

impl HeadContent {
    /// The head that names `end`, written by the writer of `lineage` and `epoch`.
    pub fn naming(end: &EndRecord, lineage: [u8; 16], epoch: u64, closed: bool) -> HeadContent {
        HeadContent {
            lineage,
            epoch,
            segment: end.segment,
            frames: end.frames,
            last_sequence: end.last_sequence,
            chain: end.chain,
            closed,
        }
    }
}

/// The head opened for writing. One write and one sync per rewrite, slots in turn (JF-3).
#[derive(Debug)]
pub(crate) struct HeadWriter {
    file: Arc<dyn LogFile>,
    key: MacKey,
    key_id: [u8; 16],
    store_id: [u8; 16],
    counter: u64,
    written: Option<HeadContent>,
}

impl HeadWriter {
    /// `counter` is that of the slot that counts now. Repairs nothing by itself.
    pub fn open(disk: &dyn Disk, keyring: &Keyring, state: &HeadState) -> Result<HeadWriter> {
        let file = disk.open_for_write(&head_name())?;
        // What a killed process wrote may not be durable yet; a second slot must not be in the air beside it (JF-3).
        file.sync_data()?;
        Ok(HeadWriter::on(file, keyring, state))
    }

    /// For a journal that is only read: a writer that never writes, since its file is not open for that.
    pub fn idle(disk: &dyn Disk, keyring: &Keyring, state: &HeadState) -> Result<HeadWriter> {
        Ok(HeadWriter::on(disk.open(&head_name())?, keyring, state))
    }

    fn on(file: Arc<dyn LogFile>, keyring: &Keyring, state: &HeadState) -> HeadWriter {
        let root = keyring.active_root();
        let counter = state.slot.as_ref().map_or(0, |slot| slot.counter);
        HeadWriter {
            file,
            key: head_key(root, &keyring.store_id()),
            key_id: root.id().0,
            store_id: keyring.store_id().0,
            counter,
            written: None,
        }
    }

    /// Whether the head already says this.
    pub fn says(&self, content: &HeadContent) -> bool {
        self.written.as_ref() == Some(content)
    }

    /// Whether a segment behind this one was named.
    pub fn names_later(&self, segment: u64) -> bool {
        self.written.as_ref().is_some_and(|written| written.segment > segment)
    }

    /// Writes the next slot and syncs it. After an error the head file must not be written again.
    pub fn rewrite(&mut self, content: &HeadContent) -> Result<()> {
        self.counter += 1;
        let bytes = encode(content, self.counter, self.key_id, self.store_id, &self.key);
        io::write_all_at(&*self.file, &bytes, head::slot_offset(self.counter))?;
        self.file.sync_data()?;
        self.written = Some(*content);
        Ok(())
    }

    /// Both slots, one after the other, so that neither names what is about to be removed.
    pub fn rewrite_both(&mut self, content: &HeadContent) -> Result<()> {
        self.rewrite(content)?;
        self.rewrite(content)
    }

    pub fn close(&self) -> Result<()> {
        Ok(self.file.close()?)
    }
}

fn encode(
    content: &HeadContent,
    counter: u64,
    key_id: [u8; 16],
    store_id: [u8; 16],
    key: &MacKey,
) -> [u8; 512] {
    let slot = HeadSlot {
        counter,
        key_id,
        store_id,
        lineage: content.lineage,
        epoch: content.epoch,
        segment: content.segment,
        frames: content.frames,
        last_sequence: content.last_sequence,
        chain: content.chain,
        state: if content.closed { SlotState::Closed } else { SlotState::Open },
    };
    slot.encode(&key.mac(&slot.encode_unsealed()))
}

/// The written part of both slots, counter 1 and 2, saying the same.
pub(crate) fn slots(keyring: &Keyring, content: &HeadContent) -> [[u8; 512]; 2] {
    let root = keyring.active_root();
    let key = head_key(root, &keyring.store_id());
    [1, 2].map(|counter| encode(content, counter, root.id().0, keyring.store_id().0, &key))
}

/// A whole file that says `content` in both slots: counter 1 in slot B, counter 2 in slot A.
pub(crate) fn whole_file(keyring: &Keyring, content: &HeadContent) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    for (slot, counter) in slots(keyring, content).iter().zip([1, 2]) {
        let at = head::slot_offset(counter) as usize;
        bytes[at..at + slot.len()].copy_from_slice(slot);
    }
    bytes
}

/// The whole file of a journal that has no segment yet.
pub(crate) fn first_file(keyring: &Keyring) -> Vec<u8> {
    whole_file(keyring, &HeadContent::naming(&EndRecord::NONE, [0; 16], 0, true))
}
