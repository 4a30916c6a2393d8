//! Reading durable records by stream and by sequence. A reader holds a position, never a frame.

use std::collections::VecDeque;
use std::sync::Arc;

use sealog_disk::{ErrorKind, io};
use sealog_journal_format::checksum::crc32;
use sealog_journal_format::limits;

use crate::cache::{OpenedFrame, Plaintext};
use crate::error::{JournalError, Place, Result};
use crate::index::FrameRef;
use crate::record::{Record, StreamId};
use crate::recovery::{evidence, walk};
use crate::segment::Segment;
use crate::shared::Shared;

/// Opens one frame that the index names: every tag is checked again at each read from the disk. `row` is the row of
/// the decision table that damage here comes under.
fn open_frame(segment: &Segment, at: FrameRef, row: u8) -> Result<OpenedFrame> {
    let mut place = Place { segment: at.segment, frame: 0, offset: at.offset, sequence: 0 };
    let damaged = |place, what| JournalError::Corrupt { place, row, what };
    let file = segment.file()?;
    let read = |bytes: &mut [u8], offset: u64| match io::read_exact_at(&*file, bytes, offset) {
        Err(e) if e.kind == ErrorKind::ShortRead => Err(damaged(place, "a frame is cut short")),
        other => Ok(other?),
    };
    let mut head = [0; limits::FRAME_HEADER_BYTES];
    read(&mut head, at.offset)?;
    let header = evidence::authentic(segment, &head)
        .ok_or_else(|| damaged(place, "a frame header does not read back"))?;
    let mut body = vec![0; header.body_length as usize];
    read(&mut body, at.offset + limits::FRAME_HEADER_BYTES as u64)?;
    (place.frame, place.sequence) = (u64::from(header.index), header.first_sequence);
    if crc32(&body) != header.body_crc {
        return Err(damaged(place, "a frame body does not read back"));
    }
    let context = header.body_context(&segment.header.store_id, segment.number);
    segment
        .keys
        .body
        .open(u64::from(header.index), &context, &mut body, &header.body_tag)
        .map_err(|_| damaged(place, "a frame body does not authenticate"))?;
    Ok(OpenedFrame { header, epoch: segment.header.epoch, plaintext: Plaintext::new(body) })
}

/// The frame at `at`, from the cache or the disk. Damage found here stops the writer.
fn frame(shared: &Shared, at: FrameRef) -> Result<Arc<OpenedFrame>> {
    shared.cache.get(at, || {
        let (segment, row) = {
            let mut catalog = shared.write();
            catalog.touch(at.segment);
            let row = if catalog.durable.end.segment == at.segment { 8 } else { 3 };
            (catalog.segments.get(&at.segment).map(Arc::clone), row)
        };
        let segment = segment.ok_or(JournalError::Missing { file: "a segment".into() })?;
        open_frame(&segment, at, row).inspect_err(|e| {
            if matches!(e, JournalError::Corrupt { .. }) {
                shared.poison(DAMAGE);
            }
        })
    })
}

/// A frame that opens and is not the one that the index means: it was put there from elsewhere (R04).
fn elsewhere(shared: &Shared, at: FrameRef, opened: &OpenedFrame) -> JournalError {
    shared.poison(DAMAGE);
    let (frame, sequence) = (u64::from(opened.header.index), opened.header.first_sequence);
    let place = Place { segment: at.segment, frame, offset: at.offset, sequence };
    JournalError::Corrupt { place, row: 7, what: "a frame that belongs elsewhere" }
}

const DAMAGE: &str = "damage was found while reading";

/// The records of one stream from an event number on, as they were durable when the reader was made.
#[derive(Debug)]
pub struct StreamReader {
    shared: Arc<Shared>,
    stream: StreamId,
    from_event: u64,
    frames: VecDeque<FrameRef>,
    ready: VecDeque<Record>,
    /// The newest sequence of the stream that was read.
    seen: u64,
}

impl StreamReader {
    pub(crate) fn new(shared: Arc<Shared>, stream: StreamId, from_event: u64) -> StreamReader {
        let frames = shared.read().index.frames(&stream).unwrap_or_default().into();
        StreamReader { shared, stream, from_event, frames, ready: VecDeque::new(), seen: 0 }
    }
}

impl Iterator for StreamReader {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Some(Ok(record));
            }
            let at = self.frames.pop_front()?;
            if let Err(e) = self.load(at) {
                self.frames.clear();
                return Some(Err(e));
            }
        }
    }
}

impl StreamReader {
    /// A frame of the index holds records of the stream, all newer than those of the frames before it.
    fn load(&mut self, at: FrameRef) -> Result<()> {
        let opened = frame(&self.shared, at)?;
        let mut records = walk::records(&opened.header, &opened.plaintext, opened.epoch);
        records.retain(|record| record.stream == Some(self.stream));
        match (records.first(), records.last()) {
            (Some(first), Some(last)) if first.sequence > self.seen => self.seen = last.sequence,
            _ => return Err(elsewhere(&self.shared, at, &opened)),
        }
        records.retain(|record| record.event_number >= self.from_event || record.event_number == 0);
        self.ready.extend(records);
        Ok(())
    }
}

/// All records from a sequence on, up to what was durable when the reader was made.
#[derive(Debug)]
pub struct SequenceReader {
    shared: Arc<Shared>,
    from: u64,
    through: u64,
    next: Option<FrameRef>,
    /// First sequence of the next frame.
    expected: u64,
    ready: VecDeque<Record>,
}

impl SequenceReader {
    pub(crate) fn new(shared: Arc<Shared>, from: u64) -> SequenceReader {
        let (through, next, expected) = {
            let catalog = shared.read();
            let at = catalog.marks.partition_point(|mark| mark.sequence <= from);
            let mark = catalog.marks.get(at.saturating_sub(1));
            let next = mark.map(|mark| FrameRef { segment: mark.segment, offset: mark.offset });
            (catalog.durable.end.last_sequence, next, mark.map_or(1, |mark| mark.sequence))
        };
        SequenceReader { shared, from, through, next, expected, ready: VecDeque::new() }
    }

    /// The frame behind one that was read: in the same segment, or the first of the next one.
    fn behind(&self, at: FrameRef, opened: &OpenedFrame) -> FrameRef {
        let offset = at.offset + opened.header.frame_bytes();
        let ended = self.shared.read().ends.get(&at.segment).is_some_and(|end| offset >= *end);
        match ended {
            true => FrameRef { segment: at.segment + 1, offset: limits::DATA_START },
            false => FrameRef { segment: at.segment, offset },
        }
    }

    fn load(&mut self) -> Result<bool> {
        let Some(at) = self.next else { return Ok(false) };
        let opened = match frame(&self.shared, at) {
            Ok(opened) => opened,
            Err(e) => {
                self.next = None;
                return Err(e);
            }
        };
        if opened.header.first_sequence != self.expected {
            self.next = None;
            return Err(elsewhere(&self.shared, at, &opened));
        }
        self.expected = opened.header.next_sequence();
        let records = walk::records(&opened.header, &opened.plaintext, opened.epoch);
        let (from, through) = (self.from, self.through);
        self.ready.extend(records.into_iter().filter(|r| r.sequence >= from && r.sequence <= through));
        let seen = opened.header.next_sequence() - 1;
        self.next = (seen < self.through).then(|| self.behind(at, &opened));
        Ok(true)
    }
}

impl Iterator for SequenceReader {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Some(Ok(record));
            }
            match self.load() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}
