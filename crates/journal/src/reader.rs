//! Reading durable records by stream and by sequence. A reader holds a position, never a frame.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sealog_disk::{ErrorKind, io};
use sealog_journal_format::checksum::crc32;
use sealog_journal_format::limits;

use crate::cache::{CacheKey, OpenedFrame, Plaintext};
use crate::error::{JournalError, Place, Result};
use crate::folding;
use crate::index::FrameRef;
use crate::record::{Record, StreamId};
use crate::recovery::evidence;
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

/// What a place of the index leads to just now.
enum Found {
    Frame(Arc<Segment>, Arc<OpenedFrame>),
    /// Files were replaced since the place was taken.
    Moved,
}

/// The frame at `at`, a place that was taken when files had been replaced `switches` times; from the cache or the disk.
/// Damage found here stops the writer.
fn frame(shared: &Shared, at: FrameRef, switches: u64) -> Result<Found> {
    let (segment, row) = {
        let catalog = shared.read();
        if catalog.switches != switches {
            return Ok(Found::Moved);
        }
        let row = if catalog.durable.end.segment == at.segment { 8 } else { 3 };
        (catalog.segments.get(&at.segment).map(Arc::clone), row)
    };
    let segment = segment.ok_or(JournalError::Missing { file: "a segment".into() })?;
    let key = CacheKey { generation: segment.header.generation, at };
    let opened = shared.cache.get(key, || {
        shared.write().touch(at.segment);
        open_frame(&segment, at, row).inspect_err(|e| {
            if matches!(e, JournalError::Corrupt { .. }) {
                shared.damaged(e);
            }
        })
    });
    match opened {
        Ok(opened) => Ok(Found::Frame(segment, opened)),
        // Its file was not open yet, and went when it was replaced.
        Err(JournalError::Disk(e)) if e.kind == ErrorKind::NotFound && shared.read().switches != switches => {
            Ok(Found::Moved)
        }
        Err(e) => Err(e),
    }
}

/// A frame that opens and is not the one that the index means: it was put there from elsewhere (R04).
fn elsewhere(shared: &Shared, at: FrameRef, opened: &OpenedFrame) -> JournalError {
    let (frame, sequence) = (u64::from(opened.header.index), opened.header.first_sequence);
    let place = Place { segment: at.segment, frame, offset: at.offset, sequence };
    let error = JournalError::Corrupt { place, row: 7, what: "a frame that belongs elsewhere" };
    shared.damaged(&error);
    error
}

fn records(shared: &Shared, opened: &OpenedFrame, only: Option<StreamId>) -> Option<Vec<Record>> {
    folding::records(&*shared.store.codec, &opened.header, &opened.plaintext, opened.epoch, only)
}

/// The records of one stream from an event number on, as they were durable when the reader was made.
#[derive(Debug)]
pub struct StreamReader {
    shared: Arc<Shared>,
    stream: StreamId,
    from_event: u64,
    frames: VecDeque<FrameRef>,
    /// Of the catalog that `frames` is from.
    switches: u64,
    ready: VecDeque<Record>,
    /// The newest sequence of the stream that was read.
    seen: u64,
    /// The newest one to read.
    through: u64,
    /// Files were replaced meanwhile: a frame may hold what was read from another one.
    moved: bool,
}

impl StreamReader {
    pub(crate) fn new(shared: Arc<Shared>, stream: StreamId, from_event: u64) -> StreamReader {
        let (frames, switches, through) = {
            let catalog = shared.read();
            let frames = catalog.index.frames(&stream).unwrap_or_default();
            (frames.into(), catalog.switches, catalog.durable.end.last_sequence)
        };
        let ready = VecDeque::new();
        StreamReader { shared, stream, from_event, frames, switches, ready, seen: 0, through, moved: false }
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
        let opened = match frame(&self.shared, at, self.switches)? {
            Found::Frame(_, opened) => opened,
            Found::Moved => {
                self.look_again();
                return Ok(());
            }
        };
        let Some(mut records) = records(&self.shared, &opened, Some(self.stream)) else {
            return Err(elsewhere(&self.shared, at, &opened));
        };
        records.retain(|record| record.stream == Some(self.stream));
        if self.moved {
            records.retain(|record| record.sequence > self.seen && record.sequence <= self.through);
        }
        match (records.first(), records.last()) {
            (Some(first), Some(last)) if first.sequence > self.seen => self.seen = last.sequence,
            (None, None) if self.moved => {}
            _ => return Err(elsewhere(&self.shared, at, &opened)),
        }
        records.retain(|record| record.event_number >= self.from_event || record.event_number == 0);
        self.ready.extend(records);
        Ok(())
    }

    /// Where the stream is now.
    fn look_again(&mut self) {
        let catalog = self.shared.read();
        self.frames = catalog.index.frames(&self.stream).unwrap_or_default().into();
        self.switches = catalog.switches;
        drop(catalog);
        self.moved = true;
    }
}

/// All records from a sequence on, up to what was durable when the reader was made.
#[derive(Debug)]
pub struct SequenceReader {
    shared: Arc<Shared>,
    /// The first sequence that was not given out.
    from: u64,
    through: u64,
    next: Option<FrameRef>,
    switches: u64,
    /// First sequence of the next frame, at least.
    expected: u64,
    /// Of a compacted segment: records that a later frame may hold earlier ones than.
    pending: BTreeMap<u64, Record>,
    ready: VecDeque<Record>,
}

impl SequenceReader {
    pub(crate) fn new(shared: Arc<Shared>, from: u64) -> SequenceReader {
        let through = shared.read().durable.end.last_sequence;
        let (pending, ready) = (BTreeMap::new(), VecDeque::new());
        let mut reader =
            SequenceReader { shared, from, through, next: None, switches: 0, expected: 1, pending, ready };
        reader.seek();
        reader
    }

    /// To a frame at or before the first sequence that was not given out.
    fn seek(&mut self) {
        let catalog = self.shared.read();
        let at = catalog.marks.partition_point(|mark| mark.sequence <= self.from);
        let mark = catalog.marks.get(at.saturating_sub(1));
        self.next = mark.map(|mark| FrameRef { segment: mark.segment, offset: mark.offset });
        self.expected = mark.map_or(1, |mark| mark.sequence);
        self.switches = catalog.switches;
        drop(catalog);
        self.pending.clear();
    }

    fn load(&mut self) -> Result<bool> {
        let Some(at) = self.next else { return Ok(false) };
        let (segment, opened) = match frame(&self.shared, at, self.switches) {
            Ok(Found::Frame(segment, opened)) => (segment, opened),
            Ok(Found::Moved) => {
                self.seek();
                return Ok(true);
            }
            Err(e) => {
                self.next = None;
                return Err(e);
            }
        };
        let first = opened.header.first_sequence;
        let in_place = if segment.is_compacted() { first >= self.expected } else { first == self.expected };
        let Some(records) = records(&self.shared, &opened, None).filter(|_| in_place) else {
            self.next = None;
            return Err(elsewhere(&self.shared, at, &opened));
        };
        self.expected = if segment.is_compacted() { first } else { opened.header.next_sequence() };
        self.give_out(first);
        self.pending.extend(records.into_iter().map(|record| (record.sequence, record)));
        let offset = at.offset + opened.header.frame_bytes();
        let ended = self.shared.read().ends.get(&at.segment).is_some_and(|end| offset >= *end);
        if !segment.is_compacted() || ended {
            self.give_out(u64::MAX);
        }
        if ended && segment.is_compacted() {
            self.expected = segment.header.link_out.last_sequence + 1;
        }
        self.next = (self.expected <= self.through).then_some(match ended {
            true => FrameRef { segment: segment.last() + 1, offset: limits::DATA_START },
            false => FrameRef { segment: at.segment, offset },
        });
        Ok(true)
    }

    /// What lies before `below` comes before all of the next frames.
    fn give_out(&mut self, below: u64) {
        let rest = self.pending.split_off(&below);
        for (sequence, record) in std::mem::replace(&mut self.pending, rest) {
            if sequence >= self.from && sequence <= self.through {
                self.from = sequence + 1;
                self.ready.push_back(record);
            }
        }
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
