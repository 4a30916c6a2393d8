//! A segment on its way into its summary, frame by frame: as far as it was taken up, and what that came to.

use std::sync::Arc;

use sealog_journal_format::end::EndRecord;
use sealog_journal_format::frame::{FrameHeader, FrameKind};
use sealog_journal_format::record::GroupReader;

use crate::background::{Halt, Pace};
use crate::cache::{CacheKey, OpenedFrame};
use crate::codec::Codec;
use crate::index::FrameRef;
use crate::record::Record;
use crate::recovery::walk::{Expect, Step, Walked, Walker};
use crate::segment::Segment;
use crate::shared::Shared;
use crate::summary::gather::{Gather, Unsummarised};

/// Bytes taken up between two looks at the pace.
const PIECE_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(super) struct Taken {
    next: Expect,
    gather: Gather,
}

impl Taken {
    /// Of a segment that continues `start`.
    pub fn nothing(start: &EndRecord, codec: Arc<dyn Codec>) -> Taken {
        Taken { next: Expect::behind(start), gather: Gather::new(codec) }
    }

    pub fn frames(&self) -> u64 {
        self.next.index
    }

    /// Whether the segment ends where this stands.
    pub fn ends_at(&self, end: &EndRecord) -> bool {
        let Expect { index, offset, sequence, chain } = self.next;
        (index, offset, sequence - 1, chain) == (end.frames, end.end_offset, end.last_sequence, end.chain)
    }

    /// The body of the summary. `first_sequence` is the smallest that the segment could hold.
    pub fn finish(self, first_sequence: u64) -> Option<Vec<u8>> {
        self.gather.finish(first_sequence).ok()
    }

    /// Takes up what comes before frame `frames`, all of it durable. What was written just now is still in memory; only
    /// what is not costs the disk something. `false`: no summary can be made of this segment, or not from here.
    pub fn go_on(
        &mut self,
        shared: &Shared,
        pace: &mut Pace<'_>,
        segment: &Segment,
        frames: u64,
    ) -> Result<bool, Halt> {
        let mut walker = None;
        let (mut looked, mut read) = (self.next.offset, 0);
        while self.next.index < frames {
            let before = self.next.offset;
            let taken = match self.in_memory(shared, segment) {
                Some(frame) => self.take_opened(segment, &frame),
                None => {
                    let walker = match &mut walker {
                        Some(walker) => walker,
                        // It is told before each step where it stands.
                        None => {
                            let codec = &*shared.store.codec;
                            walker.insert(Walker::new(segment, &EndRecord::NONE, false, codec)?)
                        }
                    };
                    let Some(taken) = self.take_next(segment, walker)? else { return Ok(false) };
                    read += self.next.offset - before;
                    taken
                }
            };
            if taken.is_err() {
                return Ok(false);
            }
            if self.next.offset - looked >= PIECE_BYTES {
                match std::mem::take(&mut read) {
                    0 => pace.goes_on()?,
                    read => pace.spend(read)?,
                }
                looked = self.next.offset;
            }
        }
        Ok(true)
    }

    /// The next frame as the writer has written it. Of a compacted segment no frame stands for itself.
    fn in_memory(&self, shared: &Shared, segment: &Segment) -> Option<Arc<OpenedFrame>> {
        let at = FrameRef { segment: segment.number, offset: self.next.offset };
        let frame = shared.cache.peek(CacheKey { generation: segment.header.generation, at })?;
        let FrameHeader { kind, index, first_sequence, previous_chain, .. } = frame.header;
        let continues = (u64::from(index), first_sequence, previous_chain)
            == (self.next.index, self.next.sequence, self.next.chain);
        (continues && kind == FrameKind::Group).then_some(frame)
    }

    fn take_opened(&mut self, segment: &Segment, frame: &OpenedFrame) -> Result<(), Unsummarised> {
        self.group(segment, &frame.header, self.next.offset, &frame.plaintext)?;
        self.next = self.next.over(&frame.header);
        Ok(())
    }

    /// The next frame from the disk; `None` where the walk stops.
    fn take_next(
        &mut self,
        segment: &Segment,
        walker: &mut Walker<'_>,
    ) -> Result<Option<Result<(), Unsummarised>>, Halt> {
        walker.go_back(self.next);
        let frame = match walker.step()? {
            Step::Frame(frame) => frame,
            Step::Stop(_) => return Ok(None),
        };
        self.next = walker.next;
        Ok(Some(self.walked(segment, walker, &frame)))
    }

    /// The records of a frame, or those that it has put in order; where reading by sequence may begin.
    fn walked(
        &mut self,
        segment: &Segment,
        walker: &mut Walker<'_>,
        frame: &Walked,
    ) -> Result<(), Unsummarised> {
        let header = &frame.header;
        if segment.is_compacted() {
            // Read from its beginning: any of its frames may hold an early record.
            if header.kind == FrameKind::Sources {
                self.gather.frame(frame.offset, header.first_sequence);
            }
            let ready = walker.take_ready();
            return ready
                .into_iter()
                .try_for_each(|placed| self.gather.record(placed.offset, &placed.record));
        }
        match header.kind {
            FrameKind::Group => self.group(segment, header, frame.offset, walker.plaintext()),
            FrameKind::Link | FrameKind::Seal | FrameKind::Folded | FrameKind::Sources => Ok(()),
        }
    }

    fn group(
        &mut self,
        segment: &Segment,
        header: &FrameHeader,
        offset: u64,
        plaintext: &[u8],
    ) -> Result<(), Unsummarised> {
        let group = GroupReader::new(plaintext, header.record_count).map_err(|_| Unsummarised)?;
        self.gather.frame(offset, header.first_sequence);
        let mut record = Record::blank();
        for (read, sequence) in group.zip(header.first_sequence..) {
            record.take(&read.map_err(|_| Unsummarised)?, sequence, segment.header.epoch);
            self.gather.record(offset, &record)?;
        }
        Ok(())
    }
}
