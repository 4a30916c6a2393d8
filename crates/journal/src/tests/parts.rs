//! Parts: what other threads make of ended segments is what one walk would have handed out, and the verdict is the same
//! (JR-4, JR-5), whatever is damaged and however many threads there are.

use std::any::Any;

use sealog_disk::sim::SimDisk;
use sealog_disk::{Folder, Name};
use sealog_journal_format::compacted::Sources;

use super::damage_image::{End, Image};
use super::setup::Bench;
use super::summaries::{compacted, summarised};
use super::{damage_table, summaries};
use crate::recovery::findings::{FrameView, Parts, Sink};
use crate::{Anchoring, Audit, JournalError, Record, audit};

/// Everything that is handed out, in words, in the order in which it comes.
#[derive(Debug, Default)]
struct Told {
    words: Vec<String>,
    in_parts: bool,
    /// How many parts came.
    parts: usize,
}

impl Sink for Told {
    fn parts(&self) -> Option<Parts> {
        self.in_parts.then(|| Parts::new(Told::default))
    }

    fn absorb(&mut self, part: Box<dyn Any>) {
        let part = part.downcast::<Told>().unwrap();
        self.words.extend(part.words);
        self.parts += 1;
    }

    fn frame(&mut self, frame: &FrameView) {
        self.words.push(format!("{frame:?}"));
    }

    fn record(&mut self, frame: &FrameView, record: &Record) {
        self.words.push(format!("{} {} {record:?}", frame.segment, frame.offset));
    }

    fn sources(&mut self, sources: &Sources) {
        self.words.push(format!("{sources:?}"));
    }
}

type Found = Result<(Audit, (Told, Anchoring)), JournalError>;

fn look(disk: &SimDisk, threads: usize, in_parts: bool) -> Found {
    let mut bench = Bench::on(disk.fork(), 99);
    bench.config.tuning.check_threads = threads;
    let sink = || (Told { in_parts, ..Told::default() }, Anchoring::new(None));
    audit(&bench.config, &mut || sink())
}

/// How many parts there were, and whether there was damage.
#[track_caller]
fn same(disk: &SimDisk, threads: &[usize], what: &str) -> (usize, bool) {
    let whole = look(disk, 1, false);
    let (mut parts, mut damaged) = (0, false);
    for threads in threads {
        match (&whole, look(disk, *threads, true)) {
            (Ok((one, (all, place))), Ok((other, (told, there)))) => {
                assert_eq!(format!("{other:?}"), format!("{one:?}"), "{what}, {threads} threads");
                assert!(told.words == all.words, "{what}, {threads} threads: what was handed out");
                assert_eq!(there.here(&other), place.here(one), "{what}, {threads} threads");
                assert_eq!(all.parts, 0);
                (parts, damaged) = (told.parts, !one.problems.is_empty());
            }
            (Err(one), Err(other)) => assert_eq!(other.to_string(), one.to_string(), "{what}"),
            (one, other) => panic!("{what}, {threads} threads: {:?}, {:?}", one.is_ok(), other.is_ok()),
        }
    }
    (parts, damaged)
}

const THREADS: [usize; 3] = [1, 2, 8];

/// JR-3, JR-4: every row of the decision table.
#[test]
fn every_row_of_the_table_is_found_alike_in_parts() {
    let cases = damage_table::cases();
    let found: Vec<(usize, bool)> =
        cases.iter().map(|(_, name, disk, _)| same(disk, &THREADS, name)).collect();
    assert!(found.iter().filter(|(_, damaged)| *damaged).count() > 15);
    assert!(found.iter().filter(|(parts, _)| *parts > 0).count() > 15);
    let sound = Image::new(End::Closed);
    assert_eq!(same(&sound.disk, &THREADS, "sound"), (2, false), "all but the newest");
}

/// JR-4: many segments, streams across them, compacted ones between; a flip in every segment, at its ends and inside.
#[test]
fn a_flip_in_any_segment_is_found_alike_in_parts() {
    let mut damaged = 0;
    for disk in [summarised().0, compacted().0] {
        let (parts, before) = same(&disk, &THREADS, "sound");
        assert!(parts > 0 && !before, "{parts} parts");
        let files = disk.files();
        let names = files.keys().filter_map(|file| file.strip_prefix("segments/"));
        for name in names.filter(|name| name.ends_with(".seg")) {
            let name = Name::new(Folder::Segments, name).unwrap();
            let length = disk.bytes(&name).unwrap().len() as u64;
            for (at, offset) in [9, 8192 + 40, 8192 + 170, length / 2, length - 20].into_iter().enumerate() {
                let disk = disk.fork();
                disk.flip_bit(&name, offset, 5);
                let (_, found) = same(&disk, &THREADS[at % 3..=at % 3], &format!("{name}, {offset}"));
                damaged += usize::from(found);
            }
        }
    }
    assert!(damaged > 20, "{damaged}");
}

/// A summary that stands beside a segment is not asked for by who wants everything.
#[test]
fn summaries_are_no_parts() {
    let disk = summarised().0;
    disk.delete(&summaries::summary(1));
    assert!(!same(&disk, &THREADS, "a summary is gone").1);
}
