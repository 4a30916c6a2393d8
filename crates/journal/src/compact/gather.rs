//! Records in sequence order in, pieces of streams out, in the order of their smallest sequences. Holds what belongs to
//! streams that have not come to their end, and little else.

use std::collections::{BTreeMap, HashMap};

use crate::codec::Codec;
use crate::error::JournalError;
use crate::folding::Piece;
use crate::record::{Record, StreamId};

/// Bytes of bodies of one piece; a longer stream is several.
const PIECE_BYTES: usize = 512 << 10;
/// Records of one piece.
const PIECE_RECORDS: usize = 16_384;
/// Bytes of bodies that wait for their streams' ends; above that all become pieces.
const HELD_BYTES_MAX: usize = 48 << 20;
/// What a record takes beside its body.
const RECORD_BYTES: usize = 128;

#[derive(Debug, Default)]
struct Buffer {
    records: Vec<Record>,
    bytes: usize,
}

pub(crate) struct Gather<'a> {
    codec: &'a dyn Codec,
    streams: HashMap<StreamId, Buffer>,
    /// Records of streams that go on, and of no stream.
    mixed: Buffer,
    held_bytes: usize,
    /// First sequences of all buffers.
    firsts: BTreeMap<u64, ()>,
    /// Pieces by their smallest sequence; those below every buffer are due.
    done: BTreeMap<u64, Piece>,
}

/// What is known of a record's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It has ended, and this is not its last record.
    Ended,
    /// It has ended with this record.
    Last,
    /// It goes on, or there is no stream.
    Open,
}

impl<'a> Gather<'a> {
    pub fn new(codec: &'a dyn Codec) -> Gather<'a> {
        Gather {
            codec,
            streams: HashMap::new(),
            mixed: Buffer::default(),
            held_bytes: 0,
            firsts: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }

    pub fn push(&mut self, record: Record, fate: Fate) -> Result<(), JournalError> {
        let size = record.body.len() + RECORD_BYTES;
        self.held_bytes += size;
        let stream = record.stream.filter(|_| fate != Fate::Open);
        let buffer = match stream {
            Some(stream) => self.streams.entry(stream).or_default(),
            None => &mut self.mixed,
        };
        if buffer.records.is_empty() {
            self.firsts.insert(record.sequence, ());
        }
        buffer.bytes += size;
        buffer.records.push(record);
        let whole = buffer.bytes >= PIECE_BYTES || buffer.records.len() >= PIECE_RECORDS;
        match stream {
            Some(stream) if whole || fate == Fate::Last => self.close_stream(stream)?,
            None if whole => self.close_mixed()?,
            Some(_) | None => {}
        }
        if self.held_bytes > HELD_BYTES_MAX {
            self.close_all()?;
        }
        Ok(())
    }

    /// Nothing more comes.
    pub fn close_all(&mut self) -> Result<(), JournalError> {
        let streams: Vec<StreamId> = self.streams.keys().copied().collect();
        streams.into_iter().try_for_each(|stream| self.close_stream(stream))?;
        self.close_mixed()
    }

    /// The next piece that no later one can come before.
    pub fn next_due(&mut self) -> Option<Piece> {
        let first = self.firsts.first_key_value().map_or(u64::MAX, |(first, ())| *first);
        let entry = self.done.first_entry().filter(|entry| *entry.key() < first)?;
        Some(entry.remove())
    }

    fn close_stream(&mut self, stream: StreamId) -> Result<(), JournalError> {
        let Some(buffer) = self.streams.remove(&stream) else { return Ok(()) };
        let piece = Piece::of_stream(self.codec, stream, &buffer.records);
        self.close(&buffer, piece)
    }

    fn close_mixed(&mut self) -> Result<(), JournalError> {
        let buffer = std::mem::take(&mut self.mixed);
        let piece = Piece::mixed(&buffer.records);
        self.close(&buffer, piece)
    }

    fn close(&mut self, buffer: &Buffer, piece: Option<Piece>) -> Result<(), JournalError> {
        let Some(first) = buffer.records.first() else { return Ok(()) };
        self.firsts.remove(&first.sequence);
        self.held_bytes -= buffer.bytes;
        let piece = piece.ok_or(JournalError::Misuse("records that fit no piece"))?;
        self.done.insert(piece.smallest, piece);
        Ok(())
    }
}

/// Pieces for one frame.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub pieces: Vec<Piece>,
    bytes: usize,
    records: u64,
}

impl Batch {
    /// Whether this piece must begin another frame: the soft bound of groups, the most records, no stream twice.
    pub fn is_closed_to(&self, piece: &Piece) -> bool {
        use sealog_journal_format::limits::{GROUP_BYTES_SOFT, RECORDS_MAX};
        !self.pieces.is_empty()
            && (self.bytes + piece.bytes.len() > GROUP_BYTES_SOFT
                || self.records + u64::from(piece.records) > u64::from(RECORDS_MAX)
                || self.pieces.iter().any(|held| held.stream == piece.stream))
    }

    pub fn push(&mut self, piece: Piece) {
        self.bytes += piece.bytes.len();
        self.records += u64::from(piece.records);
        self.pieces.push(piece);
    }
}
