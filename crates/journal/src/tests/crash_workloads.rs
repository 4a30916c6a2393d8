//! The workloads whose every write and sync index is cut. Each is short: what matters is which calls stand next to
//! which, not how many there are.

use sealog_journal_format::journal_records::{Forget, KIND_FORGET};

use super::crash_world::{Step, World};
use super::setup::{START_MS, closing, record, stream};
use crate::{Class, NewRecord, StreamId, Unit};

/// What runs on a journal that exists.
pub(crate) type Workload = fn(&mut World) -> Step;

pub(crate) const WORKLOADS: [(&str, Workload); 14] = [
    ("open, commit, close", open_commit_close),
    ("several opens", several_opens),
    ("groups of many units", groups),
    ("rolls", rolls),
    ("a unit larger than a segment", large_unit),
    ("the head is rewritten", heads),
    ("killed and opened again", killed),
    ("frames of all lengths", sizes),
    ("two streams", two_streams),
    ("a forget record", forgotten),
    ("the clocks jump", jumps),
    ("compaction", compaction),
    ("compaction and summaries", summarised_compaction),
    ("summaries", summaries),
];

fn event(n: u8, number: u64, len: usize) -> Unit {
    // A pattern that no two sectors share.
    let body: Vec<u8> = (0..len).map(|at| (at / 7) as u8 ^ (at as u8) ^ n ^ number as u8).collect();
    Unit::one(record(n, number, &body))
}

fn end(n: u8, number: u64) -> Unit {
    Unit { records: vec![record(n, number, b"result"), closing(n, number + 1)] }
}

fn open_commit_close(world: &mut World) -> Step {
    world.open()?;
    world.commit(event(1, 1, 10))?;
    world.commit(event(1, 2, 1300))?;
    world.commit(end(1, 3))?;
    world.close()
}

fn several_opens(world: &mut World) -> Step {
    for n in 1..=4 {
        world.open()?;
        world.commit(event(n, 1, 90))?;
        world.commit(event(n, 2, 400))?;
        match n % 2 {
            0 => world.close()?,
            _ => world.kill(),
        }
    }
    world.open()?;
    world.close()
}

/// Units that are queued together become one frame; more than one group's worth becomes several.
fn groups(world: &mut World) -> Step {
    world.open()?;
    for n in 1..=12 {
        world.submit(event(n, 1, 40 + usize::from(n) * 11));
    }
    world.drain()?;
    for n in 1..=5 {
        world.submit(end(n, 2));
        world.submit(event(n + 20, 1, 700));
    }
    world.drain()?;
    world.commit(event(7, 2, 1))?;
    world.close()
}

fn rolls(world: &mut World) -> Step {
    world.open()?;
    for number in 1..=9 {
        world.commit(event(1, number, 1500))?;
        world.pause(20)?;
    }
    world.commit(end(1, 10))?;
    world.close()
}

fn large_unit(world: &mut World) -> Step {
    world.open()?;
    world.commit(event(1, 1, 100))?;
    world.commit(event(1, 2, 15_000))?;
    world.commit(event(1, 3, 100))?;
    // The segment that the helper has ready is too short, and grows.
    world.pause(30)?;
    world.pause(30)?;
    world.commit(event(1, 4, 24_000))?;
    world.close()
}

fn heads(world: &mut World) -> Step {
    world.open()?;
    world.pause(300)?;
    world.commit(event(1, 1, 300))?;
    world.pause(100)?;
    world.commit(event(1, 2, 300))?;
    world.pause(300)?;
    world.pause(300)?;
    for number in 3..=6 {
        world.commit(event(1, number, 60))?;
        world.pause(240)?;
    }
    world.pause(1200)?;
    world.close()
}

/// Ends without a word, with and without a roll under way, with units that were never written.
fn killed(world: &mut World) -> Step {
    world.open()?;
    world.commit(event(1, 1, 2000))?;
    world.submit(event(1, 2, 10));
    world.kill();
    world.open()?;
    world.kill();
    world.open()?;
    for number in 2..=5 {
        world.commit(event(1, number, 1400))?;
        world.pause(30)?;
    }
    world.kill();
    world.open()?;
    world.commit(event(2, 1, 20))?;
    world.kill();
    Ok(())
}

/// So small that every subset of a frame's sectors is tried.
fn sizes(world: &mut World) -> Step {
    world.open()?;
    for number in 1..=8 {
        world.commit(event(1, number, 470 * number as usize))?;
    }
    world.close()
}

fn two_streams(world: &mut World) -> Step {
    world.open()?;
    for number in 1..=4 {
        world.submit(event(1, number, 120));
        world.submit(event(2, number, 350));
        world.drain()?;
        world.commit(event(1 + (number % 2) as u8, number + 10, 33))?;
    }
    world.commit(end(2, 20))?;
    world.close()?;
    world.open()?;
    world.commit(event(1, 21, 64))?;
    world.close()
}

fn forgotten(world: &mut World) -> Step {
    world.open()?;
    world.commit(event(1, 1, 200))?;
    world.commit(end(1, 2))?;
    world.commit(Unit::one(forget(&[stream(1)])))?;
    world.commit(event(2, 1, 50))?;
    world.close()?;
    world.open()?;
    world.commit(event(1, 1, 80))?;
    world.close()
}

/// JC-9 on the way: the writer rolls before the frame after each jump.
fn jumps(world: &mut World) -> Step {
    world.open()?;
    world.commit(event(1, 1, 30))?;
    world.bench.clock.jump_wall_ms(-7_200_000);
    world.commit(event(1, 2, 30))?;
    world.bench.clock.set_boot_id([8; 16]);
    world.commit(event(1, 3, 30))?;
    world.close()
}

/// A dead run, then one that holds a compacted segment, a folded stream and one that goes on.
fn compaction(world: &mut World) -> Step {
    world.open()?;
    for n in 1..=3 {
        world.commit(event(n, 1, 1300))?;
        world.commit(event(n, 2, 1300))?;
        world.commit(end(n, 3))?;
    }
    world.commit(event(9, 1, 900))?;
    world.commit(Unit::one(forget(&[stream(1), stream(2)])))?;
    for number in 2..=9 {
        world.commit(event(9, number, 1500))?;
    }
    world.compact()?;
    world.commit(end(9, 10))?;
    world.commit(Unit::one(forget(&[stream(3)])))?;
    for number in 1..=8 {
        world.commit(event(10, number, 1500))?;
    }
    world.bench.clock.advance(std::time::Duration::from_secs(700));
    world.compact()?;
    world.commit(event(10, 20, 10))?;
    world.close()
}

/// The same beside summaries, of what is replaced and of what replaces it.
fn summarised_compaction(world: &mut World) -> Step {
    world.bench.config.tuning.summarise = true;
    compaction(world)
}

/// Written between commits and rolls, again after one was lost, and while there is nothing else to do.
fn summaries(world: &mut World) -> Step {
    world.bench.config.tuning.summarise = true;
    world.bench.config.tuning.compact = false;
    world.open()?;
    for number in 1..=7 {
        world.commit(event(1, number, 1500))?;
        world.pause(20)?;
        world.tend()?;
    }
    world.kill();
    world.open()?;
    world.commit(end(1, 10))?;
    world.tend()?;
    world.commit(Unit::one(forget(&[stream(1)])))?;
    world.close()?;
    world.bench.disk.delete(&super::summaries::summary(1));
    world.open()?;
    world.commit(event(2, 1, 40))?;
    world.tend()?;
    world.close()
}

pub(crate) fn forget(streams: &[StreamId]) -> NewRecord {
    let forget = Forget { streams: streams.iter().map(|stream| stream.0).collect() };
    NewRecord {
        kind: KIND_FORGET,
        stream: None,
        class: Class::FORGETS,
        event_number: 0,
        time_ms: START_MS,
        logical_size: 0,
        body: forget.encode().expect("few streams"),
    }
}

/// What a start and its first work do, whatever it finds.
pub(crate) fn recover(world: &mut World) -> Step {
    world.open()?;
    world.commit(event(90, 1, 40))?;
    world.close()
}
