//! The active segment: seals a body, finishes its header, writes the frame and syncs it. One frame at a time; after
//! any error nothing is ever sealed under this segment's key again.

use std::sync::Arc;

use sealog_disk::{AlignedBuf, DIRECT_ALIGN, Disk, DiskError, FileId, Folder, LogFile, Name, io};
use sealog_journal_format::checksum::crc32;
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::segment::SegmentHeader;
use sealog_journal_format::{FrameHeader, FrameKind, limits};

use crate::segment::Segment;
use crate::writer::prepare::{Prepared, WritingKeys, probe_direct};

/// What a seal frame takes; kept free in every segment.
pub(crate) const SEAL_BYTES: u64 = limits::FRAME_BYTES_MIN;

/// How frames reach the disk.
#[derive(Debug)]
enum Path {
    /// One positional write, then fdatasync.
    Portable,
    /// One write past the page cache that is durable when it returns.
    Direct(Arc<dyn LogFile>),
}

/// Where a frame is put together, and the one place from which it is written: aligned, and kept from frame to frame.
#[derive(Debug)]
struct Bench {
    block: AlignedBuf,
    /// On the direct path so much of it, from its start, is what the file's last partial block already holds; it is
    /// written again with equal bytes (JA-2).
    tail: usize,
}

impl Bench {
    fn new() -> Bench {
        Bench { block: AlignedBuf::zeroed(0), tail: 0 }
    }

    /// Room for a frame of `len` bytes behind the tail, and zeros from there to the end of the block.
    fn lay(&mut self, len: usize) -> &mut [u8] {
        let used = self.tail + len;
        let whole = used.next_multiple_of(DIRECT_ALIGN);
        if self.block.len() < whole {
            let mut larger = AlignedBuf::zeroed(whole);
            larger[..self.tail].copy_from_slice(&self.block[..self.tail]);
            self.block = larger;
        }
        self.block[used..whole].fill(0);
        &mut self.block[self.tail..used]
    }
}

#[derive(Debug)]
pub(crate) struct Active {
    file: Arc<dyn LogFile>,
    path: Path,
    bench: Bench,
    keys: WritingKeys,
    header: SegmentHeader,
    pub length: u64,
    pub end: EndRecord,
}

/// Why a frame is not durable. Nothing may be written to this journal any more.
#[derive(Debug)]
pub(crate) struct Lost(pub &'static str);

/// A frame that is durable.
#[derive(Debug)]
pub(crate) struct Written {
    pub header: FrameHeader,
    pub offset: u64,
}

pub(crate) fn segment_name(number: u64) -> Name {
    let file = SegmentName::Log { number }.file_name();
    Name::new(Folder::Segments, &file).expect("digits and a known suffix")
}

impl Active {
    /// Chooses the write path while the file is still `next`: the probe may fail there without harm.
    pub fn new(
        disk: &Arc<dyn Disk>,
        prepared: Prepared,
        next: &Name,
        direct: bool,
        previous: &EndRecord,
    ) -> Result<(Active, Segment), DiskError> {
        let Prepared { file, header, writing, reading, length } = prepared;
        let path = match if direct { probe_direct(&**disk, next, &header)? } else { None } {
            Some(file) => Path::Direct(file),
            None => Path::Portable,
        };
        let end = EndRecord {
            segment: header.number,
            frames: 0,
            end_offset: limits::DATA_START,
            last_sequence: previous.last_sequence,
            chain: previous.chain,
            how: How::CutAtRecovery,
        };
        let segment = Segment::of_writer(disk, segment_name(header.number), header, reading, length);
        Ok((Active { file, path, bench: Bench::new(), keys: writing, header, length, end }, segment))
    }

    /// Bytes that frames may still take, the seal's room left out.
    pub fn usable(&self) -> u64 {
        self.length.saturating_sub(self.end.end_offset + SEAL_BYTES)
    }

    /// The key has sealed so much that the next segment should take over.
    pub fn worn(&self) -> bool {
        self.keys.body.at_soft_limit()
    }

    /// Which file the frames are written to.
    pub fn identity(&self) -> Result<FileId, Lost> {
        self.file.identity().map_err(|e| Lost(cause(&e)))
    }

    pub fn is_direct(&self) -> bool {
        matches!(self.path, Path::Direct(_))
    }

    /// Writes one frame and syncs it. The order is JC-4 and JC-8: seal, write, sync, look for the directory entry.
    pub fn write(&mut self, kind: FrameKind, plaintext: &[u8], records: u32) -> Result<Written, Lost> {
        let (header, head) = self.seal(kind, plaintext, records)?;
        let (offset, frame_bytes) = (self.end.end_offset, header.frame_bytes());
        let lost = |e: DiskError| Lost(cause(&e));
        let written = match &self.path {
            Path::Portable => {
                let frame = &self.bench.block[..frame_bytes as usize];
                io::write_all_at(&*self.file, frame, offset).and_then(|()| self.file.sync_data())
            }
            Path::Direct(file) => write_direct(&**file, &mut self.bench, frame_bytes as usize, offset),
        };
        let linked = written.and_then(|()| self.file.links());
        match linked {
            Ok(links) if links > 0 => {}
            Ok(_) => {
                self.keys.body.retire();
                return Err(Lost("the segment file was removed"));
            }
            Err(e) => {
                self.keys.body.retire();
                return Err(lost(e));
            }
        }
        self.end = EndRecord {
            segment: self.end.segment,
            frames: self.end.frames + 1,
            end_offset: offset + frame_bytes,
            last_sequence: self.end.last_sequence + u64::from(records),
            chain: sealog_seal::chain(&self.end.chain, &head),
            how: if kind == FrameKind::Seal { How::Sealed } else { How::CutAtRecovery },
        };
        Ok(Written { header, offset })
    }

    /// Puts the frame together at its place; returns its header, also as the bytes that stand there.
    fn seal(
        &mut self,
        kind: FrameKind,
        plaintext: &[u8],
        records: u32,
    ) -> Result<(FrameHeader, [u8; limits::FRAME_HEADER_BYTES]), Lost> {
        let too_much = |_| Lost("the segment is full");
        let mut header = FrameHeader {
            body_length: u32::try_from(plaintext.len()).map_err(too_much)?,
            index: u32::try_from(self.end.frames).map_err(too_much)?,
            kind,
            first_sequence: self.end.last_sequence + 1,
            record_count: records,
            synced_through: self.end.last_sequence,
            previous_chain: self.end.chain,
            body_crc: 0,
            body_tag: [0; 16],
            header_tag: [0; 16],
        };
        let context = header.body_context(&self.header.store_id, self.header.number);
        let frame = self.bench.lay(limits::FRAME_HEADER_BYTES + plaintext.len());
        let (head, body) = frame.split_at_mut(limits::FRAME_HEADER_BYTES);
        body.copy_from_slice(plaintext);
        header.body_tag = self
            .keys
            .body
            .seal(self.end.frames, &context, body)
            .map_err(|_| Lost("the segment's key is used up"))?;
        header.body_crc = crc32(body);
        header.header_tag = self.keys.header.tag(&header.tagged_bytes());
        let encoded = header.encode();
        head.copy_from_slice(&encoded);
        Ok((header, encoded))
    }

    /// The seal frame of an orderly end, unless the key must not be used again (`bare`); then the unused zeros go. The
    /// trim needs no sync: a start finds either length and the same end.
    pub fn end_orderly(&mut self, bare: bool) -> Result<(), Lost> {
        if bare {
            self.keys.body.retire();
        } else {
            let body = EndRecord { how: How::Sealed, ..self.end }.encode();
            self.write(FrameKind::Seal, &body, 0)?;
        }
        if let Err(e) = self.file.set_length(self.end.end_offset) {
            tracing::warn!(kind = ?e.kind, "an ended segment keeps its unused zeros");
        }
        Ok(())
    }

    /// Closes the handles; the error of a close is as final as that of a sync.
    pub fn close(self) -> Result<(), Lost> {
        let lost = |e: DiskError| Lost(cause(&e));
        if let Path::Direct(file) = &self.path {
            file.close().map_err(lost)?;
        }
        self.file.sync_all().map_err(lost)?;
        self.file.close().map_err(lost)
    }
}

/// Writes the kept part of the last block, the frame, and zeros up to the next block, which the file holds already.
fn write_direct(file: &dyn LogFile, bench: &mut Bench, frame: usize, offset: u64) -> Result<(), DiskError> {
    let start = offset - bench.tail as u64;
    let used = bench.tail + frame;
    io::write_all_durable_at(file, &bench.block[..used.next_multiple_of(DIRECT_ALIGN)], start)?;
    let kept = used - used % DIRECT_ALIGN;
    bench.block.copy_within(kept..used, 0);
    bench.tail = used - kept;
    Ok(())
}

/// The cause of a poisoned writer in fixed words.
pub(crate) fn cause(e: &DiskError) -> &'static str {
    use sealog_disk::{ErrorKind, Operation};
    match (e.op, e.kind) {
        (Operation::Sync | Operation::SyncDirectory, _) => "a sync failed",
        (Operation::Close, _) => "a close failed",
        (Operation::Write, ErrorKind::Full) => "the disk was full inside a prepared segment",
        (Operation::Write, _) => "a write failed",
        _ => "a storage call failed",
    }
}
