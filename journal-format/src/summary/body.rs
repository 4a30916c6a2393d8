//! The body of a summary (JF-22): the journal's own records, marks, and each stream's pieces. Written from values,
//! read as iterators over the bytes; checked as a whole before anything of it is believed.

use crate::cursor::{Cursor, push_varint};
use crate::error::{FormatError, Why};
use crate::journal_records::{KIND_FORGET, KIND_JOURNAL_MAX};
use crate::limits::{
    BODY_ALIGN, DATA_START, DIGEST_BYTES_MAX, FRAME_ALIGN, RECORD_BYTES_MAX, SEQUENCE_MAX,
    SUMMARY_BODY_BYTES_MAX, SUMMARY_MARKS_MAX, SUMMARY_OWN_MAX, TIME_MS_MAX, padded,
};
use crate::record::{Class, RecordRef};

const CLOSES: u8 = 1;
/// Four fields and an empty body.
const OWN_BYTES_MIN: usize = 5;
const MARK_BYTES_MIN: usize = 2;
/// An id, eleven numbers, one frame, an empty digest.
const PIECE_BYTES_MIN: usize = 16 + 12;

/// A record of the journal itself, verbatim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRecord<'a> {
    pub sequence: u64,
    pub kind: u16,
    /// Of its writer.
    pub epoch: u64,
    pub time_ms: u64,
    pub body: &'a [u8],
}

impl<'a> OwnRecord<'a> {
    /// As it stands in its group: of no stream, no event, of no size.
    pub fn as_record(&self) -> RecordRef<'a> {
        let class = if self.kind == KIND_FORGET { Class::FORGETS } else { Class::NONE };
        let OwnRecord { kind, time_ms, body, .. } = *self;
        RecordRef { kind, class, stream: None, event_number: 0, time_ms, logical_size: 0, body }
    }
}

/// Where the frame with this first sequence starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub sequence: u64,
    pub offset: u64,
}

/// What a run of one stream's records comes to. A stream has a second piece only where a record of the journal's own
/// that speaks of it stands between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// How many of the own records come before it.
    pub behind: u64,
    pub stream: [u8; 16],
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub records: u64,
    /// Highest event number.
    pub last_event: u64,
    /// Whether a closing record is in it.
    pub closes: bool,
    /// Of the writer of its newest record.
    pub epoch: u64,
    pub last_time_ms: u64,
    /// Sum of logical sizes.
    pub logical_bytes: u64,
    /// Sum of bodies as they stand in their frames, 32 for each envelope.
    pub stored_bytes: u64,
    /// Where the frames start that hold its records, ascending.
    pub offsets: Offsets<'a>,
    pub digest: &'a [u8],
}

/// Frame offsets as they are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets<'a> {
    bytes: &'a [u8],
    count: usize,
    last: u64,
}

impl Offsets<'_> {
    /// Of a piece that is still to be written.
    pub const NONE: Self = Self { bytes: &[], count: 0, last: 0 };

    /// The highest; 0: there is none.
    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// In order. What does not read back ends it; a checked summary has none of that.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let mut cursor = Cursor::new(self.bytes);
        let mut at = DATA_START;
        (0..self.count).map_while(move |_| {
            at = at.checked_add(cursor.varint("offset").ok()?.checked_mul(FRAME_ALIGN)?)?;
            Some(at)
        })
    }
}

/// Builds a body. Own records, marks and pieces are pushed in order; a piece names its place among the own records.
#[derive(Debug)]
pub struct SummaryWriter {
    newest_time_ms: u64,
    first_sequence: u64,
    own: Vec<u8>,
    owns: u64,
    marks: Vec<u8>,
    marked: u64,
    mark: Mark,
    pieces: Vec<u8>,
    pieced: u64,
    behind: u64,
}

impl SummaryWriter {
    /// `first_sequence` is the smallest of the segment, `newest_time_ms` the highest time of it, to which the others
    /// are given.
    pub fn new(first_sequence: u64, newest_time_ms: u64) -> SummaryWriter {
        let mark = Mark { sequence: first_sequence, offset: DATA_START };
        SummaryWriter {
            newest_time_ms,
            first_sequence,
            own: Vec::new(),
            owns: 0,
            marks: Vec::new(),
            marked: 0,
            mark,
            pieces: Vec::new(),
            pieced: 0,
            behind: 0,
        }
    }

    fn time(&self, time_ms: u64) -> u64 {
        // Both are at most TIME_MS_MAX, so the distance fits.
        let distance = time_ms.wrapping_sub(self.newest_time_ms) as i64;
        ((distance << 1) ^ (distance >> 63)) as u64
    }

    pub fn own(&mut self, record: &OwnRecord<'_>) {
        let time = self.time(record.time_ms);
        let sequence = record.sequence.saturating_sub(self.first_sequence);
        for value in [sequence, u64::from(record.kind), record.epoch, time, record.body.len() as u64] {
            push_varint(&mut self.own, value);
        }
        self.own.extend_from_slice(record.body);
        self.owns += 1;
    }

    pub fn mark(&mut self, mark: Mark) {
        push_varint(&mut self.marks, mark.sequence.saturating_sub(self.mark.sequence));
        push_varint(&mut self.marks, mark.offset.saturating_sub(self.mark.offset) / FRAME_ALIGN);
        self.mark = mark;
        self.marked += 1;
    }

    /// `piece.offsets` is not looked at; the offsets come beside it.
    pub fn piece(&mut self, piece: &Piece<'_>, offsets: &[u64]) {
        let time = self.time(piece.last_time_ms);
        let out = &mut self.pieces;
        push_varint(out, piece.behind.saturating_sub(self.behind));
        self.behind = piece.behind;
        out.extend_from_slice(&piece.stream);
        push_varint(out, piece.first_sequence.saturating_sub(self.first_sequence));
        push_varint(out, piece.last_sequence.saturating_sub(piece.first_sequence));
        push_varint(out, piece.records);
        push_varint(out, piece.last_event);
        out.push(if piece.closes { CLOSES } else { 0 });
        for value in [piece.epoch, time, piece.logical_bytes, piece.stored_bytes, offsets.len() as u64] {
            push_varint(out, value);
        }
        let mut before = DATA_START;
        for offset in offsets {
            push_varint(out, offset.saturating_sub(before) / FRAME_ALIGN);
            before = *offset;
        }
        push_varint(out, piece.digest.len() as u64);
        out.extend_from_slice(piece.digest);
        self.pieced += 1;
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.own.len() + self.marks.len() + self.pieces.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The body, padded.
    ///
    /// # Errors
    /// Longer than a summary may be, or pushed out of order or out of bounds.
    pub fn finish(self) -> Result<Vec<u8>, FormatError> {
        let mut out = Vec::with_capacity(self.len() + 128);
        push_varint(&mut out, self.first_sequence);
        push_varint(&mut out, self.newest_time_ms);
        push_varint(&mut out, self.owns);
        out.extend_from_slice(&self.own);
        push_varint(&mut out, self.marked);
        out.extend_from_slice(&self.marks);
        push_varint(&mut out, self.pieced);
        out.extend_from_slice(&self.pieces);
        out.resize(padded(out.len()), 0);
        SummaryReader::new(&out)?;
        Ok(out)
    }
}

/// An opened body, checked as a whole.
#[derive(Clone, Debug)]
pub struct SummaryReader<'a> {
    pub own: Vec<OwnRecord<'a>>,
    pub marks: Vec<Mark>,
    base: Base,
    pieces: Cursor<'a>,
    count: usize,
    last_sequence: u64,
    last_offset: u64,
}

#[derive(Clone, Copy, Debug)]
struct Base {
    first_sequence: u64,
    time_ms: u64,
}

impl<'a> SummaryReader<'a> {
    /// # Errors
    /// Length, counts above what is there, values out of range or order, anything but zeros behind.
    pub fn new(body: &'a [u8]) -> Result<SummaryReader<'a>, FormatError> {
        let mut reader = SummaryReader::open(body)?;
        reader.check(|_| {})?;
        Ok(reader)
    }

    /// Of a body that was accepted, or still is to be by [`SummaryReader::check`]: the pieces are not looked at before they
    /// are read.
    ///
    /// # Errors
    /// As there.
    pub fn open(body: &'a [u8]) -> Result<SummaryReader<'a>, FormatError> {
        if body.len() > SUMMARY_BODY_BYTES_MAX {
            return Err(Why::TooLong.of("body length", 0));
        }
        if body.is_empty() || !body.len().is_multiple_of(BODY_ALIGN) {
            return Err(Why::OutOfRange.of("body length", 0));
        }
        let mut cursor = Cursor::new(body);
        let first_sequence = cursor.varint("first sequence")?;
        let time_ms = cursor.varint("base time")?;
        if first_sequence == 0 || first_sequence > SEQUENCE_MAX || time_ms > TIME_MS_MAX {
            return Err(Why::OutOfRange.of("base", 0));
        }
        let base = Base { first_sequence, time_ms };
        let count = cursor.count(OWN_BYTES_MIN, "own count")?;
        if count > SUMMARY_OWN_MAX {
            return Err(Why::TooLong.of("own count", 0));
        }
        let mut own = Vec::with_capacity(count);
        for _ in 0..count {
            own.push(base.own(&mut cursor, own.last())?);
        }
        let count = cursor.count(MARK_BYTES_MIN, "mark count")?;
        if count > SUMMARY_MARKS_MAX {
            return Err(Why::TooLong.of("mark count", 0));
        }
        let mut marks: Vec<Mark> = Vec::with_capacity(count);
        for _ in 0..count {
            marks.push(base.mark(&mut cursor, marks.last())?);
        }
        let count = cursor.count(PIECE_BYTES_MIN, "piece count")?;
        Ok(SummaryReader { own, marks, base, pieces: cursor, count, last_sequence: 0, last_offset: 0 })
    }

    /// Looks at all pieces, and hands them out meanwhile: what comes of them counts once the whole body was accepted.
    ///
    /// # Errors
    /// As [`SummaryReader::new`].
    pub fn check(&mut self, mut each: impl FnMut(&Piece<'a>)) -> Result<(), FormatError> {
        let mut pieces = self.pieces();
        let (mut last_sequence, mut last_offset) = (0, DATA_START);
        while let Some(piece) = pieces.read_next()? {
            each(&piece);
            last_sequence = last_sequence.max(piece.last_sequence);
            last_offset = last_offset.max(piece.offsets.last());
        }
        let padding = pieces.cursor.padding(BODY_ALIGN);
        let own = self.own.last().map_or(0, |own| own.sequence);
        let (marked, mark) = self.marks.last().map_or((0, 0), |mark| (mark.sequence, mark.offset));
        self.last_sequence = last_sequence.max(own).max(marked);
        self.last_offset = last_offset.max(mark);
        padding
    }

    /// The highest sequence that anything here names; known once it was checked.
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// The highest frame offset that anything here names; known once it was checked.
    pub fn last_offset(&self) -> u64 {
        self.last_offset
    }

    /// The highest time of the segment.
    pub fn newest_time_ms(&self) -> u64 {
        self.base.time_ms
    }

    pub fn first_sequence(&self) -> u64 {
        self.base.first_sequence
    }

    /// In the order in which they apply.
    pub fn pieces(&self) -> Pieces<'a> {
        let owns = self.own.len() as u64;
        Pieces { base: self.base, cursor: self.pieces.clone(), left: self.count, owns, behind: 0 }
    }

    pub fn piece_count(&self) -> usize {
        self.count
    }
}

/// The pieces of a summary that was checked.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    base: Base,
    cursor: Cursor<'a>,
    left: usize,
    owns: u64,
    behind: u64,
}

impl<'a> Pieces<'a> {
    fn read_next(&mut self) -> Result<Option<Piece<'a>>, FormatError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let piece = self.base.piece(&mut self.cursor, self.behind)?;
        if piece.behind > self.owns {
            return Err(Why::OutOfRange.of("piece place", self.cursor.position()));
        }
        self.behind = piece.behind;
        Ok(Some(piece))
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        self.read_next().ok().flatten()
    }
}

impl Base {
    fn sequence(&self, cursor: &mut Cursor<'_>, from: u64) -> Result<u64, FormatError> {
        let at = cursor.position();
        let sequence = from.checked_add(cursor.varint("sequence")?);
        sequence.filter(|sequence| *sequence <= SEQUENCE_MAX).ok_or(Why::OutOfRange.of("sequence", at))
    }

    fn time(&self, cursor: &mut Cursor<'_>) -> Result<u64, FormatError> {
        let at = cursor.position();
        let coded = cursor.varint("time")?;
        let distance = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        let time = i64::try_from(self.time_ms).ok().and_then(|base| base.checked_add(distance));
        time.and_then(|time| u64::try_from(time).ok()).ok_or(Why::OutOfRange.of("time", at))
    }

    fn own<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        before: Option<&OwnRecord<'_>>,
    ) -> Result<OwnRecord<'a>, FormatError> {
        let at = cursor.position();
        let sequence = self.sequence(cursor, self.first_sequence)?;
        let kind = cursor.varint("own kind")?;
        let known = u16::try_from(kind).ok().filter(|kind| (1..=KIND_JOURNAL_MAX).contains(kind));
        let kind = known.ok_or(Why::OutOfRange.of("own kind", at))?;
        if before.is_some_and(|before| before.sequence >= sequence) {
            return Err(Why::OutOfRange.of("own sequence", at));
        }
        let epoch = cursor.varint("epoch")?;
        let time_ms = self.time(cursor)?;
        let body = cursor.sized(RECORD_BYTES_MAX, "own length")?;
        let own = OwnRecord { sequence, kind, epoch, time_ms, body };
        own.as_record().check()?;
        Ok(own)
    }

    fn mark(&self, cursor: &mut Cursor<'_>, before: Option<&Mark>) -> Result<Mark, FormatError> {
        let at = cursor.position();
        let from = before.map_or((self.first_sequence, DATA_START), |mark| (mark.sequence, mark.offset));
        let sequence = self.sequence(cursor, from.0)?;
        let offset = offset(cursor, from.1)?;
        if before.is_some_and(|before| before.offset >= offset) {
            return Err(Why::OutOfRange.of("mark offset", at));
        }
        Ok(Mark { sequence, offset })
    }

    fn piece<'a>(&self, cursor: &mut Cursor<'a>, behind: u64) -> Result<Piece<'a>, FormatError> {
        let at = cursor.position();
        let out_of_range = |field| Why::OutOfRange.of(field, at);
        let behind = behind.checked_add(cursor.varint("piece place")?).ok_or(out_of_range("piece place"))?;
        let stream = cursor.array("piece stream")?;
        let first_sequence = self.sequence(cursor, self.first_sequence)?;
        let last_sequence = self.sequence(cursor, first_sequence)?;
        let records = cursor.varint("piece records")?;
        if records == 0 || records - 1 > last_sequence - first_sequence {
            return Err(out_of_range("piece records"));
        }
        let last_event = cursor.varint("last event")?;
        let flags = cursor.byte("piece flags")?;
        if flags & !CLOSES != 0 {
            return Err(Why::NotZero.of("piece flags", cursor.position() - 1));
        }
        let epoch = cursor.varint("epoch")?;
        let last_time_ms = self.time(cursor)?;
        let logical_bytes = cursor.varint("logical bytes")?;
        let stored_bytes = cursor.varint("stored bytes")?;
        let offsets = offsets(cursor)?;
        let digest = cursor.sized(DIGEST_BYTES_MAX, "digest length")?;
        Ok(Piece {
            behind,
            stream,
            first_sequence,
            last_sequence,
            records,
            last_event,
            closes: flags & CLOSES != 0,
            epoch,
            last_time_ms,
            logical_bytes,
            stored_bytes,
            offsets,
            digest,
        })
    }
}

fn offset(cursor: &mut Cursor<'_>, from: u64) -> Result<u64, FormatError> {
    let at = cursor.position();
    let step = cursor.varint("offset")?.checked_mul(FRAME_ALIGN);
    step.and_then(|step| from.checked_add(step)).ok_or(Why::OutOfRange.of("offset", at))
}

fn offsets<'a>(cursor: &mut Cursor<'a>) -> Result<Offsets<'a>, FormatError> {
    let at = cursor.position();
    let count = cursor.count(1, "frame count")?;
    if count == 0 {
        return Err(Why::OutOfRange.of("frame count", at));
    }
    let mut read = cursor.clone();
    let mut from = DATA_START;
    for n in 0..count {
        let next = offset(&mut read, from)?;
        if n > 0 && next == from {
            return Err(Why::OutOfRange.of("offset", at));
        }
        from = next;
    }
    let bytes = cursor.take(read.position() - cursor.position(), "offsets")?;
    Ok(Offsets { bytes, count, last: from })
}
