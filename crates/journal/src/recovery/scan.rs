//! The one scan behind boot, `verify`, `inspect` and `replay`: it reads every segment in order, hands frames and
//! records to a sink, asks the table about every place where something stops, and never changes a byte.

use std::sync::Arc;

use sealog_journal_format::end::EndRecord;
use sealog_journal_format::frame::{FrameHeader, FrameKind};
use sealog_journal_format::names::SegmentName;

use crate::codec::Codec;
use crate::error::{Place, Result};
use crate::head::HeadState;
use crate::recovery::findings::{FrameView, Gap, Problem, Scan, SegmentFacts, Sink};
use crate::recovery::group::Group;
use crate::recovery::merge::Placed;
use crate::recovery::sweep::Sweep;
use crate::recovery::table::{self, Decision, Found, Position, Verdict};
use crate::recovery::walk::{Expect, Walker};
use crate::segment::{Segment, Unopened};
use crate::store::{SegmentFiles, Store};

mod chain;
mod judge;
mod ranges;
mod taken;

pub(crate) use chain::NEWEST;
pub(crate) use ranges::peek_link;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanOptions {
    /// Read the last segment past the page cache (JR-7).
    pub uncached_last: bool,
    /// A writer holds the lock: show only what evidence covers and judge nothing above it (JR-13).
    pub live: bool,
    /// So many files stay open, from the oldest on: a writer may remove them while they are read.
    pub held_files: usize,
    /// For what a sweep does beside the walk; none and one are the same.
    pub threads: usize,
}

pub(crate) fn scan(
    store: &Store,
    head: &HeadState,
    options: ScanOptions,
    sink: &mut dyn Sink,
) -> Result<Scan> {
    scan_files(store, head, store.segment_files()?, options, sink)
}

/// As [`scan`], of these files.
pub(crate) fn scan_files(
    store: &Store,
    head: &HeadState,
    files: SegmentFiles,
    options: ScanOptions,
    sink: &mut dyn Sink,
) -> Result<Scan> {
    // Beside a live writer segments end while they are looked at.
    let sweep = match sink.wants_contents() {
        _ if options.live => None,
        true => sink.parts().map(Sweep::Contents),
        false => Some(Sweep::Verdicts),
    };
    run(store, head, files, options, sweep, sink)
}

/// The scan of a start, of files that are durable as they are: the last segment is read from the device where that works.
pub(crate) fn scan_at_start(
    store: &Store,
    head: &HeadState,
    files: SegmentFiles,
    threads: usize,
    sweep: Option<Sweep>,
    sink: &mut dyn Sink,
) -> Result<Scan> {
    let options = ScanOptions { uncached_last: true, threads, ..ScanOptions::default() };
    run(store, head, files, options, sweep, sink)
}

fn run(
    store: &Store,
    head: &HeadState,
    files: SegmentFiles,
    options: ScanOptions,
    sweep: Option<Sweep>,
    sink: &mut dyn Sink,
) -> Result<Scan> {
    let (codec, out) = (&*store.codec, Scan::nothing());
    let mut scanner = Scanner { head, options, sink, codec, out };
    scanner.presence(&files);
    let mut segments = Vec::new();
    for (at, (named, name)) in files.chain.iter().enumerate() {
        let (number, keep) = (&named.first(), at < options.held_files);
        let opened = match Segment::open_as(&store.disk, &store.keyring, name, *named, keep) {
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
        segments.push(opened);
    }
    let names: Vec<SegmentName> = files.chain.iter().map(|(named, _)| *named).collect();
    scanner.out.superseded = files.superseded;
    scanner.chain(store, names, segments, sweep)?;
    Ok(scanner.out)
}

struct Scanner<'a> {
    head: &'a HeadState,
    options: ScanOptions,
    sink: &'a mut dyn Sink,
    codec: &'a dyn Codec,
    out: Scan,
}

impl Scanner<'_> {
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

    fn walker<'s>(&self, segment: &'s Segment, previous: &EndRecord, newest: bool) -> Result<Walker<'s>>
    where
        Self: 's,
    {
        let uncached = newest && self.options.uncached_last;
        Walker::new(segment, previous, uncached, self.codec)
    }

    fn begin_walk(&self, segment: &Segment, next: &Expect) -> SegmentFacts {
        SegmentFacts {
            first_sequence: next.sequence,
            last_sequence: next.sequence - 1,
            end_offset: next.offset,
            ..self.begin(segment)
        }
    }

    fn deliver(
        &mut self,
        segment: &Segment,
        facts: &mut SegmentFacts,
        header: &FrameHeader,
        offset: u64,
        group: Group<'_>,
    ) {
        hand_out(self.sink, segment, header, offset, group);
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

/// Hands out a frame, and the records of a group.
pub(crate) fn hand_out(
    sink: &mut dyn Sink,
    segment: &Segment,
    header: &FrameHeader,
    offset: u64,
    group: Group<'_>,
) {
    let epoch = segment.header.epoch;
    let view = FrameView { segment: segment.number, offset, epoch, header: *header };
    sink.frame(&view);
    group.each(header.first_sequence, epoch, |record| sink.record(&view, record));
}

/// Hands out records of a compacted segment that have come into their order.
pub(crate) fn hand_out_merged(sink: &mut dyn Sink, segment: &Segment, ready: Vec<Placed>) {
    for placed in ready {
        let epoch = placed.record.epoch;
        let view = FrameView { segment: segment.number, offset: placed.offset, epoch, header: placed.header };
        sink.record(&view, &placed.record);
    }
}

fn place(segment: &Segment, next: &Expect) -> Place {
    Place { segment: segment.number, frame: next.index, offset: next.offset, sequence: next.sequence }
}
