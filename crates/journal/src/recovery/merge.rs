//! The records of a compacted segment in sequence order: its frames hold pieces of streams that lie across each other.
//! Judges that they are exactly what was not dropped (JF-13, JF-14).

use std::collections::{BTreeMap, VecDeque};

use sealog_journal_format::compacted::{Run, Sources};
use sealog_journal_format::frame::FrameHeader;
use sealog_journal_format::segment::SegmentHeader;

use crate::record::Record;

/// A record with the frame that holds it.
#[derive(Debug)]
pub(crate) struct Placed {
    pub header: FrameHeader,
    pub offset: u64,
    pub record: Record,
}

#[derive(Debug)]
pub(crate) struct Merge {
    /// The next sequence that must come, unless it was dropped.
    expected: u64,
    /// Behind the last one.
    end: u64,
    dropped: VecDeque<Run>,
    /// Held until no later frame can hold an earlier one.
    pending: BTreeMap<u64, Placed>,
    /// Something is damaged: what is there is shown, and missing it is judged elsewhere.
    lenient: bool,
}

impl Merge {
    /// `None`: the sources are not what the header says.
    pub fn new(header: &SegmentHeader, sources: &Sources) -> Option<Merge> {
        let numbers = header.number..=header.range_last;
        let all = sources.sources.iter().map(|source| source.end.segment).eq(numbers);
        let last = sources.sources.last()?;
        let (first, end) = (header.link_in.last_sequence + 1, header.link_out.last_sequence + 1);
        let inside = sources.dropped.iter().all(|run| run.first >= first && run.last < end);
        let ascend =
            sources.sources.windows(2).all(|pair| pair[0].end.last_sequence <= pair[1].end.last_sequence);
        let fits = all && last.end == header.link_out && inside && ascend && first <= end;
        fits.then(|| Merge {
            expected: first,
            end,
            dropped: sources.dropped.clone().into(),
            pending: BTreeMap::new(),
            lenient: false,
        })
    }

    /// For a segment whose sources do not read back.
    pub fn without_sources(header: &SegmentHeader) -> Merge {
        Merge {
            expected: header.link_in.last_sequence + 1,
            end: header.link_out.last_sequence + 1,
            dropped: VecDeque::new(),
            pending: BTreeMap::new(),
            lenient: true,
        }
    }

    pub fn be_lenient(&mut self) {
        self.lenient = true;
    }

    /// The first sequence that was not given out yet.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Takes a frame's records and gives out all that lie before it. `None`: a record that must not be there, or one
    /// that must be and is not.
    pub fn frame(&mut self, header: &FrameHeader, offset: u64, records: Vec<Record>) -> Option<Vec<Placed>> {
        let ready = self.release(header.first_sequence)?;
        for record in records {
            let sequence = record.sequence;
            let placed = Placed { header: *header, offset, record };
            let twice = self.pending.insert(sequence, placed).is_some();
            if (twice || sequence < self.expected || sequence >= self.end) && !self.lenient {
                return None;
            }
        }
        Some(ready)
    }

    /// The rest, behind the last frame.
    pub fn finish(&mut self) -> Option<Vec<Placed>> {
        let ready = self.release(u64::MAX)?;
        self.skip_dropped();
        (self.lenient || (self.expected == self.end && self.dropped.is_empty())).then_some(ready)
    }

    fn skip_dropped(&mut self) {
        if let Some(run) = self.dropped.pop_front_if(|run| run.first == self.expected) {
            self.expected = run.last + 1;
        }
    }

    fn release(&mut self, below: u64) -> Option<Vec<Placed>> {
        let mut ready = Vec::new();
        while let Some(entry) = self.pending.first_entry().filter(|entry| *entry.key() < below) {
            let placed = entry.remove();
            self.skip_dropped();
            if placed.record.sequence != self.expected && !self.lenient {
                return None;
            }
            self.expected = placed.record.sequence + 1;
            ready.push(placed);
        }
        Some(ready)
    }
}
