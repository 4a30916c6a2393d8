//! Recovery by itself: crash after crash, what it removes and in which order, and what it says about interrupted work.

use sealog_disk::sim::{Choice, CrashPoint, SimDisk, Undecided, UndecidedWhat};
use sealog_disk::testing::SeededEntropy;
use sealog_disk::{Folder, Name};

use super::crash_judge::{empty_segments, image, picks, read_only};
use super::crash_world::{Step, World};
use super::setup::{Bench, closing, record, stream};
use crate::{StreamId, Unit};

fn work(world: &mut World, n: u8) -> Step {
    world.open()?;
    world.commit(Unit::one(record(n, 1, &vec![n; 40 + 31 * usize::from(n)])))?;
    world.pause(300)?;
    world.commit(Unit { records: vec![record(n, 2, b"result"), closing(n, 3)] })?;
    world.close()
}

/// JR-8: a hundred crashes, each at a place and with a subset drawn from a seed, leave at most one empty segment at
/// any time, lose nothing acknowledged, and need no help.
#[test]
fn a_hundred_crashes_leave_at_most_one_empty_segment() {
    let (mut removed, mut crashed) = (0, 0);
    for seed in 1..=6_u64 {
        let draws = SeededEntropy::new(seed);
        let mut first = World::on(SimDisk::new(), seed % 2 == 0, seed);
        first.create().unwrap();
        let mut disk = first.bench.disk.clone();
        let mut expected = first.history.now();
        for round in 0..100_u64 {
            let mut world = World::resume(disk.fork(), seed % 2 == 0, seed * 1000 + round, &expected);
            // A run that is not cut has about sixty operations; most cuts come early, inside the start.
            let cut = draws.draw() % if round % 3 == 0 { 70 } else { 25 };
            world.bench.disk.cut_at(cut);
            // Whether and where the workload noticed is all the same.
            work(&mut world, 1 + (round % 40) as u8).unwrap_or_default();
            crashed += u64::from(world.bench.disk.is_off());
            world.kill();
            let before = world.history.at(cut);
            let point: CrashPoint = world.bench.disk.crash_point();
            let choices = picks(&point, 4, draws.draw());
            let pick = choices[(draws.draw() % choices.len() as u64) as usize];
            disk = image(&point, pick);
            let bench = Bench::on(disk.clone(), 1);
            let context = format!("seed {seed}, round {round}, cut at {cut}, {pick:?}");
            let (found, shown) = read_only(&bench).unwrap_or_else(|e| panic!("{context}: {e}"));
            assert!(found.is_sound(), "{context}: {:?}", found.problems);
            let there = before.check(&shown).unwrap_or_else(|e| panic!("{context}: {e}"));
            assert!(empty_segments(&bench) <= 1, "{context}: {} empty segments", empty_segments(&bench));
            removed += u64::from(found.empty_segment.is_some());
            expected = before.exactly(there);
        }
        assert!(expected.must > 10, "seed {seed}: only {} units got through", expected.must);
    }
    println!("{crashed} crashes, {removed} empty segments");
    assert!(crashed > 300 && removed > 60, "{crashed} crashes, {removed} empty segments");
}

/// A journal whose last segment is published and empty, named by the head.
fn with_empty_segment() -> SimDisk {
    let mut world = World::on(SimDisk::new(), false, 7);
    world.create().unwrap();
    world.open().unwrap();
    world.commit(Unit::one(record(1, 1, b"kept"))).unwrap();
    world.kill();
    world.open().unwrap();
    world.bench.disk.record_crash_points();
    world.commit(Unit::one(record(1, 2, b"lost"))).unwrap();
    let named = world.bench.disk.take_crash_points().into_iter().find_map(|point| {
        let disk = image(&point, super::crash_judge::Pick::Prefix(0));
        let (found, _) = read_only(&Bench::on(disk.clone(), 1)).unwrap();
        let head = found.head.unwrap();
        (found.empty_segment == Some(2) && head.segment == 2 && head.frames == 0).then_some(disk)
    });
    named.expect("the head names a segment before its first frame")
}

/// JR-7: the torn bytes stand in the segment until their copy in quarantine is durable, however the recovery is cut.
#[test]
fn a_torn_tail_is_copied_before_it_is_cut() {
    let mut world = World::on(SimDisk::new(), false, 7);
    world.create().unwrap();
    world.open().unwrap();
    world.commit(Unit::one(record(1, 1, b"kept"))).unwrap();
    world.bench.disk.record_crash_points();
    world.commit(Unit::one(record(1, 2, &[2; 1700]))).unwrap();
    let file = "segments/000000000001.seg";
    let in_frame = |change: &Undecided| match &change.what {
        UndecidedWhat::Sector { file: Some(name), .. } => name.to_string() == file,
        _ => false,
    };
    let points = world.bench.disk.take_crash_points();
    let point = points.iter().find(|point| point.undecided().iter().any(in_frame)).unwrap();
    let torn = point.image(Choice::Prefix(point.len() - 1));
    // The folder that the creation made may have been removed by hand.
    let bare = SimDisk::new();
    for (file, bytes) in torn.files() {
        let (folder, file) = match file.strip_prefix("segments/") {
            Some(file) => (Folder::Segments, file),
            None => (Folder::Root, file.as_str()),
        };
        bare.put(&Name::new(folder, file).unwrap(), &bytes);
    }
    for torn in [torn, bare] {
        cut_the_cut(&torn, file);
    }
}

fn cut_the_cut(torn: &SimDisk, file: &str) {
    let whole = torn.files()[file].clone();
    let last = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let bench = Bench::on(torn.clone(), 3);
    torn.record_crash_points();
    let opened = bench.open().unwrap();
    let tail = opened.report.tail.clone().unwrap();
    let bytes = &whole[tail.place.offset as usize..=last];
    let quarantined = format!("quarantine/{:012}-{:012}.tail", tail.place.segment, tail.place.frame);
    let mut cut = 0;
    for point in torn.take_crash_points() {
        for pick in picks(&point, 4, 1) {
            let files = image(&point, pick).files();
            let stands = files[file].get(tail.place.offset as usize..=last) == Some(bytes);
            let copied = files.get(&quarantined).is_some_and(|copy| copy[4096..].starts_with(bytes));
            assert!(stands || copied, "{pick:?}: the torn bytes are gone; {:?}", files.keys());
            cut += u64::from(!stands);
        }
    }
    assert!(cut > 0, "the tail was never cut");
}

/// JC-3, JR-7: before an empty segment goes, both slots of the head say so; then either slot alone is enough.
#[test]
fn either_head_slot_stands_alone_after_an_empty_segment_was_removed() {
    let head = Name::new(Folder::Root, "head").unwrap();
    for slot in [0, 4096] {
        let disk = with_empty_segment();
        let bench = Bench::on(disk.clone(), 9);
        let opened = bench.open().unwrap();
        assert_eq!(opened.report.repairs.empty_segment_removed, Some(2));
        drop(opened);
        disk.flip_bit(&head, slot + 30, 1);
        let again = Bench::on(disk, 10).open().unwrap_or_else(|e| panic!("slot at {slot}: {e}"));
        assert_eq!(again.records.len(), 1);
    }
}

/// JF-5, JR-8: the epoch of a segment that was removed is not given again, not even when nothing else was written
/// in between.
#[test]
fn an_epoch_is_never_given_twice() {
    let disk = with_empty_segment();
    let taken = 2;
    for start in 0..4_u64 {
        let bench = Bench::on(disk.clone(), 20 + start);
        let opened = bench.open().unwrap();
        assert!(opened.report.epoch > taken, "start {start}: epoch {}", opened.report.epoch);
        match start {
            0 => drop(opened),
            1 => {
                bench.clock.advance(std::time::Duration::from_secs(2));
                opened.journal.maintain();
            }
            _ => opened.journal.close().unwrap(),
        }
    }
}

/// JR-12: streams without an end are reported, with the epoch of their newest record and in order, until they are
/// closed; nobody closes them here.
#[test]
fn interrupted_streams_are_reported_with_their_epoch() {
    let bench = Bench::new();
    let first = bench.open().unwrap();
    for n in 1..=3 {
        first.commit(Unit::one(record(n, 1, b"opens"))).unwrap();
    }
    first.commit(Unit::one(closing(2, 2))).unwrap();
    drop(first);
    let named = |interrupted: &[(StreamId, crate::StreamFacts)]| -> Vec<(StreamId, u64, u64)> {
        interrupted.iter().map(|(id, facts)| (*id, facts.epoch, facts.last_event)).collect()
    };
    let second = bench.open().unwrap();
    assert_eq!(named(&second.report.interrupted), [(stream(1), 1, 1), (stream(3), 1, 1)]);
    assert_eq!(second.report.epoch, 2);
    second.commit(Unit::one(record(1, 2, b"goes on"))).unwrap();
    drop(second);
    let third = bench.open().unwrap();
    assert_eq!(named(&third.report.interrupted), [(stream(3), 1, 1), (stream(1), 2, 2)]);
    for n in [1, 3] {
        third.commit(Unit::one(closing(n, 3))).unwrap();
    }
    drop(third);
    assert_eq!(named(&bench.open().unwrap().report.interrupted), []);
}
