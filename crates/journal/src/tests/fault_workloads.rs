//! The workloads whose storage calls are made to fail.

use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::{Folder, Name};

use super::crash_judge::judge_creation;
use super::crash_workloads::forget;
use super::crash_world::{Expected, Step, World};
use super::faults::judge_existing;
use super::setup::{closing, record, stream};
use crate::Unit;

pub(crate) struct FaultWorkload {
    pub name: &'static str,
    /// What stands before the faults begin.
    prepare: fn(direct: bool) -> World,
    pub run: fn(&mut World) -> Step,
    pub judge: fn(&SimDisk, &Expected, u64) -> Result<(), String>,
}

pub(crate) const FAULT_WORKLOADS: [FaultWorkload; 4] = [
    FaultWorkload { name: "creation", prepare: nothing, run: create, judge: judge_unfinished },
    FaultWorkload { name: "commits", prepare: created, run: commits, judge: judge_existing },
    FaultWorkload { name: "recovery", prepare: crashed, run: recovery, judge: judge_existing },
    FaultWorkload { name: "compaction", prepare: worth_it, run: compaction, judge: judge_existing },
];

pub(crate) fn before(workload: &FaultWorkload, direct: bool) -> World {
    (workload.prepare)(direct)
}

fn judge_unfinished(disk: &SimDisk, expected: &Expected, seed: u64) -> Result<(), String> {
    judge_creation(disk, expected, seed).map(|_| ())
}

fn nothing(direct: bool) -> World {
    World::on(SimDisk::new(), direct, 3)
}

fn created(direct: bool) -> World {
    let mut world = nothing(direct);
    world.create().expect("nothing fails yet");
    world
}

fn create(world: &mut World) -> Step {
    world.create()
}

/// A journal with much that was forgotten, open.
fn worth_it(direct: bool) -> World {
    let mut world = created(direct);
    let work = |world: &mut World| -> Step {
        world.open()?;
        for n in 1..=3 {
            world.commit(Unit::one(record(n, 1, &[n; 1500])))?;
            world.commit(Unit { records: vec![record(n, 2, &[n; 1200]), closing(n, 3)] })?;
        }
        world.commit(Unit::one(forget(&[stream(1), stream(2)])))?;
        (1..=8).try_for_each(|number| world.commit(Unit::one(record(9, number, &[7; 1500]))))
    };
    work(&mut world).expect("nothing fails yet");
    world
}

/// A run of compaction, and that work goes on behind it.
fn compaction(world: &mut World) -> Step {
    world.compact()?;
    world.commit(Unit::one(record(9, 9, &[8; 300])))?;
    world.close()
}

/// Every kind of storage call that a running writer makes: groups, head, preparation by the helper and by the
/// writer, rolls, a clean close, another open.
fn commits(world: &mut World) -> Step {
    world.open()?;
    world.submit(Unit::one(record(1, 1, &[1; 600])));
    world.submit(Unit { records: vec![record(2, 1, b"a"), record(2, 2, &[2; 700])] });
    world.drain()?;
    world.pause(1100)?;
    world.commit(Unit::one(record(1, 2, &[3; 1500])))?;
    world.pause(30)?;
    world.commit(Unit::one(record(1, 3, &[4; 1800])))?;
    world.pause(30)?;
    world.commit(Unit::one(record(1, 4, &[5; 13_000])))?;
    world.commit(Unit { records: vec![record(1, 5, b"result"), closing(1, 6)] })?;
    world.close()?;
    world.open()?;
    world.commit(Unit::one(record(3, 1, b"again")))?;
    world.close()
}

/// A journal that a crash left with a torn group, a prepared segment and a damaged copy of the keyring; or, every
/// other time, with an empty segment.
fn crashed(direct: bool) -> World {
    let mut world = created(direct);
    let disk = world.bench.disk.clone();
    world.open().expect("nothing fails yet");
    world.commit(Unit::one(record(1, 1, &[1; 2500]))).expect("nothing fails yet");
    world.pause(30).expect("nothing fails yet");
    disk.record_crash_points();
    world.commit(Unit::one(record(1, 2, &[2; 1600]))).expect("nothing fails yet");
    let points = disk.take_crash_points();
    // The second operation of the commit is the sync (or the durable write itself).
    let torn = points.iter().find(|point| point.len() > 3).expect("a group was being written");
    let image = torn.image(Choice::Prefix(torn.len() - 2));
    image.flip_bit(&Name::new(Folder::Root, "keyring.1").expect("a name"), 70, 3);
    let expected = world.history.now().exactly(1);
    World::resume(image, direct, 4, &expected)
}

/// Two starts: the first has much to repair and leaves an empty segment behind, which the second removes.
fn recovery(world: &mut World) -> Step {
    world.open()?;
    world.commit(Unit::one(record(5, 1, b"behind")))?;
    world.kill();
    world.open()?;
    world.commit(Unit::one(record(5, 2, b"behind")))?;
    world.pause(300)?;
    world.close()
}
