//! How far each segment provably came, as a scan hands its frames out. It holds no record.

use std::any::Any;

use sealog_journal_format::compacted::Sources;
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::{FrameKind, limits};

use crate::recovery::findings::{FrameView, Parts, Sink};

/// What was handed out of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Its end so far.
    pub end: EndRecord,
    /// Whether it holds anything but its link: without, the next writer removes it and uses its number again.
    pub holds_groups: bool,
    pub compacted: bool,
}

/// The sink. `asked` is a place whose chain value somebody wants to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub segments: Vec<Reached>,
    asked: Option<(u64, u64)>,
    /// The chain value behind the frame that was asked for.
    pub answer: Option<[u8; 16]>,
    /// Ends and lineages of the segments that compacted ones replace.
    pub sources: Vec<(EndRecord, [u8; 16])>,
}

impl Ends {
    /// Looks also for the chain value of `segment` behind its first `frames` frames.
    pub fn asking(segment: u64, frames: u64) -> Ends {
        Ends { asked: Some((segment, frames)), ..Ends::default() }
    }

    /// The newest segment that holds anything: where a copy of this journal ends. Behind a compacted one a link is
    /// enough: it names that one's end and stays.
    pub fn horizon(&self) -> Option<&Reached> {
        let stays = |at: usize| at.checked_sub(1).is_some_and(|before| self.segments[before].compacted);
        let mut newest = self.segments.iter().enumerate().rev();
        let held = newest.find(|(at, reached)| !reached.compacted && (reached.holds_groups || stays(*at)));
        held.map(|(_, reached)| reached)
    }

    pub fn of(&self, segment: u64) -> Option<&Reached> {
        self.segments.iter().find(|reached| reached.end.segment == segment)
    }

    /// The end and the lineage of a segment that was compacted.
    pub fn source(&self, segment: u64) -> Option<(EndRecord, [u8; 16])> {
        self.sources.iter().find(|(end, _)| end.segment == segment).copied()
    }

    /// Takes what was seen of later segments.
    pub fn take(&mut self, later: Ends) {
        self.segments.extend(later.segments);
        self.answer = later.answer.or(self.answer);
        self.sources.extend(later.sources);
    }

    fn reached(&mut self, segment: u64) -> &mut Reached {
        let known = self.segments.last().is_some_and(|reached| reached.end.segment == segment);
        if !known {
            let end = EndRecord { segment, end_offset: limits::DATA_START, ..EndRecord::NONE };
            self.segments.push(Reached { end, holds_groups: false, compacted: false });
        }
        let last = self.segments.len() - 1;
        &mut self.segments[last]
    }
}

impl Sink for Ends {
    fn parts(&self) -> Option<Parts> {
        let asked = self.asked;
        Some(Parts::new(move || Ends { asked, ..Ends::default() }))
    }

    fn absorb(&mut self, part: Box<dyn Any>) {
        if let Ok(part) = part.downcast::<Ends>() {
            self.take(*part);
        }
    }

    fn frame(&mut self, frame: &FrameView) {
        let header = &frame.header;
        let chain = sealog_seal::chain(&header.previous_chain, &header.encode());
        let frames = u64::from(header.index) + 1;
        if self.asked == Some((frame.segment, frames)) {
            self.answer = Some(chain);
        }
        let reached = self.reached(frame.segment);
        reached.holds_groups |= header.index > 0;
        reached.compacted |= header.kind == FrameKind::Sources;
        reached.end = EndRecord {
            segment: frame.segment,
            frames,
            end_offset: frame.offset + header.frame_bytes(),
            last_sequence: header.next_sequence() - 1,
            chain,
            how: if header.kind == FrameKind::Seal { How::Sealed } else { How::CutAtRecovery },
        };
    }

    fn sources(&mut self, sources: &Sources) {
        self.sources.extend(sources.sources.iter().map(|source| (source.end, source.lineage)));
    }
}
