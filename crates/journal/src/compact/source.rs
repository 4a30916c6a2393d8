//! The segments that are replaced, read twice: once to see what is kept, once to write it. Every frame authenticates
//! and continues the one before, or the range is not compacted.

use std::cell::Cell;
use std::sync::Arc;

use sealog_journal_format::FrameKind;
use sealog_journal_format::compacted::{Run, Source, Sources};
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::journal_records::KIND_FORGET;

use crate::background::{Halt, Pace};
use crate::error::JournalError;
use crate::folding;
use crate::record::Record;
use crate::recovery::walk::{Step, Walker};
use crate::segment::Segment;
use crate::shared::{Catalog, Shared};

/// Why the writer stops when a source does not read back.
const DAMAGE: &str = "damage was found while compacting";

/// What a range holds and what is kept of it.
#[derive(Debug)]
pub(crate) struct Survey {
    pub link_in: EndRecord,
    pub sources: Sources,
    /// Records that are kept, and forget records among them.
    pub kept: u64,
    pub forgets: u64,
    /// Records that are there and are not kept.
    pub dropped: u64,
}

impl Survey {
    pub fn link_out(&self) -> EndRecord {
        self.sources.sources.last().map_or(EndRecord::NONE, |source| source.end)
    }
}

/// Reads neighbouring ended segments from the first to the last and hands every record to `take`, in order, with the
/// bytes of one frame between two looks at the pace, and those that were `written` meanwhile.
fn walk(
    shared: &Shared,
    range: &[Arc<Segment>],
    pace: &mut Pace<'_>,
    written: &Cell<u64>,
    take: &mut dyn FnMut(Record) -> Result<(), Halt>,
) -> Result<(EndRecord, Vec<Source>), Halt> {
    let (mut sources, mut link_in, mut before) = (Vec::new(), None, None);
    for segment in range {
        let codec = &*shared.store.codec;
        let mut walker = Walker::new(segment, &segment.header.link_in, false, codec)?;
        segment.release();
        if !segment.is_compacted() {
            walker.take_start_from_link()?;
        }
        let end_offset = shared.read().ends.get(&segment.number).copied();
        let link = loop {
            match walker.step()? {
                Step::Frame(frame) => {
                    let records = match frame.header.kind {
                        FrameKind::Group => {
                            let epoch = segment.header.epoch;
                            folding::records(codec, &frame.header, walker.plaintext(), epoch, None)
                        }
                        FrameKind::Link | FrameKind::Seal | FrameKind::Folded | FrameKind::Sources => {
                            Some(walker.take_ready().into_iter().map(|placed| placed.record).collect())
                        }
                    };
                    for record in records.ok_or_else(|| damaged(shared, segment, &walker))? {
                        take(record)?;
                    }
                    pace.spend(frame.header.frame_bytes() + written.take())?;
                }
                Step::Stop(_) => return Err(damaged(shared, segment, &walker)),
            }
            if Some(walker.next.offset) == end_offset {
                break if segment.is_compacted() { Some(segment.header.link_in) } else { walker.link };
            }
        };
        let Some(link) = link.filter(|link| before.is_none_or(|before| before == *link)) else {
            return Err(damaged(shared, segment, &walker));
        };
        link_in.get_or_insert(link);
        let own = match &walker.sources {
            Some(sources) => sources.sources.clone(),
            None => vec![Source { end: walker.end(), lineage: segment.header.lineage }],
        };
        before = own.last().map(|source| source.end);
        sources.extend(own);
    }
    Ok((link_in.unwrap_or(EndRecord::NONE), sources))
}

/// F1: what was acknowledged does not read back, so the writer must not go on.
fn damaged(shared: &Shared, segment: &Segment, walker: &Walker<'_>) -> Halt {
    shared.poison(DAMAGE);
    let place = crate::error::Place {
        segment: segment.number,
        frame: walker.next.index,
        offset: walker.next.offset,
        sequence: walker.next.sequence,
    };
    Halt::Failed(JournalError::Corrupt { place, row: 3, what: "an ended segment does not read back" })
}

/// What of `range` is kept: everything but what a durable forget record names, and forget records of which no older
/// file holds anything (`forgets_go`).
pub(crate) fn survey(
    shared: &Shared,
    range: &[Arc<Segment>],
    forgets_go: bool,
    pace: &mut Pace<'_>,
) -> Result<Survey, Halt> {
    let mut runs = Runs::default();
    let (mut kept, mut dropped, mut forgets) = (0, 0, 0);
    let (link_in, sources) = walk(shared, range, pace, &Cell::new(0), &mut |record| {
        let keep = is_kept(&shared.read(), &record, forgets_go);
        if keep {
            runs.push(record.sequence);
            forgets += u64::from(record.kind == KIND_FORGET);
        }
        (kept, dropped) = (kept + u64::from(keep), dropped + u64::from(!keep));
        Ok(())
    })?;
    let last = sources.last().map_or(link_in, |source| source.end).last_sequence;
    let dropped_runs = runs.dropped(link_in.last_sequence + 1, last);
    Ok(Survey { link_in, sources: Sources { sources, dropped: dropped_runs }, kept, forgets, dropped })
}

fn is_kept(catalog: &Catalog, record: &Record, forgets_go: bool) -> bool {
    match &record.stream {
        Some(stream) => catalog.index.keeps(stream, record.sequence),
        None => record.kind != KIND_FORGET || !forgets_go,
    }
}

/// The link of the range's successor names exactly the end that was read.
pub(crate) fn check_end(shared: &Shared, successor: &Segment, survey: &Survey) -> Result<(), Halt> {
    let mut walker = Walker::new(successor, &survey.link_out(), false, &*shared.store.codec)?;
    successor.release();
    match walker.step()? {
        Step::Frame(_) if walker.link == Some(survey.link_out()) => Ok(()),
        Step::Frame(_) if successor.is_compacted() && successor.header.link_in == survey.link_out() => Ok(()),
        Step::Frame(_) | Step::Stop(_) => Err(damaged(shared, successor, &walker)),
    }
}

/// Hands out the records that the survey kept; what was forgotten meanwhile stays until the next time.
pub(crate) fn kept(
    shared: &Shared,
    range: &[Arc<Segment>],
    survey: &Survey,
    pace: &mut Pace<'_>,
    written: &Cell<u64>,
    take: &mut dyn FnMut(Record) -> Result<(), Halt>,
) -> Result<(), Halt> {
    let mut dropped = survey.sources.dropped.iter().peekable();
    let (link_in, sources) = walk(shared, range, pace, written, &mut |record| {
        while dropped.next_if(|run| run.last < record.sequence).is_some() {}
        match dropped.peek() {
            Some(run) if run.first <= record.sequence => Ok(()),
            Some(_) | None => take(record),
        }
    })?;
    if (link_in, &sources) != (survey.link_in, &survey.sources.sources) {
        return Err(Halt::Failed(JournalError::Misuse("a source changed while it was read")));
    }
    Ok(())
}

/// Sequences that are kept, as runs of neighbours.
#[derive(Debug, Default)]
struct Runs(Vec<Run>);

impl Runs {
    fn push(&mut self, sequence: u64) {
        match self.0.last_mut() {
            Some(run) if run.last + 1 == sequence => run.last = sequence,
            Some(_) | None => self.0.push(Run { first: sequence, last: sequence }),
        }
    }

    /// What lies between them, from `first` to `last`.
    fn dropped(self, first: u64, last: u64) -> Vec<Run> {
        let mut dropped = Vec::new();
        let mut next = first;
        for run in self.0 {
            if run.first > next {
                dropped.push(Run { first: next, last: run.first - 1 });
            }
            next = run.last + 1;
        }
        if next <= last {
            dropped.push(Run { first: next, last });
        }
        dropped
    }
}
