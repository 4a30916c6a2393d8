//! Streams that have ended: there are many, and little is asked of one. Each is packed into one cell of 64 bytes; only
//! what does not fit lies elsewhere.

use std::hash::Hasher;

use super::{Entry, FrameList, FrameRef, Frames, IdHasher, StreamFacts, push_varint, take_varint};
use crate::record::StreamId;
use crate::slots::{Slab, SlotTable};

const INLINE_BYTES: usize = 46;

/// Varints: first sequence, how far the last one is behind it, highest event number, epoch, logical bytes, time of the
/// newest record; then the frames.
#[derive(Debug)]
enum Packed {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Boxed(Box<[u8]>),
}

impl Packed {
    const NOTHING: Packed = Packed::Inline { len: 0, bytes: [0; INLINE_BYTES] };

    fn new(packed: &[u8]) -> Packed {
        let mut bytes = [0; INLINE_BYTES];
        match bytes.get_mut(..packed.len()) {
            Some(inline) => {
                inline.copy_from_slice(packed);
                Packed::Inline { len: packed.len() as u8, bytes }
            }
            None => Packed::Boxed(packed.into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Packed::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Packed::Boxed(bytes) => bytes,
        }
    }
}

#[derive(Debug)]
struct Cell {
    stream: StreamId,
    packed: Packed,
}

// What the index promises of a retained stream counts on this (R27).
const _: () = assert!(size_of::<Cell>() == 64);

/// A run of a stream's records in one segment, packed as if there were no others of it.
#[derive(Debug)]
pub(crate) struct Run {
    cell: Cell,
    pub(super) closes: bool,
    /// How many frames hold it.
    pub(super) frames: u32,
}

impl Run {
    pub fn stream(&self) -> StreamId {
        self.cell.stream
    }

    /// Its facts, the sequence of its first record, and its frames.
    pub(super) fn unpack(&self) -> Entry {
        let mut entry = unpack(self.cell.packed.bytes());
        entry.facts.closed = self.closes;
        entry
    }
}

/// Packs runs; its memory serves for one after the other.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    frames: Vec<u8>,
    scratch: Vec<u8>,
}

impl Packer {
    pub fn run(
        &mut self,
        stream: StreamId,
        first_sequence: u64,
        facts: &StreamFacts,
        frames: impl Iterator<Item = FrameRef>,
    ) -> Run {
        let mut entry = Entry::new(first_sequence, std::mem::take(&mut self.frames));
        let frames = entry.add(facts, frames) as u32;
        let run = Run {
            cell: Cell { stream, packed: pack(&mut self.scratch, &entry) },
            closes: facts.closed,
            frames,
        };
        self.frames = entry.frames.bytes;
        self.frames.clear();
        run
    }
}

#[derive(Debug, Default)]
pub(super) struct EndedStreams {
    cells: Slab<Cell>,
    by_id: SlotTable,
    scratch: Vec<u8>,
}

fn hash(stream: &StreamId) -> u64 {
    let mut hasher = IdHasher::default();
    hasher.write(&stream.0);
    hasher.finish()
}

impl EndedStreams {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    fn find(&self, stream: &StreamId) -> Option<u32> {
        self.by_id.find(hash(stream), |slot| self.cells[slot].stream == *stream)
    }

    /// A stream that is not here.
    pub fn insert(&mut self, stream: StreamId, entry: &Entry) {
        debug_assert!(entry.facts.closed && self.find(&stream).is_none());
        let packed = pack(&mut self.scratch, entry);
        self.put(Cell { stream, packed });
    }

    /// Room for so many more.
    pub fn reserve(&mut self, more: usize) {
        let cells = &self.cells;
        self.by_id.reserve(more, |slot| hash(&cells[slot].stream));
    }

    /// A stream that has nothing but this closing run; gives it back where it is here already.
    pub fn insert_run(&mut self, run: Run) -> Result<(), Run> {
        if self.find(&run.cell.stream).is_some() {
            return Err(run);
        }
        self.put(run.cell);
        Ok(())
    }

    fn put(&mut self, cell: Cell) {
        let hashed = hash(&cell.stream);
        let slot = self.cells.insert(cell);
        let cells = &self.cells;
        self.by_id.insert(hashed, slot, |slot| hash(&cells[slot].stream));
    }

    #[cfg(test)]
    pub fn memory_bytes(&self) -> usize {
        self.cells.memory_bytes() + self.by_id.memory_bytes() + self.scratch.capacity()
    }

    pub fn get(&self, stream: &StreamId) -> Option<Entry> {
        self.find(stream).map(|slot| unpack(self.cells[slot].packed.bytes()))
    }

    pub fn first_sequence(&self, stream: &StreamId) -> Option<u64> {
        self.find(stream).map(|slot| take_varint(&mut self.cells[slot].packed.bytes()))
    }

    pub fn take(&mut self, stream: &StreamId) -> Option<Entry> {
        let cells = &self.cells;
        let is = |slot: u32| cells[slot].stream == *stream;
        let slot = self.by_id.remove(hash(stream), is, |slot| hash(&cells[slot].stream))?;
        let cell = self.cells.take(slot, Cell { stream: StreamId([0; 16]), packed: Packed::NOTHING });
        Some(unpack(cell.packed.bytes()))
    }
}

fn pack(scratch: &mut Vec<u8>, entry: &Entry) -> Packed {
    let Entry { first_sequence, facts, frames } = entry;
    let StreamFacts { last_event, closed: _, epoch, logical_bytes, last_time_ms, last_sequence } = *facts;
    scratch.clear();
    let through = last_sequence.wrapping_sub(*first_sequence);
    for value in [*first_sequence, through, last_event, epoch, logical_bytes, last_time_ms] {
        push_varint(scratch, value);
    }
    scratch.extend_from_slice(&frames.bytes);
    Packed::new(scratch)
}

fn unpack(mut bytes: &[u8]) -> Entry {
    let mut next = || take_varint(&mut bytes);
    let first_sequence = next();
    let facts = StreamFacts {
        last_sequence: first_sequence.wrapping_add(next()),
        last_event: next(),
        epoch: next(),
        logical_bytes: next(),
        last_time_ms: next(),
        closed: true,
    };
    let frames = FrameList { bytes: bytes.to_vec(), last: Frames::of(bytes).last() };
    Entry { first_sequence, facts, frames }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::FrameRef;

    #[test]
    fn what_is_packed_unpacks_whatever_its_length() {
        let mut ended = EndedStreams::default();
        let large = u64::MAX - 1;
        for (n, (value, frames)) in [(0, 1), (3, 12), (1 << 40, 9), (large, 500)].into_iter().enumerate() {
            let mut entry = Entry::new(value, Vec::new());
            for frame in 1..=frames {
                entry.frames.push(FrameRef { segment: 1 + frame / 100, offset: 8192 + frame % 100 * 9280 });
            }
            entry.facts = StreamFacts {
                last_event: value,
                closed: true,
                epoch: value,
                logical_bytes: value,
                last_time_ms: value,
                last_sequence: value.wrapping_add(9),
            };
            let stream = StreamId([n as u8; 16]);
            ended.insert(stream, &entry);
            assert_eq!(ended.first_sequence(&stream), Some(value));
            for read in [ended.get(&stream).unwrap(), ended.take(&stream).unwrap()] {
                assert_eq!((read.first_sequence, read.facts), (value, entry.facts));
                assert!(read.frames.iter().eq(entry.frames.iter()));
                assert_eq!(read.frames.last, entry.frames.last);
            }
            assert!(ended.get(&stream).is_none());
            ended.insert(stream, &entry);
        }
        assert_eq!(ended.len(), 4);
    }
}
