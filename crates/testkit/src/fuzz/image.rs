//! A whole journal under damage: the read-only scan and a start never panic, agree, and account for every record.
//!
//! The oracle knows what was written. Damage is what a hostile or rotten disk can do without the keys, so nothing
//! that was not written may ever be shown, and what is missing must be explained: by a gap, by a torn tail, or by
//! the residue that the format admits (the end of the journal above all evidence that is left).

mod base;
mod damage;

use std::collections::BTreeMap;
use std::sync::Arc;

use sealog_disk::ErrorKind;
use sealog_disk::sim::SimDisk;
use sealog_journal::{
    Admission, Audit, FrameView, Health, Journal, JournalError, Problem, Record, RecoveryReport, Replay,
    SET_ASIDE, Sink, Turn, audit,
};

use super::allocation::within;
use super::input::Input;
use base::{BASES, Base, config, event};

/// What the scan may hold at once: its window, one frame, the records of a small journal.
const MEMORY_MAX: usize = 8 << 20;

/// First byte: which journal. Then damage, step by step.
pub(super) fn journal_image(data: &[u8]) {
    let mut input = Input::new(data);
    let base = &BASES[usize::from(input.byte()) % BASES.len()];
    let disk = base.disk.fork();
    let foreign = damage::damage(&mut input, &disk, base);
    judged(base, &disk, foreign);
}

fn judged(base: &Base, disk: &SimDisk, foreign: bool) {
    let seen = look(disk);
    if let Ok((audit, records)) = &seen {
        accounted_for(base, audit, records);
    }
    start(base, disk, seen, foreign);
}

#[derive(Debug, Default)]
struct Records(Vec<Record>);

impl Sink for Records {
    fn record(&mut self, _: &FrameView, record: &Record) {
        self.0.push(record.clone());
    }
}

impl Replay for Records {
    fn record(&mut self, record: &Record) {
        self.0.push(record.clone());
    }
}

type Seen = Result<(Audit, Vec<Record>), JournalError>;

/// The read-only scan; it changes nothing.
fn look(disk: &SimDisk) -> Seen {
    let copy = disk.fork();
    let before = copy.files();
    let seen = within(MEMORY_MAX, || audit(&config(&copy, 11), &mut Records::default));
    assert!(copy.files() == before, "a reader changed a file");
    seen.map(|(audit, records)| (audit, records.0))
}

/// Only what was written, in order, and nothing missing without a word.
fn accounted_for(base: &Base, audit: &Audit, records: &[Record]) {
    let written = &base.records;
    for pair in records.windows(2) {
        assert!(pair[0].sequence < pair[1].sequence, "records out of order");
    }
    for record in records {
        let at = usize::try_from(record.sequence - 1).ok();
        assert_eq!(at.and_then(|at| written.get(at)), Some(record), "a record that was not written");
    }
    let shown: Vec<u64> = records.iter().map(|record| record.sequence).collect();
    let last_shown = shown.last().copied().unwrap_or(0);
    let proven = audit.head.as_ref().map_or(0, |head| head.last_sequence);
    for sequence in (1..=written.len() as u64).filter(|sequence| !shown.contains(sequence)) {
        let in_gap = audit.gaps.iter().any(|gap| {
            gap.first_sequence <= sequence && gap.last_sequence.is_none_or(|last| sequence <= last)
        });
        let in_tail = audit.tail.as_ref().is_some_and(|tail| tail.place.sequence <= sequence);
        let residue = sequence > last_shown && sequence > proven;
        assert!(
            in_gap || in_tail || residue,
            "record {sequence} is missing without a word: shown up to {last_shown}, proven up to {proven}, {audit:?}"
        );
        assert!(in_gap || in_tail || audit.is_sound() || residue);
    }
    for gap in &audit.gaps {
        assert!(!audit.is_sound(), "a gap without a problem: {gap:?}");
    }
}

/// A start on the same bytes: the same verdict. Refused, it changed nothing; accepted, it goes on working. With
/// something `foreign` (a link, a folder) at the name of a file it may also refuse to replace that.
fn start(base: &Base, disk: &SimDisk, seen: Seen, foreign: bool) {
    let copy = disk.fork();
    let before = files(&copy);
    let mut replayed = Records::default();
    let opened = within(2 * MEMORY_MAX, || Journal::open_manual(&config(&copy, 12), &mut replayed));
    match (seen, opened) {
        (Ok((audit, records)), Ok((journal, report))) => {
            assert!(audit.is_sound(), "started over {:?}", audit.problems);
            assert_eq!(replayed.0, records, "a start and a scan show the same");
            assert_eq!(report.tail, audit.tail);
            assert_eq!(report.last_sequence, last_sequence(&records));
            goes_on(&copy, journal, &report, records);
        }
        (Ok(_), Err(JournalError::Disk(e))) if foreign && e.kind == ErrorKind::Unsafe => {}
        (Ok((audit, _)), Err(JournalError::Corrupt { what: SET_ASIDE, .. })) => {
            assert!(!audit.is_sound(), "a sound file was set aside");
            only_set_aside(&before, &files(&copy));
            judged(base, &copy, foreign);
        }
        (Ok((audit, _)), Err(error)) => {
            let problem = audit.problems.first();
            let same = problem.is_some_and(|problem| same_verdict(problem, &error));
            assert!(same, "the scan says {problem:?}, the start says {error}");
            assert!(files(&copy) == before, "a refused start changed a file");
        }
        (Err(seen), Err(error)) => {
            let kind = std::mem::discriminant::<JournalError>;
            assert_eq!(kind(&seen), kind(&error), "the scan says {seen}, the start says {error}");
            assert!(files(&copy) == before, "a refused start changed a file");
        }
        (Err(seen), Ok(_)) => panic!("the scan refuses ({seen}), the start does not"),
    }
}

/// JR-15: the one refusal that changes something: files of compactions stand in quarantine, each beside a report.
fn only_set_aside(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) {
    let changed: Vec<&String> = before
        .iter()
        .filter(|(name, bytes)| after.get(*name) != Some(*bytes))
        .map(|(name, _)| name)
        .collect();
    assert!(!changed.is_empty() && changed.iter().all(|name| name.starts_with("segments/")), "{changed:?}");
    let mut new = after.keys().filter(|name| !before.contains_key(*name));
    assert!(new.all(|name| name.starts_with("quarantine/")), "{:?}", after.keys());
}

fn same_verdict(problem: &Problem, error: &JournalError) -> bool {
    match error {
        JournalError::Corrupt { place, row, what } => {
            problem.place == *place && problem.row == *row && problem.what == *what
        }
        JournalError::CorruptFile { what, .. } => problem.what == *what,
        JournalError::Missing { .. } => matches!(problem.row, 10 | 11),
        _ => false,
    }
}

/// Everything but the text in `LOCK`.
fn files(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let mut files = disk.files();
    files.remove("LOCK");
    files
}

fn last_sequence(records: &[Record]) -> u64 {
    records.last().map_or(0, |record| record.sequence)
}

/// After a start: one more record is taken, and the next start finds all of it and nothing to repair.
fn goes_on(disk: &SimDisk, journal: Journal, report: &RecoveryReport, mut records: Vec<Record>) {
    let unit = event(9, last_sequence(&records) + 1);
    let mut ticket = journal.submit(unit, Admission::Reserved).expect("an empty queue takes a unit");
    let turn = journal.turn();
    assert_eq!(turn, Turn::Decided(1), "{:?}", journal.health());
    assert!(matches!(ticket.try_result(), Some(Ok(()))), "a healthy disk keeps a record");
    assert_eq!(journal.health(), Health::Ready);
    let read: Vec<Record> = journal.read_from(last_sequence(&records) + 1).filter_map(Result::ok).collect();
    assert_eq!(read.len(), 1);
    records.extend(read);
    drop(journal);
    let mut replayed = Records::default();
    let (_, again) = Journal::open_manual(&config(disk, 13), &mut replayed)
        .unwrap_or_else(|error| panic!("recovery cannot be repeated: {error}"));
    assert_eq!(replayed.0, records, "what was shown stays");
    assert_eq!(again.tail, None, "a tail is cut once");
    assert!(again.epoch > report.epoch);
    drop(Arc::new(again));
}
