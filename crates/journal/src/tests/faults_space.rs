//! A disk that is full: who is refused, who is not, and how it ends (R28, JC-7).

use std::time::Duration;

use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::testing::SeededEntropy;
use sealog_disk::{Folder, Name};
use sealog_journal_format::journal_records::{Forget, KIND_FORGET};

use super::crash_world::World;
use super::setup::{Bench, START_MS, closing, record};
use crate::{Admission, Class, Health, JournalError, NewRecord, Unit};

fn used(disk: &SimDisk) -> u64 {
    disk.files().values().map(|bytes| (bytes.len() as u64).next_multiple_of(4096)).sum()
}

fn world(capacity: u64) -> World {
    let mut world = World::on(SimDisk::new(), true, 7);
    world.create().unwrap();
    world.bench.disk.set_capacity(Some(used(&world.bench.disk) + capacity));
    world
}

/// The largest unit that the reserve promises room for: its frame has 2304 bytes.
fn terminal(n: u8) -> Unit {
    let body = vec![n; 2304 - 96 - 64];
    Unit::one(NewRecord { body, ..closing(n, 100) })
}

/// What forgets so many streams that nobody has.
fn forget(count: usize) -> Unit {
    let body = Forget { streams: vec![[99; 16]; count] }.encode().unwrap();
    let class = Class::FORGETS;
    Unit::one(NewRecord {
        kind: KIND_FORGET,
        stream: None,
        class,
        event_number: 0,
        body,
        ..record(0, 0, b"")
    })
}

/// Opens streams and appends until work is refused; returns the streams that are open then.
fn fill(world: &mut World, append: usize) -> Vec<u8> {
    let mut open = Vec::new();
    for n in 1..200_u8 {
        let before = world.refused;
        world.submit_as(Unit::one(record(n, 1, b"opens")), Admission::Create);
        world.drain().unwrap();
        if world.refused > before {
            break;
        }
        open.push(n);
        world.submit_as(Unit::one(record(n, 2, &vec![n; append])), Admission::Ordinary);
        world.drain().unwrap();
        world.pause(30).unwrap();
    }
    open
}

/// JC-7, R28: at every capacity new work is refused in time, each open stream still gets its terminal unit, the
/// writer lives, and everything is there afterwards.
#[test]
fn on_a_full_disk_every_open_stream_is_still_closed() {
    let mut streams = 0;
    for capacity in (16..=160).step_by(4) {
        for append in [10, 700, 1900, 5000] {
            let mut world = world(capacity << 10);
            world.open().unwrap();
            let open = fill(&mut world, append);
            let refused = world.refused;
            let context = format!("{capacity} KiB, appends of {append}, {} streams", open.len());
            assert!(refused > 0, "{context}: nothing was refused");
            let health = world.live.as_ref().unwrap().journal.health();
            assert_eq!(health, Health::Full, "{context}");
            for n in &open {
                world.submit_as(terminal(*n), Admission::Reserved);
                world.drain().unwrap();
            }
            assert_eq!(world.refused, refused, "{context}: a reserved unit was refused");
            streams += open.len();
            world.kill();
            world.open().unwrap();
            assert!(world.report().interrupted.is_empty(), "{context}");
        }
    }
    assert!(streams > 500, "only {streams} streams");
}

/// JC-7, R44: after every unit that was admitted, what is on the disk already is enough for each open stream's end,
/// however much is forgotten before. Sizes and the place to stop are drawn, since it is rests of all lengths that matter.
#[test]
fn the_reserve_stands_after_every_append() {
    let draws = SeededEntropy::new(5);
    let mut ended = 0;
    for run in 0..300 {
        let mut world = world(1 << 20);
        world.open().unwrap();
        let streams = 1 + (draws.draw() % 5) as u8;
        for n in 1..=streams {
            let append = 200 + draws.draw() as usize % 11_000;
            world.submit_as(Unit::one(record(n, 1, b"opens")), Admission::Create);
            world.drain().unwrap();
            world.submit_as(Unit::one(record(n, 2, &vec![n; append])), Admission::Ordinary);
            world.drain().unwrap();
        }
        assert_eq!(world.refused, 0);
        world.bench.disk.set_capacity(Some(0));
        let mut forgotten = 0;
        while world.refused == 0 && run % 2 == 0 {
            world.submit_as(forget(1 + draws.draw() as usize % 60), Admission::Forget);
            world.drain().unwrap();
            forgotten += 1;
            assert!(forgotten < 2000, "run {run}: forgetting is never refused");
        }
        let refused = world.refused;
        for n in 1..=streams {
            world.submit_as(terminal(n), Admission::Reserved);
            world.drain().unwrap();
            ended += 1;
        }
        assert_eq!(world.refused, refused, "run {run}: no room for an end");
    }
    assert!(ended > 700, "{ended}");
}

/// R28: space returns, and the helper notices without being asked by new work.
#[test]
fn work_resumes_when_space_returns() {
    let mut world = world(40 << 10);
    world.open().unwrap();
    let open = fill(&mut world, 900);
    assert!(!open.is_empty());
    let journal = world.live.as_ref().unwrap().journal.clone();
    for _ in 0..5 {
        world.pause(600).unwrap();
        assert_eq!(journal.health(), Health::Full);
    }
    world.bench.disk.set_capacity(None);
    world.pause(600).unwrap();
    assert_eq!(journal.health(), Health::Ready);
    let refused = world.refused;
    world.submit_as(Unit::one(record(250, 1, b"new work")), Admission::Create);
    world.drain().unwrap();
    assert_eq!(world.refused, refused);
    world.close().unwrap();
}

/// JC-7: what cannot be made longer is not given up.
#[test]
fn a_ready_segment_survives_the_wish_for_a_longer_one() {
    let mut world = world(200 << 10);
    world.open().unwrap();
    // Half of the active segment is used, so the helper prepares the next one.
    world.commit(Unit::one(record(1, 1, &[1; 3000]))).unwrap();
    world.pause(30).unwrap();
    let free = (200 << 10) - (used(&world.bench.disk) - used_by_creation());
    assert!(world.bench.disk.files().contains_key("segments/next"));
    world.bench.disk.set_capacity(Some(used(&world.bench.disk) + free.min(8 << 10)));
    world.submit_as(Unit::one(record(1, 2, &[2; 30_000])), Admission::Ordinary);
    world.drain().unwrap();
    assert_eq!(world.refused, 1);
    world.bench.disk.set_capacity(Some(used(&world.bench.disk)));
    for event in 3..7 {
        world.submit_as(Unit::one(record(1, event, &[3; 1500])), Admission::Reserved);
        world.drain().unwrap();
    }
    assert_eq!(world.refused, 1, "the prepared segment was lost");
    world.close().unwrap();
}

fn used_by_creation() -> u64 {
    let mut world = World::on(SimDisk::new(), true, 7);
    world.create().unwrap();
    used(&world.bench.disk)
}

/// R28: a start on a full disk cuts the tail, says that it was not copied, serves reads, refuses in words of its own,
/// and writes once there is room.
#[test]
fn a_start_on_a_full_disk_serves_reads() {
    let mut world = world(1 << 20);
    world.open().unwrap();
    world.commit(Unit::one(record(1, 1, &[1; 2000]))).unwrap();
    world.bench.disk.record_crash_points();
    world.commit(Unit::one(record(1, 2, &[2; 3000]))).unwrap();
    let points = world.bench.disk.take_crash_points();
    world.kill();
    // The last one: zeros are prepared before the frame is written.
    let torn = points.iter().rfind(|point| point.len() > 4).unwrap();
    let image = torn.image(Choice::Prefix(torn.len() - 1));
    // What was prepared would go first, and be room for the copy.
    image.delete(&Name::new(Folder::Segments, "next").unwrap());
    let bench = Bench::on(image.clone(), 12);
    image.set_capacity(Some(used(&image)));
    let opened = bench.open().unwrap();
    assert_eq!(opened.records.len(), 1);
    assert!(opened.report.cut_written_bytes() && !opened.report.repairs.tail_quarantined);
    assert!(!image.files().contains_key("quarantine/tail.tmp"));
    image.set_capacity(Some(used(&image)));
    let refused = opened.commit(Unit::one(record(1, 2, b"reserved")));
    assert!(matches!(refused, Err(JournalError::Full)), "{refused:?}");
    assert_eq!(opened.journal.health(), Health::Full);
    assert_eq!(opened.journal.read_from(1).map(Result::unwrap).collect::<Vec<_>>(), opened.records);
    image.set_capacity(None);
    bench.clock.advance(Duration::from_secs(1));
    opened.commit(Unit::one(record(1, 2, b"reserved"))).unwrap();
    opened.journal.close().unwrap();
    assert_eq!(bench.open().unwrap().records.len(), 2);
}

/// R28: the second copy of the keyring can wait for room; a start cannot.
#[test]
fn a_damaged_keyring_copy_does_not_stop_a_start_on_a_full_disk() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(Unit::one(record(1, 1, b"kept"))).unwrap();
    opened.journal.close().unwrap();
    bench.disk.flip_bit(&Name::new(Folder::Root, "keyring.1").unwrap(), 60, 1);
    for full in [true, false] {
        bench.disk.set_capacity(full.then(|| used(&bench.disk)));
        let opened = bench.open().unwrap();
        assert_eq!((opened.records.len(), opened.report.repairs.keyring_levelled), (1, !full));
    }
}

/// JC-7: a segment just large enough is better than none.
#[test]
fn a_short_disk_gives_what_is_needed() {
    let bench = {
        let mut bench = Bench::new();
        bench.config.tuning.segment_bytes_min = 256 << 10;
        bench.config.tuning.segment_bytes_max = 256 << 10;
        bench.config.tuning.first_segment_bytes = 256 << 10;
        bench
    };
    bench.disk.set_capacity(Some(used(&bench.disk) + (24 << 10)));
    let opened = bench.open().unwrap();
    let unit = Unit::one(NewRecord {
        class: Class::OPENS.with(Class::CLOSES),
        time_ms: START_MS,
        ..record(1, 1, &[1; 500])
    });
    opened.commit(unit).unwrap();
    assert_eq!(opened.journal.durable_sequence(), 1);
}
