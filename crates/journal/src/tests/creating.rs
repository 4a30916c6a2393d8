//! A creation that fails: whoever is told so may do the same once more, and a crash in between finds a whole journal or none.

use sealog_disk::sim::{Choice, Fault, FaultKind, SimDisk};

use super::setup::Bench;
use crate::{Contents, JournalError, look};

/// JD-2: one call after the other fails once.
#[test]
fn a_creation_that_failed_is_not_in_the_way_of_the_next() {
    let mut failed = 0;
    for kind in [FaultKind::Io, FaultKind::FsyncLies, FaultKind::Full] {
        for nth in 0.. {
            let bench = Bench::on(SimDisk::new(), 1);
            bench.disk.inject(Fault::call(nth, kind));
            let made = bench.try_create();
            if made.is_ok() && bench.disk.call_count() <= nth {
                break;
            }
            failed += u32::from(made.is_err());
            let stands = matches!(look(&bench.disk), Ok(Contents::Journal { .. }));
            assert_eq!(stands, made.is_ok(), "call {nth}, {kind:?}: {made:?}");
            let point = bench.disk.crash_point();
            for choice in [Choice::Prefix(0), Choice::Prefix(point.len())] {
                whole_or_none(point.image(choice));
            }
            if made.is_err() {
                bench.try_create().unwrap();
            }
            bench.open().unwrap();
        }
    }
    assert!(failed > 60, "{failed}");
}

/// Where the disk takes nothing back, the journal stands, and nothing claims that it could be made.
#[test]
fn a_creation_that_cannot_be_taken_back_stands_whole() {
    let mut stood = 0;
    for nth in 0.. {
        let bench = Bench::on(SimDisk::new(), 1);
        bench.disk.inject(Fault::call(nth, FaultKind::Io).forever());
        let made = bench.try_create();
        if made.is_ok() {
            break;
        }
        bench.disk.clear_faults();
        match look(&bench.disk) {
            Ok(Contents::Journal { .. }) => {
                stood += 1;
                assert!(matches!(bench.try_create(), Err(JournalError::AlreadyExists)));
            }
            _ => bench.try_create().unwrap(),
        }
        bench.open().unwrap();
    }
    assert_eq!(stood, 1);
}

fn whole_or_none(disk: SimDisk) {
    let bench = Bench::on(disk, 2);
    match look(&bench.disk) {
        Ok(Contents::Journal { .. }) => drop(bench.open().unwrap()),
        _ => bench.try_create().unwrap(),
    }
}
