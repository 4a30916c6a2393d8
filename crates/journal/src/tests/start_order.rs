//! The order of a start (JR-7): what is there is made durable first, then the newest segment and the links of the newest two
//! are what the device says.

use sealog_disk::sim::{Fault, FaultKind, SimDisk};
use sealog_disk::{Disk, Operation};
use sealog_journal_format::limits;

use super::damage_image::segment;
use super::digests::{Start, start};
use super::summaries::{bench_on, summarised};
use crate::{JournalError, Result};

/// Inside the body of a link.
const IN_LINK: u64 = limits::DATA_START + limits::FRAME_HEADER_BYTES as u64 + 9;

fn start_with(disk: &SimDisk, threads: usize) -> Result<Start> {
    let mut bench = bench_on(disk.fork(), 20);
    bench.config.tuning.check_threads = threads;
    start(&bench, true)
}

/// Changes a bit that the device never gets, as a failed sync leaves it.
fn flip_in_cache(disk: &SimDisk, number: u64, offset: u64) {
    let file = disk.open_for_write(&segment(number)).unwrap();
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, offset).unwrap(), 1);
    file.write_at(&[byte[0] ^ 1], offset).unwrap();
    disk.inject(Fault::site(Operation::Sync, &segment(number).to_string(), 0, FaultKind::FsyncLies));
    assert!(file.sync_data().is_err());
    disk.clear_faults();
}

#[test]
fn links_of_the_newest_are_those_on_the_device() {
    let (disk, numbers) = summarised();
    let newest = numbers.last().unwrap() + 1;
    let whole = start_with(&disk, 1).unwrap();
    assert_eq!(whole.report.unchecked.len(), numbers.len());

    // A link that the cache shows damaged and the device does not.
    let cached = disk.fork();
    flip_in_cache(&cached, newest, IN_LINK);
    // The other way: the cache hides what is wrong.
    let hidden = disk.fork();
    hidden.flip_bit(&segment(newest), IN_LINK, 0);
    let damaged = hidden.fork();
    flip_in_cache(&hidden, newest, IN_LINK);
    for threads in [1, 2, 8] {
        let found = start_with(&cached, threads).unwrap();
        assert_eq!(found.report.unchecked, whole.report.unchecked, "{threads} threads");
        // Its records come from the device; whoever reads them later gets them from the cache.
        assert_eq!(found.report.segments, whole.report.segments);
        assert_eq!(found.owner.known, whole.owner.known);
        let told = |disk: &SimDisk| start_with(disk, threads).map(|found| found.report);
        assert_eq!(format!("{:?}", told(&hidden)), format!("{:?}", told(&damaged)), "{threads} threads");
    }
}

#[test]
fn a_sync_that_fails_stops_the_start_before_anything_changes() {
    let (disk, numbers) = summarised();
    let newest = numbers.last().unwrap() + 1;
    let before = disk.files();
    for threads in [1, 2, 8] {
        for file in [segment(newest).to_string(), "segments/".into(), "./".into()] {
            let disk = disk.fork();
            let op = if file.ends_with('/') { Operation::SyncDirectory } else { Operation::Sync };
            disk.inject(Fault::site(op, &file, 0, FaultKind::Io));
            let mut bench = bench_on(disk.clone(), 20);
            bench.config.tuning.check_threads = threads;
            match start(&bench, true) {
                Err(JournalError::Disk(error)) => assert_eq!(error.op, op),
                other => panic!("{file}: {:?}", other.map(|found| found.report)),
            }
            let mut after = disk.files();
            after.insert("LOCK".into(), before["LOCK"].clone());
            assert!(after == before, "{file}, {threads} threads");
        }
    }
}
