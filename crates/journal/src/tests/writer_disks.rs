//! The same journal on other disks: real file systems, both write paths, and a disk that stores other bytes than it
//! is given and moves them in odd pieces.

use std::path::Path;
use std::sync::Arc;

use sealog_disk::real::{OpenOptions, RealClock, RealDisk};
use sealog_disk::scramble::ScrambleDisk;
use sealog_disk::sim::SimDisk;

use super::crash_workloads::{WORKLOADS, recover};
use super::crash_world::World;
use super::setup::{Bench, Records, closing, record};
use super::writer_threads::many_producers;
use crate::{Config, Journal, Unit};

fn real(path: &Path, direct: bool) -> Config {
    let disk = RealDisk::open(path, OpenOptions { create: true, ..OpenOptions::default() }).unwrap();
    let mut bench = Bench::on(SimDisk::new(), 7);
    bench.config.disk = Arc::new(disk);
    bench.config.clock = Arc::new(RealClock::new());
    bench.config.tuning.direct = direct;
    bench.config
}

fn created(path: &Path, direct: bool) -> Config {
    let config = real(path, direct);
    let bench = Bench { config: config.clone(), ..Bench::on(SimDisk::new(), 7) };
    bench.create();
    config
}

/// Rolls, large units, restarts, in one thread.
fn plain_work(config: &Config) {
    let mut committed = 0;
    for round in 0..4_u8 {
        let mut records = Records::default();
        let (journal, report) = Journal::open_manual(config, &mut records).unwrap();
        assert_eq!(records.0.len(), committed);
        assert!(report.tail.is_none(), "{:?}", report.tail);
        for event in 1..=12 {
            let body = vec![round ^ event as u8; 97 * event as usize * if event == 9 { 90 } else { 1 }];
            let unit = Unit::one(record(round + 1, event, &body));
            let mut ticket = journal.submit(unit, crate::Admission::Reserved).unwrap();
            journal.turn();
            assert!(matches!(ticket.try_result(), Some(Ok(()))), "{:?}", journal.health());
            committed += 1;
            journal.maintain();
        }
        let mut ticket =
            journal.submit(Unit::one(closing(round + 1, 13)), crate::Admission::Reserved).unwrap();
        journal.turn();
        assert!(matches!(ticket.try_result(), Some(Ok(()))));
        committed += 1;
        assert_eq!(journal.read_from(1).map(Result::unwrap).count(), committed);
        match round % 2 {
            0 => journal.close().unwrap(),
            _ => drop(journal),
        }
    }
}

/// Both write paths in a temporary directory, whatever file system that is.
#[test]
fn a_real_directory_on_both_write_paths() {
    for direct in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        plain_work(&created(&path, direct));
        many_producers(&created(&folder.path().join("threads"), direct), 5);
    }
}

/// Memory-backed file systems refuse the direct path, or lack what it needs; the journal works all the same.
#[test]
fn a_memory_file_system_works_as_well() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        // Then the test above has covered the file system there is.
        return;
    };
    for direct in [false, true] {
        plain_work(&created(&folder.path().join(format!("data{direct}")), direct));
    }
}

/// A writer that is gone without a word keeps nobody out (R29), and a file unlinked under a running one stops it
/// (R43), on the real file system.
#[test]
fn the_real_lock_and_the_real_link_count() {
    let folder = tempfile::tempdir().unwrap();
    let config = created(&folder.path().join("data"), true);
    let (journal, _) = Journal::open_manual(&config, &mut Records::default()).unwrap();
    let commit = |event| {
        let unit = Unit::one(record(1, event, b"unit"));
        let mut ticket = journal.submit(unit, crate::Admission::Reserved).unwrap();
        journal.turn();
        ticket.try_result().unwrap()
    };
    commit(1).unwrap();
    let other = real(&folder.path().join("data"), true);
    assert!(matches!(
        Journal::open_manual(&other, &mut Records::default()),
        Err(crate::JournalError::Locked { .. })
    ));
    let name = |file| sealog_disk::Name::new(sealog_disk::Folder::Segments, file).unwrap();
    other.disk.remove(&name("000000000001.seg")).unwrap();
    assert!(matches!(commit(2), Err(crate::JournalError::Poisoned { .. })));
    drop(journal);
    assert!(!other.disk.is_locked().unwrap());
}

/// Every workload, and a start behind it, on the scrambling disk: no byte reaches a file beside the seam, and no
/// single call is taken for a whole transfer.
#[test]
fn the_workloads_on_a_scrambling_disk() {
    for direct in [false, true] {
        for (seed, (name, workload)) in (1..).zip(WORKLOADS) {
            let mut world = World::on(SimDisk::new(), direct, 7);
            world.bench.config.disk = Arc::new(ScrambleDisk::new(Arc::new(world.bench.disk.clone()), seed));
            world.mask = Some(seed);
            world.create().unwrap();
            workload(&mut world).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            world.kill();
            recover(&mut world).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            let expected = world.history.now();
            assert_eq!(expected.must, expected.units.len(), "{name}");
            // What is stored is no journal without the mask.
            assert!(Bench::on(world.bench.disk.clone(), 1).open().is_err(), "{name}");
        }
    }
}
