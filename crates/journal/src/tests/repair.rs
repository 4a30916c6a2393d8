//! Repair on each kind of damage of the decision table: the result opens, holds everything that reads and has its place,
//! and everything else is named (JB-11, R39, R45).

use std::sync::Arc;

use sealog_disk::sim::{Choice, Fault, FaultKind, SimDisk};
use sealog_disk::{Disk, Folder, Name};
use sealog_journal_format::journal_records::{KIND_RESTORED, KIND_UNFENCED};

use super::backup::{fill, read};
use super::setup::{Bench, closing, record, stream};
use crate::{Config, Fence, JournalError, Loss, Record, Repaired, Unit, repair, salvage_view};

/// Three segments or more; streams 1.. finished, stream 90 open from the first group to the last.
fn journal() -> Bench {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(Unit { records: vec![record(90, 1, b"long")] }).unwrap();
    for n in 1..16 {
        fill(&opened, n..n + 1, 3000);
        opened.commit(Unit::one(record(90, u64::from(n) + 1, b"more"))).unwrap();
    }
    opened.journal.close().unwrap();
    assert!(segments(&bench).len() >= 3, "{:?}", segments(&bench));
    bench
}

pub(crate) fn segments(bench: &Bench) -> Vec<Name> {
    let entries = bench.disk.list(Folder::Segments).unwrap();
    let files = entries.into_iter().filter(|entry| entry.file.ends_with(".seg"));
    files.map(|entry| Name::new(Folder::Segments, &entry.file).unwrap()).collect()
}

pub(crate) fn repaired(bench: &Bench, target: &SimDisk) -> Result<Repaired, JournalError> {
    let disk: Arc<dyn Disk> = Arc::new(bench.disk.clone());
    let source = Config { disk: salvage_view(&disk)?, ..bench.config.clone() };
    let target: Arc<dyn Disk> = Arc::new(target.clone());
    repair(&source, &target)
}

fn body(record: &Record) -> (u16, Option<crate::StreamId>, u64, u64, Vec<u8>) {
    (record.kind, record.stream, record.event_number, record.time_ms, record.body.clone())
}

/// Damages a fork, repairs it, and checks what must be true of every repair. `reads` says whether the damaged one still
/// hands out records through the ordinary door.
#[track_caller]
fn examine(what: &str, damage: impl Fn(&Bench)) -> Repaired {
    let whole = journal();
    let all = read(&whole.config).unwrap().1;
    let bench = Bench::on(whole.disk.fork(), 80);
    damage(&bench);
    let before = bench.disk.files();
    let target = SimDisk::new();
    let done = repaired(&bench, &target).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    assert_eq!(bench.disk.files(), before, "{what}: the damaged journal was touched");
    let other = Bench::on(target, 81);
    let (audit, mut kept) = read(&other.config).unwrap();
    assert!(audit.is_sound() && audit.tail.is_none(), "{what}: {audit:?}");
    assert_eq!(kept.pop().unwrap().kind, KIND_RESTORED, "{what}");
    assert_eq!(kept.len() as u64, done.records, "{what}");
    // What is kept is what was there, in its order, and of each stream a beginning.
    let mut rest = all.iter().map(body);
    for record in kept.iter().map(body) {
        assert!(rest.any(|was| was == record), "{what}: made up: {record:?}");
    }
    for n in (1..16).chain([90]) {
        let of = |records: &[Record]| -> Vec<u64> {
            let mine = records.iter().filter(|record| record.stream == Some(stream(n)));
            mine.map(|record| record.event_number).collect()
        };
        let (was, is) = (of(&all), of(&kept));
        assert!(was.starts_with(&is), "{what}: stream {n}: {is:?} of {was:?}");
        let named = done.losses.iter().any(|loss| match loss {
            Loss::Stream { stream: id, .. } => *id == stream(n) && is.is_empty(),
            Loss::Events { stream: id, first_event, .. } => {
                *id == stream(n) && *first_event == is.len() as u64 + 1
            }
        });
        // What nothing names must be whole, or lie in a gap of the journal.
        assert!(
            is == was || named || !done.gaps.is_empty() || !done.problems.is_empty(),
            "{what}: stream {n}"
        );
        assert_eq!(
            done.interrupted.contains(&stream(n)),
            !is.is_empty() && (n == 90 || is.len() < 3),
            "{what}: {n}"
        );
    }
    assert_eq!(fence(&other).is_up(), done.fenced, "{what}");
    // It opens, goes on and closes.
    let opened = other.open().unwrap();
    assert_eq!(opened.report.interrupted.len(), done.interrupted.len(), "{what}");
    opened.commit(Unit { records: vec![record(91, 1, b"new")] }).unwrap();
    opened.journal.close().unwrap();
    done
}

fn fence(bench: &Bench) -> Fence {
    crate::audit(&bench.config, &mut Fence::default).unwrap().1
}

/// The offset of the n-th group of a segment.
pub(crate) fn group(bench: &Bench, segment: u64, nth: usize) -> u64 {
    struct Groups(u64, Vec<u64>);
    impl crate::Sink for Groups {
        fn frame(&mut self, frame: &crate::FrameView) {
            if frame.segment == self.0 && frame.header.record_count > 0 {
                self.1.push(frame.offset);
            }
        }
    }
    crate::audit(&bench.config, &mut || Groups(segment, Vec::new())).unwrap().1.1[nth]
}

#[test]
fn jb_11_a_sound_journal_is_copied_whole_and_needs_no_fence() {
    let done = examine("nothing", |_| {});
    assert!(done.losses.is_empty() && !done.fenced && done.streams == 16);
}

#[test]
fn jb_11_row_1_a_header_copy_costs_nothing_both_cost_the_segment() {
    let done = examine("row 1", |bench| bench.disk.flip_bit(&segments(bench)[1], 300, 1));
    assert!(done.losses.is_empty() && !done.fenced && done.problems[0].row == 1, "{done:?}");
    let done = examine("row 1, both copies", |bench| {
        bench.disk.flip_bit(&segments(bench)[1], 300, 1);
        bench.disk.flip_bit(&segments(bench)[1], 4396, 1);
    });
    assert!(done.fenced && !done.gaps.is_empty() && !done.losses.is_empty(), "{done:?}");
}

#[test]
fn jb_11_row_3_a_hole_in_an_ended_segment() {
    let done = examine("row 3", |bench| {
        let offset = group(bench, 1, 2);
        bench.disk.flip_bit(&segments(bench)[0], offset + 96 + 5, 1);
    });
    assert!(done.fenced && done.problems[0].row == 3 && done.gaps.len() == 1, "{done:?}");
    // The long stream lost its place there, and what was read of it behind the hole is counted.
    let long = done.losses.iter().find_map(|loss| match loss {
        Loss::Events { stream: id, readable, last_event, .. } if *id == stream(90) => {
            Some((*readable, *last_event))
        }
        _ => None,
    });
    assert!(long.is_none_or(|(readable, last)| readable > 0 && last == 16), "{done:?}");
}

#[test]
fn jb_11_row_5_acknowledged_frames_that_are_missing() {
    let done = examine("row 5", |bench| {
        let last = segments(bench).pop().unwrap();
        let number = segments(bench).len() as u64;
        bench.disk.truncate(&last, group(bench, number, 0));
    });
    assert!(done.fenced && done.problems[0].row == 5, "{done:?}");
}

#[test]
fn jb_11_row_6_and_9_a_torn_tail_is_left_behind() {
    let done = examine("row 6", |bench| {
        let last = segments(bench).pop().unwrap();
        let end = bench.disk.bytes(&last).unwrap().len() as u64;
        bench.disk.overwrite(&last, end, &[0xa5; 600]);
    });
    assert!(done.tail.is_some() && !done.fenced, "{done:?}");
}

#[test]
fn jb_11_row_7_a_foreign_frame() {
    let done = examine("row 7", |bench| {
        let last = segments(bench).pop().unwrap();
        let number = segments(bench).len() as u64;
        let (from, to) = (group(bench, number, 1), group(bench, number, 0));
        let bytes = bench.disk.bytes(&last).unwrap();
        bench.disk.overwrite(&last, to, &bytes[from as usize..from as usize + 96]);
    });
    assert!(done.fenced && !done.problems.is_empty(), "{done:?}");
}

#[test]
fn jb_11_row_8_an_acknowledged_group_that_does_not_read_back() {
    let done = examine("row 8", |bench| {
        let last = segments(bench).pop().unwrap();
        let number = segments(bench).len() as u64;
        bench.disk.flip_bit(&last, group(bench, number, 0) + 96 + 3, 1);
    });
    assert!(done.fenced && done.problems.iter().any(|problem| problem.row == 8), "{done:?}");
}

#[test]
fn jb_11_row_10_a_head_that_is_damaged_or_missing() {
    let head = || Name::new(Folder::Root, "head").unwrap();
    let done = examine("row 10, both slots", |bench| {
        bench.disk.flip_bit(&head(), 100, 1);
        bench.disk.flip_bit(&head(), 4196, 1);
    });
    assert!(done.fenced && done.losses.is_empty() && done.streams == 16, "{done:?}");
    let done = examine("row 10, missing", |bench| bench.disk.delete(&head()));
    assert!(done.fenced && done.losses.is_empty(), "{done:?}");
}

#[test]
fn jb_11_row_11_a_segment_store_or_keyring_copy_that_is_missing() {
    let done = examine("row 11, a segment", |bench| bench.disk.delete(&segments(bench)[1]));
    assert!(done.fenced && !done.losses.is_empty() && !done.gaps.is_empty(), "{done:?}");
    let done = examine("row 11, the first segment", |bench| bench.disk.delete(&segments(bench)[0]));
    assert!(done.losses.contains(&Loss::Stream { stream: stream(90), events: 0 }) || done.fenced, "{done:?}");
    let store = || Name::new(Folder::Root, "store").unwrap();
    let done = examine("row 11, store missing", |bench| bench.disk.delete(&store()));
    // No event is lost with it, and what else may have gone with it nobody can tell.
    assert!(done.losses.is_empty() && done.streams == 16, "{done:?}");
    assert!(done.fenced && done.problems[0].row == 11, "{done:?}");
    let done = examine("row 11, store damaged", |bench| bench.disk.flip_bit(&store(), 40, 1));
    assert!(done.losses.is_empty() && done.streams == 16, "{done:?}");
    assert!(done.fenced && done.problems[0].row == 11, "{done:?}");
    let done = examine("row 11, a keyring copy", |bench| {
        bench.disk.delete(&Name::new(Folder::Root, "keyring.0").unwrap());
    });
    assert!(done.losses.is_empty() && !done.fenced, "{done:?}");
}

#[test]
fn jb_11_what_no_key_opens_is_refused_and_a_running_journal_too() {
    let bench = journal();
    let keyring = |copy: &str| Name::new(Folder::Root, copy).unwrap();
    let opened = bench.open().unwrap();
    assert!(matches!(repaired(&bench, &SimDisk::new()), Err(JournalError::Locked { .. })));
    drop(opened);
    bench.disk.delete(&keyring("keyring.0"));
    bench.disk.delete(&keyring("keyring.1"));
    assert!(matches!(repaired(&bench, &SimDisk::new()), Err(JournalError::Missing { .. })));
}

/// A copy is a copy by whichever verb: its journal may have gone on, and what it did is not in here.
#[test]
fn jb_11_of_a_backup_and_of_a_fenced_journal_comes_a_fenced_one() {
    let bench = journal();
    let (copy, target) = (SimDisk::new(), SimDisk::new());
    let disk: Arc<dyn Disk> = Arc::new(copy);
    crate::backup(&bench.config, &disk).unwrap();
    let view = crate::BackupDisk::open(&disk).unwrap().unwrap();
    let source = Config { disk: Arc::new(view), ..bench.config.clone() };
    let into: Arc<dyn Disk> = Arc::new(target.clone());
    let done = repair(&source, &into).unwrap();
    assert!(done.fenced && done.lacks_work && done.copied, "{done:?}");
    assert!(done.losses.is_empty() && done.problems.is_empty() && done.streams == 16, "{done:?}");
    let fenced = Bench::on(target, 85);
    assert!(fence(&fenced).is_up());
    // A sound one that is fenced lacks nothing more, and its fence stays and is named.
    let again = SimDisk::new();
    let done = repaired(&fenced, &again).unwrap();
    assert!(done.fenced && !done.lacks_work && !done.copied, "{done:?}");
    let again = Bench::on(again, 86);
    assert!(fence(&again).is_up());
    crate::unfence(&again.config).unwrap();
    assert!(!repaired(&again, &SimDisk::new()).unwrap().fenced);
}

#[test]
fn jb_11_the_records_of_the_journal_itself_go_along() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..4, 100);
    let forget = sealog_journal_format::journal_records::Forget { streams: vec![stream(2).0] };
    let own = |kind, class, body| crate::NewRecord { kind, stream: None, class, body, ..record(1, 0, b"") };
    opened.commit(Unit::one(own(1, crate::Class::FORGETS, forget.encode().unwrap()))).unwrap();
    opened.commit(Unit::one(own(KIND_UNFENCED, crate::Class::NONE, Vec::new()))).unwrap();
    opened.commit(Unit { records: vec![record(7, 1, b"open"), closing(7, 2)] }).unwrap();
    opened.journal.close().unwrap();
    let target = SimDisk::new();
    let done = repaired(&bench, &target).unwrap();
    assert_eq!((done.streams, done.interrupted.len()), (3, 0));
    let kinds: Vec<u16> = read(&Bench::on(target, 82).config).unwrap().1.iter().map(|r| r.kind).collect();
    assert_eq!(kinds[9..], [1, KIND_UNFENCED, 83, 83, KIND_RESTORED]);
}

#[test]
fn jb_11_a_crash_or_a_failing_call_while_building_costs_nothing() {
    let bench = journal();
    let offset = group(&bench, 1, 2);
    bench.disk.flip_bit(&segments(&bench)[0], offset + 101, 1);
    let before = bench.disk.files();
    let run = SimDisk::new();
    run.record_crash_points();
    let done = repaired(&bench, &run).unwrap();
    for choice in [Choice::Nothing, Choice::Everything] {
        let image = Bench::on(run.crash_image(choice), 83);
        assert_eq!(read(&image.config).unwrap().1.len() as u64, done.last_sequence);
    }
    let points = run.take_crash_points();
    for (at, point) in points.iter().enumerate().step_by(1 + points.len() / 60) {
        for choice in point.choices(2, at as u64).into_iter().take(4) {
            let again = repaired(&bench, &point.image(choice)).unwrap();
            assert_eq!((again.records, again.losses), (done.records, done.losses.clone()), "operation {at}");
        }
    }
    let calls = run.call_count();
    for nth in (0..calls).step_by(1 + calls as usize / 80) {
        for kind in [FaultKind::Io, FaultKind::Full] {
            let target = SimDisk::new();
            target.inject(Fault::call(nth, kind));
            let built = repaired(&bench, &target);
            target.clear_faults();
            if built.is_ok() {
                let image = Bench::on(target.crash_image(Choice::Nothing), 84);
                assert_eq!(
                    read(&image.config).unwrap().1.len() as u64,
                    done.last_sequence,
                    "{kind:?} at {nth}"
                );
            }
            repaired(&bench, &target).unwrap_or_else(|e| panic!("{kind:?} at {nth}: {e:?}"));
        }
    }
    assert_eq!(bench.disk.files(), before);
}
