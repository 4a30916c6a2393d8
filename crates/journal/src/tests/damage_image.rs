//! A stopped journal of three segments whose every stored byte is known by place: one segment sealed, one cut by
//! recovery, one as its writer left it. Damage is done to forks of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sealog_disk::sim::{Choice, SimDisk, TraceEntry};
use sealog_disk::{Folder, Name, Operation};
use sealog_journal_format::FrameHeader;

use super::setup::{Bench, Opened, record};
use crate::recovery::findings::{FrameView, Gap, Problem, Sink, TornTail};
use crate::store::Store;
use crate::{Audit, Journal, JournalError, Record, Replay, Unit, audit};

/// How the last writer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Killed right after its last commit: nothing covers the newest group.
    Killed,
    /// Killed after a pause that let the head catch up.
    Idle,
    Closed,
}

/// One frame of the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub segment: u64,
    pub offset: u64,
    pub header: FrameHeader,
}

impl At {
    pub fn end(&self) -> u64 {
        self.offset + self.header.frame_bytes()
    }
}

#[derive(Debug)]
pub(crate) struct Image {
    pub disk: SimDisk,
    pub frames: Vec<At>,
    pub records: Vec<Record>,
    /// The same, for tests that build further on it.
    pub bench: Bench,
}

pub(crate) fn segment(number: u64) -> Name {
    Name::new(Folder::Segments, &format!("{number:012}.seg")).unwrap()
}

pub(crate) fn root(file: &str) -> Name {
    Name::new(Folder::Root, file).unwrap()
}

/// Text that must never be found in a file (R16).
pub(crate) const CANARY: &[u8] = b"the canary sings in plaintext ";

/// Group `event` of the image: a body that is longer with each event.
pub(crate) fn group(n: u8, event: u64) -> Unit {
    let body = CANARY.repeat(event as usize);
    let second = record(n, event + 1, &body[..CANARY.len()]);
    Unit { records: vec![record(n, event, &body), second] }
}

impl Image {
    /// Segment 1 sealed, segment 2 cut at recovery, segment 3 as `end` says; two or three groups each.
    pub fn new(end: End) -> Image {
        let bench = Bench::new();
        let first = bench.open().unwrap();
        first.commit(group(1, 1)).unwrap();
        first.commit(group(1, 3)).unwrap();
        first.journal.close().unwrap();
        let second = bench.open().unwrap();
        second.commit(group(2, 1)).unwrap();
        second.commit(group(2, 3)).unwrap();
        drop(second);
        let third = bench.open().unwrap();
        for event in [1, 3, 5] {
            third.commit(group(3, event)).unwrap();
        }
        match end {
            End::Killed => {}
            End::Idle => {
                bench.clock.advance(bench.config.tuning.head_idle);
                third.journal.maintain();
            }
            End::Closed => third.journal.close().unwrap(),
        }
        drop(third);
        Image::of(bench)
    }

    /// What a stopped node left on the disk of `bench`.
    pub fn of(bench: Bench) -> Image {
        let disk = bench.disk.crash_point().image(Choice::Everything);
        let (found, seen) = look(&disk);
        assert_eq!((found.problems, found.gaps, found.tail), (vec![], vec![], None));
        let frames = seen.frames.iter();
        let frames = frames.map(|f| At { segment: f.segment, offset: f.offset, header: f.header }).collect();
        Image { disk, frames, records: seen.records, bench }
    }

    pub fn frames_of(&self, segment: u64) -> Vec<At> {
        self.frames.iter().copied().filter(|at| at.segment == segment).collect()
    }

    pub fn frame(&self, segment: u64, index: usize) -> At {
        self.frames_of(segment)[index]
    }

    /// The newest frame of all.
    pub fn newest(&self) -> At {
        *self.frames.last().unwrap()
    }

    pub fn bytes(&self, segment_number: u64) -> Vec<u8> {
        self.disk.bytes(&segment(segment_number)).unwrap()
    }

    pub fn frame_bytes(&self, at: &At) -> Vec<u8> {
        self.bytes(at.segment)[at.offset as usize..at.end() as usize].to_vec()
    }

    /// All records but those of this frame.
    pub fn records_without(&self, at: &At) -> Vec<Record> {
        let lost = at.header.first_sequence..at.header.next_sequence();
        self.records.iter().filter(|r| !lost.contains(&r.sequence)).cloned().collect()
    }

    /// The gap that the loss of this frame leaves; none if it holds no record.
    pub fn gap_of(&self, at: &At) -> Vec<Gap> {
        let gap = Gap {
            segment: at.segment,
            offset: at.offset,
            first_sequence: at.header.first_sequence,
            last_sequence: Some(at.header.next_sequence() - 1),
        };
        if at.header.record_count == 0 { vec![] } else { vec![gap] }
    }

    pub fn end_of(&self, number: u64) -> u64 {
        self.frames_of(number).last().unwrap().end()
    }
}

/// All that a scan hands out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub frames: Vec<FrameView>,
    pub records: Vec<Record>,
}

impl Sink for Seen {
    fn frame(&mut self, frame: &FrameView) {
        self.frames.push(frame.clone());
    }

    fn record(&mut self, _frame: &FrameView, record: &Record) {
        self.records.push(record.clone());
    }
}

/// What a read-only tool finds; it must not even try to change anything (R39).
#[track_caller]
pub(crate) fn look(disk: &SimDisk) -> (Audit, Seen) {
    try_look(disk).unwrap()
}

#[track_caller]
pub(crate) fn try_look(disk: &SimDisk) -> Result<(Audit, Seen), JournalError> {
    disk.start_trace();
    let found = audit(&Bench::on(disk.clone(), 99).config, &mut Seen::default);
    assert_eq!(changes(&disk.take_trace()), Vec::<String>::new(), "an audit changes nothing");
    found
}

/// The calls that could change the disk, the text in `LOCK` left out.
pub(crate) fn changes(trace: &[TraceEntry]) -> Vec<String> {
    let changing = trace.iter().filter(|entry| entry.op.is_some() && entry.file != "LOCK");
    changing.map(|entry| format!("{:?} {}", entry.call, entry.file)).collect()
}

#[track_caller]
pub(crate) fn start(disk: &SimDisk) -> Opened {
    Bench::on(disk.clone(), 77).open().unwrap()
}

/// Every file as it stands in the cache and on the device, without `LOCK` (JR-5).
pub(crate) fn contents(disk: &SimDisk) -> [BTreeMap<String, Vec<u8>>; 2] {
    [disk.files(), disk.durable_files()].map(|mut files| {
        files.remove("LOCK");
        files
    })
}

fn lock_file() -> Name {
    Name::new(Folder::Root, "LOCK").unwrap()
}

/// A start that must refuse; it may not even try to change anything (JR-5). What it syncs stays what it was.
#[track_caller]
pub(crate) fn refusal(disk: &SimDisk) -> JournalError {
    let before = disk.fork();
    disk.start_trace();
    let opened = Bench::on(disk.clone(), 77).open();
    let mut trace = disk.take_trace();
    let syncs = |entry: &TraceEntry| {
        matches!(entry.call.operation(), Operation::Sync | Operation::SyncDirectory) || entry.file == "LOCK"
    };
    trace.retain(|entry| !syncs(entry));
    assert_eq!(changes(&trace), Vec::<String>::new(), "a refused start changes nothing");
    disk.put(&lock_file(), &[]);
    before.put(&lock_file(), &[]);
    assert!(disk.same_cached(&before), "a refused start changes no byte");
    match opened {
        Ok(opened) => panic!("the start went through: {:?}", opened.report),
        Err(e) => e,
    }
}

/// A refusal that names this place by this row.
#[track_caller]
pub(crate) fn refused_at(disk: &SimDisk, number: u64, offset: u64, row: u8) {
    match refusal(disk) {
        JournalError::Corrupt { place, row: found, .. } => {
            assert_eq!((place.segment, place.offset, found), (number, offset, row));
        }
        other => panic!("expected damage at segment {number}, offset {offset}, found {other:?}"),
    }
}

/// The places and rows of all problems.
pub(crate) fn rows(problems: &[Problem]) -> Vec<(u64, u64, u8)> {
    problems.iter().map(|p| (p.place.segment, p.place.offset, p.row)).collect()
}

pub(crate) fn tail_place(tail: Option<&TornTail>) -> Option<(u64, u64)> {
    tail.map(|tail| (tail.place.segment, tail.place.offset))
}

pub(crate) fn quarantine(kind: &str, segment: u64, frame: u64) -> Name {
    Name::new(Folder::Quarantine, &format!("{segment:012}-{frame:012}.{kind}")).unwrap()
}

/// The journal's own view of a segment of an image: header and keys, for tests that forge.
pub(crate) fn open_segment(disk: &SimDisk, number: u64) -> crate::segment::Segment {
    let bench = Bench::on(disk.clone(), 5);
    let store = Store::open(&bench.config).unwrap();
    let disk: Arc<dyn sealog_disk::Disk> = Arc::new(disk.clone());
    let named = sealog_journal_format::names::SegmentName::Log { number };
    match crate::segment::Segment::open(&disk, &store.keyring, &segment(number), named) {
        Ok(segment) => segment,
        Err(e) => panic!("segment {number} does not open: {e:?}"),
    }
}

/// Bytes that repeat from run to run.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let source = sealog_disk::testing::SeededEntropy::new(seed);
    sealog_disk::Entropy::fill(&source, &mut bytes).unwrap();
    bytes
}

/// A journal opened and thrown away, for its verdict alone.
pub(crate) fn verdict(disk: &SimDisk) -> Result<(), JournalError> {
    struct Nothing;
    impl Replay for Nothing {
        fn record(&mut self, _record: &Record) {}
    }
    Journal::open_manual(&Bench::on(disk.clone(), 77).config, &mut Nothing).map(|_| ())
}
