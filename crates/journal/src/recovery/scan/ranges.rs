//! What a scan does with compacted segments: rows 2 and 3 for a range, and the ranges' places beside each other.

use sealog_journal_format::end::EndRecord;
use sealog_journal_format::names::SegmentName;

use super::{Scanner, hand_out_merged, place};
use crate::codec::Codec;
use crate::error::{Place, Result};
use crate::recovery::evidence;
use crate::recovery::findings::{Gap, SegmentFacts};
use crate::recovery::group::Group;
use crate::recovery::table::{self, Found, Position, Verdict};
use crate::recovery::walk::{Step, Walker};
use crate::segment::Segment;

impl Scanner<'_> {
    /// Row 3: files that claim the same segments, and none holds the other as a replacement holds its sources.
    pub(super) fn crossing(&mut self, named: SegmentName) {
        let mut decision = table::decide(Position::NotLast, Found::Foreign, true);
        decision.what = "a compacted segment crosses another segment's range";
        self.problem(Place { segment: named.first(), frame: 0, offset: 0, sequence: 0 }, decision);
    }

    /// Row 11: only what has a successor is compacted, so a last segment that is compacted has lost its own.
    pub(super) fn last_is_log(&mut self, last: Option<&Segment>) {
        if let Some(last) = last.filter(|last| last.is_compacted()) {
            self.absent(last.last() + 1);
        }
    }

    /// Rows 2 and 3 of a compacted segment: its own seal, then the end of the file, its link-in at `start` where the
    /// one before it ends, its link-out what its successor's link names.
    pub(super) fn compacted(
        &mut self,
        segment: &Segment,
        start: &EndRecord,
        named: Option<EndRecord>,
    ) -> Result<EndRecord> {
        let header = &segment.header;
        let mut walker = self.walker(segment, &header.link_in, false)?;
        let mut facts = self.begin_walk(segment, &walker.next);
        loop {
            let found = match walker.sealed {
                true => sealed(segment, &walker, start, named),
                false => match walker.step()? {
                    Step::Frame(frame) => {
                        let (header, offset) = (frame.header, frame.offset);
                        self.deliver(segment, &mut facts, &header, offset, Group::NONE);
                        hand_out_merged(self.sink, segment, walker.take_ready());
                        continue;
                    }
                    Step::Stop(found) => found,
                },
            };
            let decision = table::decide(Position::NotLast, found, true);
            if decision.verdict == Verdict::Sound {
                break;
            }
            self.problem(place(segment, &walker.next), decision);
            if walker.sealed || !self.skip_pieces(segment, &mut walker)? {
                break;
            }
        }
        walker.give_up_merging();
        hand_out_merged(self.sink, segment, walker.take_ready());
        self.head_inside(segment, &walker);
        if let Some(sources) = &walker.sources {
            self.sink.sources(sources);
        }
        self.out.segments.push(SegmentFacts { last_sequence: header.link_out.last_sequence, ..facts });
        Ok(header.link_out)
    }

    /// Goes on behind damage. Which records of the rest were in the hole is not known.
    fn skip_pieces(&mut self, segment: &Segment, walker: &mut Walker<'_>) -> Result<bool> {
        let (hole, first_sequence) = (walker.next.offset, walker.expected_sequence());
        let last = segment.header.link_out.last_sequence;
        if first_sequence <= last && self.out.gaps.last().is_none_or(|gap| gap.segment != segment.number) {
            let segment = segment.number;
            self.out.gaps.push(Gap { segment, offset: hole, first_sequence, last_sequence: Some(last) });
        }
        let mut from = hole + 8;
        while let Some((offset, header)) = evidence::next_header(segment, &mut walker.window, from)? {
            if u64::from(header.index) > walker.next.index {
                walker.resume_at(offset, &header);
                return Ok(true);
            }
            from = offset + 8;
        }
        Ok(false)
    }

    /// Row 3: the head names a source that ended otherwise.
    fn head_inside(&mut self, segment: &Segment, walker: &Walker<'_>) {
        let (Some(slot), Some(sources)) = (&self.head.slot, &walker.sources) else { return };
        let named = sources.sources.iter().find(|source| source.end.segment == slot.segment);
        let Some(end) = named.map(|source| source.end) else { return };
        let told = (slot.chain, slot.last_sequence) == (end.chain, end.last_sequence);
        if slot.frames > end.frames || (slot.frames == end.frames && !told) {
            self.another_history(segment, &walker.next, Position::NotLast);
        }
    }
}

/// What stands behind the seal, in the words of the table.
fn sealed(segment: &Segment, walker: &Walker<'_>, start: &EndRecord, named: Option<EndRecord>) -> Found {
    let header = &segment.header;
    let between = *start == header.link_in && named.is_none_or(|named| named == header.link_out);
    match (between, walker.window.length() == walker.next.offset) {
        (true, true) => Found::NamedEnd,
        (true, false) => Found::Bad,
        (false, _) => Found::Foreign,
    }
}

/// Its link-in, if its sources read back and its range continues what that names.
fn link_in(segment: &Segment, mut walker: Walker<'_>) -> Result<Option<EndRecord>> {
    let link = segment.header.link_in;
    walker.next.sequence = link.last_sequence + 1;
    walker.next.chain = link.chain;
    match walker.step()? {
        Step::Frame(_) => Ok(Some(link).filter(|link| link.segment.checked_add(1) == Some(segment.number))),
        Step::Stop(_) => Ok(None),
    }
}

/// The link in frame 0, if frame 0 is whole and authentic and names the neighbour that its number demands.
pub(crate) fn peek_link(segment: &Segment, uncached: bool, codec: &dyn Codec) -> Result<Option<EndRecord>> {
    let mut walker = Walker::new(segment, &EndRecord::NONE, uncached, codec)?;
    segment.release();
    if segment.is_compacted() {
        return link_in(segment, walker);
    }
    walker.take_start_from_link()?;
    match walker.step()? {
        Step::Frame(_) => Ok(walker.link.filter(|link| link.segment.checked_add(1) == Some(segment.number))),
        Step::Stop(_) => Ok(None),
    }
}
