//! Journals made from copies: what they hold, their fence, and what a crash or a failing call at every step leaves
//! (JB-7, JB-8, R45).

use std::sync::Arc;

use sealog_disk::sim::{Choice, Fault, FaultKind, SimDisk};
use sealog_disk::{Disk, Folder, Name};
use sealog_journal_format::How;
use sealog_journal_format::journal_records::{KIND_RESTORED, KIND_UNFENCED, Restored as RestoredRecord};

use super::backup::{fill, read, take, view};
use super::setup::{Bench, record};
use crate::{Fence, JournalError, Restored, Unit, restore, unfence};

/// A journal with two finished streams and an open one, and a backup of it.
fn copied() -> (Bench, SimDisk) {
    let bench = Bench::new();
    let target = SimDisk::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..3, 6000);
    opened.commit(Unit { records: vec![record(9, 1, b"open")] }).unwrap();
    opened.journal.close().unwrap();
    take(&bench, &target).unwrap();
    (bench, target)
}

fn restored(bench: &Bench, copy: &SimDisk, target: &SimDisk) -> Result<Restored, JournalError> {
    let disk: Arc<dyn Disk> = Arc::new(target.clone());
    match view(bench, copy)? {
        Some((backup, config)) => restore(&config, Some(&backup), &disk),
        None => restore(&Bench::on(copy.clone(), 40).config, None, &disk),
    }
}

#[track_caller]
fn fence(bench: &Bench) -> Fence {
    let (audit, fence) = crate::audit(&bench.config, &mut Fence::default).unwrap();
    assert!(audit.is_sound() && audit.tail.is_none(), "{audit:?}");
    fence
}

#[test]
fn jb_7_a_restored_journal_holds_the_copy_and_says_where_it_came_from() {
    let (bench, copy) = copied();
    let target = SimDisk::new();
    let done = restored(&bench, &copy, &target).unwrap();
    let (source, records) = read(&bench.config).unwrap();
    assert_eq!((done.last_sequence, done.interrupted), (records.len() as u64 + 1, 1));
    let other = Bench::on(target, 50);
    let (audit, mut found) = read(&other.config).unwrap();
    let mark = found.pop().unwrap();
    assert_eq!(found, records);
    assert_eq!((mark.kind, mark.sequence), (KIND_RESTORED, done.last_sequence));
    let body = RestoredRecord::decode(&mark.body).unwrap();
    assert!(body.fenced && body.from.how == How::Sealed);
    assert_eq!(body.from.last_sequence, records.len() as u64);
    // A line of its own, behind the copy's.
    let (before, last) =
        (&source.segments[source.segments.len() - 1], &audit.segments[audit.segments.len() - 1]);
    assert_eq!((last.number, last.epoch), (before.number + 1, before.epoch + 1));
    assert_ne!(last.lineage, before.lineage);
    assert_eq!(last.lineage, done.lineage);
    // It opens, and goes on.
    let opened = other.open().unwrap();
    assert_eq!(opened.report.interrupted.len(), 1);
    opened.commit(Unit { records: vec![record(11, 1, b"new")] }).unwrap();
    opened.journal.close().unwrap();
    assert!(fence(&other).is_up());
}

#[test]
fn jb_7_a_damaged_copy_is_not_restored() {
    let (bench, copy) = copied();
    for (file, bytes) in copy.files() {
        let Some(plain) = file.strip_prefix("segments/") else { continue };
        let name = Name::new(Folder::Segments, plain).unwrap();
        for at in (0..bytes.len() as u64).step_by(1 + bytes.len() / 9) {
            let damaged = copy.fork();
            damaged.flip_bit(&name, at, 1);
            let refused = restored(&bench, &damaged, &SimDisk::new());
            assert!(matches!(refused, Err(JournalError::Corrupt { .. })), "{file} at {at}: {refused:?}");
        }
    }
}

#[test]
fn jb_7_a_stopped_copy_of_a_directory_is_restored_a_running_one_is_not() {
    let (bench, _) = copied();
    let done = restored(&bench, &bench.disk.fork(), &SimDisk::new()).unwrap();
    assert_eq!(done.interrupted, 1);
    let opened = bench.open().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let refused = restore(&bench.config, None, &disk);
    assert!(matches!(refused, Err(JournalError::Locked { .. })), "{refused:?}");
    drop(opened);
    // What a crash left of the tail is left behind.
    let opened = bench.open().unwrap();
    fill(&opened, 30..31, 100);
    drop(opened);
    let segments = bench.disk.list(Folder::Segments).unwrap();
    let last = segments.iter().rfind(|entry| entry.file.ends_with(".seg")).unwrap();
    let end = read(&bench.config).unwrap().0.segments.last().unwrap().end_offset;
    bench.disk.overwrite(&Name::new(Folder::Segments, &last.file).unwrap(), end, &[0xa5; 300]);
    let target = SimDisk::new();
    assert!(restored(&bench, &bench.disk.fork(), &target).unwrap().tail.is_some());
    assert!(fence(&Bench::on(target, 51)).is_up());
}

#[test]
fn jb_7_a_crash_while_building_costs_nothing_and_the_name_comes_when_all_is_durable() {
    let (bench, copy) = copied();
    let run = SimDisk::new();
    run.record_crash_points();
    let done = restored(&bench, &copy, &run).unwrap();
    // The rename gives a name to what is durable already.
    let (lost, kept) = (run.crash_image(Choice::Nothing), run.crash_image(Choice::Everything));
    for image in [lost, kept] {
        let image = Bench::on(image, 52);
        assert_eq!(fence(&image).restored().map(|restored| restored.from), Some(done.from));
        assert_eq!(read(&image.config).unwrap().1.len() as u64, done.last_sequence);
    }
    for (at, point) in run.take_crash_points().iter().enumerate() {
        for choice in point.choices(4, at as u64) {
            let image = point.image(choice);
            let again = restored(&bench, &copy, &image).unwrap();
            assert_eq!(
                (again.from, again.segments),
                (done.from, done.segments),
                "operation {at}, {choice:?}"
            );
            assert!(fence(&Bench::on(image, 53)).is_up(), "operation {at}, {choice:?}");
        }
    }
}

#[test]
fn jb_7_a_failing_call_while_building_is_an_error_and_the_next_try_completes() {
    let (bench, copy) = copied();
    let calls = {
        let run = SimDisk::new();
        restored(&bench, &copy, &run).unwrap();
        run.call_count()
    };
    for kind in [FaultKind::Io, FaultKind::Full, FaultKind::Interrupted] {
        for nth in 0..calls {
            for forever in [false, true] {
                let run = SimDisk::new();
                let fault = Fault::call(nth, kind);
                run.inject(if forever { fault.forever() } else { fault });
                let built = restored(&bench, &copy, &run);
                run.clear_faults();
                let context = format!("{kind:?} at {nth}, for ever: {forever}: {built:?}");
                if built.is_ok() {
                    // Some calls may fail without harm: a note, a read that is tried again.
                    assert!(fence(&Bench::on(run.crash_image(Choice::Nothing), 54)).is_up(), "{context}");
                }
                restored(&bench, &copy, &run).unwrap_or_else(|e| panic!("{context}, then {e:?}"));
                assert!(fence(&Bench::on(run, 55)).is_up(), "{context}");
            }
        }
    }
}

/// A restored journal on its own disk.
fn fenced() -> SimDisk {
    let (bench, copy) = copied();
    let target = SimDisk::new();
    restored(&bench, &copy, &target).unwrap();
    target
}

#[test]
fn jb_8_unfence_writes_one_record_once() {
    let bench = Bench::on(fenced(), 60);
    assert!(fence(&bench).is_up());
    let before = read(&bench.config).unwrap().1.len() as u64;
    let done = unfence(&bench.config).unwrap();
    assert_eq!((done.was_fenced, done.sequence), (true, before + 1));
    assert!(!fence(&bench).is_up() && fence(&bench).restored().is_some());
    assert_eq!(read(&bench.config).unwrap().1.pop().unwrap().kind, KIND_UNFENCED);
    let files = bench.disk.files();
    assert!(!unfence(&bench.config).unwrap().was_fenced);
    assert_eq!(bench.disk.files(), files, "nothing to lift, nothing written");
    let running = bench.open().unwrap();
    assert!(!unfence(&bench.config).unwrap().was_fenced);
    drop(running);
    let bench = Bench::on(fenced(), 61);
    let running = bench.open().unwrap();
    assert!(matches!(unfence(&bench.config), Err(JournalError::Locked { .. })));
    drop(running);
}

#[test]
fn jb_8_a_restore_without_a_fence_lifts_none() {
    let body = |fenced| RestoredRecord { from: Default::default(), restored_ms: 1, fenced }.encode();
    let mut fence = Fence::default();
    fence.take(KIND_RESTORED, &body(false));
    assert!(!fence.is_up());
    fence.take(KIND_RESTORED, &body(true));
    fence.take(KIND_RESTORED, &body(false));
    assert!(fence.is_up());
    fence.take(KIND_UNFENCED, &[]);
    assert!(!fence.is_up());
}

#[test]
fn jb_8_a_crash_at_every_step_of_unfence_leaves_the_fence_or_none() {
    let start = fenced();
    let run = Bench::on(start.fork(), 62);
    run.disk.record_crash_points();
    unfence(&run.config).unwrap();
    let (mut up, mut down) = (0, 0);
    for (at, point) in run.disk.take_crash_points().iter().enumerate() {
        for choice in point.choices(6, at as u64) {
            let image = Bench::on(point.image(choice), 63);
            let (audit, found) = crate::audit(&image.config, &mut Fence::default).unwrap();
            assert!(audit.is_sound(), "operation {at}, {choice:?}: {audit:?}");
            (up, down) = (up + u64::from(found.is_up()), down + u64::from(!found.is_up()));
            unfence(&image.config).unwrap();
            assert!(!fence(&image).is_up(), "operation {at}, {choice:?}");
        }
    }
    assert!(up > 20 && down > 5, "{up} {down}");
}

#[test]
fn jb_8_a_failing_call_of_unfence_never_loses_the_journal() {
    let start = fenced();
    let calls = {
        let run = Bench::on(start.fork(), 64);
        unfence(&run.config).unwrap();
        run.disk.call_count()
    };
    for kind in [FaultKind::Io, FaultKind::Full] {
        for nth in 0..calls {
            let run = Bench::on(start.fork(), 65);
            run.disk.inject(Fault::call(nth, kind).forever());
            let lifted = unfence(&run.config);
            run.disk.clear_faults();
            for choice in [Choice::Nothing, Choice::Everything] {
                let image = Bench::on(run.disk.crash_image(choice), 66);
                let (audit, found) = crate::audit(&image.config, &mut Fence::default).unwrap();
                assert!(audit.is_sound(), "{kind:?} at {nth}: {audit:?}");
                assert!(lifted.is_err() || !found.is_up(), "{kind:?} at {nth}");
                unfence(&image.config).unwrap();
                assert!(!fence(&image).is_up());
            }
        }
    }
}
