//! R20: every change of the keyring, cut at every step, with every storage call failing: what opened before or is to open
//! after opens, the next start levels both copies, and no record is lost.

use std::collections::HashSet;
use std::sync::Mutex;

use sealog_disk::sim::{Call, Choice, Fault, FaultKind, SimDisk};
use sealog_disk::{Folder, Name, Operation};
use sealog_seal::Secret;

use super::crash::in_parallel;
use super::crash_judge::{image, picks, read_only};
use super::rekey::{holding, opens, raw, slot, with_second, written};
use super::setup::{Bench, record};
use crate::{
    Config, Journal, JournalError, KeyringCopy, Record, Rekey, Unit, export_keyring, import_keyring,
};

struct Change {
    name: &'static str,
    prepare: fn() -> SimDisk,
    run: fn(&SimDisk, u64) -> Result<(), JournalError>,
    /// Secrets that open before and after. None before: nothing does.
    before: &'static [u8],
    after: &'static [u8],
}

/// The keyring that `destroyed` has lost; the same at every run.
fn exported() -> Vec<u8> {
    export_keyring(&holding(&with_second(), 3, vec![raw(9)])).unwrap().0
}

fn destroyed() -> SimDisk {
    let disk = with_second();
    disk.put(&keyring(0), &[0x5a; 500]);
    disk.delete(&keyring(1));
    disk
}

/// A retired root key that nothing names, beside one that segments name.
fn rotated_twice() -> SimDisk {
    let disk = with_second();
    let first = Name::new(Folder::Segments, "000000000001.seg").unwrap();
    rotate_all(&disk, 31).unwrap();
    // While a header does not read nothing is dropped.
    disk.flip_bit(&first, 130, 1);
    rotate_all(&disk, 32).unwrap();
    disk.flip_bit(&first, 130, 1);
    disk
}

/// A change that was cut between the two copies, with a damaged other one behind it.
fn unequal() -> SimDisk {
    let disk = with_second();
    let old = disk.bytes(&keyring(0)).unwrap();
    rotate_all(&disk, 33).unwrap();
    disk.put(&keyring(1), &old);
    disk
}

fn keyring(copy: usize) -> Name {
    Name::new(Folder::Root, ["keyring.0", "keyring.1"][copy]).unwrap()
}

fn open(disk: &SimDisk, seed: u64, secrets: &[u8]) -> Result<Rekey, JournalError> {
    Rekey::open(&holding(disk, seed, secrets.iter().map(|byte| raw(*byte)).collect()))
}

fn rotate_all(disk: &SimDisk, seed: u64) -> Result<(), JournalError> {
    open(disk, seed, &[9, 8])?.rotate(&[], None).map(drop)
}

const CHANGES: [Change; 8] = [
    Change {
        name: "add a slot",
        prepare: written,
        run: |disk, seed| open(disk, seed, &[9])?.add_slot(&slot("third", &raw(7)), None).map(drop),
        before: &[9],
        after: &[9, 7],
    },
    Change {
        name: "remove a slot",
        prepare: with_second,
        run: |disk, seed| open(disk, seed, &[9])?.remove_slot("second").map(drop),
        before: &[9, 8],
        after: &[9],
    },
    Change {
        name: "replace a slot",
        prepare: with_second,
        run: |disk, seed| {
            let rekey = open(disk, seed, &[9])?;
            let old = rekey.keyring().slots().iter().find(|slot| slot.name == "second").map(|_| "second");
            rekey.add_slot(&slot("third", &raw(7)), Some(old.unwrap_or("third"))).map(drop)
        },
        before: &[9, 8],
        after: &[9, 7],
    },
    Change { name: "rotate", prepare: with_second, run: rotate_all, before: &[9, 8], after: &[9, 8] },
    Change {
        name: "rotate and drop",
        prepare: with_second,
        run: |disk, seed| {
            let rekey = open(disk, seed, &[9])?;
            let there = rekey.keyring().slots().iter().any(|slot| slot.name == "second");
            rekey.rotate(if there { &["second"] } else { &[] }, None).map(drop)
        },
        before: &[9, 8],
        after: &[9],
    },
    Change {
        name: "rotate for a new recovery slot, dropping an unused root key",
        prepare: rotated_twice,
        run: |disk, seed| open(disk, seed, &[9])?.rotate(&[], Some(&slot("recovery", &raw(5)))).map(drop),
        before: &[9, 8],
        after: &[9, 5],
    },
    Change {
        name: "rotate with unequal copies",
        prepare: unequal,
        run: rotate_all,
        before: &[9, 8],
        after: &[9, 8],
    },
    Change {
        name: "put an exported keyring back",
        prepare: destroyed,
        run: |disk, seed| import_keyring(&holding(disk, seed, vec![raw(9)]), &exported(), false).map(drop),
        before: &[],
        after: &[9, 8],
    },
];

fn all_open(disk: &SimDisk, secrets: &[u8]) -> bool {
    !secrets.is_empty() && secrets.iter().all(|secret| opens(disk, &raw(*secret)))
}

fn config(disk: &SimDisk, seed: u64, secret: u8) -> Config {
    holding(disk, seed, vec![raw(secret)])
}

/// The whole examination of one image. `done`: the change had reported success.
fn examine(change: &Change, disk: &SimDisk, done: bool, seed: u64) -> Result<(), String> {
    let (old, new) = (all_open(disk, change.before), all_open(disk, change.after));
    let before = old || change.before.is_empty();
    if !new && (done || !before) {
        return Err(format!("done {done}: the old secrets open: {old}, the new ones: {new}"));
    }
    if !old && !new {
        // Nothing opened before either; the change can be made again.
        (change.run)(disk, seed ^ 0x77).map_err(|e| format!("not repeatable: {e}"))?;
        return examine(change, disk, true, seed + 1);
    }
    if done && disk.bytes(&keyring(0)) != disk.bytes(&keyring(1)) {
        return Err("done, and one copy does not know".into());
    }
    let now = if new { change.after } else { change.before };
    start_and_write(disk, now, seed)?;
    survives_one_copy(disk, now, seed)?;
    // A change that was cut is simply made again.
    match (change.run)(disk, seed ^ 0x1234) {
        Ok(()) | Err(JournalError::Slots(_)) => {}
        Err(e) => return Err(format!("again: {e}")),
    }
    match all_open(disk, change.after) {
        true => Ok(()),
        false => Err("made again, the new secrets do not open".into()),
    }
}

/// A start levels the copies and shows every record; what it writes is there for every secret.
fn start_and_write(disk: &SimDisk, secrets: &[u8], seed: u64) -> Result<(), String> {
    let bench = Bench { config: config(disk, seed ^ 0xbeef, secrets[0]), ..Bench::on(disk.clone(), 1) };
    let opened = bench.open().map_err(|e| format!("the start failed: {e}"))?;
    if opened.records.len() != 2 {
        return Err(format!("{} records instead of 2", opened.records.len()));
    }
    let unit = Unit::one(record(9, 1, b"after the change"));
    opened.commit(unit).map_err(|e| format!("the first commit failed: {e}"))?;
    opened.journal.close().map_err(|e| format!("the close failed: {e}"))?;
    if disk.bytes(&keyring(0)) != disk.bytes(&keyring(1)) {
        return Err("the copies are not levelled".into());
    }
    for secret in secrets {
        let mut records = Seen::default();
        let opened = Journal::open_manual(&config(disk, seed ^ 0xf00d, *secret), &mut records);
        opened.map_err(|e| format!("secret {secret} does not start: {e}"))?;
        if records.0.len() != 3 {
            return Err(format!("secret {secret} sees {} records", records.0.len()));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Seen(Vec<Record>);

impl crate::Replay for Seen {
    fn record(&mut self, record: &Record) {
        self.0.push(record.clone());
    }
}

/// No segment under a root key that one copy alone holds: with either copy gone, and the power too, all is readable.
fn survives_one_copy(disk: &SimDisk, secrets: &[u8], seed: u64) -> Result<(), String> {
    for lost in [0, 1] {
        let disk = disk.crash_point().image(Choice::Nothing);
        disk.delete(&keyring(lost));
        let bench = Bench { config: config(&disk, seed, secrets[0]), ..Bench::on(disk.clone(), 1) };
        let (found, records) = read_only(&bench).map_err(|e| format!("without copy {lost}: {e}"))?;
        if !found.is_sound() || records.len() != 3 {
            return Err(format!("without copy {lost}: {} records, {:?}", records.len(), found.problems));
        }
        if found.keyring_copies[1 - lost] != KeyringCopy::Good {
            return Err(format!("the other copy is {:?}", found.keyring_copies));
        }
    }
    Ok(())
}

/// R20, R33; JK-44, JK-45, JK-47, JK-50, JK-55.
#[test]
fn every_change_survives_a_cut_at_every_step() {
    let (mut images, mut cuts) = (0, 0);
    let failures = Mutex::new(Vec::new());
    for change in &CHANGES {
        let disk = (change.prepare)();
        disk.record_crash_points();
        (change.run)(&disk, 60).unwrap_or_else(|e| panic!("{}: {e}", change.name));
        let mut points = disk.take_crash_points();
        let steps = points.len();
        points.push(disk.crash_point());
        let mut jobs = Vec::new();
        let mut seen = HashSet::new();
        for (at, point) in points.iter().enumerate() {
            for pick in picks(point, 12, at as u64) {
                let image = image(point, pick);
                if seen.insert((image.fingerprint(), at == steps)) {
                    jobs.push((at, pick, image));
                }
            }
        }
        in_parallel(jobs.len(), |job| {
            let (at, pick, image) = &jobs[job];
            if let Err(e) = examine(change, image, *at == steps, 100 + job as u64) {
                failures
                    .lock()
                    .unwrap()
                    .push(format!("{}, step {at} of {steps}, {pick:?}: {e}", change.name));
            }
        });
        images += jobs.len();
        cuts += points.len();
    }
    println!("{cuts} cuts, {images} images");
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} failures: {:#?}", failures.len(), &failures[..failures.len().min(20)]);
    assert!(cuts > 100 && images > 100, "{cuts} {images}");
}

const KINDS: [FaultKind; 7] = [
    FaultKind::Io,
    FaultKind::Full,
    FaultKind::Interrupted,
    FaultKind::Descriptors,
    FaultKind::ReadOnly,
    FaultKind::FsyncLies,
    FaultKind::ShortWrite(100),
];

fn applies(kind: FaultKind, call: Call) -> bool {
    match kind {
        FaultKind::ShortWrite(_) => call == Call::Write,
        FaultKind::FsyncLies => matches!(call, Call::SyncAll | Call::SyncFolder),
        FaultKind::Io
        | FaultKind::Full
        | FaultKind::Interrupted
        | FaultKind::Descriptors
        | FaultKind::ReadOnly => true,
    }
}

/// Every storage call of a change fails once and for ever, in every way.
fn faults(change: &Change) -> Vec<Fault> {
    let disk = (change.prepare)();
    disk.start_trace();
    (change.run)(&disk, 60).unwrap();
    let mut faults = Vec::new();
    for (at, entry) in disk.take_trace().iter().enumerate() {
        for kind in KINDS.into_iter().filter(|kind| applies(*kind, entry.call)) {
            let once = Fault::call(at as u64, kind);
            faults.extend([once.clone(), once.forever()]);
        }
    }
    faults
}

/// R20, R32, R28; JC-6: a change that fails says so, is never taken for damage or a wrong key, and leaves what a cut leaves.
#[test]
fn every_change_survives_every_fault() {
    let mut jobs = Vec::new();
    for change in &CHANGES {
        jobs.extend(faults(change).into_iter().map(|fault| (change, fault)));
    }
    let failures = Mutex::new(Vec::new());
    let seen = Mutex::new(HashSet::new());
    in_parallel(jobs.len(), |job| {
        let (change, fault) = &jobs[job];
        let disk = (change.prepare)();
        disk.inject(fault.clone());
        let ran = (change.run)(&disk, 60);
        disk.clear_faults();
        let mut found = match &ran {
            Ok(()) | Err(JournalError::Disk(_)) => Vec::new(),
            Err(other) => vec![format!("it says {other:?}")],
        };
        let point = disk.crash_point();
        let kept = [Choice::Everything, Choice::Nothing, Choice::Seeded(job as u64)]
            .map(|choice| point.image(choice));
        for image in kept.into_iter().chain([disk.fork()]) {
            let number = (image.fingerprint(), change.name, ran.is_ok());
            if seen.lock().unwrap().insert(number)
                && let Err(e) = examine(change, &image, ran.is_ok(), 100 + job as u64)
            {
                found.push(e);
            }
        }
        let mut failures = failures.lock().unwrap();
        failures.extend(found.into_iter().map(|e| format!("{}, {fault:?}: {e}", change.name)));
    });
    println!("{} faults, {} examinations", jobs.len(), seen.into_inner().unwrap().len());
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} failures: {:#?}", failures.len(), &failures[..failures.len().min(20)]);
    assert!(jobs.len() > 1000, "only {} faults", jobs.len());
}

/// JK-55: the sync behind the first copy's name failed and a later one says that all is well. The name is not there after
/// a power loss unless the start gives it anew, whatever it did to the other copy.
#[test]
fn a_start_makes_the_name_of_the_newer_copy_durable_too() {
    let disk = with_second();
    disk.inject(Fault::site(Operation::SyncDirectory, "./", 0, FaultKind::FsyncLies));
    assert!(matches!(rotate_all(&disk, 34), Err(JournalError::Disk(_))));
    disk.clear_faults();
    let durable = |copy: usize| disk.durable_files()[["keyring.0", "keyring.1"][copy]].clone();
    assert_ne!(Some(durable(0)), disk.bytes(&keyring(0)), "the name was made durable after all");
    start_and_write(&disk, &[9, 8], 35).unwrap();
    assert!(durable(0) == durable(1) && Some(durable(0)) == disk.bytes(&keyring(0)));
    survives_one_copy(&disk, &[9, 8], 36).unwrap();
}

/// A copy that the change never reached is no reason to try a secret on it (JK-54): the newer one judges the key.
#[test]
fn a_cut_change_is_judged_by_the_newer_copy() {
    let disk = with_second();
    let old = disk.bytes(&keyring(1)).unwrap();
    open(&disk, 60, &[9]).unwrap().remove_slot("second").unwrap();
    disk.put(&keyring(1), &old);
    assert!(!opens(&disk, &raw(8)) && opens(&disk, &raw(9)));
    let secret: Secret = raw(8);
    let refused = Rekey::open(&holding(&disk, 2, vec![secret])).unwrap_err();
    assert!(matches!(refused, JournalError::WrongKey));
    assert_eq!(disk.bytes(&keyring(1)).unwrap(), old, "a wrong key levels nothing");
}
