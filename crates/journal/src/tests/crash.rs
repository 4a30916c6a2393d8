//! The crash campaign: every write and sync index of every workload, of the recovery of its crashes, and of the
//! start after a process was killed there; for each many subsets of what was undecided; and for each image the whole
//! examination of `crash_judge`.
//!
//! A failure prints the workload, the write path, the operation and the subset; all of it is deterministic.
//! `SEALOG_CRASH_SAMPLES` asks for a long run with so many seeded subsets where not all of them are tried,
//! `SEALOG_CRASH_WORKLOAD` for the workloads whose name holds a text.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use sealog_disk::sim::{CrashPoint, SimDisk};

use super::crash_judge::{self, Judged, Pick, image, picks, read_only};
use super::crash_workloads::{WORKLOADS, Workload, recover};
use super::crash_world::{Expected, History, World};
use super::setup::Bench;

/// One run with everything that a crash in it needs.
struct Trial {
    name: String,
    direct: bool,
    points: Vec<CrashPoint>,
    /// Number of the operation that `points[0]` stands before.
    first_op: u64,
    history: History,
    creation: bool,
}

/// How thoroughly one run is examined.
#[derive(Clone, Copy)]
struct Effort {
    /// Seeded subsets of a point with too many changes for all.
    samples: usize,
    /// Subsets of one point at most; which ones differs from point to point.
    picks_max: usize,
    /// Every so many-th image is also recovered with crashes inside the recovery; 0: none.
    deeper: u64,
}

/// What a run of many images adds up to.
#[derive(Default)]
struct Tally {
    images: HashSet<u64>,
    seen: HashSet<(u64, usize, usize)>,
    judged: usize,
    torn: usize,
    points: usize,
    recoveries: usize,
    kills: usize,
    failures: Vec<String>,
}

fn lock(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `short` for an ordinary run; a long one asks for `SEALOG_CRASH_SAMPLES` seeded subsets and for more of the rest.
fn effort(short: Effort) -> Effort {
    let asked = std::env::var("SEALOG_CRASH_SAMPLES").ok().and_then(|text| text.parse().ok());
    asked.map_or(short, |samples| Effort {
        samples,
        picks_max: short.picks_max * 4,
        deeper: short.deeper.div_ceil(6),
    })
}

/// Runs `work` for every number below `count` on as many threads as there are processors, at most four.
pub(crate) fn in_parallel(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get()).min(4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    work(at);
                }
            });
        }
    });
}

fn run(name: &str, workload: Workload, direct: bool) -> Trial {
    let world = prepared(direct);
    let first_op = world.bench.disk.op_count();
    world.bench.disk.record_crash_points();
    finish(name, direct, world, first_op, workload)
}

fn prepared(direct: bool) -> World {
    let mut world = World::on(SimDisk::new(), direct, 7);
    world.create().expect("nothing fails here");
    world
}

fn run_creation(direct: bool) -> Trial {
    let world = World::on(SimDisk::new(), direct, 7);
    world.bench.disk.record_crash_points();
    let trial = finish("creation", direct, world, 0, World::create);
    Trial { creation: true, ..trial }
}

fn finish(name: &str, direct: bool, mut world: World, first_op: u64, workload: Workload) -> Trial {
    workload(&mut world).unwrap_or_else(|e| panic!("{name}: nothing fails here: {e:?}"));
    let compacts = ["compaction", "compaction and summaries"].contains(&name);
    assert!(!compacts || world.compactions >= 2, "{} runs", world.compactions);
    world.kill();
    let disk = &world.bench.disk;
    let mut points = disk.take_crash_points();
    points.push(disk.crash_point());
    let path = if direct { "direct" } else { "portable" };
    let name = format!("{name} ({path})");
    Trial { name, direct, points, first_op, history: world.history, creation: false }
}

impl Trial {
    fn examine(&self, at: usize, effort: Effort, tally: &Mutex<Tally>) {
        let op = self.first_op + at as u64;
        let point = &self.points[at];
        let expected = self.history.at(op);
        lock(tally).points += 1;
        let mut picks = picks(point, effort.samples, op);
        while picks.len() > effort.picks_max {
            // A fixed but scattered choice.
            picks.swap_remove((op as usize * 31 + picks.len() * 17) % picks.len());
        }
        for pick in picks {
            let disk = image(point, pick);
            let fingerprint = disk.fingerprint();
            {
                let mut tally = lock(tally);
                tally.images.insert(fingerprint);
                if !tally.seen.insert((fingerprint, expected.must, expected.units.len())) {
                    continue;
                }
            }
            if effort.deeper > 0 && fingerprint.is_multiple_of(effort.deeper) && !self.creation {
                self.recover(&disk, op, pick, &expected, tally);
            }
            let verdict = match self.creation {
                true => crash_judge::judge_creation(&disk, &expected, fingerprint % 1000),
                false => crash_judge::judge(&disk, &expected, fingerprint % 1000),
            };
            let mut tally = lock(tally);
            tally.judged += 1;
            match verdict {
                Ok(Judged { torn, .. }) => tally.torn += usize::from(torn),
                Err(e) => tally.failures.push(format!("{}, operation {op}, {pick:?}: {e}", self.name)),
            }
        }
    }

    /// JR-8: the recovery of this image, cut at every step, gives the same records again.
    fn recover(&self, image: &SimDisk, op: u64, pick: Pick, expected: &Expected, tally: &Mutex<Tally>) {
        let name = format!("{}, operation {op}, {pick:?}, recovered", self.name);
        let disk = image.fork();
        let found = read_only(&Bench::on(disk.clone(), 5)).and_then(|(_, shown)| expected.check(&shown));
        // Damage is what the examination of the image itself reports.
        let Ok(found) = found else { return };
        // A compaction that was under way may come to nothing yet: what it made is named anew before what it replaced goes
        // (JR-15), and between the two names the replaced files count.
        let world = World::resume(disk, self.direct, 11, &expected.exactly(found));
        world.bench.disk.record_crash_points();
        let trial = finish(&name, self.direct, world, 0, recover);
        lock(tally).recoveries += 1;
        let effort = effort(Effort { samples: 1, picks_max: 3, deeper: 0 });
        (0..trial.points.len()).for_each(|at| trial.examine(at, effort, tally));
    }

    /// The process is killed at an operation, the machine runs on; the next start is cut at every step.
    fn kill(&self, workload: Workload, at: usize, tally: &Mutex<Tally>) {
        let op = self.first_op + at as u64;
        let mut world = match self.creation {
            true => World::on(SimDisk::new(), self.direct, 7),
            false => prepared(self.direct),
        };
        world.bench.disk.cut_at(op);
        // Where the workload noticed, and whether, is all the same.
        workload(&mut world).unwrap_or_default();
        world.kill();
        if self.creation {
            let verdict =
                crash_judge::judge_creation(&world.bench.disk.fork(), &world.history.at(op), at as u64);
            if let Err(e) = verdict {
                lock(tally).failures.push(format!("{}, killed at {op}: {e}", self.name));
            }
            return;
        }
        let name = format!("{}, killed at {op}", self.name);
        let expected = world.history.at(op);
        let world = World::resume(world.bench.disk.fork(), self.direct, 13, &expected);
        world.bench.disk.record_crash_points();
        let trial = finish(&name, self.direct, world, 0, recover);
        lock(tally).kills += 1;
        let effort = effort(Effort { samples: 2, picks_max: 4, deeper: 0 });
        (0..trial.points.len()).for_each(|at| trial.examine(at, effort, tally));
    }
}

enum Job<'a> {
    Crash(&'a Trial, usize),
    Kill(&'a Trial, Workload, usize),
}

/// R03, R06, R07, R11, R33; JA-1, JA-3, JC-1, JC-4, JC-5, JD-2, JF-3, JR-4, JR-7, JR-8, JR-11. At least ten thousand
/// distinct images.
#[test]
fn every_crash_leaves_what_was_acknowledged() {
    let mut trials: Vec<(Trial, Workload)> = Vec::new();
    for direct in [false, true] {
        trials.push((run_creation(direct), World::create));
        trials.extend(WORKLOADS.iter().map(|(name, workload)| (run(name, *workload, direct), *workload)));
    }
    let only = std::env::var("SEALOG_CRASH_WORKLOAD").ok();
    trials.retain(|(trial, _)| only.as_ref().is_none_or(|only| trial.name.contains(only.as_str())));
    let mut jobs = Vec::new();
    for (trial, workload) in &trials {
        jobs.extend((0..trial.points.len()).map(|at| Job::Crash(trial, at)));
        let killed = (0..trial.points.len()).filter(|at| trial.creation || at % 2 == 0);
        let kills = killed.map(|at| Job::Kill(trial, *workload, at));
        jobs.extend(kills);
    }
    let tally = Mutex::new(Tally::default());
    let effort = effort(Effort { samples: 60, picks_max: 1024, deeper: 13 });
    in_parallel(jobs.len(), |job| {
        if lock(&tally).failures.len() < 20 {
            match jobs[job] {
                Job::Crash(trial, at) => trial.examine(at, effort, &tally),
                Job::Kill(trial, workload, at) => trial.kill(workload, at, &tally),
            }
        }
    });
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} crash points ({} recoveries and {} killed processes among them), {} distinct images, {} examinations, {} torn tails",
        tally.points,
        tally.recoveries,
        tally.kills,
        tally.images.len(),
        tally.judged,
        tally.torn
    );
    assert!(tally.failures.is_empty(), "{:#?}", tally.failures);
    if only.is_some() {
        return;
    }
    assert!(tally.images.len() >= 10_000, "only {} distinct images", tally.images.len());
    assert!(tally.torn >= 500, "only {} torn tails", tally.torn);
}
