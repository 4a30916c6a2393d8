//! R19: no key seals or wraps twice under one nonce, over crashes, failures, restarts and copies of the directory.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::sim::{Choice, Fault, FaultKind, SimDisk};
use sealog_disk::{Disk, Operation};
use sealog_seal::testing::NonceRecorder;

use super::crash_workloads::WORKLOADS;
use super::crash_world::World;
use super::setup::{Bench, closing, record};
use crate::{Admission, Health, Unit, repair, restore};

fn some_work(bench: &Bench, n: u8) {
    let opened = bench.open().unwrap();
    for event in 1..=6 {
        opened.commit(Unit::one(record(n, event, &vec![n; 300 * usize::from(n % 9) + 1500]))).unwrap();
        bench.clock.advance(Duration::from_millis(40));
        opened.journal.maintain();
    }
}

/// A process of its own: other number, later time.
fn process(disk: &SimDisk, seed: u64, number: u32) -> Bench {
    let bench = Bench::on(disk.clone(), seed);
    bench.clock.set_process_id(number);
    bench.clock.advance(Duration::from_millis(u64::from(number)));
    bench
}

/// R19; JC-2, JC-9, JF-5, JF-7: every workload with a crash at every operation and a restart behind it; restarts even
/// repeat the randomness of the crashed process.
#[test]
fn no_key_meets_a_nonce_twice_over_crashes() {
    for (name, workload) in WORKLOADS {
        let recorder = NonceRecorder::new();
        let _installed = recorder.install();
        let mut world = World::on(SimDisk::new(), false, 7);
        world.create().unwrap();
        world.bench.disk.record_crash_points();
        workload(&mut world).unwrap();
        world.kill();
        let sealed = recorder.total();
        assert!(sealed > 8, "{name}: {sealed}");
        for (at, point) in world.bench.disk.take_crash_points().iter().enumerate() {
            let choice = if at % 2 == 0 { Choice::Nothing } else { Choice::Everything };
            // The same seed as the process that crashed.
            some_work(&process(&point.image(choice), 7, 2 + at as u32), 3);
        }
        assert!(recorder.total() > sealed * 3, "{name}");
        assert_eq!(recorder.repeated(), [], "{name}");
    }
}

/// R19; F3: after each failed call nothing more is sealed under the key, in this process and in the next one.
#[test]
fn no_key_meets_a_nonce_twice_over_failures() {
    let mut sealed = 0;
    for kind in [FaultKind::Io, FaultKind::FsyncLies, FaultKind::Full] {
        for op in [Operation::Write, Operation::Sync, Operation::Stat] {
            for nth in 0..8 {
                let recorder = NonceRecorder::new();
                let _installed = recorder.install();
                let bench = Bench::new();
                bench.disk.set_direct(false);
                let opened = bench.open().unwrap();
                bench.disk.inject(Fault::site(op, "segments/*.seg", nth, kind));
                for event in 1..=8 {
                    let unit = Unit::one(record(1, event, &[event as u8; 2500]));
                    let taken = opened.journal.submit(unit, Admission::Reserved);
                    opened.journal.turn();
                    let stopped = matches!(opened.journal.health(), Health::Poisoned { .. });
                    assert!(taken.is_ok() || stopped);
                }
                assert!(matches!(opened.journal.health(), Health::Poisoned { .. }), "{kind:?} {op:?} {nth}");
                drop(opened);
                bench.disk.clear_faults();
                some_work(&process(&bench.disk, 7, 9), 4);
                assert_eq!(recorder.repeated(), [], "{kind:?} {op:?} {nth}");
                sealed += recorder.total();
            }
        }
    }
    assert!(sealed > 500, "{sealed}");
}

/// R19; JA-5: a copy of the directory that a second process opens, with randomness of its own and with the very same.
#[test]
fn no_key_meets_a_nonce_twice_over_copies() {
    for (seeds, twins) in [([21, 22], false), ([21, 21], false), ([21, 21], true)] {
        let recorder = NonceRecorder::new();
        let _installed = recorder.install();
        let original = Bench::new();
        some_work(&original, 1);
        let copy = original.disk.fork();
        some_work(&process(&original.disk, seeds[0], 2), 5);
        some_work(&process(&copy, seeds[1], if twins { 2 } else { 3 }), 6);
        some_work(&process(&original.disk, seeds[0], 4), 7);
        some_work(&process(&copy, seeds[1], if twins { 4 } else { 5 }), 8);
        // The same randomness, time and process number as well: nothing could tell them apart. It shows that the
        // recorder sees what it is there for.
        assert_eq!(recorder.repeated().is_empty(), !twins, "{seeds:?}, {} sealed", recorder.total());
    }
}

/// R19; JB-7, JB-11, JD-5: copies that were restored, repaired and compacted, more than once from the same source and with
/// the same randomness, beside an original that goes on.
#[test]
fn no_key_meets_a_nonce_twice_over_restores_repairs_and_compactions() {
    let recorder = NonceRecorder::new();
    let _installed = recorder.install();
    let original = Bench::new();
    some_work(&original, 1);
    let stopped = original.disk.fork();
    some_work(&process(&original.disk, 30, 2), 2);
    let mut number = 3;
    let mut next = || {
        number += 1;
        number
    };
    for repaired in [false, true, false, true] {
        // Each draws what the one before it drew; only its process differs.
        let source = process(&stopped, 31, next());
        let elsewhere = SimDisk::new();
        let target: Arc<dyn Disk> = Arc::new(elsewhere.clone());
        match repaired {
            true => drop(repair(&source.config, &target).unwrap()),
            false => drop(restore(&source.config, None, &target).unwrap()),
        }
        let bench = process(&elsewhere, 31, next());
        some_work(&bench, 3);
        let opened = process(&elsewhere, 31, next()).open().unwrap();
        opened.commit(Unit::one(closing(3, 7))).unwrap();
        opened.journal.compact_all(&mut |_| {}).unwrap();
        opened.journal.close().unwrap();
    }
    some_work(&process(&original.disk, 31, next()), 4);
    assert!(recorder.total() > 100, "{}", recorder.total());
    assert_eq!(recorder.repeated(), []);
}
