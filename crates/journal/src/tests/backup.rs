//! Backups: what is copied beside a running writer, what an increment may continue, what reads of one, and what a
//! crash at every step leaves (JB-1 to JB-6, R45).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sealog_disk::sim::{Fault, FaultKind, SimDisk};
use sealog_disk::{Disk, Folder, Name};

use super::setup::{Bench, Opened, closing, record};
use crate::{
    Anchor, Anchoring, Audit, Backup, BackupDisk, Config, Contents, FrameView, JournalError, Record, Sink,
    Standing, Unit, audit, backup, look,
};

/// Every record of a journal, as a read-only verb sees it.
#[derive(Default)]
pub(crate) struct Seen(pub Vec<Record>);

impl Sink for Seen {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        self.0.push(record.clone());
    }
}

pub(crate) fn read(config: &Config) -> Result<(Audit, Vec<Record>), JournalError> {
    audit(config, &mut Seen::default).map(|(audit, seen)| (audit, seen.0))
}

/// The backup in `target`, as a journal to read.
pub(crate) fn view(
    bench: &Bench,
    target: &SimDisk,
) -> Result<Option<(Arc<BackupDisk>, Config)>, JournalError> {
    let disk: Arc<dyn Disk> = Arc::new(target.clone());
    let Some(view) = BackupDisk::open(&disk)? else { return Ok(None) };
    view.authenticate(&bench.config.secrets)?;
    let view = Arc::new(view);
    let disk: Arc<dyn Disk> = view.clone();
    Ok(Some((view, Config { disk, ..bench.config.clone() })))
}

/// The records in a backup that must be sound in every respect.
#[track_caller]
pub(crate) fn held(bench: &Bench, target: &SimDisk) -> Option<Vec<u64>> {
    let (view, config) = view(bench, target).unwrap()?;
    assert_eq!(view.check_files().unwrap(), []);
    let (audit, records) = read(&config).unwrap();
    assert!(audit.is_sound() && audit.tail.is_none() && !audit.live, "{audit:?}");
    Some(records.iter().map(|record| record.sequence).collect())
}

pub(crate) fn take(bench: &Bench, target: &SimDisk) -> Result<Backup, JournalError> {
    let disk: Arc<dyn Disk> = Arc::new(target.clone());
    backup(&bench.config, &disk)
}

pub(crate) fn fill(opened: &Opened, streams: std::ops::Range<u8>, bytes: usize) {
    for n in streams {
        opened.commit(Unit { records: vec![record(n, 1, b"open")] }).unwrap();
        opened.commit(Unit::one(record(n, 2, &vec![n; bytes]))).unwrap();
        opened.commit(Unit::one(closing(n, 3))).unwrap();
    }
}

fn names(target: &SimDisk) -> Vec<String> {
    target.files().into_keys().collect()
}

#[test]
fn jb_1_a_backup_beside_a_running_writer_ends_where_evidence_does() {
    let bench = Bench::new();
    let target = SimDisk::new();
    let opened = bench.open().unwrap();
    assert_eq!(take(&bench, &target).unwrap().files, 0, "a journal without a segment has a backup, too");
    assert_eq!(held(&bench, &target), Some(vec![]));
    fill(&opened, 1..4, 4000);
    opened.commit(Unit { records: vec![record(9, 1, b"open")] }).unwrap();
    let before = bench.disk.fingerprint();
    let taken = take(&bench, &target).unwrap();
    assert_eq!(bench.disk.fingerprint(), before, "the source is not written");
    assert!(taken.live);
    // The newest group has no evidence yet: no header behind it, no head.
    assert_eq!(held(&bench, &target), Some((1..=9).collect()));
    assert_eq!(taken.end.last_sequence, 9);
    let named = names(&target);
    assert!(
        named.iter().any(|name| name.ends_with(".tail")) && named.contains(&"manifest".to_owned()),
        "{named:?}"
    );
    // The writer goes on as if nothing had been.
    opened.commit(Unit::one(record(9, 2, b"more"))).unwrap();
    opened.journal.close().unwrap();
    let taken = take(&bench, &target).unwrap();
    assert!(!taken.live);
    assert_eq!(held(&bench, &target), Some((1..=11).collect()));
}

#[test]
fn jb_4_an_increment_copies_only_what_is_new_and_removes_what_no_manifest_names() {
    let bench = Bench::new();
    let target = SimDisk::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..12, 4000);
    let first = take(&bench, &target).unwrap();
    assert!(first.copied_files >= 3 && first.copied_files == first.files, "{first:?}");
    let again = take(&bench, &target).unwrap();
    assert_eq!((again.copied_files, again.copied_bytes, again.removed_files), (0, 0, 0));
    fill(&opened, 12..24, 4000);
    let before: HashSet<String> = names(&target).into_iter().collect();
    target.start_trace();
    let second = take(&bench, &target).unwrap();
    let ended: Vec<&String> = before.iter().filter(|name| name.ends_with(".seg")).collect();
    assert!(!ended.is_empty());
    let trace = target.take_trace();
    for name in ended {
        let touched =
            trace.iter().any(|entry| entry.file.contains(name.as_str()) && entry.call.changes_the_disk());
        assert!(!touched, "{name} was written again");
    }
    assert_eq!(second.removed_files, 1, "the old tail goes");
    assert!(second.copied_files < second.files);
    assert_eq!(held(&bench, &target), Some((1..=second.end.last_sequence).collect()));
}

#[test]
fn jb_4_a_torn_tail_and_prepared_zeros_stay_behind() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..3, 100);
    drop(opened);
    let name = Name::new(Folder::Segments, "000000000001.seg").unwrap();
    let end = read(&bench.config).unwrap().0.segments[0].end_offset;
    bench.disk.overwrite(&name, end, &[0xa5; 700]);
    let target = SimDisk::new();
    let taken = take(&bench, &target).unwrap();
    assert_eq!(taken.tail.map(|tail| tail.place.offset), Some(end));
    assert_eq!(held(&bench, &target), Some((1..=6).collect()));
    assert!(target.files().iter().any(|(name, bytes)| name.ends_with(".tail") && bytes.len() as u64 == end));
}

#[test]
fn jb_5_an_increment_that_does_not_continue_the_backup_is_refused() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..3, 100);
    opened.journal.close().unwrap();
    let (twin, older) = (bench.disk.fork(), bench.disk.fork());
    let target = SimDisk::new();
    fill(&bench.open().unwrap(), 3..5, 100);
    take(&bench, &target).unwrap();
    let before = target.files();
    // A clone that went on by itself, and one that was set back.
    let twin = Bench::on(twin, 99);
    fill(&twin.open().unwrap(), 5..9, 100);
    for other in [twin, Bench::on(older, 98)] {
        let refused = take(&other, &target);
        assert!(matches!(refused, Err(JournalError::OtherHistory(_))), "{refused:?}");
        assert_eq!(target.files(), before, "the backup is as it was");
    }
    // Another journal altogether, under the same key.
    let other = Bench::on(SimDisk::new(), 5);
    let secret = sealog_seal::Secret::raw([9; 32]);
    crate::Create {
        disk: other.config.disk.clone(),
        clock: other.config.clock.clone(),
        entropy: other.config.entropy.clone(),
        store_id: sealog_seal::StoreId([4; 16]),
        slot_name: "key",
        secret: &secret,
        params: sealog_seal::SlotParams::DEFAULT,
    }
    .run(&mut || Ok(()))
    .unwrap();
    assert!(matches!(take(&other, &target), Err(JournalError::OtherHistory(_))));
    // A directory that is no backup.
    assert!(matches!(take(&bench, &other.disk), Err(JournalError::NotEmpty)));
}

#[test]
fn jb_5_a_damaged_journal_is_not_copied_over_a_good_backup() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..3, 100);
    opened.journal.close().unwrap();
    let target = SimDisk::new();
    take(&bench, &target).unwrap();
    let before = target.files();
    bench.disk.flip_bit(&Name::new(Folder::Segments, "000000000001.seg").unwrap(), 8192 + 160 + 100, 3);
    assert!(matches!(take(&bench, &target), Err(JournalError::Corrupt { .. })));
    assert_eq!(target.files(), before);
}

#[test]
fn jb_6_whatever_is_changed_in_a_backup_is_found() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..9, 4000);
    let target = SimDisk::new();
    take(&bench, &target).unwrap();
    let found = |target: &SimDisk| -> bool {
        match view(&bench, target) {
            Err(_) => true,
            Ok(None) => false,
            Ok(Some((view, config))) => {
                let (audit, _) = read(&config).unwrap();
                // The scan alone finds it as well: it covers every byte.
                !view.check_files().unwrap().is_empty() && (!audit.is_sound() || audit.tail.is_some())
            }
        }
    };
    assert!(!found(&target));
    for (file, bytes) in target.files() {
        let (folder, plain) = match file.strip_prefix("segments/") {
            Some(plain) => (Folder::Segments, plain),
            None => (Folder::Root, file.as_str()),
        };
        let name = Name::new(folder, plain).unwrap();
        for at in (0..bytes.len() as u64).step_by(1 + bytes.len() / 40) {
            let damaged = target.fork();
            damaged.flip_bit(&name, at, 2);
            assert!(found(&damaged), "{file} at {at}");
        }
        let cut = target.fork();
        cut.truncate(&name, bytes.len() as u64 - 32);
        assert!(found(&cut), "{file} cut");
        if folder == Folder::Segments {
            let gone = target.fork();
            gone.delete(&name);
            assert!(found(&gone), "{file} gone");
        }
    }
}

/// A journal whose backup is old, so that an increment copies, replaces its tail and removes.
fn increment() -> (Bench, SimDisk, Vec<u64>, Vec<u64>) {
    let bench = Bench::new();
    let target = SimDisk::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..4, 2000);
    take(&bench, &target).unwrap();
    let old = held(&bench, &target).unwrap();
    fill(&opened, 4..10, 2000);
    drop(opened);
    let after = target.fork();
    take(&bench, &after).unwrap();
    let new = held(&bench, &after).unwrap();
    assert!(new.len() > old.len() && !old.is_empty());
    (bench, target, old, new)
}

#[test]
fn jb_4_a_crash_at_every_step_leaves_the_old_backup_or_the_new_one() {
    let (bench, before, old, new) = increment();
    let run = before.fork();
    run.record_crash_points();
    take(&bench, &run).unwrap();
    let points = run.take_crash_points();
    assert!(points.len() > 20, "{}", points.len());
    let (mut olds, mut news) = (0, 0);
    for (at, point) in points.iter().enumerate() {
        for choice in point.choices(12, at as u64) {
            let image = point.image(choice);
            let found = held(&bench, &image).unwrap();
            assert!(found == old || found == new, "operation {at}, {choice:?}: {found:?}");
            (olds, news) = (olds + usize::from(found == old), news + usize::from(found == new));
            // Again from here: it completes and leaves nothing that no manifest names.
            take(&bench, &image).unwrap();
            assert_eq!(held(&bench, &image), Some(new.clone()), "operation {at}, {choice:?}");
            assert_eq!(names(&image), names(&run), "operation {at}, {choice:?}");
        }
    }
    assert!(olds > 50 && news > 2, "{olds} {news}");
}

#[test]
fn jb_4_a_first_backup_that_is_cut_leaves_none_or_all() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..4, 2000);
    drop(opened);
    let run = SimDisk::new();
    run.record_crash_points();
    take(&bench, &run).unwrap();
    let all = held(&bench, &run).unwrap();
    let mut nothing = 0;
    for (at, point) in run.take_crash_points().iter().enumerate() {
        for choice in point.choices(8, at as u64) {
            let image = point.image(choice);
            if let Some(found) = held(&bench, &image) {
                assert_eq!(found, all, "operation {at}, {choice:?}");
            } else {
                // Neither a damaged journal to anybody, nor a place for a new one once there is a file of it.
                let found = look(&image);
                let files = !names(&image).iter().all(|name| name.ends_with(".tmp"));
                assert!(
                    match found {
                        Ok(Contents::Empty) => !files,
                        Err(JournalError::NoManifest) => files,
                        _ => false,
                    },
                    "operation {at}, {choice:?}: {found:?}"
                );
                nothing += usize::from(files);
            }
            take(&bench, &image).unwrap();
            assert_eq!(held(&bench, &image), Some(all.clone()), "operation {at}, {choice:?}");
        }
    }
    assert!(nothing > 0, "no cut between a file and the manifest");
}

#[test]
fn jb_4_a_failing_storage_call_leaves_the_old_backup_or_the_new_one() {
    let (bench, before, old, new) = increment();
    let calls = {
        let run = before.fork();
        let start = run.call_count();
        take(&bench, &run).unwrap();
        run.call_count() - start
    };
    for kind in [FaultKind::Io, FaultKind::Full, FaultKind::Interrupted, FaultKind::ShortWrite(100)] {
        for nth in 0..calls {
            for forever in [false, true] {
                let run = before.fork();
                let fault = Fault::call(nth, kind);
                run.inject(if forever { fault.forever() } else { fault });
                let taken = take(&bench, &run);
                run.clear_faults();
                let found = held(&bench, &run).unwrap();
                let context = format!("{kind:?} at {nth}, for ever: {forever}: {taken:?}");
                assert!(found == old || found == new, "{context}");
                assert!(taken.is_err() || found == new, "{context}");
                take(&bench, &run).unwrap();
                assert_eq!(held(&bench, &run), Some(new.clone()), "{context}");
            }
        }
    }
}

#[test]
fn jb_4_two_backups_into_one_directory_exclude_each_other() {
    let bench = Bench::new();
    let target = SimDisk::new();
    let held = target.lock().unwrap();
    assert!(matches!(take(&bench, &target), Err(JournalError::Locked { .. })));
    drop(held);
    take(&bench, &target).unwrap();
}

/// A journal whose older part is compacted, and anchors of the time before.
fn compacted() -> (Bench, SimDisk, Vec<Anchor>) {
    let bench = Bench::new();
    let target = SimDisk::new();
    let opened = bench.open().unwrap();
    let anchor = |bench: &Bench| {
        let (audit, anchoring) = audit(&bench.config, &mut || Anchoring::new(None)).unwrap();
        anchoring.here(&audit)
    };
    fill(&opened, 1..8, 3000);
    let mut anchors = vec![anchor(&bench)];
    take(&bench, &target).unwrap();
    fill(&opened, 8..40, 3000);
    anchors.push(anchor(&bench));
    bench.clock.advance(Duration::from_secs(601));
    while opened.journal.tend() {}
    let names = segments(&bench.disk);
    assert!(names.iter().any(|name| name.contains('-')), "nothing was compacted: {names:?}");
    opened.journal.close().unwrap();
    (bench, target, anchors)
}

fn segments(disk: &SimDisk) -> Vec<String> {
    disk.list(Folder::Segments).unwrap().into_iter().map(|entry| entry.file).collect()
}

#[test]
fn jb_3_compacted_segments_are_copied_whole_and_continue_what_was_copied_before() {
    let (bench, target, anchors) = compacted();
    let records = read(&bench.config).unwrap().1;
    let fresh = SimDisk::new();
    take(&bench, &fresh).unwrap();
    // Over the backup that still holds the sources.
    let taken = take(&bench, &target).unwrap();
    assert!(taken.removed_files > 1, "{taken:?}");
    for copy in [&fresh, &target] {
        let names = segments(copy);
        assert!(names.iter().any(|name| name.contains('-')), "{names:?}");
        assert_eq!(held(&bench, copy), Some(records.iter().map(|record| record.sequence).collect()));
        let (backup, config) = view(&bench, copy).unwrap().unwrap();
        assert_eq!(read(&config).unwrap().1, records);
        let elsewhere = SimDisk::new();
        let disk: Arc<dyn Disk> = Arc::new(elsewhere.clone());
        crate::restore(&config, Some(&backup), &disk).unwrap();
        let restored = read(&Bench::on(elsewhere, 41).config).unwrap();
        assert!(restored.0.is_sound());
        assert_eq!(restored.1[..records.len()], records);
    }
    // JB-10: also across compacted segments, by their sources.
    for anchor in anchors {
        let (audit, anchoring) = audit(&bench.config, &mut || Anchoring::new(Some(anchor))).unwrap();
        assert_eq!(anchoring.standing(&audit), Some(Standing::Contained), "{anchor}");
        let forged = Anchor { lineage: [7; 16], ..anchor };
        let forged = Anchor { chain: [7; 16], ..forged };
        let (audit, anchoring) = crate::audit(&bench.config, &mut || Anchoring::new(Some(forged))).unwrap();
        assert_eq!(anchoring.standing(&audit), Some(Standing::Diverged));
    }
}

#[test]
fn jb_5_a_clone_whose_other_history_was_compacted_is_refused() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..3, 100);
    opened.journal.close().unwrap();
    let twin = Bench::on(bench.disk.fork(), 99);
    let target = SimDisk::new();
    let opened = bench.open().unwrap();
    fill(&opened, 3..9, 3000);
    take(&bench, &target).unwrap();
    let opened = twin.open().unwrap();
    fill(&opened, 50..90, 3000);
    twin.clock.advance(Duration::from_secs(601));
    while opened.journal.tend() {}
    assert!(segments(&twin.disk).iter().any(|name| name.contains('-')));
    opened.journal.close().unwrap();
    assert!(matches!(take(&twin, &target), Err(JournalError::OtherHistory(_))));
}

/// JD-9, JB-2: a copy taken beside a compaction has the forget record of everything that it lacks, however far evidence had
/// come when the compaction began.
#[test]
fn a_copy_beside_a_compaction_has_what_it_forgot() {
    let bench = Bench::new();
    let target = SimDisk::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..30, 1500);
    // Its last record stands behind what will be compacted, so a copy without the forget record would show half of it.
    opened.commit(Unit::one(record(50, 1, b"open"))).unwrap();
    fill(&opened, 60..90, 1500);
    opened.commit(Unit::one(closing(50, 2))).unwrap();
    let forgotten: Vec<_> = (1..25).chain([50]).map(super::setup::stream).collect();
    opened.commit(Unit::one(super::crash_workloads::forget(&forgotten))).unwrap();
    let last = opened.journal.durable_sequence();
    bench.clock.advance(Duration::from_secs(700));
    let before: Vec<String> = bench.disk.files().into_keys().collect();
    while opened.journal.tend() {}
    let after: Vec<String> = bench.disk.files().into_keys().collect();
    assert!(after != before && after.iter().any(|file| file.contains('-')), "{after:?}");
    let taken = take(&bench, &target).unwrap();
    assert!(taken.live);
    assert_eq!(taken.end.last_sequence, last, "the forget record has evidence");
    let left = held(&bench, &target).unwrap();
    assert!(left.contains(&last) && !left.contains(&1));
}
