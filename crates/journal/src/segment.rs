//! One segment file opened for reading: both header copies judged, the keys unwrapped, the handle opened on demand.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sealog_disk::{Disk, LogFile, Name, io};
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::segment::{FixedPart, SegmentHeader, SegmentKind};
use sealog_journal_format::{FrameHeader, Why, limits};
use sealog_seal::{KeyId, Keyring, SegmentKeys, Wrapped};

use crate::error::{JournalError, Result};

/// A segment whose header authenticated. Thousands may be known; only few hold an open file.
pub(crate) struct Segment {
    /// Of a compacted segment the first of its range.
    pub number: u64,
    pub name: Name,
    /// Of the file when it was opened, in bytes.
    pub length: u64,
    pub header: SegmentHeader,
    pub keys: SegmentKeys,
    /// Which header copy (0 or 1) does not read back like the other one.
    pub damaged_copy: Option<u64>,
    disk: Arc<dyn Disk>,
    file: Mutex<Option<Arc<dyn LogFile>>>,
    /// Its file stays what it was opened from: the name may go meanwhile.
    kept: bool,
}

impl fmt::Debug for Segment {
    /// What it is, not how it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("name", &self.name)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// Why a segment could not be opened at all.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// Neither header copy is usable.
    Damaged(&'static str),
    Newer(u16),
    Failed(JournalError),
}

impl Segment {
    /// Opens and authenticates the header; a damaged copy beside a sound one is reported, not hidden.
    pub fn open(
        disk: &Arc<dyn Disk>,
        keyring: &Keyring,
        name: &Name,
        named: SegmentName,
    ) -> std::result::Result<Segment, Unopened> {
        Segment::open_as(disk, keyring, name, named, false)
    }

    /// The same; with `keep` its file stays open for as long as it is there, whatever becomes of the name.
    pub fn open_as(
        disk: &Arc<dyn Disk>,
        keyring: &Keyring,
        name: &Name,
        named: SegmentName,
        keep: bool,
    ) -> std::result::Result<Segment, Unopened> {
        let failed = |e: sealog_disk::DiskError| Unopened::Failed(e.into());
        let file = disk.open(name).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let mut copies = [None, None];
        for (copy, offset) in copies.iter_mut().zip([0, limits::HEADER_BYTES as u64]) {
            let bytes = read_copy(&*file, length, offset).map_err(Unopened::Failed)?;
            *copy = Some(match bytes {
                Some(bytes) => authenticate(keyring, &bytes, named),
                None => Err(Fault::Damaged("the segment header is cut short")),
            });
        }
        let (first, second) = match copies {
            [Some(first), Some(second)] => (first, second),
            _ => return Err(Unopened::Damaged("the segment header is cut short")),
        };
        let damaged_copy = match (&first, &second) {
            (Ok(a), Ok(b)) if a.0 == b.0 => None,
            // A newer format is no damage, however sound the copy beside it is.
            (Err(a @ Fault::Newer(_)), Ok(_)) | (Ok(_), Err(a @ Fault::Newer(_))) => {
                return Err(worst(*a, *a));
            }
            (Ok(_), _) => Some(1),
            (Err(_), Ok(_)) => Some(0),
            (Err(a), Err(b)) => return Err(worst(*a, *b)),
        };
        let (header, keys) = match first.or(second) {
            Ok(sound) => sound,
            Err(fault) => return Err(worst(fault, fault)),
        };
        let (number, name, disk) = (named.first(), name.clone(), Arc::clone(disk));
        let file = Mutex::new(keep.then_some(file));
        Ok(Segment { number, name, length, header, keys, damaged_copy, disk, file, kept: keep })
    }

    /// A segment that this process wrote the header of.
    pub fn of_writer(
        disk: &Arc<dyn Disk>,
        name: Name,
        header: SegmentHeader,
        keys: SegmentKeys,
        length: u64,
    ) -> Segment {
        let (number, disk) = (header.number, Arc::clone(disk));
        let (damaged_copy, file, kept) = (None, Mutex::new(None), false);
        Segment { number, name, length, header, keys, damaged_copy, disk, file, kept }
    }

    /// Opens the body of a frame of this segment where it lies. `false`: it is not what the header was made for, and stays as
    /// it is.
    pub fn open_body(&self, header: &FrameHeader, body: &mut [u8]) -> bool {
        let context = header.body_context(&self.header.store_id, self.number);
        self.keys.body.open(u64::from(header.index), &context, body, &header.body_tag).is_ok()
    }

    /// The last number of its range; of a log segment its own.
    pub fn last(&self) -> u64 {
        self.header.range_last
    }

    pub fn named(&self) -> SegmentName {
        let SegmentHeader { number: first, range_last: last, generation, .. } = self.header;
        match self.header.kind {
            SegmentKind::Log => SegmentName::Log { number: first },
            SegmentKind::Compacted => SegmentName::Compacted { first, last, generation },
        }
    }

    pub fn is_compacted(&self) -> bool {
        self.header.kind == SegmentKind::Compacted
    }

    /// The open file; opened by name if nobody holds it.
    pub fn file(&self) -> Result<Arc<dyn LogFile>> {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*held {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(&self.name)?;
        *held = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Lets the handle go, unless it is to be kept; whoever is reading keeps its own.
    pub fn release(&self) {
        if self.kept {
            return;
        }
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

type Authenticated = std::result::Result<(SegmentHeader, SegmentKeys), Fault>;

#[derive(Debug, Clone, Copy)]
enum Fault {
    Newer(u16),
    Damaged(&'static str),
}

fn worst(a: Fault, b: Fault) -> Unopened {
    match (a, b) {
        (Fault::Newer(version), _) | (Fault::Damaged(_), Fault::Newer(version)) => Unopened::Newer(version),
        (Fault::Damaged(what), Fault::Damaged(_)) => Unopened::Damaged(what),
    }
}

fn read_copy(file: &dyn LogFile, length: u64, offset: u64) -> Result<Option<Vec<u8>>> {
    if offset + limits::HEADER_BYTES as u64 > length {
        return Ok(None);
    }
    let mut bytes = vec![0; limits::HEADER_BYTES];
    io::read_exact_at(file, &mut bytes, offset)?;
    Ok(Some(bytes))
}

/// The order of tests is JF-4: fixed part, version, store id, key id, suite, whole CRC and zeros, check and tag.
fn authenticate(keyring: &Keyring, bytes: &[u8], named: SegmentName) -> Authenticated {
    let damaged = Fault::Damaged;
    let unreadable = damaged("the segment header does not read back");
    let fixed = FixedPart::decode(bytes).map_err(|e| match e.why {
        Why::NewerVersion(version) => Fault::Newer(version),
        _ => unreadable,
    })?;
    if fixed.number != named.first() {
        return Err(damaged("the segment carries another number than its name"));
    }
    let store_id = keyring.store_id();
    let header = SegmentHeader::decode_with(
        bytes,
        |store| *store == store_id.0,
        |key| keyring.root(&KeyId(*key)).is_some(),
    )
    .map_err(|e| match (e.why, e.field) {
        (Why::Mismatch, "store id") => damaged("the segment belongs to another journal"),
        (Why::Mismatch, "key id") => damaged("the segment names a key that the keyring does not hold"),
        _ => unreadable,
    })?;
    let carried = match header.kind {
        SegmentKind::Log => SegmentName::Log { number: header.number },
        SegmentKind::Compacted => SegmentName::Compacted {
            first: header.number,
            last: header.range_last,
            generation: header.generation,
        },
    };
    if carried != named {
        return Err(damaged("the segment's kind, range or generation is not that of its name"));
    }
    let root = keyring.root(&KeyId(header.key_id)).ok_or(unreadable)?;
    let wrap = header.wrap;
    let wrapped = Wrapped { salt: wrap.salt, sealed: wrap.sealed, tag: wrap.tag, check: wrap.check };
    let key = root
        .unwrap(&header.wrap_purpose(), &wrapped, &header.wrap_context())
        .map_err(|_| damaged("the segment header does not authenticate"))?;
    Ok((header, key.segment_keys(bytes)))
}
