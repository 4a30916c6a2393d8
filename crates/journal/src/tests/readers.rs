//! Readers beside a live writer: at every moment they show a prefix that no crash can take back, everything that was
//! covered when they began, and never call damage what a writer is about to do (JR-13, R39).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sealog_disk::sim::{Choice, Fault, FaultKind, SimDisk};
use sealog_disk::{Disk, Folder, Operation};

use super::damage_image::{End, Image, Seen, group, look, root, rows, segment, start};
use super::readers_disk::Between;
use super::setup::{Bench, Opened, Records, closing, record};
use super::tails::published_fourth;
use crate::{Audit, Health, Journal, JournalError, Record, Unit, audit};

/// What a crash at this moment would leave, at worst.
fn safe(disk: &SimDisk) -> Vec<Record> {
    let crashed = disk.crash_point().image(Choice::Nothing);
    start(&crashed).records
}

/// Looks at the disk as another process does and compares with what is safe and what must be shown.
fn observe(disk: &SimDisk, floor: usize) -> (Audit, usize) {
    let (found, seen) = look(disk);
    assert_eq!((rows(&found.problems), found.gaps.len()), (vec![], 0));
    let safe = safe(disk);
    let shown = seen.records.len();
    if found.live {
        assert_eq!(found.tail, None, "above the horizon nothing is judged");
        assert!(shown >= floor, "{shown} shown, {floor} were covered");
        assert!(shown <= safe.len(), "{shown} shown, {} are safe", safe.len());
        assert_eq!(seen.records, safe[..shown]);
        let last = seen.records.last().map_or(0, |record| record.sequence);
        assert_eq!(found.last_sequence, last, "no number speaks of what is not shown");
        let ends = found.segments.iter().map(|s| (s.last_sequence, s.records));
        assert_eq!(ends.map(|(_, records)| records).sum::<u64>(), shown as u64);
    }
    (found, shown)
}

/// A writer whose every call is watched by a reader. `floor` is what must be shown.
fn watched(disk: &SimDisk, direct: bool) -> (Bench, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let floor = Arc::new(AtomicUsize::new(0));
    let looks = Arc::new(AtomicUsize::new(0));
    let mut bench = Bench::on(disk.clone(), 21);
    let (watching, wanted, counted) = (disk.clone(), Arc::clone(&floor), Arc::clone(&looks));
    let between = Between::new(disk, move || {
        observe(&watching, wanted.load(Ordering::Relaxed));
        counted.fetch_add(1, Ordering::Relaxed);
    });
    bench.config.disk = Arc::new(between);
    bench.config.tuning.direct = direct;
    (bench, floor, looks)
}

/// JR-13: at every step of a writer: start, commits, head, roll, preparation, close, on both write paths.
#[test]
fn a_reader_at_every_step_of_a_writer_shows_a_safe_prefix() {
    for direct in [true, false] {
        let image = Image::new(End::Killed);
        let (bench, floor, looks) = watched(&image.disk, direct);
        // What recovery finds is covered once a link names it; the newest group of before only then.
        let before = image.records.len();
        let opened = bench.open().unwrap();
        let mut shown = before;
        for event in 1..=14 {
            let body = vec![event as u8; 2000];
            opened.commit(Unit::one(record(7, event, &body))).unwrap();
            // The newest group waits for the next header, all before it do not.
            floor.store(shown, Ordering::Relaxed);
            shown += 1;
            if event % 4 == 0 {
                bench.clock.advance(Duration::from_millis(300));
                while opened.journal.maintain() {}
                floor.store(shown, Ordering::Relaxed);
                assert_eq!(observe(&image.disk, shown).1, shown, "the head covers all");
            }
        }
        assert!(image.disk.bytes(&segment(5)).is_some(), "the workload rolls");
        opened.journal.close().unwrap();
        let (found, shown_at_end) = observe(&image.disk, shown);
        assert!(!found.live && found.head.unwrap().closed);
        assert_eq!(shown_at_end, shown);
        assert!(looks.load(Ordering::Relaxed) > 200, "{}", looks.load(Ordering::Relaxed));
    }
}

/// What a writer does next; one at a time between two calls of a reader.
#[derive(Clone, Copy, Debug)]
enum Do {
    Start,
    Commit,
    Idle,
    Close,
    Kill,
}

#[derive(Debug)]
struct Script {
    bench: Bench,
    opened: Option<Opened>,
    todo: Vec<Do>,
    event: u64,
}

impl Script {
    fn new(disk: &SimDisk, todo: &[Do]) -> Script {
        let mut bench = Bench::on(disk.clone(), 41);
        // Small enough that some commits roll.
        bench.config.tuning.segment_bytes_max = 16 << 10;
        Script { bench, opened: None, todo: todo.iter().rev().copied().collect(), event: 0 }
    }

    fn step(&mut self) {
        match self.todo.pop() {
            Some(Do::Start) => self.opened = Some(self.bench.open().unwrap()),
            Some(Do::Commit) => {
                self.event += 1;
                let unit = Unit::one(record(7, self.event, &[7; 3000]));
                self.opened.as_ref().unwrap().commit(unit).unwrap();
            }
            Some(Do::Idle) => {
                self.bench.clock.advance(Duration::from_millis(300));
                while self.opened.as_ref().unwrap().journal.maintain() {}
            }
            Some(Do::Close) => self.opened.take().unwrap().journal.close().unwrap(),
            Some(Do::Kill) => self.opened = None,
            None => {}
        }
    }
}

/// One reader during which the script goes on by a step at every `stride`-th moment from `first` on.
fn overtaken(disk: &SimDisk, todo: &[Do], started: usize, first: usize, stride: usize) {
    let mut script = Script::new(disk, todo);
    (0..started).for_each(|_| script.step());
    let (safe_before, covered) = (safe(disk), observe(disk, 0).1);
    let script = Arc::new(Mutex::new(script));
    let (mut moment, stepping) = (0, Arc::clone(&script));
    let between = Between::new(disk, move || {
        if moment >= first && (moment - first).is_multiple_of(stride) {
            stepping.lock().unwrap().step();
        }
        moment += 1;
    });
    let mut config = Bench::on(disk.clone(), 61).config;
    config.disk = Arc::new(between);
    let context = format!("{todo:?} started {started} first {first} stride {stride}");
    let (found, seen) = audit(&config, &mut Seen::default).unwrap_or_else(|e| panic!("{context}: {e:?}"));
    assert_eq!((rows(&found.problems), found.gaps), (vec![], vec![]), "{context}");
    let shown = seen.records.len();
    let safe_after = safe(disk);
    assert!(shown >= covered.min(safe_before.len()), "{context}");
    assert!(shown <= safe_after.len(), "{context}");
    assert_eq!(seen.records, safe_after[..shown], "{context}");
}

/// JR-13: a writer that starts, commits, rolls, trims, closes or dies between any two calls of a reader.
#[test]
fn a_writer_that_moves_between_two_calls_of_a_reader_is_no_damage() {
    use Do::{Close, Commit, Idle, Kill, Start};
    let scripts: [&[Do]; 5] = [
        &[Start, Commit, Commit, Idle, Commit, Commit, Commit, Close],
        &[Start, Commit, Kill, Start, Commit, Close],
        &[Start, Commit, Commit, Commit, Commit, Commit, Commit, Commit, Commit],
        &[Start, Idle, Close],
        &[Start, Commit, Close, Start, Commit, Commit],
    ];
    let torn = Image::new(End::Killed).disk;
    torn.flip_bit(&segment(3), 8900, 1);
    let closed = Image::new(End::Closed);
    let bases = [closed.disk.fork(), Image::new(End::Killed).disk, torn, published_fourth(&closed)];
    for base in &bases {
        for todo in scripts {
            for started in 0..todo.len() {
                for (first, stride) in [(0, 1), (3, 7), (9, 2), (14, 5), (23, 1), (31, 11)] {
                    overtaken(&base.fork(), todo, started, first, stride);
                }
            }
        }
    }
}

/// An audit of `disk` that calls `act` with the number of each moment between its calls.
fn audited(disk: &SimDisk, mut act: impl FnMut(usize) + Send + 'static) -> (Audit, Vec<Record>) {
    let mut moment = 0;
    let between = Between::new(disk, move || {
        act(moment);
        moment += 1;
    });
    let mut config = Bench::on(disk.clone(), 61).config;
    config.disk = Arc::new(between);
    let (found, seen) = audit(&config, &mut Seen::default).unwrap();
    (found, seen.records)
}

fn moments(disk: &SimDisk) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    audited(disk, move |moment| counting.store(moment + 1, Ordering::Relaxed));
    count.load(Ordering::Relaxed)
}

/// JR-13: a writer that starts anywhere during a reader that took the journal for a stopped one is noticed.
#[test]
fn a_writer_that_starts_during_a_reader_is_noticed() {
    let image = Image::new(End::Closed);
    let all = moments(&image.disk);
    assert!(all > 40, "{all}");
    // The last moment is behind the last look at the lock.
    for when in 0..all - 1 {
        let disk = image.disk.fork();
        let (writer, starting) = (Arc::new(Mutex::new(None)), disk.clone());
        let running = Arc::clone(&writer);
        let (found, records) = audited(&disk, move |moment| {
            if moment == when {
                let opened = start(&starting);
                opened.commit(group(9, 1)).unwrap();
                *running.lock().unwrap() = Some(opened);
            }
        });
        assert!(writer.lock().unwrap().take().is_some(), "moment {when} of {all}");
        assert!(found.live, "moment {when} of {all}");
        assert_eq!((rows(&found.problems), records), (vec![], image.records.clone()));
    }
}

/// JR-13: a bad read is repeated once: what was in the way of the first look only is no damage; what stays is.
#[test]
fn a_bad_read_is_repeated_once() {
    for live in [true, false] {
        let image = Image::new(End::Idle);
        let writer = live.then(|| start(&image.disk));
        let at = image.frame(1, 1).offset + 100;
        let flip = move |disk: &SimDisk| disk.flip_bit(&segment(1), at, 1);
        let one_look = moments(&image.disk);
        flip(&image.disk);
        let both_looks = moments(&image.disk);
        for healed in 0..both_looks {
            let disk = image.disk.clone();
            let (found, _) = audited(&image.disk, move |moment| {
                if moment == healed {
                    flip(&disk);
                }
            });
            flip(&image.disk);
            assert!(found.is_sound() || healed + 6 > one_look, "{healed} of {one_look} and {both_looks}");
            assert!(!found.is_sound() || healed + 6 < both_looks, "{healed} of {both_looks}");
        }
        drop(writer);
    }
}

/// JR-13: what one look finds here and the next one there is no damage, though no segment came or went.
#[test]
fn what_is_bad_at_another_place_each_time_is_no_damage() {
    let image = Image::new(End::Idle);
    let _writer = start(&image.disk);
    let [here, there] = [1, 2].map(|frame| image.frame(1, frame).offset + 100);
    let one_look = moments(&image.disk);
    for healed in 0..one_look {
        let disk = image.disk.clone();
        disk.flip_bit(&segment(1), here, 1);
        let (found, _) = audited(&image.disk, move |moment| {
            if moment == healed {
                disk.flip_bit(&segment(1), here, 1);
                disk.flip_bit(&segment(1), there, 1);
            } else if moment == healed + one_look {
                disk.flip_bit(&segment(1), there, 1);
            }
        });
        assert_eq!(rows(&found.problems), [], "{healed} of {one_look}");
        assert!(found.live);
    }
}

/// JR-13: a read beside a write may have a part of a frame, and what is read behind it later proves that frame. It is no
/// damage, and no reason to begin anew.
#[test]
fn a_frame_that_is_being_written_while_it_is_read_is_no_damage() {
    // Frames of about 5 KB: the first read of 16 KiB ends in one of them or in the zeros behind one.
    for written in 1..5 {
        for when in 0.. {
            let image = Image::new(End::Killed);
            let mut bench = Bench::on(image.disk.clone(), 77);
            bench.config.tuning.first_segment_bytes = 64 << 10;
            bench.config.tuning.segment_bytes_max = 64 << 10;
            let opened = bench.open().unwrap();
            let journal = opened.journal.clone();
            let commit = move |event| {
                opened.commit(Unit::one(record(9, event, &[9; 5000]))).unwrap();
            };
            (1..=written).for_each(&commit);
            let end = journal.shared_for_tests().read().durable.end;
            let (disk, newest, half) = (image.disk.clone(), segment(end.segment), end.end_offset - 70);
            disk.flip_bit(&newest, half, 1);
            let reached = Arc::new(AtomicUsize::new(0));
            let moment = Arc::clone(&reached);
            let between = Between::new(&image.disk, move || {
                if moment.fetch_add(1, Ordering::Relaxed) == when {
                    disk.flip_bit(&newest, half, 1);
                    (written + 1..written + 6).for_each(&commit);
                }
            });
            let mut config = Bench::on(image.disk.clone(), 61).config;
            config.disk = Arc::new(between);
            let mut passes = 0;
            let (found, _) = audit(&config, &mut || {
                passes += 1;
                Seen::default()
            })
            .unwrap();
            assert_eq!((rows(&found.problems), passes), (vec![], 1), "{written} frames, moment {when}");
            if reached.load(Ordering::Relaxed) <= when {
                break;
            }
        }
    }
}

/// JR-13: as long as compactions pass between the looks, a reader looks again; none of them is taken for damage.
#[test]
fn several_compactions_during_a_reader_are_no_damage() {
    let image = Image::new(End::Closed);
    let bench = Bench::on(image.disk.clone(), 62);
    let opened = bench.open().unwrap();
    for n in 20..60 {
        opened.commit(Unit::one(record(n, 1, &[n; 3000]))).unwrap();
        opened.commit(Unit::one(closing(n, 2))).unwrap();
    }
    let all: Vec<Record> = opened.journal.read_from(1).map(Result::unwrap).collect();
    opened.journal.maintain();
    bench.clock.advance(Duration::from_secs(700));
    opened.journal.maintain();
    let names = |disk: &SimDisk| {
        let entries = disk.list(Folder::Segments).unwrap();
        entries.into_iter().map(|entry| entry.file).filter(|file| file.ends_with(".seg")).collect::<Vec<_>>()
    };
    // One compaction in each of the first looks, each time just before the reader opens what it has listed.
    let (writer, disk, mut seen, mut passed) = (opened.journal.clone(), image.disk.clone(), 0, 0);
    let before = names(&image.disk);
    let compacted = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&compacted);
    let (found, records) = audited(&image.disk, move |_| {
        seen += 1;
        if seen % 9 == 0 && passed < 4 {
            let old = names(&disk);
            writer.tend();
            passed += usize::from(names(&disk) != old);
            counting.store(passed, Ordering::Relaxed);
        }
    });
    assert!(compacted.load(Ordering::Relaxed) > 1, "{:?} became {:?}", before, names(&image.disk));
    assert_eq!(rows(&found.problems), []);
    assert!(found.live);
    assert_eq!(records, all);
}

/// A reader that may wait: `act` runs between its calls.
fn waiting(disk: &SimDisk, bench: &Bench, act: impl FnMut() + Send + 'static) -> (Audit, usize) {
    let mut config = bench.config.clone();
    config.disk = Arc::new(Between::new(disk, act));
    config.tuning.reader_wait = Duration::from_millis(500);
    let (found, seen) = audit(&config, &mut Seen::default).unwrap();
    (found, seen.records.len())
}

/// JR-13: a reader waits until evidence covers what stood there when it began: the head, or a later header; and no
/// longer than 500 ms.
#[test]
fn a_reader_waits_for_evidence_of_what_it_saw_first() {
    let fresh = || {
        let bench = Bench::new();
        let opened = bench.open().unwrap();
        opened.commit(group(1, 1)).unwrap();
        opened.commit(group(1, 3)).unwrap();
        (bench, Arc::new(opened))
    };
    let (bench, opened) = fresh();
    assert_eq!(observe(&bench.disk, 2).1, 2, "without waiting the newest group is not shown");
    let (clock, writer, mut calls) = (Arc::clone(&bench.clock), Arc::clone(&opened), 0);
    let (found, shown) = waiting(&bench.disk, &bench, move || {
        calls += 1;
        if calls == 60 {
            clock.advance(Duration::from_millis(300));
            writer.journal.maintain();
        }
    });
    assert!(found.live);
    assert_eq!(shown, 4, "the head came");
    let (bench, opened) = fresh();
    let (clock, writer, mut calls) = (Arc::clone(&bench.clock), Arc::clone(&opened), 0);
    let (_, shown) = waiting(&bench.disk, &bench, move || {
        calls += 1;
        if calls == 60 {
            writer.commit(group(1, 5)).unwrap();
        }
        if calls == 600 {
            clock.advance_monotonic(Duration::from_secs(1));
        }
    });
    assert_eq!(bench.config.clock.monotonic(), Duration::ZERO, "it did not wait for the time to pass");
    assert_eq!(shown, 4, "a later header came; what it announces is for the next reader");
    let (bench, opened) = fresh();
    let (clock, start) = (Arc::clone(&bench.clock), bench.config.clock.monotonic());
    let (_, shown) = waiting(&bench.disk, &bench, move || clock.advance_monotonic(Duration::from_millis(10)));
    assert_eq!(shown, 2, "nothing came");
    assert!(bench.config.clock.monotonic() - start >= Duration::from_millis(500));
    drop(opened);
}

/// R39: on media that cannot be written at all, and beside a disk that refuses every change.
#[test]
fn tools_work_on_read_only_media() {
    let torn = Image::new(End::Killed);
    torn.disk.flip_bit(&segment(3), torn.newest().offset + 3, 1);
    let damaged = Image::new(End::Closed);
    damaged.disk.flip_bit(&segment(2), 8500, 1);
    for image in [Image::new(End::Killed), Image::new(End::Idle), Image::new(End::Closed), torn, damaged] {
        let (expected, records) = look(&image.disk);
        for op in [
            Operation::Create,
            Operation::Write,
            Operation::Sync,
            Operation::SetLength,
            Operation::Rename,
            Operation::Remove,
            Operation::SyncDirectory,
        ] {
            image.disk.inject(Fault::site(op, "*", 0, FaultKind::ReadOnly).forever());
        }
        let (found, seen) = look(&image.disk);
        assert_eq!(
            (found.problems, found.tail, found.gaps),
            (expected.problems, expected.tail, expected.gaps)
        );
        assert_eq!(seen.records, records.records);
        let before = image.disk.files();
        let refused = Journal::open_manual(&Bench::on(image.disk.clone(), 1).config, &mut Records::default());
        assert!(matches!(refused, Err(JournalError::Disk(_) | JournalError::Corrupt { .. })), "{refused:?}");
        assert!(image.disk.files() == before);
    }
}

/// JD-1, JA-5: the lock is on the directory. A second writer is kept out and a reader is not, whatever the text in `LOCK`
/// says and whether it is there at all (R29, R39).
#[test]
fn the_lock_keeps_writers_out_and_readers_in() {
    let image = Image::new(End::Idle);
    let opened = start(&image.disk);
    let kept_out = || match Bench::on(image.disk.clone(), 2).open() {
        Err(JournalError::Locked { holder }) => holder,
        other => panic!("{other:?}"),
    };
    let holder = kept_out().unwrap();
    assert!(holder.starts_with("pid 1, started 1800000000000 ms"), "{holder}");
    image.disk.put(&root("LOCK"), b"\x1b[31mnot a text of ours");
    assert_eq!(kept_out(), None, "a text that is none is not repeated");
    image.disk.delete(&root("LOCK"));
    assert_eq!(kept_out(), None);
    assert!(look(&image.disk).0.live);
    opened.commit(group(9, 1)).unwrap();
    drop(opened);
    image.disk.put(&root("LOCK"), b"pid 4711\nstarted 1 ms\n");
    assert!(!look(&image.disk).0.live);
    assert!(!image.disk.is_locked().unwrap());
    assert_eq!(start(&image.disk).records.len(), image.records.len() + 2, "a stale text locks nothing");
}

/// R21, F2: damage that a running journal finds under a reader is named by its place and stops the writer; other
/// streams can still be read.
#[test]
fn damage_found_while_reading_stops_the_writer() {
    let image = Image::new(End::Closed);
    let damaged = image.frame(2, 1);
    let mut bench = Bench::on(image.disk.clone(), 4);
    bench.config.tuning.cache_bytes_max = 0;
    for at in [damaged.offset + 4, damaged.offset + 75, damaged.offset + 150, damaged.end() - 1] {
        let disk = image.disk.fork();
        bench.config.disk = Arc::new(disk.clone());
        let opened = bench.open().unwrap();
        let sequence = damaged.header.first_sequence;
        disk.flip_bit(&segment(2), at, 2);
        let error = opened.journal.read_stream(super::setup::stream(2), 1).find_map(Result::err).unwrap();
        let JournalError::Corrupt { place, row: 3, what } = error else { panic!("{error:?}") };
        assert_eq!((place.segment, place.offset), (2, damaged.offset));
        assert!(what.ends_with("does not read back"), "{what}");
        let in_body = at >= damaged.offset + 96;
        assert_eq!(place.sequence, if in_body { sequence } else { 0 });
        assert!(matches!(opened.journal.health(), Health::Poisoned { .. }));
        let others = opened.journal.read_stream(super::setup::stream(3), 1);
        assert_eq!(
            others.map(Result::unwrap).count(),
            image.records.iter().filter(|r| r.stream == Some(super::setup::stream(3))).count()
        );
        let until: Vec<_> = opened.journal.read_from(1).collect();
        assert_eq!(until.iter().filter(|r| r.is_ok()).count() as u64, sequence - 1);
        assert!(until.last().unwrap().is_err());
    }
}

/// R04: a frame that was put in another's place under a running journal is found out, though all of its tags are right;
/// so is a file that was cut.
#[test]
fn a_misplaced_frame_found_while_reading_stops_the_writer() {
    let mut bench = Bench::new();
    bench.config.tuning.cache_bytes_max = 0;
    let opened = bench.open().unwrap();
    for event in 1..=5 {
        opened.commit(Unit::one(record(1, event, b"of one length"))).unwrap();
        opened.commit(Unit::one(record(2, event, b"of one length"))).unwrap();
    }
    drop(opened);
    let image = Image::of(bench.clone());
    let frames = image.frames_of(1);
    let over = |disk: &SimDisk, at: usize, from: usize| {
        disk.overwrite(&segment(1), frames[at].offset, &image.frame_bytes(&frames[from]));
    };
    let cut = |disk: &SimDisk, at: usize| disk.truncate(&segment(1), frames[at].offset + 100);
    // Stream 1 is in the odd frames. An older one, a newer one, one of another stream; a missing one.
    for (at, from) in [(5, Some(3)), (3, Some(7)), (3, Some(4)), (9, None)] {
        let disk = image.disk.fork();
        bench.config.disk = Arc::new(disk.clone());
        for sequentially in [false, true] {
            disk.put(&segment(1), &image.bytes(1));
            let opened = bench.open().unwrap();
            match from {
                Some(from) => over(&disk, at, from),
                None => cut(&disk, at),
            }
            let results: Vec<_> = match sequentially {
                true => opened.journal.read_from(1).collect(),
                false => opened.journal.read_stream(super::setup::stream(1), 1).collect(),
            };
            let sequences: Vec<_> = results.iter().flatten().map(|record| record.sequence).collect();
            assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
            let error = results.iter().find_map(|result| result.as_ref().err()).unwrap();
            let JournalError::Corrupt { place, row, .. } = error else { panic!("{error:?}") };
            assert_eq!(*row, if from.is_some() { 7 } else { 8 });
            assert_eq!(place.segment, 1);
            // A newer frame in the place of an older one is noticed there, or where it comes a second time.
            assert!(place.offset == frames[at].offset || Some(7) == from, "{place:?}");
            assert!(matches!(opened.journal.health(), Health::Poisoned { .. }));
        }
    }
}
