//! The file that a compaction writes: `segments/compact.tmp`, with a data key of its own, sealed frame by frame, synced
//! once. Nothing relies on it before it is renamed, so any error discards it (JC-7).

use std::sync::Arc;

use sealog_disk::{Disk, Folder, LogFile, Name, io};
use sealog_journal_format::checksum::crc32;
use sealog_journal_format::compacted::{FoldedGroup, Sources};
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::segment::SegmentHeader;
use sealog_journal_format::{FrameHeader, FrameKind, limits};

use crate::error::{JournalError, Result};
use crate::folding::Piece;
use crate::shared::Shared;
use crate::writer::prepare::{Keyed, WritingKeys, with_fresh_key};

pub(crate) fn temporary_name() -> Name {
    Name::new(Folder::Segments, "compact.tmp").expect("a constant name is valid")
}

/// Removes `compact.tmp`. It is nobody's, so an error only means that the next start finds it.
pub(crate) fn discard(disk: &dyn Disk) {
    if let Err(e) = disk.remove(&temporary_name()) {
        tracing::debug!(kind = ?e.kind, "segments/compact.tmp was not removed");
    }
}

#[derive(Debug)]
pub(crate) struct Replacement {
    file: Arc<dyn LogFile>,
    pub header: SegmentHeader,
    keys: WritingKeys,
    frames: u64,
    pub offset: u64,
    chain: [u8; 16],
}

impl Replacement {
    /// A new file with both header copies and its sources.
    pub fn create(shared: &Shared, header: SegmentHeader, sources: &Sources) -> Result<Replacement> {
        let disk = &*shared.store.disk;
        let Keyed { header, writing: keys, reading: _ } = with_fresh_key(shared, header)?;
        discard(disk);
        let file = disk.create(&temporary_name())?;
        let bytes = header.encode();
        io::write_all_at(&*file, &bytes, 0)?;
        io::write_all_at(&*file, &bytes, limits::HEADER_BYTES as u64)?;
        let chain = header.link_in.chain;
        let mut replacement =
            Replacement { file, header, keys, frames: 0, offset: limits::DATA_START, chain };
        let body = sources.encode().map_err(|_| JournalError::Misuse("too many sources or runs"))?;
        replacement.frame(FrameKind::Sources, header.link_in.last_sequence + 1, 0, &body)?;
        Ok(replacement)
    }

    /// One folded group; returns the bytes of its frame.
    pub fn group(&mut self, pieces: &[Piece]) -> Result<u64> {
        let streams: Vec<_> = pieces.iter().map(Piece::as_folded).collect();
        let body = FoldedGroup::encode(&streams).map_err(|_| JournalError::Misuse("pieces fit no frame"))?;
        let first = pieces.iter().map(|piece| piece.smallest).min().unwrap_or(0);
        let records = pieces.iter().map(|piece| piece.records).sum();
        self.frame(FrameKind::Folded, first, records, &body)
    }

    /// The seal, then the one sync; returns the file's length.
    pub fn finish(mut self) -> Result<u64> {
        let link_out = self.header.link_out;
        let end = EndRecord {
            segment: self.header.number,
            frames: self.frames,
            end_offset: self.offset,
            last_sequence: link_out.last_sequence,
            chain: self.chain,
            how: How::Sealed,
        };
        self.frame(FrameKind::Seal, link_out.last_sequence + 1, 0, &end.encode())?;
        self.file.sync_all()?;
        self.file.close()?;
        Ok(self.offset)
    }

    fn frame(&mut self, kind: FrameKind, first: u64, records: u32, plaintext: &[u8]) -> Result<u64> {
        let too_much = |_| JournalError::Misuse("the compacted segment is full");
        let mut header = FrameHeader {
            body_length: u32::try_from(plaintext.len()).map_err(too_much)?,
            index: u32::try_from(self.frames).map_err(too_much)?,
            kind,
            first_sequence: first,
            record_count: records,
            synced_through: first - 1,
            previous_chain: self.chain,
            body_crc: 0,
            body_tag: [0; 16],
            header_tag: [0; 16],
        };
        let context = header.body_context(&self.header.store_id, self.header.number);
        let mut frame = vec![0; limits::FRAME_HEADER_BYTES + plaintext.len()];
        let (head, body) = frame.split_at_mut(limits::FRAME_HEADER_BYTES);
        body.copy_from_slice(plaintext);
        header.body_tag = self
            .keys
            .body
            .seal(self.frames, &context, body)
            .map_err(|_| JournalError::Misuse("the key of a compacted segment is used up"))?;
        header.body_crc = crc32(body);
        header.header_tag = self.keys.header.tag(&header.tagged_bytes());
        let bytes = header.encode();
        head.copy_from_slice(&bytes);
        io::write_all_at(&*self.file, &frame, self.offset)?;
        self.frames += 1;
        self.offset += frame.len() as u64;
        self.chain = sealog_seal::chain(&self.chain, &bytes);
        Ok(frame.len() as u64)
    }
}
