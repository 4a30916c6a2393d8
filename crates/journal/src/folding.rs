//! The frames of a compacted segment: pieces of streams in, records out (sections 5.3 and 5.4). What the columns of a
//! stream mean is the codec's; here stand the plain form and the rules between the pieces of a frame.

use sealog_journal_format::compacted::{FoldedGroup, FoldedStream};
use sealog_journal_format::limits::RECORDS_MAX;
use sealog_journal_format::record::{GroupEncoder, GroupReader, RecordRef};
use sealog_journal_format::{FrameHeader, FrameKind};

use crate::codec::Codec;
use crate::record::{Record, StreamId};

/// No stream: a piece under this id holds records of any streams, and those of none.
pub(crate) const MIXED: [u8; 16] = [0; 16];

/// The first byte of a piece.
const PLAIN: u8 = 1;
const COLUMNS: u8 = 2;

/// A part of a folded group, encoded.
#[derive(Debug)]
pub(crate) struct Piece {
    pub stream: [u8; 16],
    pub smallest: u64,
    pub largest: u64,
    pub records: u32,
    pub bytes: Vec<u8>,
}

impl Piece {
    /// Records of one finished stream, in sequence order: in columns if the codec knows how, else as they are.
    /// `None` without a record, or if they do not fit a frame.
    pub fn of_stream(codec: &dyn Codec, stream: StreamId, records: &[Record]) -> Option<Piece> {
        match codec.fold(stream, records) {
            Some(mut bytes) if stream.0 != MIXED => {
                bytes.insert(0, COLUMNS);
                Piece::new(stream.0, records, bytes)
            }
            Some(_) | None => Piece::plain(stream.0, records),
        }
    }

    /// Records of any streams, in sequence order.
    pub fn mixed(records: &[Record]) -> Option<Piece> {
        Piece::plain(MIXED, records)
    }

    fn plain(stream: [u8; 16], records: &[Record]) -> Option<Piece> {
        let first = records.first()?;
        let mut bytes = vec![PLAIN];
        put_varint(&mut bytes, records.len() as u64);
        for pair in records.windows(2) {
            put_varint(&mut bytes, pair[1].sequence.checked_sub(pair[0].sequence)?.checked_sub(1)?);
        }
        for run in records.chunk_by(|a, b| a.epoch == b.epoch) {
            put_varint(&mut bytes, run[0].epoch);
            put_varint(&mut bytes, run.len() as u64);
        }
        let mut group = GroupEncoder::new(first.time_ms);
        for record in records {
            group.push(&as_ref(record)).ok()?;
        }
        bytes.extend_from_slice(&group.finish());
        Piece::new(stream, records, bytes)
    }

    fn new(stream: [u8; 16], records: &[Record], bytes: Vec<u8>) -> Option<Piece> {
        let (smallest, largest) = (records.first()?.sequence, records.last()?.sequence);
        let records = u32::try_from(records.len()).ok().filter(|records| *records <= RECORDS_MAX)?;
        Some(Piece { stream, smallest, largest, records, bytes })
    }

    pub fn as_folded(&self) -> FoldedStream<'_> {
        FoldedStream {
            stream: self.stream,
            smallest_sequence: self.smallest,
            largest_sequence: self.largest,
            bytes: &self.bytes,
        }
    }
}

fn as_ref(record: &Record) -> RecordRef<'_> {
    RecordRef {
        kind: record.kind,
        class: record.class,
        stream: record.stream.map(|stream| stream.0),
        event_number: record.event_number,
        time_ms: record.time_ms,
        logical_size: record.logical_size,
        body: &record.body,
    }
}

/// The records of a frame in sequence order: all of them, or those that may be of stream `only`. `None`: the body is
/// not what its header and the codec say.
pub(crate) fn records(
    codec: &dyn Codec,
    header: &FrameHeader,
    plaintext: &[u8],
    epoch: u64,
    only: Option<StreamId>,
) -> Option<Vec<Record>> {
    match header.kind {
        FrameKind::Group => group(header, plaintext, epoch, only),
        FrameKind::Folded => folded(codec, header, plaintext, only),
        FrameKind::Link | FrameKind::Seal | FrameKind::Sources => Some(Vec::new()),
    }
}

/// All of them are read, so that a group is judged as one; what nobody asked for is not copied.
fn group(header: &FrameHeader, plaintext: &[u8], epoch: u64, only: Option<StreamId>) -> Option<Vec<Record>> {
    let group = GroupReader::new(plaintext, header.record_count).ok()?;
    let mut wanted = Vec::new();
    for (record, sequence) in group.zip(header.first_sequence..) {
        let record = record.ok()?;
        if only.is_none_or(|only| record.stream == Some(only.0)) {
            wanted.push(owned(&record, sequence, epoch));
        }
    }
    Some(wanted)
}

fn owned(record: &RecordRef<'_>, sequence: u64, epoch: u64) -> Record {
    Record {
        sequence,
        kind: record.kind,
        stream: record.stream.map(StreamId),
        class: record.class,
        event_number: record.event_number,
        time_ms: record.time_ms,
        logical_size: record.logical_size,
        body: record.body.to_vec(),
        epoch,
    }
}

fn folded(
    codec: &dyn Codec,
    header: &FrameHeader,
    plaintext: &[u8],
    only: Option<StreamId>,
) -> Option<Vec<Record>> {
    let pieces = FoldedGroup::decode(plaintext).ok()?;
    let smallest = pieces.iter().map(|piece| piece.smallest_sequence).min()?;
    if smallest != header.first_sequence {
        return None;
    }
    let wanted =
        |piece: &&FoldedStream<'_>| only.is_none_or(|only| piece.stream == only.0 || piece.stream == MIXED);
    let mut all = Vec::new();
    for piece in pieces.iter().filter(wanted) {
        all.extend(piece_records(codec, piece)?);
    }
    if only.is_none() && all.len() != header.record_count as usize {
        return None;
    }
    all.sort_unstable_by_key(|record| record.sequence);
    all.windows(2).all(|pair| pair[0].sequence < pair[1].sequence).then_some(all)
}

fn piece_records(codec: &dyn Codec, piece: &FoldedStream<'_>) -> Option<Vec<Record>> {
    let (form, bytes) = piece.bytes.split_first()?;
    let records = match *form {
        PLAIN => plain_records(piece.smallest_sequence, bytes)?,
        COLUMNS if piece.stream != MIXED => {
            codec.unfold(StreamId(piece.stream), piece.smallest_sequence, bytes).ok()?
        }
        _ => return None,
    };
    let ends = (records.first()?.sequence, records.last()?.sequence);
    let ascend = records.windows(2).all(|pair| pair[0].sequence < pair[1].sequence);
    let own = |record: &Record| record.stream == Some(StreamId(piece.stream));
    let in_place = ends == (piece.smallest_sequence, piece.largest_sequence) && ascend;
    (in_place && (piece.stream == MIXED || records.iter().all(own))).then_some(records)
}

fn plain_records(first_sequence: u64, mut bytes: &[u8]) -> Option<Vec<Record>> {
    let count =
        u32::try_from(take_varint(&mut bytes)?).ok().filter(|count| (1..=RECORDS_MAX).contains(count))?;
    if count as usize > bytes.len() {
        return None;
    }
    let mut places = vec![(first_sequence, 0); count as usize];
    for at in 1..places.len() {
        let step = take_varint(&mut bytes)?.checked_add(1)?;
        places[at].0 = places[at - 1].0.checked_add(step)?;
    }
    let mut at = 0;
    while at < places.len() {
        let (epoch, run) = (take_varint(&mut bytes)?, usize::try_from(take_varint(&mut bytes)?).ok()?);
        let end = at.checked_add(run).filter(|end| *end > at && *end <= places.len())?;
        places[at..end].iter_mut().for_each(|place| place.1 = epoch);
        at = end;
    }
    let group = GroupReader::new(bytes, count).ok()?;
    group.zip(places).map(|(record, (sequence, epoch))| Some(owned(&record.ok()?, sequence, epoch))).collect()
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// LEB128 in shortest form.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    const BYTES_MAX: usize = 10;
    let mut value = 0;
    for at in 0..BYTES_MAX {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        // The tenth byte holds bit 63 alone.
        if (at == BYTES_MAX - 1 && byte > 1) || (byte == 0 && at > 0) {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
