//! R32: every storage call of a workload fails once and for ever, by call and by call site, in every way. Whatever
//! happens, nothing acknowledged is lost and nothing is acknowledged by a writer that stopped.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};

use sealog_disk::sim::{Call, Choice, Fault, FaultKind, SimDisk, TraceEntry};

use super::crash::in_parallel;
use super::crash_judge::judge;
use super::crash_world::{Expected, Step, Stop, World};
use super::fault_workloads::{FAULT_WORKLOADS, FaultWorkload, before};
use crate::{Admission, Health, JournalError, Refusal};

const KINDS: [FaultKind; 9] = [
    FaultKind::Io,
    FaultKind::Full,
    FaultKind::Interrupted,
    FaultKind::Descriptors,
    FaultKind::ReadOnly,
    FaultKind::FsyncLies,
    FaultKind::ShortWrite(0),
    FaultKind::ShortWrite(1),
    FaultKind::ShortWrite(100),
];

/// One run with one fault.
pub(crate) struct Outcome {
    pub world: World,
    pub stopped: Step,
    /// From the workload's first call on.
    pub trace: Vec<TraceEntry>,
}

/// Runs a workload on its own disk with these faults planned.
pub(crate) fn run(workload: &FaultWorkload, direct: bool, faults: &[Fault]) -> Outcome {
    let mut world = before(workload, direct);
    world.start_trace();
    faults.iter().for_each(|fault| world.bench.disk.inject(fault.clone()));
    let stopped = (workload.run)(&mut world);
    let mut trace = std::mem::take(&mut world.trace);
    trace.extend(world.bench.disk.take_trace());
    Outcome { world, stopped, trace }
}

fn applies(workload: &FaultWorkload, kind: FaultKind, call: Call) -> bool {
    match kind {
        // Entries that are shown and were forgotten look durable to everybody; a journal that is being made has
        // nothing to tell it from. A running one does: what was published last is judged again.
        FaultKind::FsyncLies if workload.name == "creation" => call == Call::SyncAll,
        FaultKind::ShortWrite(_) => matches!(call, Call::Write | Call::WriteDurable),
        FaultKind::FsyncLies => {
            matches!(call, Call::SyncData | Call::SyncAll | Call::SyncFolder | Call::WriteDurable)
        }
        FaultKind::Io
        | FaultKind::Full
        | FaultKind::Interrupted
        | FaultKind::Descriptors
        | FaultKind::ReadOnly => true,
    }
}

/// Every fault of a workload: each call once and for ever, each call site for ever.
fn plans(workload: &FaultWorkload, trace: &[TraceEntry]) -> Vec<Fault> {
    let mut plans = Vec::new();
    let mut sites = BTreeSet::new();
    for (at, entry) in trace.iter().enumerate() {
        for kind in KINDS.into_iter().filter(|kind| applies(workload, *kind, entry.call)) {
            let once = Fault::call(at as u64, kind);
            plans.extend([once.clone(), once.forever()]);
        }
        let file = entry.file.split(" -> ").next().unwrap_or_default().to_owned();
        sites.insert((format!("{:?}", entry.call.operation()), file));
    }
    for entry in trace {
        let file = entry.file.split(" -> ").next().unwrap_or_default();
        if sites.remove(&(format!("{:?}", entry.call.operation()), file.to_owned())) {
            let kinds = KINDS.into_iter().filter(|kind| applies(workload, *kind, entry.call));
            plans.extend(kinds.map(|kind| Fault::site(entry.call.operation(), file, 0, kind).forever()));
        }
    }
    plans
}

/// What the disk holds after the fault, each with a number that tells it from others: for the next process on this
/// machine, and after the power went.
fn aftermath(disk: &SimDisk, kind: FaultKind, nth: u64) -> Vec<(&'static str, SimDisk, u64)> {
    disk.clear_faults();
    let point = disk.crash_point();
    let (lost, kept) = (point.image(Choice::Nothing), point.image(Choice::Everything));
    let part = point.image(Choice::Seeded(disk.op_count()));
    let (all, nothing, some) = (kept.fingerprint(), lost.fingerprint(), part.fingerprint());
    let here = match kind {
        // Only the cache of this machine shows what a lying sync lost.
        FaultKind::FsyncLies => nth,
        FaultKind::Io
        | FaultKind::Full
        | FaultKind::Interrupted
        | FaultKind::Descriptors
        | FaultKind::ReadOnly
        | FaultKind::ShortWrite(_) => all.rotate_left(1) ^ nothing,
    };
    vec![
        ("the same machine", disk.fork(), here),
        ("the power went", lost, nothing),
        ("written back", kept, all),
        ("a part written back", part, some),
    ]
}

/// R28: a call that fails is never read as damage, as a missing file or as a wrong key.
fn check_refusal(outcome: &Outcome) -> Result<(), String> {
    match &outcome.stopped {
        Err(Stop::Open(JournalError::Disk(_))) => Ok(()),
        Err(Stop::Open(other)) => Err(format!("the start says {other:?}")),
        Err(Stop::Ended | Stop::Close(_)) | Ok(()) => Ok(()),
    }
}

/// JC-5, JC-6: a writer that stopped says so to everybody, and its disk hears nothing more from it.
fn check_stopped(outcome: &Outcome) -> Result<(), String> {
    let Err(Stop::Ended) = outcome.stopped else { return Ok(()) };
    let Some(live) = &outcome.world.live else { return Err("the writer is gone".into()) };
    if !matches!(live.journal.health(), Health::Poisoned { .. }) {
        return Err(format!("ended with health {:?}", live.journal.health()));
    }
    let unit = crate::Unit::one(super::setup::record(99, 1, b"too late"));
    match live.journal.submit(unit, Admission::Reserved) {
        Err(Refusal::Ended(_)) => {}
        other => return Err(format!("a stopped writer took a unit: {other:?}")),
    }
    let before = outcome.world.bench.disk.op_count();
    live.journal.turn();
    live.journal.maintain();
    if live.journal.close().is_ok() {
        return Err("a stopped writer closed in order".into());
    }
    match outcome.world.bench.disk.op_count() - before {
        0 => Ok(()),
        ops => Err(format!("{ops} operations after the writer stopped")),
    }
}

fn examine(
    workload: &FaultWorkload,
    direct: bool,
    fault: &Fault,
    seen: &Mutex<HashSet<(u64, usize, usize)>>,
) -> Result<usize, String> {
    let mut outcome = run(workload, direct, std::slice::from_ref(fault));
    check_stopped(&outcome)?;
    check_refusal(&outcome)?;
    outcome.world.kill();
    let expected: Expected = outcome.world.history.now();
    let mut judged = 0;
    for (what, disk, number) in aftermath(&outcome.world.bench.disk, fault.kind, fault.nth) {
        let key = (number, expected.must, expected.units.len());
        if seen.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            let verdict = (workload.judge)(&disk, &expected, number % 1000);
            verdict.map_err(|e| format!("{what}: {e} (stopped: {:?})", outcome.stopped))?;
            judged += 1;
        }
    }
    Ok(judged)
}

fn campaign(direct: bool) {
    let mut jobs = Vec::new();
    for workload in &FAULT_WORKLOADS {
        let whole = run(workload, direct, &[]);
        assert!(whole.stopped.is_ok(), "{}: {:?}", workload.name, whole.stopped);
        assert!(workload.name != "compaction" || whole.world.compactions > 0, "nothing was compacted");
        jobs.extend(plans(workload, &whole.trace).into_iter().map(|fault| (workload, fault)));
    }
    let (failures, judged) = (Mutex::new(Vec::new()), Mutex::new(0));
    let seen = Mutex::new(HashSet::new());
    in_parallel(jobs.len(), |job| {
        let (workload, fault) = &jobs[job];
        match examine(workload, direct, fault, &seen) {
            Ok(count) => *judged.lock().unwrap() += count,
            Err(e) => failures.lock().unwrap().push(format!("{}, {fault:?}: {e}", workload.name)),
        }
    });
    let failures = failures.into_inner().unwrap();
    println!("{} faults, {} examinations", jobs.len(), judged.into_inner().unwrap());
    let few: Vec<_> = failures.iter().take(25).collect();
    assert!(failures.is_empty(), "{} failures: {few:#?}", failures.len());
    assert!(jobs.len() > 2000, "only {} faults", jobs.len());
}

/// R32, R14, R28; JC-5, JC-6, JC-7, JA-4 on the portable write path.
#[test]
fn no_fault_loses_what_was_acknowledged_portable() {
    campaign(false);
}

/// R32, R14; JC-5, JC-6, JC-7, JA-4 on the direct write path.
#[test]
fn no_fault_loses_what_was_acknowledged_direct() {
    campaign(true);
}

/// The plain judge, for workloads on a journal that exists.
pub(crate) fn judge_existing(disk: &SimDisk, expected: &Expected, seed: u64) -> Result<(), String> {
    judge(disk, expected, seed).map(|_| ())
}
