//! The manifest of a backup (`spec/backup.md`, JB-2) and the names of the files it lists (JB-3). MAC, SHA-256 and the
//! files themselves are the caller's.

use std::fmt::Write;

use crate::checksum::crc32;
use crate::cursor::{array_at, check_least, check_length, check_zero, put, u16_at, u32_at, u64_at};
use crate::error::{FormatError, Why};
use crate::head::{HeadSlot, slot_offset};
use crate::limits::{DATA_START, FRAME_ALIGN, HEAD_SLOT_BYTES, HEAD_WRITE_BYTES, STORE_BYTES};
use crate::names::SegmentName;
use crate::version::{FORMAT_VERSION, check_version};

pub const MANIFEST_MAGIC: [u8; 8] = *b"SEALOGBK";

/// Bytes before the keyring.
pub const MANIFEST_FIXED_BYTES: usize = 1200;
/// The keyring that a manifest may carry.
pub const MANIFEST_KEYRING_BYTES_MAX: usize = 64 << 10;
/// Files that one manifest lists.
pub const MANIFEST_FILES_MAX: usize = 1 << 18;
const FILE_BYTES: usize = 96;
const TRAILER_BYTES: usize = 36;
/// The longest manifest.
pub const MANIFEST_BYTES_MAX: usize =
    MANIFEST_FIXED_BYTES + MANIFEST_KEYRING_BYTES_MAX + MANIFEST_FILES_MAX * FILE_BYTES + TRAILER_BYTES;

const STORE_AT: usize = 24;
const SLOTS_AT: [usize; 2] = [152, 664];

/// Whether a file holds a whole segment or what was proven of one that still grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Ended,
    Tail,
}

/// One file of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupFile {
    pub segment: SegmentName,
    pub kind: FileKind,
    /// Bytes.
    pub length: u64,
    /// Chain value behind its last frame.
    pub chain: [u8; 16],
    pub sha256: [u8; 32],
}

impl BackupFile {
    /// Its name in `segments` of the backup: what it holds, and its end.
    pub fn file_name(&self) -> String {
        let mut name = format!("{}.", self.segment);
        for byte in self.chain {
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str(match self.kind {
            FileKind::Ended => ".seg",
            FileKind::Tail => ".tail",
        });
        name
    }

    /// Whether a file in `segments` has the name of one of a backup: no journal gives its own such a name.
    pub fn is_file_name(name: &str) -> bool {
        let named = name.strip_suffix(".seg").or_else(|| name.strip_suffix(".tail"));
        let Some((stem, chain)) = named.and_then(|named| named.rsplit_once('.')) else { return false };
        let digits = chain.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        chain.len() == 32 && digits && SegmentName::parse_stem(stem).is_some()
    }

    fn encode(&self) -> [u8; FILE_BYTES] {
        let mut out = [0; FILE_BYTES];
        put(&mut out, 0, self.segment.first().to_le_bytes());
        put(&mut out, 8, self.segment.last().to_le_bytes());
        put(&mut out, 16, generation(&self.segment).to_le_bytes());
        put(&mut out, 24, self.length.to_le_bytes());
        put(&mut out, 32, self.chain);
        put(&mut out, 48, self.sha256);
        out[80] = match self.kind {
            FileKind::Ended => 1,
            FileKind::Tail => 2,
        };
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        check_length(bytes, FILE_BYTES, "file")?;
        check_zero(bytes, 81, FILE_BYTES, "file")?;
        let (first, last, generation) = (u64_at(bytes, 0), u64_at(bytes, 8), u64_at(bytes, 16));
        let segment = match generation {
            0 if first == last => SegmentName::Log { number: first },
            0 => return Err(Why::Mismatch.of("file generation", 16)),
            _ => SegmentName::Compacted { first, last, generation },
        };
        let kind = match bytes[80] {
            1 => FileKind::Ended,
            2 => FileKind::Tail,
            _ => return Err(Why::OutOfRange.of("file kind", 80)),
        };
        let length = u64_at(bytes, 24);
        let file = Self { segment, kind, length, chain: array_at(bytes, 32), sha256: array_at(bytes, 48) };
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), FormatError> {
        if self.segment.first() == 0 || self.segment.last() < self.segment.first() {
            return Err(Why::OutOfRange.of("file range", 0));
        }
        if self.length <= DATA_START || !self.length.is_multiple_of(FRAME_ALIGN) {
            return Err(Why::OutOfRange.of("file length", 24));
        }
        if self.kind == FileKind::Tail && generation(&self.segment) != 0 {
            return Err(Why::Mismatch.of("file kind", 80));
        }
        Ok(())
    }
}

fn generation(segment: &SegmentName) -> u64 {
    match *segment {
        SegmentName::Log { .. } => 0,
        SegmentName::Compacted { generation, .. } => generation,
    }
}

/// A manifest without its MAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The file `store`.
    pub store: [u8; STORE_BYTES],
    /// What `head` says at the horizon: the written part of the slots with counter 1 and 2.
    pub slots: [[u8; HEAD_WRITE_BYTES]; 2],
    /// Milliseconds since the epoch.
    pub taken_ms: u64,
    /// The root key whose manifest key makes the MAC.
    pub key_id: [u8; 16],
    /// The keyring as both copies hold it.
    pub keyring: Vec<u8>,
    /// By segment, without holes; only the last one may be a tail.
    pub files: Vec<BackupFile>,
}

impl Manifest {
    /// The whole file. `mac` is given the bytes before the MAC.
    ///
    /// # Errors
    /// The field that no manifest can have.
    pub fn encode(&self, mac: impl FnOnce(&[u8]) -> [u8; 32]) -> Result<Vec<u8>, FormatError> {
        self.check()?;
        let mut out = vec![0; MANIFEST_FIXED_BYTES];
        put(&mut out, 0, MANIFEST_MAGIC);
        put(&mut out, 8, FORMAT_VERSION.to_le_bytes());
        put(&mut out, 12, (self.keyring.len() as u32).to_le_bytes());
        put(&mut out, 16, (self.files.len() as u32).to_le_bytes());
        put(&mut out, STORE_AT, self.store);
        for (slot, at) in self.slots.iter().zip(SLOTS_AT) {
            put(&mut out, at, *slot);
        }
        put(&mut out, 1176, self.taken_ms.to_le_bytes());
        put(&mut out, 1184, self.key_id);
        out.extend_from_slice(&self.keyring);
        for file in &self.files {
            out.extend_from_slice(&file.encode());
        }
        let mac = mac(&out);
        out.extend_from_slice(&mac);
        let crc = crc32(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        Ok(out)
    }

    /// Reads the whole file; the MAC is returned for the caller to compare with that of [`authenticated_part`].
    ///
    /// # Errors
    /// Magic, version, lengths, CRC, zeros, then the fields, in this order. Nothing is allocated for what the bytes
    /// cannot hold.
    pub fn decode(bytes: &[u8]) -> Result<(Self, [u8; 32]), FormatError> {
        check_least(bytes, MANIFEST_FIXED_BYTES + TRAILER_BYTES, "manifest")?;
        if bytes[..8] != MANIFEST_MAGIC {
            return Err(Why::Magic.of("magic", 0));
        }
        check_version(u16_at(bytes, 8), 8)?;
        let (keyring, files) = (u32_at(bytes, 12) as usize, u32_at(bytes, 16) as usize);
        if keyring > MANIFEST_KEYRING_BYTES_MAX {
            return Err(Why::TooLong.of("keyring length", 12));
        }
        if files > MANIFEST_FILES_MAX {
            return Err(Why::TooLong.of("file count", 16));
        }
        let end = MANIFEST_FIXED_BYTES + keyring + files * FILE_BYTES;
        check_length(bytes, end + TRAILER_BYTES, "manifest")?;
        if u32_at(bytes, end + 32) != crc32(&bytes[..end + 32]) {
            return Err(Why::Crc.of("manifest crc", end + 32));
        }
        check_zero(bytes, 10, 12, "manifest")?;
        check_zero(bytes, 20, STORE_AT, "manifest")?;
        let listed = &bytes[MANIFEST_FIXED_BYTES + keyring..end];
        let files: Result<Vec<_>, _> = listed.chunks_exact(FILE_BYTES).map(BackupFile::decode).collect();
        let manifest = Self {
            store: array_at(bytes, STORE_AT),
            slots: SLOTS_AT.map(|at| array_at(bytes, at)),
            taken_ms: u64_at(bytes, 1176),
            key_id: array_at(bytes, 1184),
            keyring: bytes[MANIFEST_FIXED_BYTES..MANIFEST_FIXED_BYTES + keyring].to_vec(),
            files: files?,
        };
        manifest.check()?;
        Ok((manifest, array_at(bytes, end)))
    }

    /// What the slots say; both the same.
    ///
    /// # Errors
    /// A slot that does not read back.
    pub fn head(&self) -> Result<HeadSlot, FormatError> {
        let mut bytes = [0; HEAD_SLOT_BYTES];
        put(&mut bytes, 0, self.slots[1]);
        Ok(HeadSlot::decode(&bytes, slot_offset(2))?.0)
    }

    /// The rules between the fields.
    ///
    /// # Errors
    /// The field that breaks one.
    pub fn check(&self) -> Result<(), FormatError> {
        if self.keyring.len() > MANIFEST_KEYRING_BYTES_MAX {
            return Err(Why::TooLong.of("keyring length", 12));
        }
        if self.files.len() > MANIFEST_FILES_MAX {
            return Err(Why::TooLong.of("file count", 16));
        }
        let mut next = 1;
        for (at, file) in self.files.iter().enumerate() {
            file.check()?;
            if file.segment.first() != next {
                return Err(Why::Mismatch.of("file range", 0));
            }
            if file.kind == FileKind::Tail && at + 1 != self.files.len() {
                return Err(Why::Mismatch.of("file kind", 80));
            }
            next = file.segment.last().checked_add(1).ok_or(Why::OutOfRange.of("file range", 8))?;
        }
        let head = self.head()?;
        if head.segment.checked_add(1) != Some(next) {
            return Err(Why::Mismatch.of("head segment", SLOTS_AT[1]));
        }
        Ok(())
    }
}

/// The part of a manifest under its MAC. `bytes` is what [`Manifest::decode`] took.
pub fn authenticated_part(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().saturating_sub(TRAILER_BYTES)]
}

#[cfg(test)]
mod tests;
