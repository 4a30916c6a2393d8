//! The file of a summary: sealed and written as a whole, opened only if it is exactly the one of this segment (JF-20,
//! JF-21). Nothing here is an error to a reader: a summary is good or it is not there.

use sealog_disk::{Disk, DiskError, ErrorKind, Folder, Name, io};
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::limits::{DATA_START, SUMMARY_BODY_BYTES_MAX, SUMMARY_HEADER_BYTES};
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::segment::SegmentKind;
use sealog_journal_format::summary::{Piece, SummaryHeader, SummaryReader};
use sealog_journal_format::version::FORMAT_VERSION;
use sealog_seal::SummaryOf;

use crate::cache::Plaintext;
use crate::index::Packer;
use crate::segment::Segment;
use crate::summary::apply::Prepared;

/// A summary that is good for its segment.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(super) segment: u64,
    end: EndRecord,
    pub(super) body: Plaintext,
    pub(super) pieces: Vec<Prepared>,
    records: u64,
}

impl Summary {
    /// `None` never happens: the body was checked when it was loaded.
    pub fn read(&self) -> Option<SummaryReader<'_>> {
        SummaryReader::open(&self.body).ok()
    }

    /// How many there are in the segment.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        self.body.len() + self.pieces.len() * size_of::<Prepared>()
    }

    /// How the segment ends: of a compacted one where its seal stands.
    pub fn end(&self) -> EndRecord {
        self.end
    }
}

/// How the segment of this header is called.
fn segment_of(segment: &Segment) -> SegmentName {
    let header = &segment.header;
    match header.kind {
        SegmentKind::Log => SegmentName::Log { number: header.number },
        SegmentKind::Compacted => SegmentName::Compacted {
            first: header.number,
            last: header.range_last,
            generation: header.generation,
        },
    }
}

pub(super) fn name_of(segment: &Segment) -> Name {
    Name::new(Folder::Segments, &segment_of(segment).summary_name()).expect("digits and a known suffix")
}

fn temporary() -> Name {
    Name::new(Folder::Segments, "summary.tmp").expect("a constant name is valid")
}

fn purpose(segment: &Segment) -> SummaryOf {
    SummaryOf { store_id: segment.header.store_id, version: FORMAT_VERSION, suite: segment.header.suite }
}

/// The summary of a segment that ends at `end`, with digests of this version; whatever is not that is `None`.
pub(crate) fn load(
    disk: &dyn Disk,
    segment: &Segment,
    end: &EndRecord,
    digest_version: u32,
) -> Option<Summary> {
    let file = disk.open(&name_of(segment)).ok()?;
    let length = file.length().ok()?;
    let mut bytes = [0; SUMMARY_HEADER_BYTES];
    io::read_exact_at(&*file, &mut bytes, 0).ok()?;
    let header = SummaryHeader::decode(&bytes).ok()?;
    let own = &segment.header;
    let fits = length == SUMMARY_HEADER_BYTES as u64 + u64::from(header.body_length)
        && header.store_id == own.store_id
        && (header.first, header.last, header.generation) == (own.number, own.range_last, own.generation)
        && header.end == *end
        && header.digest_version == digest_version;
    if !fits {
        return None;
    }
    let mut body = vec![0; header.body_length as usize];
    io::read_exact_at(&*file, &mut body, SUMMARY_HEADER_BYTES as u64).ok()?;
    let key = &segment.keys.summary;
    key.open(&purpose(segment), &header.salt, &header.check, &header.context(), &mut body, &header.tag)
        .ok()?;
    let body = Plaintext::new(body);
    let mut reader = SummaryReader::open(&body).ok()?;
    let (mut packer, mut records) = (Packer::default(), reader.own.len() as u64);
    let mut pieces = Vec::with_capacity(reader.piece_count());
    let prepare = |piece: &Piece<'_>| {
        records += piece.records;
        pieces.push(Prepared::new(segment.number, &body, piece, &mut packer));
    };
    reader.check(prepare).ok()?;
    // Whoever holds the key could write what it likes; what it names must at least be inside the segment.
    let inside = reader.last_sequence() <= end.last_sequence
        && reader.last_offset() < end.end_offset.max(DATA_START + 1);
    inside.then_some(Summary { segment: segment.number, end: *end, body, pieces, records })
}

/// Writes a summary, or leaves nothing. The folder is not synced: nothing relies on the name, and an error of that
/// sync would be news for the writer alone (F2).
pub(super) fn save(
    disk: &dyn Disk,
    segment: &Segment,
    end: EndRecord,
    digest_version: u32,
    salt: [u8; 32],
    mut body: Vec<u8>,
) -> Result<(), DiskError> {
    debug_assert!(body.len() <= SUMMARY_BODY_BYTES_MAX);
    let own = &segment.header;
    let mut header = SummaryHeader {
        store_id: own.store_id,
        first: own.number,
        last: own.range_last,
        generation: own.generation,
        end,
        digest_version,
        body_length: body.len() as u32,
        salt,
        check: [0; 32],
        tag: [0; 16],
    };
    let context = |check: &[u8; 32]| {
        header.check = *check;
        header.context().to_vec()
    };
    header.tag = segment.keys.summary.seal(&purpose(segment), &salt, context, &mut body);
    let written = write(disk, &header.encode(), &body, &name_of(segment));
    if written.is_err() {
        discard(disk, &temporary());
    }
    written
}

fn write(disk: &dyn Disk, header: &[u8], body: &[u8], name: &Name) -> Result<(), DiskError> {
    let temporary = temporary();
    match disk.remove(&temporary) {
        Err(e) if e.kind != ErrorKind::NotFound => return Err(e),
        Ok(()) | Err(_) => {}
    }
    let file = disk.create(&temporary)?;
    io::write_all_at(&*file, header, 0)?;
    io::write_all_at(&*file, body, header.len() as u64)?;
    file.sync_all()?;
    file.close()?;
    disk.rename(&temporary, name)
}

/// A file that nothing relies on.
pub(super) fn discard(disk: &dyn Disk, name: &Name) {
    match disk.remove(name) {
        Ok(()) => {}
        Err(e) if e.kind == ErrorKind::NotFound => {}
        Err(e) => tracing::debug!(kind = ?e.kind, "a file that nothing relies on was not removed"),
    }
}
