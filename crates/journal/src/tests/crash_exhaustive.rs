//! R33 word for word: every workload of up to three operations, cut before every write and sync, with every subset of
//! what was not synced; each image judged by the whole examination of `crash_judge`.
//!
//! The cuts of a workload's last operation are examined: those of the operations before it are the shorter
//! workload's. The ordinary run takes all workloads of up to two operations and a part of the longer ones;
//! `SEALOG_EXHAUSTIVE=whole` takes all, each on every base and write path (`cargo xtask exhaustive`).

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sealog_disk::sim::{CrashPoint, EXHAUSTIVE_MAX, SimDisk};

use super::crash::in_parallel;
use super::crash_judge::{self, Judged, Pick, dirty_sectors, image, undecided};
use super::crash_workloads::forget;
use super::crash_world::{Expected, Step, World};
use super::setup::{closing, record, stream};
use crate::{FrameView, Rekey, Sink, Unit, audit};

/// Operations of the longest workload.
const LENGTH_MAX: u32 = 3;
/// Subsets of a point with too many changes for all.
const DRAWN: u64 = 64;
/// The ordinary run takes every so many-th workload of full length.
const PART: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    /// A stream's first unit.
    Create,
    AppendOne,
    /// So many units at once that their frame fills most of a segment; on a [`Case::full`] one so many that the group is
    /// as large as the format lets one be, and the last of them make another.
    AppendGroup,
    /// The last unit of the newest open stream.
    Finish,
    /// A segment ends, and the next frame is the first of another.
    Roll,
    HeadRewrite,
    /// Of the oldest stream that has ended.
    Forget,
    Compact,
    /// A new root key, on the closed journal.
    Rekey,
    Reopen,
}

const OPS: [Op; 10] = [
    Op::Create,
    Op::AppendOne,
    Op::AppendGroup,
    Op::Finish,
    Op::Roll,
    Op::HeadRewrite,
    Op::Forget,
    Op::Compact,
    Op::Rekey,
    Op::Reopen,
];

/// What a workload begins on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// A journal that was just made.
    Fresh,
    /// Several segments with a stream that was forgotten, one that has ended and one that goes on.
    Grown,
}

/// A journal with its streams, on which operations run.
struct Machine {
    world: World,
    /// Streams without an end, and their next event.
    open: Vec<(u8, u64)>,
    /// Ended and not forgotten, oldest first.
    ended: Vec<u8>,
    next: u8,
    full: bool,
}

fn event(n: u8, number: u64, len: usize) -> Unit {
    // No two sectors are alike.
    let body: Vec<u8> = (0..len).map(|at| (at / 7) as u8 ^ (at as u8) ^ n ^ number as u8).collect();
    Unit::one(record(n, number, &body))
}

impl Machine {
    fn on(base: Base, direct: bool) -> Machine {
        let mut world = World::on(SimDisk::new(), direct, 7);
        world.create().expect("nothing fails here");
        let machine = Machine { world, open: Vec::new(), ended: Vec::new(), next: 1, full: false };
        match base {
            Base::Fresh => machine,
            Base::Grown => machine.grown(),
        }
    }

    /// Groups as large as the format lets them be, in segments that hold several.
    fn full(mut self) -> Machine {
        let tuning = &mut self.world.bench.config.tuning;
        (tuning.first_segment_bytes, tuning.segment_bytes_min, tuning.segment_bytes_max) =
            (640 << 10, 640 << 10, 1 << 20);
        self.full = true;
        self
    }

    fn grown(mut self) -> Machine {
        let world = &mut self.world;
        let fill = |world: &mut World| -> Step {
            world.open()?;
            for n in 1..=2 {
                world.commit(event(n, 1, 1300))?;
                world.commit(event(n, 2, 1300))?;
                world.commit(Unit { records: vec![record(n, 3, b"result"), closing(n, 4)] })?;
            }
            for number in 1..=8 {
                world.commit(event(3, number, 1500))?;
            }
            world.commit(Unit::one(forget(&[stream(1)])))?;
            for number in 9..=16 {
                world.commit(event(3, number, 1500))?;
            }
            world.close()
        };
        fill(world).expect("nothing fails here");
        (self.open, self.ended, self.next) = (vec![(3, 17)], vec![2], 4);
        self
    }

    /// Runs an operation. One that has nothing to act on does nothing.
    fn run(&mut self, op: Op) -> Step {
        match op {
            Op::Create => {
                let n = self.next;
                self.next += 1;
                self.open.push((n, 3));
                self.world.commit(Unit { records: vec![record(n, 1, b"created"), record(n, 2, b"accepted")] })
            }
            Op::AppendOne => {
                let unit = self.append(200);
                self.world.commit(unit)
            }
            Op::AppendGroup => {
                // 16 units of half a kilobyte, or 68 of four.
                let (count, len) = if self.full { (68, 4000) } else { (16, 420) };
                for at in 0..count {
                    let unit = self.append(len + at * 9);
                    self.world.submit(unit);
                }
                self.world.drain()
            }
            Op::Finish => {
                let Some((n, number)) = self.open.pop() else { return Ok(()) };
                self.ended.push(n);
                self.world
                    .commit(Unit { records: vec![record(n, number, b"result"), closing(n, number + 1)] })
            }
            Op::Roll => {
                // JC-9: behind a jump the writer rolls.
                self.world.bench.clock.jump_wall_ms(-7_200_000);
                let unit = self.append(30);
                self.world.commit(unit)
            }
            Op::HeadRewrite => self.world.pause(300),
            Op::Forget => {
                if self.ended.is_empty() {
                    return Ok(());
                }
                let n = self.ended.remove(0);
                self.world.commit(Unit::one(forget(&[stream(n)])))
            }
            Op::Compact => {
                self.world.bench.clock.advance(Duration::from_secs(700));
                self.world.compact()
            }
            Op::Rekey => {
                self.world.close()?;
                let rekey = Rekey::open(&self.world.bench.config).expect("nothing fails here");
                rekey.rotate(&[], None).expect("nothing fails here");
                self.world.open()
            }
            Op::Reopen => {
                self.world.close()?;
                self.world.open()
            }
        }
    }

    /// The next event of the newest open stream, or of one that this opens.
    fn append(&mut self, len: usize) -> Unit {
        if self.open.is_empty() {
            self.open.push((self.next, 1));
            self.next += 1;
        }
        let (n, number) = self.open.last_mut().expect("pushed above");
        *number += 1;
        event(*n, *number - 1, len)
    }
}

/// All workloads of so many operations.
fn workloads(length: u32) -> Vec<Vec<Op>> {
    let count = OPS.len().pow(length);
    let digit = |number: usize, at: u32| OPS[number / OPS.len().pow(at) % OPS.len()];
    (0..count).map(|number| (0..length).rev().map(|at| digit(number, at)).collect()).collect()
}

#[derive(Clone, Debug)]
struct Case {
    ops: Vec<Op>,
    base: Base,
    direct: bool,
    /// A full group is the format's, not the test segment's.
    full: bool,
}

/// Workloads with the format's full group have so many operations at most.
const FULL_LENGTH_MAX: u32 = 2;
/// Their subsets: each image is large.
const FULL_DRAWN: u64 = 16;

const SETTINGS: [(Base, bool); 4] =
    [(Base::Fresh, false), (Base::Grown, false), (Base::Fresh, true), (Base::Grown, true)];

/// Every workload in every setting, or all short ones and a part of the long ones, in settings that take turns.
fn cases(whole: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for length in 0..=LENGTH_MAX {
        for (number, ops) in workloads(length).into_iter().enumerate() {
            if !whole && length == LENGTH_MAX && number % PART != PART / 3 {
                continue;
            }
            for (at, (base, direct)) in SETTINGS.into_iter().enumerate() {
                // Digits added, so that no setting meets always the same operation.
                let turn = (number + number / 10 + number / 100) % SETTINGS.len();
                if whole || length < 2 || at == turn {
                    cases.push(Case { ops: ops.clone(), base, direct, full: false });
                }
                let has_group = ops.contains(&Op::AppendGroup) && length <= FULL_LENGTH_MAX;
                if has_group && (whole || at == turn) {
                    cases.push(Case { ops: ops.clone(), base, direct, full: true });
                }
            }
        }
    }
    cases
}

#[derive(Default)]
struct Tally {
    /// Images, each with what was expected of it.
    seen: HashSet<(u64, u64)>,
    cuts: usize,
    /// With their repetitions.
    images: usize,
    /// Those whose subsets were all tried.
    complete: usize,
    torn: usize,
    failures: Vec<String>,
}

fn lock(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The subsets of one cut, and whether they are all.
fn subsets(point: &CrashPoint, seed: u64, most: u64) -> (Vec<Pick>, bool) {
    let (changes, sectors) = (undecided(point), dirty_sectors(point));
    if changes <= EXHAUSTIVE_MAX {
        return ((0..1_u64 << changes).map(Pick::Mask).collect(), true);
    }
    if sectors <= EXHAUSTIVE_MAX {
        let masks =
            (0..1_u64 << sectors).flat_map(|mask| [Pick::Sectors(mask, false), Pick::Sectors(mask, true)]);
        return (masks.collect(), true);
    }
    let corners = [Pick::Prefix(0), Pick::Prefix(changes), Pick::Names, Pick::Data];
    let drawn = (corners.len() as u64..most).map(|at| Pick::Seeded(seed.wrapping_mul(1_000_003) + at));
    (corners.into_iter().chain(drawn).collect(), false)
}

/// Runs a case up to its last operation, and that one with every cut.
fn examine(case: &Case, tally: &Mutex<Tally>) {
    let mut machine = Machine::on(case.base, case.direct);
    if case.full {
        machine = machine.full();
    }
    let Some((last, before)) = case.ops.split_last() else {
        return cuts(case, &mut machine, tally, |machine| machine.world.open());
    };
    machine.world.open().expect("nothing fails here");
    for op in before {
        machine.run(*op).expect("nothing fails here");
    }
    cuts(case, &mut machine, tally, |machine| machine.run(*last));
}

fn cuts(case: &Case, machine: &mut Machine, tally: &Mutex<Tally>, work: impl FnOnce(&mut Machine) -> Step) {
    let disk = machine.world.bench.disk.clone();
    let first_op = disk.op_count();
    disk.record_crash_points();
    work(machine).expect("nothing fails here");
    let mut points = disk.take_crash_points();
    points.push(disk.crash_point());
    machine.world.kill();
    for (point, op) in points.iter().zip(first_op..) {
        let expected = machine.world.history.at(op);
        judge_all(case, point, op, &expected, crash_judge::judge, tally);
    }
}

/// The making of the journal itself, which comes before every workload.
fn making(direct: bool, tally: &Mutex<Tally>) {
    let case = Case { ops: Vec::new(), base: Base::Fresh, direct, full: false };
    let mut world = World::on(SimDisk::new(), direct, 7);
    let disk = world.bench.disk.clone();
    disk.record_crash_points();
    world.create().expect("nothing fails here");
    let points = disk.take_crash_points();
    for (point, op) in points.iter().zip(0..) {
        judge_all(&case, point, op, &world.history.at(op), crash_judge::judge_creation, tally);
    }
}

type Judge = fn(&SimDisk, &Expected, u64) -> Result<Judged, String>;

fn judge_all(
    case: &Case,
    point: &CrashPoint,
    op: u64,
    expected: &Expected,
    judge: Judge,
    tally: &Mutex<Tally>,
) {
    let (picks, complete) = subsets(point, op, if case.full { FULL_DRAWN } else { DRAWN });
    let print = expected.fingerprint();
    {
        let mut tally = lock(tally);
        tally.cuts += 1;
        tally.complete += usize::from(complete);
        tally.images += picks.len();
    }
    for pick in picks {
        let disk = image(point, pick);
        let fingerprint = disk.fingerprint();
        if !lock(tally).seen.insert((fingerprint, print)) {
            continue;
        }
        let verdict = judge(&disk, expected, fingerprint % 1000);
        let mut tally = lock(tally);
        match verdict {
            Ok(judged) => tally.torn += usize::from(judged.torn),
            Err(e) => tally.failures.push(format!("{case:?}, operation {op}, {pick:?}: {e}")),
        }
    }
}

/// R33; JA-1, JC-1, JC-4, JC-5, JD-5, JR-4, JR-7, JR-8, JK-50.
#[test]
fn every_small_workload_survives_every_cut_with_every_subset() {
    let whole = std::env::var("SEALOG_EXHAUSTIVE").is_ok_and(|text| text == "whole");
    let cases = cases(whole);
    let tally = Mutex::new(Tally::default());
    [false, true].into_iter().for_each(|direct| making(direct, &tally));
    in_parallel(cases.len(), |at| {
        if lock(&tally).failures.len() < 20 {
            examine(&cases[at], &tally);
        }
        if whole && at % 500 == 499 {
            let tally = lock(&tally);
            eprintln!("{} of {}: {} images judged", at + 1, cases.len(), tally.seen.len());
        }
    });
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} workloads, {} cuts, {} cuts with every subset, {} images drawn, {} images judged, {} images with a torn tail",
        cases.len(),
        tally.cuts,
        tally.complete,
        tally.images,
        tally.seen.len(),
        tally.torn
    );
    assert!(tally.failures.is_empty(), "{:#?}", tally.failures);
    assert!(
        tally.seen.len() >= 4_000 && tally.torn >= 300,
        "{} images, {} torn",
        tally.seen.len(),
        tally.torn
    );
}

/// All of them, once, and in the short form no operation and no setting is left out.
#[test]
fn the_workloads_are_all_there_are() {
    let count =
        |length| workloads(length).into_iter().map(|ops| format!("{ops:?}")).collect::<HashSet<_>>().len();
    assert_eq!([count(0), count(1), count(2), count(3)], [1, 10, 100, 1000]);
    let counted = |whole, full| cases(whole).iter().filter(|case| case.full == full).count();
    // Of 111 workloads 1 + 19 have the group.
    assert_eq!((counted(true, false), counted(true, true), counted(false, true)), (4 * 1111, 4 * 20, 20));
    let short = cases(false);
    for (base, direct) in SETTINGS {
        for op in OPS {
            let last = |case: &&Case| case.ops.len() == 2 && case.ops[1] == op;
            let mut here = short.iter().filter(|case| (case.base, case.direct) == (base, direct));
            assert!(
                here.any(|case| last(&case)),
                "{op:?} never ends a workload of two on {base:?}, {direct}"
            );
        }
    }
}

/// Takes the lengths of the groups.
#[derive(Default)]
struct Groups(Vec<usize>);

impl Sink for Groups {
    fn frame(&mut self, view: &FrameView) {
        self.0.push(view.header.body_length as usize);
    }
}

/// The "full group" is the format's: the queue held more, and the group was closed by its limit.
#[test]
fn the_full_group_is_as_large_as_a_group_may_be() {
    let mut machine = Machine::on(Base::Fresh, false).full();
    machine.world.open().expect("nothing fails here");
    machine.run(Op::AppendGroup).expect("nothing fails here");
    machine.world.close().expect("nothing fails here");
    let groups = audit(&machine.world.bench.config, &mut Groups::default).expect("nothing fails here").1.0;
    assert!(groups.len() >= 2, "{groups:?}");
    let largest = groups.into_iter().max().unwrap_or_default();
    let limit = sealog_journal_format::limits::GROUP_BYTES_SOFT;
    assert!((limit - 6 * 1024..=limit + 64).contains(&largest), "{largest}");
}
