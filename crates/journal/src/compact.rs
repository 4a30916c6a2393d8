//! Compaction: a run of neighbouring ended segments becomes one file without what was forgotten, finished streams
//! folded (spec section 12). Only whole files are exchanged, and there is one commit point: the directory's sync after
//! the rename. Before it the old files count, behind it the new one; nothing in between is ever needed.

mod file;
mod gather;
pub(crate) mod offline;
pub(crate) mod policy;
mod reserve;
mod source;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sealog_disk::{ErrorKind, Folder, Name};
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::segment::{SegmentHeader, SegmentKind, WrapFields};
use sealog_journal_format::version::{RECORD_CODEC, SUITE};

use crate::background::{Halt, Pace, Step, Work};
use crate::compact::file::Replacement;
use crate::compact::gather::{Batch, Fate, Gather};
use crate::compact::policy::{Policy, View};
use crate::compact::source::Survey;
use crate::config::Tuning;
use crate::error::JournalError;
use crate::index::{FrameRef, Places, Tally};
use crate::record::Record;
use crate::recovery::walk::{Step as WalkStep, Walker};
use crate::segment::{Segment, Unopened};
use crate::shared::{Catalog, Mark, Shared};
use crate::writer::frames::cause;
use crate::writer::maintain;

/// Files of one rewrite.
const FILES_MAX: usize = 256;
/// Log segments that one file stands for: their ends are kept, and must fit a frame.
const SOURCES_MAX: u64 = 16_384;
/// What a source takes there.
const SOURCE_BYTES: u64 = 80;

/// The ends of what was replaced take at most half of a segment.
fn sources_max(tuning: &Tuning) -> u64 {
    SOURCES_MAX.min(tuning.compacted_bytes_largest() / 2 / SOURCE_BYTES)
}

/// What is to be rewritten.
#[derive(Debug)]
struct Plan {
    range: Vec<Arc<Segment>>,
    /// Lineage of the writer before the range; zeros if there is none.
    predecessor_lineage: [u8; 16],
    /// It names the end of the range.
    successor: Arc<Segment>,
    /// No older file holds anything of what the range's forget records name.
    forgets_go: bool,
    generation: u64,
}

/// What one rewrite came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub files: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub records_kept: u64,
    pub records_dropped: u64,
}

/// Compaction as one kind of the background's work.
#[derive(Debug)]
pub(crate) struct Compaction {
    files_max: usize,
    reserve: reserve::Reserve,
}

impl Default for Compaction {
    fn default() -> Compaction {
        Compaction { files_max: FILES_MAX, reserve: reserve::Reserve::default() }
    }
}

impl Work for Compaction {
    fn name(&self) -> &'static str {
        "compaction"
    }

    fn step(&mut self, shared: &Shared, pace: &mut Pace<'_>) -> Result<Step, Halt> {
        let pressed = is_pressed(&shared.read(), &shared.tuning);
        let policy = online(shared, pressed);
        // What waits for the budget is refused; that is worse than commits that are slow.
        if pressed {
            pace.urgent();
        }
        match shared.tuning.compact.then(|| self.rewrite(shared, policy, pace)).transpose()?.flatten() {
            Some(outcome) => {
                tracing::info!(
                    files = outcome.files,
                    bytes_before = outcome.bytes_before,
                    bytes_after = outcome.bytes_after,
                    records_dropped = outcome.records_dropped,
                    "segments compacted"
                );
                Ok(Step::Done)
            }
            None => {
                roll_by_age(shared);
                self.reserve.restore(shared);
                Ok(Step::Idle)
            }
        }
    }
}

impl Compaction {
    /// Rewrites one run, if the policy names one; a full disk gets the reserve first, then half of the run is tried, and of
    /// that: what it gives back may be room for the rest.
    pub fn rewrite(
        &mut self,
        shared: &Shared,
        policy: Policy,
        pace: &mut Pace<'_>,
    ) -> Result<Option<Outcome>, Halt> {
        let mut without_room = None;
        loop {
            let policy = Policy { files_max: policy.files_max.min(self.files_max), ..policy };
            let Some(plan) = plan(shared, &policy) else {
                self.files_max = FILES_MAX;
                return without_room.map_or(Ok(None), Err);
            };
            let failed = match run(shared, &plan, pace) {
                Ok(Some(outcome)) => {
                    self.files_max = FILES_MAX;
                    let Outcome { bytes_before, bytes_after, records_dropped, .. } = outcome;
                    shared.counting.compacted(bytes_before, bytes_after, records_dropped);
                    return Ok(Some(outcome));
                }
                // More came out than one file may hold.
                Ok(None) => {
                    self.files_max = (plan.range.len() / 2).max(1);
                    continue;
                }
                Err(failed) => failed,
            };
            file::discard(&*shared.store.disk);
            let full = matches!(&failed, Halt::Failed(JournalError::Disk(e)) if e.kind == ErrorKind::Full);
            if full && self.reserve.give_up(shared) {
                continue;
            }
            if !full || plan.range.len() == 1 {
                self.files_max = FILES_MAX;
                return Err(failed);
            }
            self.files_max = plan.range.len() / 2;
            without_room = Some(failed);
        }
    }
}

/// So much of a segment is worth its rewriting where the budget is nearly used up.
const PRESSED_THOUSANDTHS: u64 = 50;

fn is_pressed(catalog: &Catalog, tuning: &Tuning) -> bool {
    catalog.frame_bytes() > tuning.disk_bytes_max / 4 * 3
}

/// What is worth it while a node runs. Where the budget is nearly used up, less is.
fn online(shared: &Shared, pressed: bool) -> Policy {
    let tuning = &shared.tuning;
    let age_ms = u64::try_from(tuning.compact_age.as_millis()).unwrap_or(u64::MAX);
    let dead = tuning.compact_dead_thousandths;
    Policy {
        dead_thousandths: if pressed { dead.min(PRESSED_THOUSANDTHS) } else { dead },
        age_ms: if pressed { 0 } else { age_ms },
        small_bytes: tuning.segment_bytes_min,
        run_bytes_max: tuning.compacted_bytes_largest(),
        files_max: FILES_MAX,
        sources_max: sources_max(tuning),
        everything: false,
    }
}

/// What the policy wants to know of a segment file.
fn view(tally: Tally, file: View) -> View {
    let Tally { all, closed, dead, forgets } = tally;
    View { all, closed, dead, forgets, ..file }
}

/// What the active segment holds of the forgotten goes when it is ended: after so long the next frame ends it, and at
/// once where the budget is nearly used up and it holds enough.
fn roll_by_age(shared: &Shared) {
    let catalog = shared.read();
    let newest = catalog.durable.end.segment;
    let Tally { all, dead, .. } = catalog.index.tally(newest);
    let Some(segment) = catalog.segments.get(&newest).filter(|_| dead > 0) else {
        return;
    };
    let age_ms = shared.clock.wall_ms().saturating_sub(segment.header.created_ms);
    let pressed = dead * 1000 >= all * PRESSED_THOUSANDTHS && is_pressed(&catalog, &shared.tuning);
    let is_due = pressed || u128::from(age_ms) >= shared.tuning.compact_age.as_millis();
    if shared.tuning.compact && is_due {
        shared.roll_wanted.store(true, Ordering::Release);
    }
}

/// Only what has a successor that a start cannot find to be empty: that one's link names the end.
fn is_eligible(catalog: &Catalog, last: u64) -> bool {
    let newest = &catalog.durable.end;
    last < newest.segment && (last + 1 < newest.segment || newest.frames > 1)
}

fn plan(shared: &Shared, policy: &Policy) -> Option<Plan> {
    let now = shared.clock.wall_ms();
    let catalog = shared.read();
    let files: Vec<&Arc<Segment>> = catalog.segments.values().collect();
    let views = files.iter().map(|segment| {
        let bytes = catalog.ends.get(&segment.number).copied().unwrap_or(segment.length);
        let sources = segment.last() - segment.number + 1;
        let file = View {
            eligible: is_eligible(&catalog, segment.last()),
            compacted: segment.is_compacted(),
            bytes,
            sources,
            retired_key: segment.header.key_id != shared.store.keyring.active_root().id().0,
            age_ms: now.saturating_sub(segment.header.created_ms),
            ..View::default()
        };
        view(catalog.index.tally(segment.number), file)
    });
    let views: Vec<View> = views.collect();
    let run = policy::choose(&views, policy)?;
    let range: Vec<Arc<Segment>> = files[run.clone()].iter().map(|segment| Arc::clone(segment)).collect();
    let before = run.start.checked_sub(1).map(|at| files[at].header.lineage);
    Some(Plan {
        predecessor_lineage: before.unwrap_or_default(),
        successor: Arc::clone(files.get(run.end)?),
        forgets_go: views[..run.start].iter().all(|older| older.dead == 0),
        generation: range.iter().map(|segment| segment.header.generation).max()? + 1,
        range,
    })
}

/// `None`: what came out is longer than a segment may be, and a narrower range is not.
fn run(shared: &Shared, plan: &Plan, pace: &mut Pace<'_>) -> Result<Option<Outcome>, Halt> {
    let survey = source::survey(shared, &plan.range, plan.forgets_go, pace)?;
    let (Some(first), Some(last)) = (plan.range.first(), plan.range.last()) else { return Ok(None) };
    let named =
        SegmentName::Compacted { first: first.number, last: last.last(), generation: plan.generation };
    source::check_end(shared, &plan.successor, &survey)?;
    let Some(bytes_after) = write(shared, plan, &survey, pace)? else { return Ok(None) };
    let (segment, places) = read_back(shared, named, &survey, pace)?;
    let bytes_before = {
        let catalog = shared.read();
        plan.range.iter().filter_map(|segment| catalog.ends.get(&segment.number)).sum()
    };
    exchange(shared, plan, segment, &places, &survey, bytes_after)?;
    Ok(Some(Outcome {
        files: plan.range.len() as u64,
        bytes_before,
        bytes_after,
        records_kept: survey.kept,
        records_dropped: survey.dropped,
    }))
}

fn header(shared: &Shared, plan: &Plan, survey: &Survey) -> Option<SegmentHeader> {
    let (first, last) = (plan.range.first()?, plan.range.last()?);
    Some(SegmentHeader {
        store_id: shared.store.id().0,
        number: first.number,
        suite: SUITE,
        codec: RECORD_CODEC,
        kind: SegmentKind::Compacted,
        // Its neighbours' lineages continue as they did.
        lineage: last.header.lineage,
        predecessor_lineage: plan.predecessor_lineage,
        epoch: last.header.epoch,
        created_ms: shared.clock.wall_ms(),
        key_id: [0; 16],
        wrap: WrapFields::default(),
        range_last: last.last(),
        generation: plan.generation,
        link_in: survey.link_in,
        link_out: survey.link_out(),
    })
}

/// Writes `compact.tmp` and syncs it; returns its length, `None` if that is more than a segment may have.
fn write(shared: &Shared, plan: &Plan, survey: &Survey, pace: &mut Pace<'_>) -> Result<Option<u64>, Halt> {
    let Some(header) = header(shared, plan, survey) else { return Ok(None) };
    let mut replacement = Replacement::create(shared, header, &survey.sources)?;
    let mut gather = Gather::new(&*shared.store.codec);
    let mut batch = Batch::default();
    let mut put = |gather: &mut Gather<'_>, replacement: &mut Replacement| -> Result<u64, JournalError> {
        let mut bytes = 0;
        while let Some(piece) = gather.next_due() {
            if batch.is_closed_to(&piece) {
                bytes += replacement.group(&std::mem::take(&mut batch).pieces)?;
            }
            batch.push(piece);
        }
        Ok(bytes)
    };
    let wide = plan.range.len() > 1;
    let longest = shared.tuning.compacted_bytes_largest();
    let too_long = |replacement: &Replacement| wide && replacement.offset > longest;
    let mut over = false;
    // Paid together with the frame that is being read.
    let written = Cell::new(0);
    source::kept(shared, &plan.range, survey, pace, &written, &mut |record| {
        if !over {
            let fate = fate(&shared.read(), &record);
            gather.push(record, fate)?;
            written.set(written.get() + put(&mut gather, &mut replacement)?);
            over = too_long(&replacement);
        }
        Ok(())
    })?;
    gather.close_all()?;
    put(&mut gather, &mut replacement)?;
    if !batch.pieces.is_empty() {
        replacement.group(&batch.pieces)?;
    }
    if over || too_long(&replacement) {
        file::discard(&*shared.store.disk);
        return Ok(None);
    }
    Ok(Some(replacement.finish()?))
}

fn fate(catalog: &Catalog, record: &Record) -> Fate {
    let Some(stream) = &record.stream else { return Fate::Open };
    match catalog.index.facts(stream) {
        Some(facts) if !facts.closed => Fate::Open,
        Some(facts) if facts.last_sequence == record.sequence => Fate::Last,
        // Forgotten since the survey: the next compaction drops it.
        Some(_) | None => Fate::Ended,
    }
}

/// Opens what was written as a start would, from the device where that can be asked, and reads all of it.
fn read_back(
    shared: &Shared,
    named: SegmentName,
    survey: &Survey,
    pace: &mut Pace<'_>,
) -> Result<(Segment, Places), Halt> {
    let unread = || {
        let file = "segments/compact.tmp".to_owned();
        Halt::Failed(JournalError::CorruptFile { file, what: "it does not read back as it was written" })
    };
    let store = &shared.store;
    let opened = Segment::open(&store.disk, &store.keyring, &file::temporary_name(), named);
    let segment = match opened {
        Ok(segment) if segment.damaged_copy.is_none() => segment,
        Err(Unopened::Failed(e)) => return Err(Halt::Failed(e)),
        Ok(_) | Err(Unopened::Damaged(_) | Unopened::Newer(_)) => return Err(unread()),
    };
    let mut places = Places::new();
    let mut walker = Walker::new(&segment, &survey.link_in, true, &*store.codec)?;
    let (mut records, mut firsts) = (0, HashMap::new());
    while !walker.sealed {
        let WalkStep::Frame(frame) = walker.step()? else { return Err(unread()) };
        pace.spend(frame.header.frame_bytes())?;
        for placed in walker.take_ready() {
            records += 1;
            let Some(stream) = placed.record.stream else { continue };
            let first = *firsts.entry(stream).or_insert(placed.record.sequence);
            let frames = places.entry((stream, first)).or_default();
            let at = FrameRef { segment: segment.number, offset: placed.offset };
            if frames.last() != Some(&at) {
                frames.push(at);
            }
        }
    }
    let whole = walker.window.length() == walker.next.offset && records == survey.kept;
    if !whole || walker.sources.as_ref() != Some(&survey.sources) {
        return Err(unread());
    }
    drop(walker);
    segment.release();
    Ok((segment, places))
}

/// Rename, sync (the commit point), exchange in memory, unlink, sync.
fn exchange(
    shared: &Shared,
    plan: &Plan,
    mut segment: Segment,
    places: &Places,
    survey: &Survey,
    end_offset: u64,
) -> Result<(), Halt> {
    let disk = &*shared.store.disk;
    let name = segments_name(&segment.named().file_name())?;
    // JD-9: whoever sees that file has evidence of every forget record that it was written by.
    if !maintain::name_durable(shared) {
        return Err(Halt::Stopped);
    }
    if let Err(e) = disk.rename_new(&file::temporary_name(), &name) {
        // It may have taken effect all the same; then a start decides, and nothing more may be written on that ground.
        let there = disk.open(&name).map_or_else(|e| e.kind != ErrorKind::NotFound, |_| true);
        if there {
            shared.poison(cause(&e));
        }
        return Err(e.into());
    }
    sync_segments(shared)?;
    segment.name = name;
    let range = segment.number..=segment.last();
    {
        let mut catalog = shared.write();
        catalog.index.replace(range.clone(), places, survey.forgets);
        catalog.segments.retain(|number, _| !range.contains(number));
        catalog.ends.retain(|number, _| !range.contains(number));
        catalog.ends.insert(segment.number, end_offset);
        let at = catalog.marks.partition_point(|mark| mark.segment < *range.start());
        catalog.marks.retain(|mark| !range.contains(&mark.segment));
        let sequence = survey.link_in.last_sequence + 1;
        let offset = sealog_journal_format::limits::DATA_START;
        catalog.marks.insert(at, Mark { sequence, segment: segment.number, offset });
        catalog.segments.insert(segment.number, Arc::new(segment));
        catalog.switches += 1;
    }
    for old in &plan.range {
        let summary = segments_name(&old.named().summary_name())?;
        for name in [&old.name, &summary] {
            match disk.remove(name) {
                Err(e) if e.kind != ErrorKind::NotFound => {
                    tracing::warn!(kind = ?e.kind, "a replaced file stays until the next start");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
    sync_segments(shared)
}

fn segments_name(file: &str) -> Result<Name, JournalError> {
    Name::new(Folder::Segments, file).ok_or(JournalError::Misuse("a segment's name"))
}

/// F2: a failed sync of a directory is final.
fn sync_segments(shared: &Shared) -> Result<(), Halt> {
    shared.store.disk.sync_folder(Folder::Segments).map_err(|e| {
        shared.poison(cause(&e));
        e.into()
    })
}
