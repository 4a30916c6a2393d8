//! What is written can be read, up to each limit and not beyond; what a header claims is compared with the limits
//! before it costs anything (R01, R09, JF-11).

use std::sync::Arc;

use sealog_disk::sim::{Call, Choice, SimDisk};
use sealog_journal_format::limits::{BODY_BYTES_MAX, RECORD_BYTES_MAX, RECORDS_MAX, UNIT_BYTES_MAX};

use super::damage_forge::Forged;
use super::damage_image::{End, Image, group, look, refused_at, root, segment, start};
use super::readers_disk::Between;
use super::setup::{Bench, record};
use crate::{Admission, Journal, Refusal, Unit};

fn big() -> Bench {
    let mut bench = Bench::new();
    bench.config.tuning.segment_bytes_max = 16 << 20;
    bench
}

fn unit(records: usize, body_bytes: usize) -> Unit {
    Unit { records: (0..records as u64).map(|n| record(1, n + 1, &vec![n as u8; body_bytes])).collect() }
}

/// R09: at each limit a unit is taken, stands after a crash, and is read back.
#[test]
fn units_at_the_limits_are_written_and_read() {
    let bench = big();
    let opened = bench.open().unwrap();
    let at_limit = [
        unit(1, RECORD_BYTES_MAX),
        unit(2, UNIT_BYTES_MAX / 2 - 64),
        unit(RECORDS_MAX as usize, 0),
        unit(1, 0),
    ];
    for unit in &at_limit {
        opened.commit(unit.clone()).unwrap();
    }
    drop(opened);
    let again = start(&bench.disk.crash_point().image(Choice::Everything));
    let bodies: Vec<_> = at_limit.iter().flat_map(|unit| &unit.records).map(|r| r.body.len()).collect();
    assert_eq!(again.records.iter().map(|r| r.body.len()).collect::<Vec<_>>(), bodies);
    assert_eq!(again.records.last().unwrap().sequence, bodies.len() as u64);
}

/// JF-11: beyond each limit it is refused at once, and nothing of it is written.
#[test]
fn units_beyond_the_limits_are_refused_before_they_are_queued() {
    let bench = big();
    let opened = bench.open().unwrap();
    opened.commit(unit(1, 10)).unwrap();
    let before = bench.disk.files();
    let beyond = [
        unit(0, 0),
        unit(1, RECORD_BYTES_MAX + 1),
        unit(2, UNIT_BYTES_MAX / 2),
        unit(3, UNIT_BYTES_MAX / 3),
        unit(RECORDS_MAX as usize + 1, 0),
    ];
    for unit in beyond {
        let refused = opened.journal.submit(unit, Admission::Reserved);
        assert!(matches!(refused, Err(Refusal::TooLarge)), "{refused:?}");
    }
    opened.journal.turn();
    assert!(bench.disk.files() == before);
    opened.commit(unit(1, 10)).unwrap();
    assert_eq!(opened.journal.durable_sequence(), 2);
}

/// The longest read while `disk` is judged by a reader and a writer, in bytes.
fn longest_read(disk: &SimDisk) -> u64 {
    disk.start_trace();
    let _ = look(disk);
    disk.start_trace();
    let _ = crate::audit(&Bench::on(disk.clone(), 1).config, &mut super::damage_image::Seen::default);
    let _ = super::damage_image::verdict(disk);
    let reads = disk.take_trace().into_iter();
    reads.filter(|e| matches!(e.call, Call::Read | Call::ReadUncached)).map(|e| e.len).max().unwrap()
}

/// R01: a frame header that claims more than the limit is refused before a byte of its body is asked for, however long
/// the file is and however right its checksums are.
#[test]
fn a_header_that_claims_a_huge_body_costs_nothing() {
    const CHUNK: u64 = (1 << 20) - 4096;
    let image = Image::new(End::Killed);
    let newest = image.newest();
    let control = longest_read(&image.disk);
    assert!(control <= CHUNK);
    for length in [BODY_BYTES_MAX as u32 + 64, 1 << 30, u32::MAX - 63] {
        let disk = Forged::behind(&image, &newest).raw(4, &length.to_le_bytes()).behind_all(&image);
        disk.truncate(&segment(3), 6 << 20);
        refused_at(&disk, 3, newest.end(), 7);
        assert!(longest_read(&disk) <= CHUNK);
    }
    // Up to the limit the body is asked for, as it may be there; beyond the file it is not.
    let disk =
        Forged::behind(&image, &newest).raw(4, &(BODY_BYTES_MAX as u32).to_le_bytes()).behind_all(&image);
    assert!(longest_read(&disk.fork()) <= CHUNK);
    disk.truncate(&segment(3), 6 << 20);
    // From the beginning of the block that it stands in.
    let body = BODY_BYTES_MAX as u64;
    assert!((body..body + 4096).contains(&longest_read(&disk)));
    let forged_count = Forged::behind(&image, &newest).raw(24, &u32::MAX.to_le_bytes()).behind_all(&image);
    refused_at(&forged_count, 3, newest.end(), 7);
}

/// R01, JK-30: files beside the segments are read up to what their kind may have, whatever length they have.
#[test]
fn oversized_files_are_not_read_whole() {
    let image = Image::new(End::Closed);
    for file in ["store", "head", "keyring.0", "keyring.1"] {
        let disk = image.disk.fork();
        disk.truncate(&root(file), 1 << 30);
        disk.start_trace();
        let _ = super::damage_image::verdict(&disk);
        let _ = crate::look(&disk);
        let reads = disk.take_trace().into_iter().filter(|e| e.call == Call::Read && e.file == file);
        assert!(reads.map(|e| e.len).max().unwrap() <= (64 << 10) + 1, "{file}");
    }
    // One keyring that is too long counts as damaged and is levelled (JK-51); a store that is too long is damaged.
    let disk = image.disk.fork();
    disk.truncate(&root("keyring.1"), 1 << 20);
    assert!(start(&disk).report.repairs.keyring_levelled);
}

/// Thousands of segments may stand there; only few files are open at once.
#[test]
fn a_start_holds_few_files_open() {
    let bench = Bench::new();
    for round in 0..40 {
        let opened = Bench::on(bench.disk.clone(), round).open().unwrap();
        opened.commit(group(1, 1)).unwrap();
        opened.journal.close().unwrap();
    }
    let between = Between::new(&bench.disk, || {});
    let mut config = bench.config.clone();
    config.disk = Arc::new(between.clone());
    let (found, _) = crate::audit(&config, &mut super::damage_image::Seen::default).unwrap();
    assert_eq!(found.segments.len(), 40);
    assert!(between.most_open() <= 4, "an audit: {}", between.most_open());
    let (journal, report) = Journal::open_manual(&config, &mut crate::Ignore).unwrap();
    assert_eq!(report.segments.len(), 40);
    assert!(between.most_open() <= 4, "a start: {}", between.most_open());
    drop(journal);
}
