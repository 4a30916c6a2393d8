//! The one scan behind boot, `verify`, `inspect` and `replay`: it reads every segment in order, hands frames and
//! records to a sink, asks the table about every place where something stops, and never changes a byte.

use std::sync::Arc;

use sealog_journal_format::end::EndRecord;
use sealog_journal_format::frame::{FrameHeader, FrameKind};
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::{HeadSlot, HeadState as SlotState};

use crate::codec::Codec;
use crate::error::{Place, Result};
use crate::folding;
use crate::head::HeadState;
use crate::recovery::evidence::{self, Evidence, FollowerEvidence, followers};
use crate::recovery::findings::{Follower, FrameView, Gap, Problem, Scan, SegmentFacts, Sink};
use crate::recovery::sweep::{self, Ahead, Sweep};
use crate::recovery::table::{self, Decision, Found, Position, Verdict};
use crate::recovery::walk::{self, Step, Walker};
use crate::segment::{Segment, Unopened};
use crate::store::{SegmentFiles, Store};

mod ranges;
mod taken;

pub(crate) use ranges::peek_link;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanOptions {
    /// Read the last segment past the page cache (JR-7).
    pub uncached_last: bool,
    /// A writer holds the lock: show only what evidence covers and judge nothing above it (JR-13).
    pub live: bool,
    /// For what a sweep does beside the walk; none and one are the same.
    pub threads: usize,
}

pub(crate) fn scan(
    store: &Store,
    head: &HeadState,
    options: ScanOptions,
    sweep: Option<&mut Sweep<'_>>,
    sink: &mut dyn Sink,
) -> Result<Scan> {
    let files = store.segment_files()?;
    let mut scanner = Scanner {
        head,
        options,
        sweep,
        sink,
        codec: &*store.codec,
        out: Scan {
            segments: Vec::new(),
            opened: Vec::new(),
            problems: Vec::new(),
            gaps: Vec::new(),
            tails: Vec::new(),
            follower: None,
            superseded: Vec::new(),
            end: EndRecord::NONE,
            standing_frames: 0,
            proven_frames: 0,
            unchecked: Vec::new(),
        },
    };
    scanner.presence(&files);
    let mut chain = Vec::new();
    for (named, name) in &files.chain {
        let number = &named.first();
        let opened = match Segment::open(&store.disk, &store.keyring, name, *named) {
            Ok(segment) => Some(Arc::new(segment)),
            Err(Unopened::Failed(e)) => return Err(e),
            Err(Unopened::Newer(version)) => {
                return Err(crate::JournalError::NewerFormat { file: name.to_string(), version });
            }
            Err(Unopened::Damaged(what)) => {
                scanner.unopened(*number, what);
                None
            }
        };
        if let Some(copy) = opened.as_ref().and_then(|s| s.damaged_copy) {
            scanner.damaged_copy(*number, copy);
        }
        chain.push(opened);
    }
    let names: Vec<SegmentName> = files.chain.iter().map(|(named, _)| *named).collect();
    scanner.chain(store, &names, chain)?;
    scanner.out.superseded = files.superseded;
    Ok(scanner.out)
}

struct Scanner<'a, 'j> {
    head: &'a HeadState,
    options: ScanOptions,
    sweep: Option<&'a mut Sweep<'j>>,
    sink: &'a mut dyn Sink,
    codec: &'a dyn Codec,
    out: Scan,
}

impl Scanner<'_, '_> {
    /// Rows 10 and 11: the head itself, the segment it names, and holes in the numbering.
    fn presence(&mut self, files: &SegmentFiles) {
        let head = table::decide_head(self.head.present, self.head.good_slots);
        if head.verdict != Verdict::Sound {
            self.problem(Place { segment: 0, frame: 0, offset: 0, sequence: 0 }, head);
        }
        let mut before = 0;
        for (named, _) in &files.chain {
            if named.first() != before + 1 {
                self.absent(before + 1);
            }
            before = named.last();
        }
        files.crossing.iter().for_each(|named| self.crossing(*named));
        let named = self.head.slot.as_ref().map_or(0, |slot| slot.segment);
        if named > before {
            self.absent(before + 1);
        }
    }

    /// The first of a run of segments that are not there. The gap is noted by `chain`, which knows both sides.
    fn absent(&mut self, segment: u64) {
        self.problem(Place { segment, frame: 0, offset: 0, sequence: 0 }, table::decide_presence(false));
    }

    fn unopened(&mut self, segment: u64, what: &'static str) {
        let mut decision = table::decide(Position::NotLast, Found::HeaderCopy, true);
        decision.what = what;
        self.problem(Place { segment, frame: 0, offset: 0, sequence: 0 }, decision);
    }

    fn damaged_copy(&mut self, segment: u64, copy: u64) {
        let offset = copy * sealog_journal_format::limits::HEADER_BYTES as u64;
        let decision = table::decide(Position::NotLast, Found::HeaderCopy, true);
        self.problem(Place { segment, frame: 0, offset, sequence: 0 }, decision);
    }

    fn problem(&mut self, place: Place, decision: Decision) {
        self.out.problems.push(Problem { place, row: decision.row, what: decision.what });
    }

    /// Walks all segments in order. *Last* is the newest with a valid link (JR-2).
    fn chain(
        &mut self,
        store: &Store,
        names: &[SegmentName],
        chain: Vec<Option<Arc<Segment>>>,
    ) -> Result<()> {
        let mut links = Vec::new();
        for (at, segment) in chain.iter().enumerate() {
            let uncached = self.options.uncached_last && at + 2 >= chain.len();
            links.push(match segment {
                Some(segment) => ranges::peek_link(segment, uncached, self.codec)?,
                None => None,
            });
        }
        let last = links.iter().rposition(Option::is_some);
        self.last_is_log(last.and_then(|last| chain[last].as_deref()));
        let followers = followers(&chain)?;
        let named = self.head.slot.as_ref().map_or(0, |slot| slot.segment);
        let jobs = sweep::jobs(named, names, &chain, &links);
        let ahead = Ahead::new(store, jobs, self.sweep.as_deref(), self.options.threads);
        ahead.with_workers(|| self.walk_chain(names, chain, &links, last, &followers, &ahead))
    }

    fn walk_chain(
        &mut self,
        names: &[SegmentName],
        chain: Vec<Option<Arc<Segment>>>,
        links: &[Option<EndRecord>],
        last: Option<usize>,
        followers: &[FollowerEvidence],
        ahead: &Ahead,
    ) -> Result<()> {
        let (mut previous, mut before) = (EndRecord::NONE, 0);
        let mut lost = None;
        for (at, segment) in chain.into_iter().enumerate() {
            let number = names[at].first();
            if number != before + 1 {
                lost = lost.or(Some(before + 1));
            }
            before = names[at].last();
            let Some(segment) = segment else {
                lost = lost.or(Some(number));
                continue;
            };
            if let Some(first) = lost.take() {
                self.lost(first, &previous, links[at].map(|link| link.last_sequence));
            }
            self.lineage(&segment);
            let start = links[at].unwrap_or(previous);
            let next = names.get(at + 1).is_some_and(|next| next.first() == before + 1);
            let named = links.get(at + 1).copied().flatten().filter(|_| next);
            let swept = named.filter(|end| self.swept(&segment, &start, end, ahead.take(at)));
            previous = match last {
                _ if swept.is_some() => swept.unwrap_or(start),
                _ if segment.is_compacted() => self.compacted(&segment, &start, named)?,
                Some(last) if at < last => self.ended(&segment, &start, named)?,
                Some(last) if at == last => self.last(&segment, &start, &followers[at])?,
                last => {
                    let first = at == last.map_or(0, |last| last + 1);
                    self.behind_last(&segment, &previous, first)?
                }
            };
            segment.release();
            self.out.opened.push(segment);
        }
        let head = self.head.slot.as_ref().filter(|slot| slot.segment > before);
        let lost = lost.or(head.map(|_| before + 1));
        if let Some(first) = lost {
            // An open head says how far it came at least; where that was the end only a closed one knows.
            let closed = |slot: &&HeadSlot| slot.segment >= first && slot.state == SlotState::Closed;
            let end = self.head.slot.as_ref().filter(closed).map(|slot| slot.last_sequence);
            self.lost(first, &previous, end);
        }
        Ok(())
    }

    /// The gap of segments that are missing or do not open, from `first` on, behind `previous`.
    fn lost(&mut self, first: u64, previous: &EndRecord, last_sequence: Option<u64>) {
        let first_sequence = previous.last_sequence + 1;
        if last_sequence.is_none_or(|last| last >= first_sequence) {
            self.out.gaps.push(Gap { segment: first, offset: 0, first_sequence, last_sequence });
        }
    }

    /// Row 7: the lineage of neighbours, and of the segment that the head names.
    fn lineage(&mut self, segment: &Segment) {
        let new = &segment.header;
        let follows = self.out.opened.last().filter(|before| before.last() + 1 == segment.number);
        let continues = follows.is_none_or(|before| {
            let old = &before.header;
            if segment.is_compacted() {
                // It carries its last source's writer, and the one that its first source came behind.
                return new.predecessor_lineage == old.lineage && new.epoch >= old.epoch;
            }
            let same_writer = old.lineage == new.lineage && old.epoch == new.epoch;
            let next_writer = new.predecessor_lineage == old.lineage && new.epoch > old.epoch;
            same_writer || next_writer
        });
        let head = self.head.slot.as_ref().filter(|slot| slot.segment == segment.number);
        let named = head.is_none_or(|slot| slot.lineage == new.lineage);
        let what = match (continues, named) {
            (true, true) => return,
            (false, _) => "the segment does not continue its predecessor's lineage",
            (true, false) => "the head names another writer of this segment",
        };
        let mut decision = table::decide(Position::Last { sealed: false }, Found::Foreign, true);
        decision.what = what;
        self.problem(Place { segment: segment.number, frame: 0, offset: 0, sequence: 0 }, decision);
    }

    /// An ended segment: it must end exactly where `named`, its successor's link, says (rows 2 and 3). Without a
    /// successor that reads, which is a problem of its own, it ends where its data does.
    fn ended(&mut self, segment: &Segment, start: &EndRecord, named: Option<EndRecord>) -> Result<EndRecord> {
        let mut walker = Walker::new(segment, start, false, self.codec)?;
        let mut facts = self.begin_walk(segment, &walker);
        loop {
            self.check_head(segment, &walker, Position::NotLast);
            let at_named_end = named.is_some_and(|end| end.frames == walker.next.index);
            let found = if at_named_end {
                let matches = named == Some(walker.end());
                match (matches, walker.window.zero_from(walker.next.offset)?) {
                    (true, true) => Found::NamedEnd,
                    (true, false) => Found::Bad,
                    (false, _) => Found::Foreign,
                }
            } else {
                match walker.step()? {
                    Step::Frame(frame) => {
                        self.deliver(segment, &mut facts, &frame.header, frame.offset, walker.plaintext());
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
            self.problem(place(segment, &walker), decision);
            if at_named_end || !self.skip_hole(segment, &mut walker, named)? {
                break;
            }
        }
        self.head_beyond(segment, &walker);
        Ok(self.finish(facts, &walker, named))
    }

    /// The last segment: rows 4 to 9 at the first place where its valid prefix stops.
    fn last(
        &mut self,
        segment: &Segment,
        start: &EndRecord,
        follower: &FollowerEvidence,
    ) -> Result<EndRecord> {
        let mut walker = Walker::new(segment, start, self.options.uncached_last, self.codec)?;
        let mut facts = self.begin_walk(segment, &walker);
        let mut evidence = match &self.head.slot {
            Some(slot) => Evidence::from_head(slot, segment.number, follower.number),
            None => Evidence::default(),
        };
        evidence.end_chain = evidence.end_chain.or(follower.link_chain);
        self.walk_open(segment, &mut walker, &mut evidence, &mut facts)?;
        self.out.standing_frames = walker.next.index;
        self.out.proven_frames = evidence.frames;
        // A segment whose writer came no further than its link is as empty as one without any frame (JR-7).
        // Behind a compacted one it stays: that one's end is named by this link alone.
        let before = self.out.opened.last().is_none_or(|before| !before.is_compacted());
        let removable = before && follower.number.is_none() && !self.options.live;
        let empty_behind = walker.link.filter(|_| walker.next.index == 1 && removable);
        let end = self.finish(facts, &walker, None);
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
        walker: &mut Walker<'_>,
        evidence: &mut Evidence,
        facts: &mut SegmentFacts,
    ) -> Result<()> {
        // Beside a live writer each frame waits for the evidence that the next header or the head gives.
        let mut held: Option<Held> = None;
        loop {
            self.check_head(segment, walker, Position::Last { sealed: false });
            match walker.step()? {
                Step::Frame(frame) => {
                    evidence.header(&frame.header);
                    if let Some(held) = held.take_if(|held| evidence.frames > u64::from(held.header.index)) {
                        self.deliver(segment, facts, &held.header, held.offset, &held.plaintext);
                    }
                    if self.options.live {
                        let plaintext = walker.plaintext().to_vec();
                        held = Some(Held { header: frame.header, offset: frame.offset, plaintext });
                    } else {
                        self.deliver(segment, facts, &frame.header, frame.offset, walker.plaintext());
                    }
                }
                Step::Stop(found) => {
                    if !self.stopped(segment, walker, found, evidence)? {
                        break;
                    }
                }
            }
        }
        let proven = |held: &Held| evidence.covers(u64::from(held.header.index), &held.header.previous_chain);
        if let Some(held) = held.filter(proven) {
            self.deliver(segment, facts, &held.header, held.offset, &held.plaintext);
        }
        Ok(())
    }

    /// Judges the place where the walk stopped. `true`: go on behind the hole.
    fn stopped(
        &mut self,
        segment: &Segment,
        walker: &mut Walker<'_>,
        found: Found,
        evidence: &mut Evidence,
    ) -> Result<bool> {
        if found != Found::Nothing {
            evidence::collect(segment, &mut walker.window, walker.next.offset, evidence)?;
        }
        let covered = evidence.covers(walker.next.index, &walker.next.chain);
        if self.options.live && !covered {
            return Ok(false);
        }
        let decision = table::decide(Position::Last { sealed: walker.sealed }, found, covered);
        match decision.verdict {
            Verdict::Sound | Verdict::EndOfData => Ok(false),
            Verdict::TornTail => {
                self.out.tails.push(walk::torn_tail(place(segment, walker), walker)?);
                Ok(false)
            }
            Verdict::Corruption => {
                self.problem(place(segment, walker), decision);
                self.skip_hole(segment, walker, None)
            }
        }
    }

    /// A published segment behind the last one (JR-2). Only the first such one may be there, and only without
    /// evidence about its place 0.
    fn behind_last(&mut self, segment: &Segment, previous: &EndRecord, first: bool) -> Result<EndRecord> {
        let mut walker = Walker::new(segment, previous, self.options.uncached_last, self.codec)?;
        let mut facts = self.begin_walk(segment, &walker);
        let found = match walker.step()? {
            // It has a link that names another neighbour than its number demands.
            Step::Frame(_) => {
                walker = Walker::new(segment, previous, self.options.uncached_last, self.codec)?;
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
            Verdict::TornTail => self.out.tails.push(walk::torn_tail(place(segment, &walker), &mut walker)?),
            Verdict::Corruption => {
                self.problem(place(segment, &walker), decision);
                // What lies behind the hole is still shown.
                if self.skip_hole(segment, &mut walker, None)? {
                    self.walk_open(segment, &mut walker, &mut evidence, &mut facts)?;
                }
                return Ok(self.finish(facts, &walker, None));
            }
        }
        self.out.follower = Some(Follower { number: segment.number, name: segment.name.clone() });
        self.out.segments.push(facts);
        Ok(*previous)
    }

    /// Row 7 or 3: the head is authentic and names another chain value or sequence for a place that is here.
    fn check_head(&mut self, segment: &Segment, walker: &Walker<'_>, position: Position) {
        let Some(slot) = &self.head.slot else { return };
        let here = slot.segment == segment.number && slot.frames == walker.next.index;
        if here && (slot.chain != walker.next.chain || slot.last_sequence != walker.next.sequence - 1) {
            self.another_history(segment, walker, position);
        }
    }

    /// Row 3: the head names more frames than an ended segment has.
    fn head_beyond(&mut self, segment: &Segment, walker: &Walker<'_>) {
        let Some(slot) = &self.head.slot else { return };
        if slot.segment == segment.number && slot.frames > walker.next.index {
            self.another_history(segment, walker, Position::NotLast);
        }
    }

    fn another_history(&mut self, segment: &Segment, walker: &Walker<'_>, position: Position) {
        let mut decision = table::decide(position, Found::Foreign, true);
        decision.what = "the head names another history than this segment holds";
        self.problem(place(segment, walker), decision);
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

    fn begin(&self, segment: &Segment) -> SegmentFacts {
        SegmentFacts {
            number: segment.number,
            last_number: segment.last(),
            generation: segment.header.generation,
            file: segment.name.to_string(),
            length: segment.length,
            epoch: segment.header.epoch,
            lineage: segment.header.lineage,
            key_id: segment.header.key_id,
            created_ms: segment.header.created_ms,
            frames: 0,
            records: 0,
            first_sequence: 0,
            last_sequence: 0,
            end_offset: 0,
            sealed: false,
        }
    }

    fn begin_walk(&self, segment: &Segment, walker: &Walker<'_>) -> SegmentFacts {
        SegmentFacts {
            first_sequence: walker.next.sequence,
            last_sequence: walker.next.sequence - 1,
            end_offset: walker.next.offset,
            ..self.begin(segment)
        }
    }

    fn deliver(
        &mut self,
        segment: &Segment,
        facts: &mut SegmentFacts,
        header: &FrameHeader,
        offset: u64,
        plaintext: &[u8],
    ) {
        let epoch = segment.header.epoch;
        let view = FrameView { segment: segment.number, offset, epoch, header: *header };
        self.sink.frame(&view);
        // The walk has checked them.
        let records = match segment.is_compacted() {
            true => Vec::new(),
            false => folding::records(self.codec, header, plaintext, epoch, None).unwrap_or_default(),
        };
        records.iter().for_each(|record| self.sink.record(&view, record));
        facts.frames += 1;
        facts.records += u64::from(header.record_count);
        facts.last_sequence = header.next_sequence() - 1;
        facts.end_offset = offset + header.frame_bytes();
        facts.sealed = header.kind == FrameKind::Seal;
    }

    fn finish(
        &mut self,
        mut facts: SegmentFacts,
        walker: &Walker<'_>,
        named: Option<EndRecord>,
    ) -> EndRecord {
        let end = named.unwrap_or_else(|| walker.end());
        // Beside a live writer what stands there may be more than what may be shown.
        if !self.options.live {
            facts.last_sequence = walker.next.sequence - 1;
            facts.end_offset = walker.next.offset;
            facts.sealed = walker.sealed;
        }
        self.out.segments.push(facts);
        end
    }
}

/// A frame that is valid and not yet proven.
struct Held {
    header: FrameHeader,
    offset: u64,
    plaintext: Vec<u8>,
}

fn place(segment: &Segment, walker: &Walker<'_>) -> Place {
    Place {
        segment: segment.number,
        frame: walker.next.index,
        offset: walker.next.offset,
        sequence: walker.next.sequence,
    }
}
