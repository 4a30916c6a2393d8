//! The bytes of a keyring (`spec/keys.md`, section 4): a fixed part of 64 bytes, slots, the root key list, MAC,
//! SHA-256. Owns every offset; holds no key and decides nothing that needs one.

use super::{KeyringError, Outline, SlotInfo, SlotKind};
use crate::digest::sha256;
use crate::ids::StoreId;
use crate::stretch::{SlotParams, StretchBounds};
use crate::wrap::Wrapped;

/// Longest keyring in bytes.
pub const KEYRING_BYTES_MAX: usize = 64 << 10;
/// Most slots of a keyring.
pub const SLOTS_MAX: usize = 8;
/// Most root keys of a keyring.
pub const ROOT_KEYS_MAX: usize = 1024;

pub(super) const VERSION: u16 = 1;
pub(super) const SUITE: u16 = 1;
pub(super) const FIXED_BYTES: usize = 64;
pub(super) const SLOT_BYTES: usize = 208;
/// The part of a slot that is associated data of its wrap: everything before the wrapped key.
pub(super) const SLOT_AAD_BYTES: usize = 160;
pub(super) const NAME_BYTES_MAX: usize = 64;
/// Salt, check and tag before the sealed root key list.
pub(super) const LIST_HEAD_BYTES: usize = 80;
pub(super) const ROOT_BYTES: usize = 56;
/// MAC and SHA-256.
pub(super) const TRAILER_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"SEALOGKR";
const CRC_AT: usize = 60;
const KIND_RAW: u8 = 1;
const KIND_PASSPHRASE: u8 = 2;

// The largest keyring that the counts allow still fits the bound on bytes.
const _: () = assert!(total_bytes(SLOTS_MAX, ROOT_KEYS_MAX) <= KEYRING_BYTES_MAX);

/// An intact keyring, cut into its parts. Nothing is authenticated yet.
pub(super) struct Parsed<'a> {
    pub(super) outline: Outline,
    pub(super) slots: Vec<StoredSlot>,
    pub(super) list: StoredList<'a>,
    /// Everything the MAC covers.
    pub(super) under_mac: &'a [u8],
    pub(super) mac: [u8; 32],
}

#[derive(Clone)]
pub(super) struct StoredSlot {
    pub(super) kind: SlotKind,
    pub(super) stretch_salt: [u8; 16],
    pub(super) wrapped: Wrapped,
    pub(super) record: [u8; SLOT_BYTES],
}

pub(super) struct StoredList<'a> {
    pub(super) salt: [u8; 32],
    pub(super) check: [u8; 32],
    pub(super) tag: [u8; 16],
    /// Everything before the tag.
    pub(super) aad: &'a [u8],
    pub(super) sealed: &'a [u8],
}

/// Length of a keyring with this many slots and root keys.
pub(super) const fn total_bytes(slots: usize, roots: usize) -> usize {
    FIXED_BYTES + slots * SLOT_BYTES + LIST_HEAD_BYTES + roots * ROOT_BYTES + TRAILER_BYTES
}

fn damaged<T>(field: &'static str, offset: usize) -> Result<T, KeyringError> {
    Err(KeyringError::Damaged { field, offset })
}

/// The `N` bytes at `at`; the caller has compared the length before.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0u8; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Checks everything that can be checked without a key, in the order of `JK-31`.
pub(super) fn parse<'a>(
    bytes: &'a [u8],
    expect_store: Option<StoreId>,
    bounds: &StretchBounds,
) -> Result<Parsed<'a>, KeyringError> {
    if bytes.len() < FIXED_BYTES {
        return damaged("length", bytes.len());
    }
    if crc32fast::hash(&bytes[..CRC_AT]).to_le_bytes() != bytes[CRC_AT..FIXED_BYTES] {
        return damaged("checksum of the fixed part", CRC_AT);
    }
    if &bytes[0..8] != MAGIC {
        return damaged("magic", 0);
    }
    let version = u16_at(bytes, 8);
    if version != VERSION {
        return Err(KeyringError::UnsupportedVersion(version));
    }
    let store_id = StoreId(array(bytes, 16));
    if expect_store.is_some_and(|expected| expected != store_id) {
        return Err(KeyringError::WrongStore);
    }
    let (slot_count, root_count) = (usize::from(u16_at(bytes, 40)), usize::from(u16_at(bytes, 42)));
    if bytes.len() > KEYRING_BYTES_MAX || slot_count > SLOTS_MAX || root_count > ROOT_KEYS_MAX {
        return Err(KeyringError::TooLarge);
    }
    if usize::try_from(u32_at(bytes, 12)) != Ok(bytes.len())
        || total_bytes(slot_count, root_count) != bytes.len()
    {
        return damaged("length", 12);
    }
    let hash_at = bytes.len() - 32;
    if sha256(&[&bytes[..hash_at]]) != bytes[hash_at..] {
        return damaged("SHA-256", hash_at);
    }
    fixed_rules(bytes, slot_count, root_count)?;
    let generation = u64::from_le_bytes(array(bytes, 32));
    let (slots, infos) = parse_slots(bytes, slot_count, bounds)?;
    let list_at = FIXED_BYTES + slot_count * SLOT_BYTES;
    let sealed_at = list_at + LIST_HEAD_BYTES;
    let mac_at = hash_at - 32;
    Ok(Parsed {
        outline: Outline { store_id, generation, slots: infos, root_keys: root_count },
        slots,
        list: StoredList {
            salt: array(bytes, list_at),
            check: array(bytes, list_at + 32),
            tag: array(bytes, list_at + 64),
            aad: &bytes[..list_at + 64],
            sealed: &bytes[sealed_at..mac_at],
        },
        under_mac: &bytes[..mac_at],
        mac: array(bytes, mac_at),
    })
}

/// The generation that an intact fixed part of this store tells, whatever stands behind it.
pub(super) fn stated_generation(bytes: &[u8], store: &StoreId) -> Option<u64> {
    let fixed = bytes.get(..FIXED_BYTES)?;
    let intact = crc32fast::hash(&fixed[..CRC_AT]).to_le_bytes() == fixed[CRC_AT..];
    let ours = &fixed[0..8] == MAGIC && u16_at(fixed, 8) == VERSION && fixed[16..32] == store.0;
    (intact && ours).then(|| u64::from_le_bytes(array(fixed, 32)))
}

/// Rules of the fixed part that only a faulty or hostile writer breaks: the checksums are right.
fn fixed_rules(bytes: &[u8], slot_count: usize, root_count: usize) -> Result<(), KeyringError> {
    if usize::from(u16_at(bytes, 10)) != FIXED_BYTES {
        return damaged("length of the fixed part", 10);
    }
    if bytes[32..40] == [0; 8] {
        return damaged("generation", 32);
    }
    if slot_count == 0 {
        return damaged("slot count", 40);
    }
    if root_count == 0 {
        return damaged("root key count", 42);
    }
    if u16_at(bytes, 44) != SUITE {
        return damaged("suite", 44);
    }
    if !is_zero(&bytes[46..CRC_AT]) {
        return damaged("unused bytes", 46);
    }
    Ok(())
}

fn parse_slots(
    bytes: &[u8],
    count: usize,
    bounds: &StretchBounds,
) -> Result<(Vec<StoredSlot>, Vec<SlotInfo>), KeyringError> {
    let mut slots = Vec::with_capacity(count);
    let mut infos: Vec<SlotInfo> = Vec::with_capacity(count);
    for index in 0..count {
        let at = FIXED_BYTES + index * SLOT_BYTES;
        let (slot, info) = parse_slot(array(bytes, at), at, bounds)?;
        if infos.iter().any(|earlier| earlier.name == info.name) {
            return damaged("slot name", at + 32);
        }
        slots.push(slot);
        infos.push(info);
    }
    Ok((slots, infos))
}

fn parse_slot(
    record: [u8; SLOT_BYTES],
    at: usize,
    bounds: &StretchBounds,
) -> Result<(StoredSlot, SlotInfo), KeyringError> {
    let name_length = usize::from(record[1]);
    if !is_zero(&record[2..4]) {
        return damaged("unused bytes", at + 2);
    }
    let kind = match record[0] {
        KIND_RAW if is_zero(&record[4..32]) => SlotKind::Raw,
        KIND_RAW => return damaged("unused bytes", at + 4),
        KIND_PASSPHRASE => {
            let params = SlotParams::stored(u32_at(&record, 4), u32_at(&record, 8), u32_at(&record, 12));
            if !bounds.allow(&params) {
                return Err(KeyringError::BadParameters);
            }
            SlotKind::Passphrase(params)
        }
        0 | 3..=255 => return damaged("slot kind", at),
    };
    if name_length > NAME_BYTES_MAX || !is_zero(&record[32 + name_length..96]) {
        return damaged("slot name", at + 32);
    }
    let Some(name) =
        std::str::from_utf8(&record[32..32 + name_length]).ok().filter(|name| name_allowed(name))
    else {
        return damaged("slot name", at + 32);
    };
    let wrapped = Wrapped {
        salt: array(&record, 96),
        check: array(&record, 128),
        sealed: array(&record, 160),
        tag: array(&record, 192),
    };
    let info = SlotInfo { name: name.to_owned(), kind };
    Ok((StoredSlot { kind, stretch_salt: array(&record, 16), wrapped, record }, info))
}

/// 1 to 64 printable ASCII characters, no space at either end: a name is shown on terminals.
pub(super) fn name_allowed(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && !name.starts_with(' ')
        && !name.ends_with(' ')
}

/// The first 96 bytes of a slot; the wrap is not in yet. The name has passed [`name_allowed`].
pub(super) fn slot_record(name: &str, kind: SlotKind, stretch_salt: &[u8; 16]) -> [u8; SLOT_BYTES] {
    let mut record = [0u8; SLOT_BYTES];
    record[1] = u8::try_from(name.len()).expect("an allowed name has at most 64 bytes");
    match kind {
        SlotKind::Raw => record[0] = KIND_RAW,
        SlotKind::Passphrase(params) => {
            record[0] = KIND_PASSPHRASE;
            record[4..8].copy_from_slice(&params.memory_kib().to_le_bytes());
            record[8..12].copy_from_slice(&params.passes().to_le_bytes());
            record[12..16].copy_from_slice(&params.lanes().to_le_bytes());
            record[16..32].copy_from_slice(stretch_salt);
        }
    }
    record[32..32 + name.len()].copy_from_slice(name.as_bytes());
    record
}

/// The associated data of a slot's wrap, for a wrap whose salt and check are `salt` and `check`.
pub(super) fn slot_aad(record: &[u8; SLOT_BYTES], salt: &[u8; 32], check: &[u8; 32]) -> [u8; SLOT_AAD_BYTES] {
    let mut aad: [u8; SLOT_AAD_BYTES] = array(record, 0);
    aad[96..128].copy_from_slice(salt);
    aad[128..160].copy_from_slice(check);
    aad
}

pub(super) fn put_wrap(record: &mut [u8; SLOT_BYTES], wrapped: &Wrapped) {
    record[96..128].copy_from_slice(&wrapped.salt);
    record[128..160].copy_from_slice(&wrapped.check);
    record[160..192].copy_from_slice(&wrapped.sealed);
    record[192..208].copy_from_slice(&wrapped.tag);
}

/// The fixed part, complete with its checksum. Counts are within their limits.
pub(super) fn fixed_part(
    store_id: &StoreId,
    generation: u64,
    slots: usize,
    roots: usize,
) -> [u8; FIXED_BYTES] {
    let count = |n: usize| u16::try_from(n).expect("at most 1024").to_le_bytes();
    let mut fixed = [0u8; FIXED_BYTES];
    fixed[0..8].copy_from_slice(MAGIC);
    fixed[8..10].copy_from_slice(&VERSION.to_le_bytes());
    fixed[10..12].copy_from_slice(&count(FIXED_BYTES));
    let total = u32::try_from(total_bytes(slots, roots)).expect("at most 64 KiB");
    fixed[12..16].copy_from_slice(&total.to_le_bytes());
    fixed[16..32].copy_from_slice(&store_id.0);
    fixed[32..40].copy_from_slice(&generation.to_le_bytes());
    fixed[40..42].copy_from_slice(&count(slots));
    fixed[42..44].copy_from_slice(&count(roots));
    fixed[44..46].copy_from_slice(&SUITE.to_le_bytes());
    let crc = crc32fast::hash(&fixed[..CRC_AT]);
    fixed[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    fixed
}

/// HKDF info behind a wrap: `label` ‖ store id ‖ keyring version ‖ suite.
pub(super) fn what(label: &[u8], store_id: &StoreId) -> Vec<u8> {
    [label, &store_id.0, &VERSION.to_le_bytes(), &SUITE.to_le_bytes()].concat()
}
