//! Which errors stop the writer and which cost it only a file, by call site (JC-6, JC-7).

use sealog_disk::io::INTERRUPTIONS_MAX;
use sealog_disk::sim::{Call, Fault, FaultKind, TraceEntry};
use sealog_disk::{ErrorKind, Operation};

use super::crash_world::Stop;
use super::fault_workloads::FAULT_WORKLOADS;
use super::faults::{Outcome, run};
use crate::JournalError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// The writer stops for good.
    Poison,
    /// The writer goes on.
    Survive,
    /// A start fails, or nobody's note is lost.
    Either,
}

fn wanted(entry: &TraceEntry, kind: FaultKind) -> Wanted {
    let published = entry.file.ends_with(".seg") || entry.file == "head";
    let continued = match kind {
        FaultKind::ShortWrite(count) => count > 0,
        // Where the write is the sync, EINTR is as final as any other error of a sync.
        FaultKind::Interrupted => entry.call == Call::Write,
        FaultKind::Io
        | FaultKind::Full
        | FaultKind::Descriptors
        | FaultKind::ReadOnly
        | FaultKind::FsyncLies => false,
    };
    match entry.call {
        // Less than a block cannot be continued at a block boundary; giving up is safe.
        Call::WriteDurable if matches!(kind, FaultKind::ShortWrite(1..4096)) => Wanted::Either,
        Call::Write | Call::WriteDurable if continued => Wanted::Survive,
        Call::Write | Call::WriteDurable | Call::SyncData | Call::SyncAll | Call::Close | Call::Links
            if published =>
        {
            Wanted::Poison
        }
        Call::SyncFolder | Call::RenameNew | Call::CheckIdentity => Wanted::Poison,
        Call::Create | Call::Write | Call::WriteDurable | Call::SyncAll | Call::OpenDirect | Call::Remove
            if entry.file == "segments/next" =>
        {
            Wanted::Survive
        }
        Call::SetLength | Call::Space => Wanted::Survive,
        _ => Wanted::Either,
    }
}

fn poisoned(outcome: &Outcome) -> bool {
    match &outcome.stopped {
        Err(Stop::Ended | Stop::Close(JournalError::Poisoned { .. })) => true,
        Err(Stop::Open(_) | Stop::Close(_)) | Ok(()) => false,
    }
}

/// R14, R32; JC-6, JC-7: the verdict of every call of a running writer.
#[test]
fn each_call_site_poisons_or_does_not() {
    let kinds = [
        FaultKind::Io,
        FaultKind::Full,
        FaultKind::Descriptors,
        FaultKind::ReadOnly,
        FaultKind::Interrupted,
        FaultKind::FsyncLies,
        FaultKind::ShortWrite(0),
        FaultKind::ShortWrite(1),
        FaultKind::ShortWrite(4096),
    ];
    let workload = FAULT_WORKLOADS.iter().find(|one| one.name == "commits").unwrap();
    let (mut poisons, mut survivals) = (0, 0);
    for direct in [false, true] {
        let whole = run(workload, direct, &[]);
        assert!(whole.stopped.is_ok(), "{:?}", whole.stopped);
        for (at, entry) in whole.trace.iter().enumerate() {
            for kind in kinds {
                let writes = matches!(entry.call, Call::Write | Call::WriteDurable);
                if matches!(kind, FaultKind::ShortWrite(_)) && !writes {
                    continue;
                }
                let outcome = run(workload, direct, &[Fault::call(at as u64, kind)]);
                let context =
                    format!("{kind:?} at call {at}, {entry:?}, direct {direct}: {:?}", outcome.stopped);
                match wanted(entry, kind) {
                    // A start that fails is checked elsewhere.
                    _ if matches!(outcome.stopped, Err(Stop::Open(_))) => {}
                    Wanted::Poison => {
                        assert!(poisoned(&outcome), "the writer goes on: {context}");
                        poisons += 1;
                    }
                    Wanted::Survive => {
                        assert!(outcome.stopped.is_ok(), "the writer stopped: {context}");
                        // One bad call costs no unit; want of space may.
                        let most = if kind == FaultKind::Full { 2 } else { 0 };
                        assert!(
                            outcome.world.refused <= most,
                            "{} refused: {context}",
                            outcome.world.refused
                        );
                        let expected = outcome.world.history.now();
                        assert_eq!(expected.must, expected.units.len(), "{context}");
                        survivals += 1;
                    }
                    Wanted::Either => {}
                }
            }
        }
    }
    println!("{poisons} poisoned, {survivals} survived");
    assert!(poisons > 300 && survivals > 200, "{poisons} {survivals}");
}

/// JC-6: a short write is continued with the same bytes at the same place.
#[test]
fn a_short_write_is_continued_at_its_place() {
    let workload = FAULT_WORKLOADS.iter().find(|one| one.name == "commits").unwrap();
    let short = Fault::site(Operation::Write, "segments/*.seg", 0, FaultKind::ShortWrite(100)).forever();
    let (plain, torn) = (run(workload, false, &[]), run(workload, false, &[short]));
    assert!(torn.stopped.is_ok());
    let (plain, torn) = (plain.world.bench.disk.files(), torn.world.bench.disk.files());
    assert!(plain.len() > 5);
    for (file, bytes) in &plain {
        assert!(torn.get(file) == Some(bytes), "{file} differs");
    }
}

/// JC-6: EINTR a hundred times and no more, and no sync is ever repeated.
#[test]
fn interruptions_are_bounded_and_syncs_are_not_repeated() {
    let workload = FAULT_WORKLOADS.iter().find(|one| one.name == "commits").unwrap();
    let site = |nth| Fault::site(Operation::Write, "segments/*.seg", nth, FaultKind::Interrupted);
    let few: Vec<Fault> = (0..u64::from(INTERRUPTIONS_MAX)).map(site).collect();
    assert!(run(workload, false, &few).stopped.is_ok());
    let endless = run(workload, false, &[site(0).forever()]);
    assert!(poisoned(&endless));
    let tries = endless.trace.iter().filter(|entry| entry.error == Some(ErrorKind::Interrupted)).count();
    assert_eq!(tries, INTERRUPTIONS_MAX as usize + 1);
    for (op, file) in [
        (Operation::Sync, "segments/*.seg"),
        (Operation::Sync, "head"),
        (Operation::SyncDirectory, "segments/"),
        (Operation::Close, "segments/*.seg"),
    ] {
        // Past the start, which has syncs of its own.
        let nth = if file == "segments/" { 2 } else { 1 };
        let outcome = run(workload, false, &[Fault::site(op, file, nth, FaultKind::Interrupted)]);
        assert!(poisoned(&outcome), "{op:?} {file}: {:?}", outcome.stopped);
        let interrupted = |entry: &TraceEntry| entry.error == Some(ErrorKind::Interrupted);
        let failed = outcome.trace.iter().position(interrupted).unwrap();
        let later = &outcome.trace[failed + 1..];
        let touched = later.iter().find(|entry| entry.call.changes_the_disk());
        assert_eq!(touched, None, "{op:?} {file}");
    }
}
