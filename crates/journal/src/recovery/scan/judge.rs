//! How a scan judges one log segment: rows 2 to 9 at the places where its valid prefix stops, and what the head says of
//! places inside it.

use sealog_journal_format::end::EndRecord;
use sealog_journal_format::frame::FrameHeader;

use super::{Scanner, place};
use crate::error::Result;
use crate::recovery::evidence::{self, Evidence, FollowerEvidence};
use crate::recovery::findings::{Follower, Gap, SegmentFacts};
use crate::recovery::group::OwnedGroup;
use crate::recovery::steps::Steps;
use crate::recovery::table::{self, Found, Position, Verdict};
use crate::recovery::walk::{self, Expect, Step, Walker};
use crate::segment::Segment;

impl Scanner<'_> {
    /// An ended segment: it must end exactly where `named`, its successor's link, says (rows 2 and 3). Without a
    /// successor that reads, which is a problem of its own, it ends where its data does.
    pub(super) fn ended(
        &mut self,
        segment: &Segment,
        start: &EndRecord,
        named: Option<EndRecord>,
    ) -> Result<EndRecord> {
        let walker = self.walker(segment, start, false)?;
        let (threads, frames_max) = (self.options.threads, named.map_or(u64::MAX, |end| end.frames));
        let steps = Steps::new(walker, threads, frames_max);
        steps.with_helpers(threads, |steps| self.ended_by_steps(segment, steps, named))
    }

    fn ended_by_steps(
        &mut self,
        segment: &Segment,
        steps: &mut Steps<'_>,
        named: Option<EndRecord>,
    ) -> Result<EndRecord> {
        let mut facts = self.begin_walk(segment, steps.next());
        let mut again = None;
        loop {
            if again != Some(steps.next().index) {
                self.check_head(segment, steps.next(), Position::NotLast);
            }
            let at_named_end = named.is_some_and(|end| end.frames == steps.next().index);
            let found = if at_named_end {
                let walker = steps.walker()?;
                let matches = named == Some(walker.end());
                match (matches, walker.window.zero_from(walker.next.offset)?) {
                    (true, true) => Found::NamedEnd,
                    (true, false) => Found::Bad,
                    (false, _) => Found::Foreign,
                }
            } else {
                match steps.step()? {
                    Step::Frame(frame) => {
                        self.deliver(segment, &mut facts, &frame.header, frame.offset, steps.group());
                        continue;
                    }
                    Step::Stop(Found::Nothing) if named.is_none() => Found::NamedEnd,
                    Step::Stop(found) => found,
                }
            };
            let decision = table::decide(Position::NotLast, found, true);
            if decision.verdict == Verdict::Sound {
                break;
            }
            if self.reads_again(steps.walker()?, &mut again) {
                continue;
            }
            self.problem(place(segment, steps.next()), decision);
            if at_named_end || !self.skip_hole(segment, steps.walker()?, named)? {
                break;
            }
        }
        self.head_beyond(segment, steps.next());
        Ok(self.finish(facts, steps.walker()?, named))
    }

    /// The last segment: rows 4 to 9 at the first place where its valid prefix stops.
    pub(super) fn last(
        &mut self,
        segment: &Segment,
        mut steps: Steps<'_>,
        follower: &FollowerEvidence,
    ) -> Result<EndRecord> {
        let mut facts = self.begin_walk(segment, steps.next());
        let mut evidence = match &self.head.slot {
            Some(slot) => Evidence::from_head(slot, segment.number, follower.number),
            None => Evidence::default(),
        };
        evidence.end_chain = evidence.end_chain.or(follower.link_chain);
        self.walk_open(segment, &mut steps, &mut evidence, &mut facts)?;
        self.end_of_last(segment, steps.walker()?, &evidence, facts, follower)
    }

    fn end_of_last(
        &mut self,
        segment: &Segment,
        walker: &Walker<'_>,
        evidence: &Evidence,
        facts: SegmentFacts,
        follower: &FollowerEvidence,
    ) -> Result<EndRecord> {
        self.out.standing_frames = walker.next.index;
        self.out.proven_frames = evidence.frames;
        self.out.stale = walker.window.stale;
        // A segment whose writer came no further than its link is as empty as one without any frame (JR-7).
        // Behind a compacted one it stays: that one's end is named by this link alone.
        let before = self.out.opened.last().is_none_or(|before| !before.is_compacted());
        let removable = before && follower.number.is_none() && !self.options.live;
        let empty_behind = walker.link.filter(|_| walker.next.index == 1 && removable);
        let end = self.finish(facts, walker, None);
        if empty_behind.is_some() && self.out.problems.is_empty() {
            self.out.follower = Some(Follower { number: segment.number, name: segment.name.clone() });
        }
        self.out.end = empty_behind.unwrap_or(end);
        Ok(end)
    }

    /// Every frame up to the end of the data, and of what lies behind holes.
    fn walk_open(
        &mut self,
        segment: &Segment,
        steps: &mut Steps<'_>,
        evidence: &mut Evidence,
        facts: &mut SegmentFacts,
    ) -> Result<()> {
        // Beside a live writer each frame waits for the evidence that the next header or the head gives.
        let mut held: Option<Held> = None;
        let mut again = None;
        loop {
            if again != Some(steps.next().index) {
                self.check_head(segment, steps.next(), Position::Last { sealed: false });
            }
            match steps.step()? {
                Step::Frame(frame) => {
                    evidence.header(&frame.header);
                    if let Some(held) = held.take_if(|held| evidence.frames > u64::from(held.header.index)) {
                        self.deliver(segment, facts, &held.header, held.offset, held.group.group());
                    }
                    if self.options.live {
                        let group = steps.group().to_owned();
                        held = Some(Held { header: frame.header, offset: frame.offset, group });
                    } else {
                        self.deliver(segment, facts, &frame.header, frame.offset, steps.group());
                    }
                }
                Step::Stop(found) => {
                    let walker = steps.walker()?;
                    if found != Found::Nothing {
                        evidence::collect(segment, &mut walker.window, walker.next.offset, evidence)?;
                    }
                    let covered = evidence.covers(walker.next.index, &walker.next.chain);
                    if covered && self.reads_again(walker, &mut again) {
                        continue;
                    }
                    if !self.stopped(segment, walker, found, covered)? {
                        break;
                    }
                }
            }
        }
        let proven = |held: &Held| evidence.covers(u64::from(held.header.index), &held.header.previous_chain);
        if let Some(held) = held.filter(proven) {
            self.deliver(segment, facts, &held.header, held.offset, held.group.group());
        }
        Ok(())
    }

    /// Whether a place that would be damage is read anew first: beside a live writer it may have been read while it was
    /// being written, and what proves it came behind that. Once is enough, since it is whole by then.
    fn reads_again(&self, walker: &mut Walker<'_>, again: &mut Option<u64>) -> bool {
        let index = walker.next.index;
        if !self.options.live || again.replace(index) == Some(index) {
            return false;
        }
        walker.window.forget();
        true
    }

    /// Judges the place where the walk stopped. `true`: go on behind the hole.
    fn stopped(
        &mut self,
        segment: &Segment,
        walker: &mut Walker<'_>,
        found: Found,
        covered: bool,
    ) -> Result<bool> {
        if self.options.live && !covered {
            return Ok(false);
        }
        let decision = table::decide(Position::Last { sealed: walker.sealed }, found, covered);
        match decision.verdict {
            Verdict::Sound | Verdict::EndOfData => Ok(false),
            Verdict::TornTail => {
                self.out.tails.push(walk::torn_tail(place(segment, &walker.next), walker)?);
                Ok(false)
            }
            Verdict::Corruption => {
                self.problem(place(segment, &walker.next), decision);
                self.skip_hole(segment, walker, None)
            }
        }
    }

    /// A published segment behind the last one (JR-2). Only the first such one may be there, and only without
    /// evidence about its place 0.
    pub(super) fn behind_last(
        &mut self,
        segment: &Segment,
        previous: &EndRecord,
        first: bool,
    ) -> Result<EndRecord> {
        let mut walker = self.walker(segment, previous, true)?;
        let mut facts = self.begin_walk(segment, &walker.next);
        let found = match walker.step()? {
            // It has a link that names another neighbour than its number demands.
            Step::Frame(_) => {
                walker = self.walker(segment, previous, true)?;
                Found::Foreign
            }
            Step::Stop(found) => found,
        };
        let mut evidence = match &self.head.slot {
            Some(slot) => Evidence::from_head(slot, segment.number, None),
            None => Evidence::default(),
        };
        evidence::collect(segment, &mut walker.window, walker.next.offset, &mut evidence)?;
        let covered = evidence.covers(0, &walker.next.chain);
        let position = if first { Position::Last { sealed: false } } else { Position::NotLast };
        let decision = table::decide(position, found, covered);
        if self.options.live && !covered && first {
            return Ok(*previous);
        }
        match decision.verdict {
            Verdict::Sound | Verdict::EndOfData => {}
            Verdict::TornTail => {
                self.out.tails.push(walk::torn_tail(place(segment, &walker.next), &mut walker)?)
            }
            Verdict::Corruption => {
                self.problem(place(segment, &walker.next), decision);
                // What lies behind the hole is still shown.
                let goes_on = self.skip_hole(segment, &mut walker, None)?;
                let mut steps = Steps::here(walker);
                if goes_on {
                    self.walk_open(segment, &mut steps, &mut evidence, &mut facts)?;
                }
                return Ok(self.finish(facts, steps.walker()?, None));
            }
        }
        self.out.follower = Some(Follower { number: segment.number, name: segment.name.clone() });
        self.out.segments.push(facts);
        Ok(*previous)
    }

    /// Row 7 or 3: the head is authentic and names another chain value or sequence for a place that is here.
    fn check_head(&mut self, segment: &Segment, next: &Expect, position: Position) {
        let Some(slot) = &self.head.slot else { return };
        let here = slot.segment == segment.number && slot.frames == next.index;
        if here && (slot.chain != next.chain || slot.last_sequence != next.sequence - 1) {
            self.another_history(segment, next, position);
        }
    }

    /// Row 3: the head names more frames than an ended segment has.
    fn head_beyond(&mut self, segment: &Segment, next: &Expect) {
        let Some(slot) = &self.head.slot else { return };
        if slot.segment == segment.number && slot.frames > next.index {
            self.another_history(segment, next, Position::NotLast);
        }
    }

    pub(super) fn another_history(&mut self, segment: &Segment, next: &Expect, position: Position) {
        let mut decision = table::decide(position, Found::Foreign, true);
        decision.what = "the head names another history than this segment holds";
        self.problem(place(segment, next), decision);
    }

    /// Moves the walker to the next authentic header behind damage and notes the hole. `false`: there is none.
    fn skip_hole(
        &mut self,
        segment: &Segment,
        walker: &mut Walker<'_>,
        named: Option<EndRecord>,
    ) -> Result<bool> {
        let (hole, first_sequence) = (walker.next.offset, walker.next.sequence);
        let mut from = hole + 8;
        let found = loop {
            match evidence::next_header(segment, &mut walker.window, from)? {
                Some((offset, header)) => {
                    let later = u64::from(header.index) > walker.next.index
                        && header.first_sequence >= first_sequence
                        && named.is_none_or(|end| u64::from(header.index) < end.frames);
                    if later {
                        break Some((offset, header));
                    }
                    from = offset + 8;
                }
                None => break None,
            }
        };
        let last_sequence = match &found {
            Some((_, header)) => Some(header.first_sequence - 1),
            None => named.map(|end| end.last_sequence).or(self.head_end(segment, walker)),
        };
        if last_sequence.is_none_or(|last| last >= first_sequence) {
            self.out.gaps.push(Gap { segment: segment.number, offset: hole, first_sequence, last_sequence });
        }
        if let Some((offset, header)) = &found {
            walker.resume_at(*offset, header);
        }
        Ok(found.is_some())
    }

    /// The last sequence that the head proves for this segment, if it proves the place of the walker.
    fn head_end(&self, segment: &Segment, walker: &Walker<'_>) -> Option<u64> {
        let slot = self.head.slot.as_ref()?;
        let whole = slot.frames == 0 && slot.segment == segment.last() + 1;
        let part = slot.segment == segment.number && slot.frames > walker.next.index;
        (whole || part).then_some(slot.last_sequence)
    }
}

/// A frame that is valid and not yet proven.
struct Held {
    header: FrameHeader,
    offset: u64,
    group: OwnedGroup,
}
