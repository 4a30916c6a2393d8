//! Repair of every kind of damage of the decision table, cut before every write and sync: made again on what the cut left,
//! it gives the same journal and the same losses (JB-11, R33, R45).

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use sealog_disk::sim::{CrashPoint, SimDisk};
use sealog_disk::{Folder, Name};

use super::backup::read;
use super::crash::in_parallel;
use super::crash_judge::{Pick, image, undecided};
use super::repair::{group, repaired, segments};
use super::setup::{Bench, closing, record};
use crate::{Loss, Record, Repaired, Unit};

/// With so few undecided changes every subset is tried, otherwise so many are drawn.
const COMPLETE_MAX: usize = 5;
const DRAWN: u64 = 16;

/// As few operations as possible: three segments, two streams that end and one that goes on through all of them.
fn journal() -> Bench {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    for n in 1..=3 {
        opened.commit(Unit::one(record(90, u64::from(n), &[n; 900]))).unwrap();
        opened.commit(Unit { records: vec![record(n, 1, b"result"), closing(n, 2)] }).unwrap();
        // Behind a jump the writer rolls.
        bench.clock.jump_wall_ms(-7_200_000);
    }
    opened.journal.close().unwrap();
    assert!(segments(&bench).len() >= 3, "{:?}", segments(&bench));
    bench
}

struct Damage {
    row: &'static str,
    make: fn(&Bench),
}

fn last(bench: &Bench) -> (Name, u64) {
    let segments = segments(bench);
    (segments.last().unwrap().clone(), segments.len() as u64)
}

fn root(file: &str) -> Name {
    Name::new(Folder::Root, file).unwrap()
}

const DAMAGES: [Damage; 15] = [
    Damage { row: "none", make: |_| {} },
    Damage { row: "1, one header copy", make: |bench| bench.disk.flip_bit(&segments(bench)[1], 300, 1) },
    Damage {
        row: "1, both",
        make: |bench| [300, 4396].into_iter().for_each(|at| bench.disk.flip_bit(&segments(bench)[1], at, 1)),
    },
    Damage { row: "3", make: |bench| bench.disk.flip_bit(&segments(bench)[0], group(bench, 1, 1) + 101, 1) },
    Damage {
        row: "5",
        make: |bench| {
            let (file, number) = last(bench);
            bench.disk.truncate(&file, group(bench, number, 0));
        },
    },
    Damage {
        row: "6 and 9",
        make: |bench| {
            let (file, _) = last(bench);
            let end = bench.disk.bytes(&file).unwrap().len() as u64;
            bench.disk.overwrite(&file, end, &[0xa5; 600]);
        },
    },
    Damage {
        row: "7",
        make: |bench| {
            let (file, number) = last(bench);
            let (from, to) = (group(bench, number, 1) as usize, group(bench, number, 0));
            let bytes = bench.disk.bytes(&file).unwrap();
            bench.disk.overwrite(&file, to, &bytes[from..from + 96]);
        },
    },
    Damage {
        row: "8",
        make: |bench| {
            let (file, number) = last(bench);
            bench.disk.flip_bit(&file, group(bench, number, 0) + 99, 1);
        },
    },
    Damage {
        row: "10, both slots",
        make: |bench| [100, 4196].into_iter().for_each(|at| bench.disk.flip_bit(&root("head"), at, 1)),
    },
    Damage { row: "10, no head", make: |bench| bench.disk.delete(&root("head")) },
    Damage { row: "11, a segment", make: |bench| bench.disk.delete(&segments(bench)[1]) },
    Damage { row: "11, the first segment", make: |bench| bench.disk.delete(&segments(bench)[0]) },
    Damage { row: "11, no store", make: |bench| bench.disk.delete(&root("store")) },
    Damage { row: "11, store", make: |bench| bench.disk.flip_bit(&root("store"), 40, 1) },
    Damage { row: "11, a keyring copy", make: |bench| bench.disk.delete(&root("keyring.0")) },
];

/// One damaged journal, its repair, and every point at which that may be cut.
struct Trial {
    row: &'static str,
    damaged: Bench,
    done: Repaired,
    made: Vec<Record>,
    points: Vec<CrashPoint>,
}

fn trial(whole: &SimDisk, damage: &Damage) -> Trial {
    let damaged = Bench::on(whole.fork(), 80);
    (damage.make)(&damaged);
    let target = SimDisk::new();
    target.record_crash_points();
    let done = repaired(&damaged, &target).unwrap_or_else(|e| panic!("{}: {e:?}", damage.row));
    let mut points = target.take_crash_points();
    points.push(target.crash_point());
    let made = read(&Bench::on(target, 81).config).unwrap().1;
    Trial { row: damage.row, damaged, done, made, points }
}

/// Without the record of the repair itself, which names when it was made.
fn told(records: &[Record]) -> Vec<(u16, Option<crate::StreamId>, u64, &[u8])> {
    let kept = records.split_last().map_or(&[][..], |(_, kept)| kept);
    kept.iter().map(|record| (record.kind, record.stream, record.event_number, &record.body[..])).collect()
}

impl Trial {
    fn examine(&self, disk: &SimDisk) -> Result<(), String> {
        let again = repaired(&self.damaged, disk).map_err(|e| format!("not made again: {e:?}"))?;
        let said =
            |done: &Repaired| -> (u64, bool, Vec<Loss>) { (done.records, done.fenced, done.losses.clone()) };
        if said(&again) != said(&self.done) {
            return Err(format!("made again it says {again:?}"));
        }
        let (audit, records) = read(&Bench::on(disk.fork(), 82).config).map_err(|e| e.to_string())?;
        if !audit.is_sound() || audit.tail.is_some() || told(&records) != told(&self.made) {
            return Err(format!("made again it is another journal: {audit:?}"));
        }
        Ok(())
    }
}

fn subsets(point: &CrashPoint, seed: u64) -> Vec<Pick> {
    let count = undecided(point);
    if count <= COMPLETE_MAX {
        return (0..1_u64 << count).map(Pick::Mask).collect();
    }
    let corners = [Pick::Prefix(0), Pick::Prefix(count), Pick::Names, Pick::Data];
    let drawn = (corners.len() as u64..DRAWN).map(|at| Pick::Seeded(seed.wrapping_mul(1_000_003) + at));
    corners.into_iter().chain(drawn).collect()
}

#[test]
fn jb_11_every_repair_survives_a_cut_at_every_step() {
    let whole = journal().disk;
    let trials: Vec<Trial> = DAMAGES.iter().map(|damage| trial(&whole, damage)).collect();
    let mut jobs = Vec::new();
    for (number, trial) in trials.iter().enumerate() {
        let mut seen = HashSet::new();
        for (at, point) in trial.points.iter().enumerate() {
            for pick in subsets(point, at as u64) {
                let disk = image(point, pick);
                if seen.insert(disk.fingerprint()) {
                    jobs.push((number, at, pick, disk));
                }
            }
        }
    }
    let failures = Mutex::new(Vec::new());
    in_parallel(jobs.len(), |job| {
        let (number, at, pick, disk) = &jobs[job];
        let trial = &trials[*number];
        if let Err(e) = trial.examine(disk) {
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.push(format!("row {}, step {at}, {pick:?}: {e}", trial.row));
        }
    });
    let cuts: usize = trials.iter().map(|trial| trial.points.len()).sum();
    println!("{} damages, {cuts} cuts, {} images", trials.len(), jobs.len());
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failures.is_empty(), "{} failures: {:#?}", failures.len(), &failures[..failures.len().min(10)]);
    assert!(jobs.len() > 40 * trials.len(), "only {} images", jobs.len());
}
