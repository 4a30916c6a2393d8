//! Which frames hold a stream's records. Built by the scan at open, extended by the writer after each sync; it
//! knows envelopes only.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;

use sealog_journal_format::journal_records::{Forget, KIND_FORGET};

use self::ended::EndedStreams;
use crate::record::{Class, Record, StreamId};

mod ended;

pub(crate) use ended::{Packer, Run};

/// Where a frame starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FrameRef {
    pub segment: u64,
    pub offset: u64,
}

/// What is known of a stream without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFacts {
    /// Highest event number.
    pub last_event: u64,
    /// Whether a closing record was seen.
    pub closed: bool,
    /// Epoch of the writer of its newest record.
    pub epoch: u64,
    /// Sum of logical sizes, in bytes.
    pub logical_bytes: u64,
    /// Time of its newest record, ms since the epoch.
    pub last_time_ms: u64,
    /// Sequence of its newest record.
    pub last_sequence: u64,
}

impl StreamFacts {
    /// Before the first record.
    const NONE: StreamFacts = StreamFacts {
        last_event: 0,
        closed: false,
        epoch: 0,
        logical_bytes: 0,
        last_time_ms: 0,
        last_sequence: 0,
    };
}

/// A stream that is being written, or is just looked at.
#[derive(Debug)]
struct Entry {
    /// Sequence of its oldest record: an older one of the same id was forgotten.
    first_sequence: u64,
    facts: StreamFacts,
    frames: FrameList,
}

impl Entry {
    /// Without frames, whose places will be in this memory.
    fn new(first_sequence: u64, memory: Vec<u8>) -> Entry {
        let frames = FrameList { bytes: memory, last: None };
        Entry { first_sequence, facts: StreamFacts::NONE, frames }
    }

    /// A run of its records in one segment; how many frames are new to it.
    fn add(&mut self, run: &StreamFacts, frames: impl Iterator<Item = FrameRef>) -> u64 {
        let pushed = frames.filter(|frame| self.frames.push(*frame)).count() as u64;
        let facts = &mut self.facts;
        facts.closed |= run.closed;
        facts.last_event = facts.last_event.max(run.last_event);
        facts.epoch = run.epoch;
        facts.logical_bytes += run.logical_bytes;
        facts.last_time_ms = run.last_time_ms;
        facts.last_sequence = run.last_sequence;
        pushed
    }
}

/// Frame places in order, as varint deltas: two to four bytes each.
#[derive(Debug, Default)]
struct FrameList {
    bytes: Vec<u8>,
    last: Option<FrameRef>,
}

impl FrameList {
    /// `false`: it was there already.
    fn push(&mut self, frame: FrameRef) -> bool {
        let (same, from) = match self.last {
            Some(last) if last == frame => return false,
            Some(last) if last.segment == frame.segment => (true, last),
            Some(last) => (false, last),
            None => (false, FrameRef { segment: 0, offset: 0 }),
        };
        if same {
            push_varint(&mut self.bytes, ((frame.offset - from.offset) / 32) << 1);
        } else {
            push_varint(&mut self.bytes, ((frame.segment - from.segment) << 1) | 1);
            push_varint(&mut self.bytes, frame.offset / 32);
        }
        self.last = Some(frame);
        true
    }

    fn iter(&self) -> Frames<'_> {
        Frames::of(&self.bytes)
    }
}

/// Reads what a [`FrameList`] wrote.
struct Frames<'a> {
    bytes: &'a [u8],
    at: FrameRef,
}

impl Frames<'_> {
    fn of(bytes: &[u8]) -> Frames<'_> {
        Frames { bytes, at: FrameRef { segment: 0, offset: 0 } }
    }
}

impl Iterator for Frames<'_> {
    type Item = FrameRef;

    fn next(&mut self) -> Option<FrameRef> {
        if self.bytes.is_empty() {
            return None;
        }
        let step = take_varint(&mut self.bytes);
        if step & 1 == 0 {
            self.at.offset += (step >> 1) * 32;
        } else {
            self.at.segment += step >> 1;
            self.at.offset = take_varint(&mut self.bytes) * 32;
        }
        Some(self.at)
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads what `push_varint` wrote.
fn take_varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    value
}

/// Stream ids are random, made by the owner of the journal: eight bytes of one are its hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = self.0.rotate_left(29) ^ u64::from_le_bytes(word);
        }
    }

    /// The length prefix of the id array.
    fn write_usize(&mut self, _len: usize) {}
}

/// What a segment file holds, counted in streams for each frame that holds any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub all: u64,
    /// Of streams that have ended.
    pub closed: u64,
    /// Of streams that were forgotten.
    pub dead: u64,
    /// Forget records.
    pub forgets: u64,
}

/// The frames of one file that hold a stream, ascending, under its id and the sequence of its first record there.
pub(crate) type Places = BTreeMap<(StreamId, u64), Vec<FrameRef>>;

#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Streams without a closing record.
    live: HashMap<StreamId, Entry, BuildHasherDefault<IdHasher>>,
    ended: EndedStreams,
    tallies: BTreeMap<u64, Tally>,
    /// Memory of the list of frames that was packed last, for the next one.
    spare: Vec<u8>,
}

impl Index {
    /// Room for the places of a dozen frames of one segment.
    const FRAMES_BYTES: usize = 32;

    pub fn add(&mut self, frame: FrameRef, record: &Record) {
        if record.kind == KIND_FORGET {
            self.tallies.entry(frame.segment).or_default().forgets += 1;
            self.forget(&record.body);
        }
        let Some(stream) = record.stream else { return };
        let run = StreamFacts {
            last_event: record.event_number,
            closed: record.class.contains(Class::CLOSES),
            epoch: record.epoch,
            logical_bytes: record.logical_size,
            last_time_ms: record.time_ms,
            last_sequence: record.sequence,
        };
        self.add_run(stream, record.sequence, &run, frame.segment, std::iter::once(frame.offset));
    }

    /// Before so many packed runs.
    pub fn reserve(&mut self, runs: usize) {
        self.ended.reserve(runs);
    }

    /// A run that was packed beside the index. Most streams have only one, and that one is as it stays.
    pub fn add_packed(&mut self, segment: u64, run: Run) {
        let frames = u64::from(run.frames);
        let ends = run.closes && !self.live.contains_key(&run.stream());
        let Err(run) = (if ends { self.ended.insert_run(run) } else { Err(run) }) else {
            let tally = self.tallies.entry(segment).or_default();
            tally.all += frames;
            tally.closed += frames;
            return;
        };
        let Entry { first_sequence, facts, frames } = run.unpack();
        let offsets = frames.iter().map(|frame| frame.offset);
        self.add_run(run.stream(), first_sequence, &facts, segment, offsets);
    }

    /// A run of a stream's records at once, the first of them with `first_sequence`.
    fn add_run(
        &mut self,
        stream: StreamId,
        first_sequence: u64,
        run: &StreamFacts,
        segment: u64,
        offsets: impl Iterator<Item = u64>,
    ) {
        let frames = offsets.map(|offset| FrameRef { segment, offset });
        if let Some(entry) = self.live.get_mut(&stream) {
            let pushed = entry.add(run, frames);
            self.tallies.entry(segment).or_default().all += pushed;
            if run.closed
                && let Some(entry) = self.live.remove(&stream)
            {
                self.end(stream, entry);
            }
            return;
        }
        let before = self.ended.take(&stream);
        let was_closed = before.is_some();
        let mut entry = before.unwrap_or_else(|| {
            let mut memory = std::mem::take(&mut self.spare);
            memory.reserve(Self::FRAMES_BYTES);
            Entry::new(first_sequence, memory)
        });
        let pushed = entry.add(run, frames);
        let tally = self.tallies.entry(segment).or_default();
        tally.all += pushed;
        if was_closed {
            tally.closed += pushed;
            self.pack(stream, entry);
        } else if entry.facts.closed {
            self.end(stream, entry);
        } else {
            self.live.insert(stream, entry);
        }
    }

    /// A stream has got its closing record.
    fn end(&mut self, stream: StreamId, entry: Entry) {
        for (segment, frames) in by_segment(entry.frames.iter()) {
            self.tallies.entry(segment).or_default().closed += frames;
        }
        self.pack(stream, entry);
    }

    fn pack(&mut self, stream: StreamId, entry: Entry) {
        self.ended.insert(stream, &entry);
        self.spare = entry.frames.bytes;
        self.spare.clear();
    }

    fn forget(&mut self, body: &[u8]) {
        for id in Forget::ids(body).into_iter().flatten() {
            let stream = StreamId(id);
            let entry = self.live.remove(&stream).or_else(|| self.ended.take(&stream));
            let Some(entry) = entry else { continue };
            for (segment, frames) in by_segment(entry.frames.iter()) {
                let tally = self.tallies.entry(segment).or_default();
                tally.closed -= if entry.facts.closed { frames } else { 0 };
                tally.dead += frames;
            }
        }
    }

    pub fn tally(&self, segment: u64) -> Tally {
        self.tallies.get(&segment).copied().unwrap_or_default()
    }

    /// Whether a durable record of this stream is still wanted: nothing behind it forgot its stream.
    pub fn keeps(&self, stream: &StreamId, sequence: u64) -> bool {
        let live = self.live.get(stream).map(|entry| entry.first_sequence);
        live.or_else(|| self.ended.first_sequence(stream)).is_some_and(|first| first <= sequence)
    }

    /// The segments of `range` are one file now, under the number of the first. `places` are those of the streams in it.
    pub fn replace(&mut self, range: RangeInclusive<u64>, places: &Places, forgets: u64) {
        let numbers: Vec<u64> = self.tallies.range(range.clone()).map(|(number, _)| *number).collect();
        for number in numbers {
            self.tallies.remove(&number);
        }
        let mut tally = Tally { forgets, ..Tally::default() };
        for ((stream, first_sequence), frames) in places {
            tally.all += frames.len() as u64;
            // Forgotten since the file was written, or an older one of the same id.
            if !self.keeps(stream, *first_sequence) {
                tally.dead += frames.len() as u64;
                continue;
            }
            let moved = |list: &mut FrameList| {
                let before = std::mem::take(list);
                let below = before.iter().take_while(|frame| frame.segment < *range.start());
                let above = before.iter().filter(|frame| frame.segment > *range.end());
                for frame in below.chain(frames.iter().copied()).chain(above) {
                    list.push(frame);
                }
            };
            if let Some(entry) = self.live.get_mut(stream) {
                moved(&mut entry.frames);
            } else if let Some(mut entry) = self.ended.take(stream) {
                tally.closed += frames.len() as u64;
                moved(&mut entry.frames);
                self.ended.insert(*stream, &entry);
            }
        }
        self.tallies.insert(*range.start(), tally);
    }

    pub fn facts(&self, stream: &StreamId) -> Option<StreamFacts> {
        match self.live.get(stream) {
            Some(entry) => Some(entry.facts),
            None => self.ended.get(stream).map(|entry| entry.facts),
        }
    }

    pub fn frames(&self, stream: &StreamId) -> Option<Vec<FrameRef>> {
        match self.live.get(stream) {
            Some(entry) => Some(entry.frames.iter().collect()),
            None => self.ended.get(stream).map(|entry| entry.frames.iter().collect()),
        }
    }

    /// Streams without a closing record.
    pub fn open_count(&self) -> u64 {
        self.live.len() as u64
    }

    pub fn open_streams(&self) -> Vec<(StreamId, StreamFacts)> {
        let mut open: Vec<_> = self.live.iter().map(|(id, entry)| (*id, entry.facts)).collect();
        open.sort_by_key(|(_, facts)| facts.last_sequence);
        open
    }

    pub fn len(&self) -> usize {
        self.live.len() + self.ended.len()
    }
}

/// How many of the frames lie in each segment.
fn by_segment(frames: Frames<'_>) -> impl Iterator<Item = (u64, u64)> {
    let mut frames = frames.peekable();
    std::iter::from_fn(move || {
        let first = frames.next()?;
        let mut count = 1;
        while frames.next_if(|frame| frame.segment == first.segment).is_some() {
            count += 1;
        }
        Some((first.segment, count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_lists_give_back_what_was_pushed() {
        let mut list = FrameList::default();
        let frames = [(1, 8192), (1, 8192 + 320), (1, 65536), (4, 8192), (4, 64 << 20), (900, 9984)]
            .map(|(segment, offset)| FrameRef { segment, offset });
        for frame in frames {
            list.push(frame);
            list.push(frame);
        }
        assert!(list.iter().eq(frames));
    }

    fn forget(stream: StreamId) -> Record {
        let record = Record {
            kind: KIND_FORGET,
            body: Forget { streams: vec![stream.0] }.encode().unwrap(),
            ..Record::blank()
        };
        Record { class: Class::FORGETS, ..record }
    }

    /// JR-20: whether runs come one after the other or packed makes no difference: streams with one run and with several,
    /// in one segment and in more, that end, come again after their end, are forgotten and come again.
    #[test]
    fn packed_runs_make_the_same_index() {
        let draws = sealog_disk::testing::SeededEntropy::new(5);
        let (mut plain, mut packed) = (Index::default(), Index::default());
        let mut packer = Packer::default();
        let mut again = 0;
        for turn in 1..=4_000_u64 {
            let stream = StreamId([(draws.draw() % 40) as u8; 16]);
            if turn % 19 == 0 {
                let at = FrameRef { segment: 1 + turn / 500, offset: 0 };
                plain.add(at, &forget(stream));
                packed.add(at, &forget(stream));
                continue;
            }
            let facts = StreamFacts {
                last_event: draws.draw() % 1_000,
                closed: draws.draw().is_multiple_of(2),
                epoch: turn / 900,
                logical_bytes: draws.draw() % 100_000,
                last_time_ms: draws.draw() % (1 << 41),
                last_sequence: turn * 20 + draws.draw() % 20,
            };
            let offsets: Vec<u64> =
                (0..1 + draws.draw() % 30).map(|n| 8192 + (turn * 64 + n) * 320).collect();
            let segment = 1 + turn / 500;
            again += u64::from(plain.facts(&stream).is_some_and(|before| before.closed));
            plain.add_run(stream, turn * 20, &facts, segment, offsets.iter().copied());
            let frames = offsets.iter().map(|offset| FrameRef { segment, offset: *offset });
            packed.reserve(1);
            packed.add_packed(segment, packer.run(stream, turn * 20, &facts, frames));
            assert_eq!(packed.facts(&stream), plain.facts(&stream));
            assert_eq!(packed.frames(&stream), plain.frames(&stream));
            assert_eq!(packed.open_streams(), plain.open_streams());
            assert_eq!((packed.len(), &packed.tallies), (plain.len(), &plain.tallies));
        }
        assert!(again > 100, "{again}");
    }

    /// R27: the journal's part of what a retained execution takes, at the number where the table is emptiest. Twelve
    /// events among those of others, 64 to a frame, in segments of 64 MiB. The engine's part is its ledger's to test.
    #[test]
    fn an_ended_stream_takes_little_memory() {
        const STREAMS: u64 = (1 << 17) + 1;
        let mut index = Index::default();
        let mut frame = 0_u64;
        for first in 0..STREAMS {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&first.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
            frame += u64::from(first % 64 == 0);
            let facts = |closed| StreamFacts {
                last_event: 12,
                closed,
                epoch: 3,
                logical_bytes: 12 * 289,
                last_time_ms: 1_800_000_000_000 + first,
                last_sequence: first * 12 + 800,
            };
            let places = (0..12).map(|event| (frame * 12 + event) * 9_312);
            let segment = 1 + frame * 12 * 9_312 / (64 << 20);
            let offsets: Vec<u64> = places.map(|place| 8192 + place % (64 << 20) / 32 * 32).collect();
            let offsets = if offsets.is_sorted() { offsets } else { vec![8192] };
            index.add_run(StreamId(id), first * 12 + 1, &facts(false), segment, offsets[..1].iter().copied());
            index.add_run(StreamId(id), first * 12 + 2, &facts(true), segment, offsets.into_iter());
        }
        assert_eq!((index.len() as u64, index.open_count()), (STREAMS, 0));
        let live = index.live.capacity() * (size_of::<(StreamId, Entry)>() + 1);
        let each = (index.ended.memory_bytes() + live) as u64 / STREAMS;
        assert!(each <= INDEX_BYTES_EACH, "{each} bytes");
    }

    /// With the engine's 200 at most 280.
    const INDEX_BYTES_EACH: u64 = 80;
}
