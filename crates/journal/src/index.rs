//! Which frames hold a stream's records. Built by the scan at open, extended by the writer after each sync; it
//! knows envelopes only.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;

use sealog_journal_format::journal_records::{Forget, KIND_FORGET};

use crate::record::{Class, Record, StreamId};

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

#[derive(Debug)]
struct Entry {
    /// Sequence of its oldest record: an older one of the same id was forgotten.
    first_sequence: u64,
    facts: StreamFacts,
    frames: FrameList,
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

    fn frames(&self) -> Vec<FrameRef> {
        let mut out = Vec::new();
        let mut bytes = self.bytes.as_slice();
        let mut at = FrameRef { segment: 0, offset: 0 };
        while !bytes.is_empty() {
            let step = take_varint(&mut bytes);
            if step & 1 == 0 {
                at.offset += (step >> 1) * 32;
            } else {
                at.segment += step >> 1;
                at.offset = take_varint(&mut bytes) * 32;
            }
            out.push(at);
        }
        out
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
    streams: HashMap<StreamId, Entry, BuildHasherDefault<IdHasher>>,
    tallies: BTreeMap<u64, Tally>,
    open: u64,
}

impl Index {
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
        self.add_run(stream, record.sequence, &run, std::iter::once(frame));
    }

    /// A run of a stream's records at once, as a summary keeps it, the first of them with `first_sequence`.
    pub fn add_run(
        &mut self,
        stream: StreamId,
        first_sequence: u64,
        run: &StreamFacts,
        frames: impl Iterator<Item = FrameRef>,
    ) {
        let entry = self.streams.entry(stream).or_insert_with(|| {
            self.open += 1;
            Entry { first_sequence, facts: StreamFacts::NONE, frames: FrameList::default() }
        });
        let facts = &mut entry.facts;
        for frame in frames {
            if entry.frames.push(frame) {
                let tally = self.tallies.entry(frame.segment).or_default();
                tally.all += 1;
                tally.closed += u64::from(facts.closed);
            }
        }
        if run.closed && !facts.closed {
            facts.closed = true;
            self.open -= 1;
            for frame in entry.frames.frames() {
                self.tallies.entry(frame.segment).or_default().closed += 1;
            }
        }
        facts.last_event = facts.last_event.max(run.last_event);
        facts.epoch = run.epoch;
        facts.logical_bytes += run.logical_bytes;
        facts.last_time_ms = run.last_time_ms;
        facts.last_sequence = run.last_sequence;
    }

    fn forget(&mut self, body: &[u8]) {
        for id in Forget::ids(body).into_iter().flatten() {
            if let Some(entry) = self.streams.remove(&StreamId(id)) {
                self.open -= u64::from(!entry.facts.closed);
                for frame in entry.frames.frames() {
                    let tally = self.tallies.entry(frame.segment).or_default();
                    tally.closed -= u64::from(entry.facts.closed);
                    tally.dead += 1;
                }
            }
        }
    }

    pub fn tally(&self, segment: u64) -> Tally {
        self.tallies.get(&segment).copied().unwrap_or_default()
    }

    /// Whether a durable record of this stream is still wanted: nothing behind it forgot its stream.
    pub fn keeps(&self, stream: &StreamId, sequence: u64) -> bool {
        self.streams.get(stream).is_some_and(|entry| entry.first_sequence <= sequence)
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
            let entry = self.streams.get_mut(stream).filter(|entry| entry.first_sequence <= *first_sequence);
            let Some(entry) = entry else {
                tally.dead += frames.len() as u64;
                continue;
            };
            tally.closed += if entry.facts.closed { frames.len() as u64 } else { 0 };
            let before = std::mem::take(&mut entry.frames).frames();
            let at = before.partition_point(|frame| frame.segment < *range.start());
            let (below, rest) = before.split_at(at);
            let above = rest.iter().filter(|frame| frame.segment > *range.end());
            for frame in below.iter().chain(frames).chain(above) {
                entry.frames.push(*frame);
            }
        }
        self.tallies.insert(*range.start(), tally);
    }

    pub fn facts(&self, stream: &StreamId) -> Option<StreamFacts> {
        self.streams.get(stream).map(|entry| entry.facts)
    }

    pub fn frames(&self, stream: &StreamId) -> Option<Vec<FrameRef>> {
        self.streams.get(stream).map(|entry| entry.frames.frames())
    }

    /// Streams without a closing record.
    pub fn open_count(&self) -> u64 {
        self.open
    }

    pub fn open_streams(&self) -> Vec<(StreamId, StreamFacts)> {
        let open = self.streams.iter().filter(|(_, entry)| !entry.facts.closed);
        let mut open: Vec<_> = open.map(|(id, entry)| (*id, entry.facts)).collect();
        open.sort_by_key(|(_, facts)| facts.last_sequence);
        open
    }

    pub fn len(&self) -> usize {
        self.streams.len()
    }
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
        assert_eq!(list.frames(), frames);
    }
}
