//! What every crash image must stand: audit and start agree, the oracle is satisfied, work goes on, and the next
//! start shows the same and the new.

use sealog_disk::sim::{CrashPoint, SimDisk, Undecided, UndecidedWhat};
use sealog_disk::{Disk, Folder};

use super::crash_world::Expected;
use super::digests;
use super::setup::{Bench, record};
use crate::{Audit, FrameView, Record, Sink, Unit, audit};

/// Which undecided changes of a crash point survive. Every one is replayable from what it prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Bit `i` keeps the `i`-th change.
    Mask(u64),
    /// The simulated disk's own sampling.
    Seeded(u64),
    /// Everything but the `i`-th.
    Without(usize),
    /// Only the `i`-th.
    Only(usize),
    /// The first so many.
    Prefix(usize),
    /// All but the first so many: the newest first, as an elevator may.
    Suffix(usize),
    /// Names, lengths and removals without any data.
    Names,
    /// Data without names.
    Data,
    /// Bit `i` keeps the `i`-th sector; lengths, names and removals all or none.
    Sectors(u64, bool),
}

/// The note in `LOCK` is never synced and means nothing: it survives always and is not counted.
fn matters(change: &Undecided) -> bool {
    let is_note = |file: &str| file == "LOCK";
    match &change.what {
        UndecidedWhat::Sector { file, .. } | UndecidedWhat::Length { file, .. } => {
            file.as_ref().is_none_or(|file| !is_note(file.file()))
        }
        UndecidedWhat::Insert { file, folder } => *folder != Folder::Root || !is_note(file),
        UndecidedWhat::Rename { .. } | UndecidedWhat::Remove { .. } | UndecidedWhat::MakeFolder { .. } => {
            true
        }
    }
}

fn is_data(change: &Undecided) -> bool {
    matches!(change.what, UndecidedWhat::Sector { .. })
}

/// Number of sectors among the changes that matter.
pub(crate) fn dirty_sectors(point: &CrashPoint) -> usize {
    point.undecided().iter().filter(|change| matters(change) && is_data(change)).count()
}

/// Number of changes that matter.
pub(crate) fn undecided(point: &CrashPoint) -> usize {
    point.undecided().iter().filter(|change| matters(change)).count()
}

/// All subsets when they are few; otherwise every adversarial choice of a point and `samples` seeded ones.
pub(crate) fn picks(point: &CrashPoint, samples: usize, seed: u64) -> Vec<Pick> {
    let count = undecided(point);
    if count <= sealog_disk::sim::EXHAUSTIVE_MAX {
        return (0..1_u64 << count).map(Pick::Mask).collect();
    }
    let mut picks = vec![Pick::Prefix(0), Pick::Prefix(count), Pick::Names, Pick::Data];
    // The edges are where a torn write differs from a whole one; of the middle some are enough.
    let step = (count / 8).max(1);
    for at in (0..count).filter(|at| at % step == 0 || *at + 2 >= count) {
        picks.extend([Pick::Without(at), Pick::Only(at), Pick::Prefix(at + 1), Pick::Suffix(at + 1)]);
    }
    picks.extend((0..samples as u64).map(|sample| Pick::Seeded(seed.wrapping_mul(1_000_003) + sample)));
    picks
}

pub(crate) fn image(point: &CrashPoint, pick: Pick) -> SimDisk {
    let mut at = 0;
    let mut keep = |chosen: &dyn Fn(usize, &Undecided) -> bool| {
        point.image_with(|change| {
            if !matters(change) {
                return true;
            }
            at += 1;
            chosen(at - 1, change)
        })
    };
    match pick {
        Pick::Mask(mask) => keep(&|at, _| mask >> at & 1 == 1),
        Pick::Seeded(seed) => point.image(sealog_disk::sim::Choice::Seeded(seed)),
        Pick::Without(lost) => keep(&|at, _| at != lost),
        Pick::Only(kept) => keep(&|at, _| at == kept),
        Pick::Prefix(count) => keep(&|at, _| at < count),
        Pick::Suffix(from) => keep(&|at, _| at >= from),
        Pick::Names => keep(&|_, change| !is_data(change)),
        Pick::Data => keep(&|_, change| is_data(change)),
        Pick::Sectors(mask, others) => {
            let sector = std::cell::Cell::new(0);
            keep(&|_, change| match is_data(change) {
                true => mask >> sector.replace(sector.get() + 1) & 1 == 1,
                false => others,
            })
        }
    }
}

/// Takes the records of an audit.
#[derive(Default)]
pub(crate) struct Taken(pub Vec<Record>);

impl Sink for Taken {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        self.0.push(record.clone());
    }
}

pub(crate) fn read_only(bench: &Bench) -> Result<(Audit, Vec<Record>), String> {
    let (found, taken) =
        audit(&bench.config, &mut Taken::default).map_err(|e| format!("the audit failed: {e}"))?;
    Ok((found, taken.0))
}

/// What one image was found to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub torn: bool,
}

/// The whole examination (R03, R06, R07, R11, JR-4, JR-7, JR-8). `seed` chooses how the image is used afterwards.
pub(crate) fn judge(image: &SimDisk, expected: &Expected, seed: u64) -> Result<Judged, String> {
    let bench = Bench::on(image.clone(), seed ^ 0x5ea1);
    let (before, shown) = read_only(&bench)?;
    if let Some(problem) = before.problems.first() {
        return Err(format!("the audit sees damage: {problem:?}"));
    }
    with_summaries(image)?;
    let opened = bench.open().map_err(|e| format!("the start failed: {e}"))?;
    let report = &opened.report;
    let units = expected.check(&opened.records)?;
    // JR-4: one judge.
    if shown != opened.records || before.last_sequence != report.last_sequence {
        return Err("audit and start show different records".into());
    }
    if before.tail != report.tail || before.empty_segment != report.repairs.empty_segment_removed {
        return Err(format!("audit and start give different verdicts: {before:?} and {report:?}"));
    }
    let judged = Judged { torn: report.tail.is_some() };
    let marker = (200 + seed % 50) as u8;
    let more = Unit { records: vec![record(marker, 1, b"after the crash"), record(marker, 2, &[7; 900])] };
    opened.commit(more.clone()).map_err(|e| format!("the first commit failed: {e}"))?;
    let grown = expected.settled(&opened.records).exactly(units).and(&more);
    let live: Vec<Record> = opened
        .journal
        .read_from(1)
        .collect::<Result<_, _>>()
        .map_err(|e| format!("reading by sequence failed: {e}"))?;
    grown.check(&live).map_err(|e| format!("reading by sequence: {e}"))?;
    match seed % 3 {
        0 => drop(opened),
        _ => opened.journal.close().map_err(|e| format!("the close failed: {e}"))?,
    }
    next_start(image, &grown, seed)?;
    lasting(image, &grown, seed).map(|()| judged)
}

/// R15: whatever summaries the crash left, whole, torn or none, a start that believes them gives the same answers.
fn with_summaries(image: &SimDisk) -> Result<(), String> {
    let entries = image.list(Folder::Segments).unwrap_or_default();
    if !entries.iter().any(|entry| entry.file.ends_with(".idx")) {
        return Ok(());
    }
    let answers = |digests| -> Result<_, String> {
        let started = digests::start(&Bench::on(image.fork(), 3), digests);
        Ok(started.map_err(|e| format!("a start, digests {digests}: {e}"))?.answers())
    };
    if answers(true)? != answers(false)? {
        return Err("a start with summaries gives other answers".into());
    }
    Ok(())
}

/// What was acknowledged after the start stands however the power goes then.
fn lasting(image: &SimDisk, grown: &Expected, seed: u64) -> Result<(), String> {
    let point = image.crash_point();
    let pick = if seed.is_multiple_of(2) { Pick::Prefix(0) } else { Pick::Seeded(seed) };
    let (found, shown) = read_only(&Bench::on(self::image(&point, pick), 1))?;
    match found.problems.first() {
        Some(problem) => Err(format!("damage after the start and a crash, {pick:?}: {problem:?}")),
        None => grown.check(&shown).map(|_| ()).map_err(|e| format!("after the start and a crash: {e}")),
    }
}

/// The start after that one: the same records, nothing to repair, no empty segment, no leftover.
fn next_start(image: &SimDisk, grown: &Expected, seed: u64) -> Result<(), String> {
    let bench = Bench::on(image.clone(), seed ^ 0xa9a1);
    let (after, _) = read_only(&bench)?;
    let again = bench.open().map_err(|e| format!("the second start failed: {e}"))?;
    grown.check(&again.records).map_err(|e| format!("second start: {e}"))?;
    if !after.is_sound() || after.last_sequence != again.report.last_sequence {
        return Err("audit and second start differ".into());
    }
    let repairs = &again.report.repairs;
    if again.report.tail.is_some()
        || repairs.empty_segment_removed.is_some()
        || repairs.superseded_removed > 0
    {
        return Err(format!("the second start had to repair: {:?}", again.report));
    }
    // Beside a writer a reader would not count the newest frame.
    drop(again);
    match empty_segments(&bench) {
        0 => Ok(()),
        count => Err(format!("{count} empty segments after a start that wrote")),
    }
}

/// Published segments without a record; one that stands for a range is none.
pub(crate) fn empty_segments(bench: &Bench) -> usize {
    let (found, _) = read_only(bench).unwrap_or_else(|e| panic!("{e}"));
    found.segments.iter().filter(|segment| segment.records == 0 && segment.generation == 0).count()
}

/// A journal that crashed in its making: there is none, and making it again works, or it is there and works.
pub(crate) fn judge_creation(image: &SimDisk, expected: &Expected, seed: u64) -> Result<Judged, String> {
    let bench = Bench::on(image.clone(), seed);
    match crate::look(image).map_err(|e| format!("looking failed: {e}"))? {
        crate::Contents::Journal { .. } => {}
        crate::Contents::Empty | crate::Contents::Leftovers { .. } => {
            if expected.must > 0 {
                return Err("an acknowledged journal is not there".into());
            }
            match bench.open() {
                Err(crate::JournalError::NoJournal) => {}
                other => return Err(format!("an unfinished journal opened: {:?}", other.map(|o| o.report))),
            }
            bench.try_create().map_err(|e| format!("the creation was not completed: {e}"))?;
        }
    }
    judge(image, expected, seed)
}
