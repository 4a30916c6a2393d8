//! What a write that was cut leaves: earlier frames in the same block stay, the report counts the sectors, open streams
//! are told from the ones that were closed in time, and no slot of the head names what recovery removed.

use sealog_disk::sim::{Call, Choice, Undecided, UndecidedWhat};
use sealog_journal_format::limits::DATA_START;

use super::damage_image::{End, Image, group, look, noise, root, segment, start};
use super::setup::{Bench, START_MS, closing, record, stream};
use super::tails::published_fourth;
use crate::Unit;

/// JA-2: the direct path writes the last partial block again with its old bytes; whatever sectors of that write survive,
/// the frames that stood there before are whole and only the new one is missing or there.
#[test]
fn a_torn_rewrite_of_the_last_block_leaves_what_stood_there() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(group(1, 1)).unwrap();
    opened.commit(group(1, 3)).unwrap();
    let acknowledged = look(&bench.disk.crash_point().image(Choice::Everything)).1.records;
    assert_eq!(acknowledged.len(), 4);
    bench.disk.start_trace();
    bench.disk.record_crash_points();
    let body = noise(3, 1700);
    opened.commit(Unit::one(record(1, 5, &body))).unwrap();
    drop(opened);
    let writes = bench.disk.take_trace().into_iter().filter(|entry| entry.op.is_some()).collect::<Vec<_>>();
    let at = writes.iter().position(|w| w.call == Call::WriteDurable && w.file.ends_with(".seg")).unwrap();
    assert_eq!(writes[at].offset % 4096, 0, "it begins at the block's start, before frames that are durable");
    assert!(writes[at].offset < look(&bench.disk).0.segments[0].end_offset - 1700 - 96);
    let point = &bench.disk.take_crash_points()[at];
    assert!((3..=10).contains(&point.len()), "{}", point.len());
    let (mut with, mut torn) = (0, 0);
    for choice in point.choices(0, 0) {
        let image = point.image(choice);
        let (found, seen) = look(&image);
        assert_eq!(found.problems, []);
        assert_eq!(seen.records[..4], acknowledged[..4]);
        with += usize::from(seen.records.len() == 5);
        torn += usize::from(found.tail.is_some());
        let opened = start(&image);
        assert_eq!((opened.report.tail, opened.records), (found.tail, seen.records));
    }
    let ours = |one: &&Undecided| match &one.what {
        UndecidedWhat::Sector { file, .. } => file.as_ref() == Some(&segment(1)),
        _ => false,
    };
    let (all, sectors) = (point.len(), point.undecided().iter().filter(ours).count());
    assert!(sectors >= 3, "{sectors}");
    assert_eq!(with, 1 << (all - sectors), "only all of its sectors make the frame");
    assert!(torn > 3, "{torn}");
}

/// The report says how many sectors of the tail are still as they were prepared.
#[test]
fn a_torn_tail_counts_its_sectors() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(group(1, 1)).unwrap();
    drop(opened);
    let image = Image::of(bench);
    let newest = image.newest();
    assert_ne!(newest.end() % 512, 0);
    let length = image.bytes(1).len() as u64;
    let first = newest.end() / 512 * 512 + 512;
    let sectors = 1 + (length - first) / 512;
    for (at, bytes, zero) in [
        (newest.end(), 1, sectors - 1),
        (newest.end() + 3, 600, sectors - 2),
        (first, 512, sectors - 1),
        (first + 511, 2, sectors - 2),
        (length - 1, 1, sectors - 1),
    ] {
        let disk = image.disk.fork();
        disk.overwrite(&segment(1), at, &vec![0xEE; bytes]);
        let tail = look(&disk).0.tail.unwrap();
        assert_eq!(
            (tail.bytes, tail.sectors, tail.zero_sectors),
            (length - newest.end(), sectors, zero),
            "{at}"
        );
        let text = disk.fork();
        start(&text);
        let report = text.bytes(&super::damage_image::quarantine("txt", 1, 2)).unwrap();
        let report = String::from_utf8(report).unwrap();
        let lines: Vec<_> = report.lines().skip(1).map(str::to_owned).collect();
        let expected = [
            "segment 1".into(),
            "frame 2".into(),
            format!("offset {}", newest.end()),
            format!("bytes {}", length - newest.end()),
            format!("sectors {sectors}"),
            format!("zero sectors {zero}"),
            format!("time {START_MS}"),
        ];
        assert_eq!(lines, expected);
    }
}

/// JR-9: a start removes the copy of a tail that was cut longer ago than the retention, and its report with it; a copy
/// without a report stays.
#[test]
fn an_old_copy_of_a_torn_tail_is_removed() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(group(1, 1)).unwrap();
    drop(opened);
    let image = Image::of(bench);
    image.disk.overwrite(&segment(1), image.newest().end(), &[0xEE; 600]);
    let [tail, report] = ["tail", "txt"].map(|kind| super::damage_image::quarantine(kind, 1, 2));
    let at = |wall_ms: u64| {
        let bench = Bench::on(image.disk.clone(), wall_ms);
        bench.clock.set_wall_ms(wall_ms);
        drop(bench.open().unwrap());
        [&tail, &report].map(|name| image.disk.bytes(name).is_some())
    };
    const KEEP_MS: u64 = 7 * 86_400_000;
    assert_eq!(at(START_MS), [true, true]);
    assert_eq!(at(START_MS + KEEP_MS - 1), [true, true]);
    let kept = image.disk.bytes(&tail).unwrap();
    assert_eq!(at(START_MS + KEEP_MS), [false, false]);
    image.disk.put(&tail, &kept);
    assert_eq!(at(START_MS + 2 * KEEP_MS), [true, false]);
}

/// JR-12: a stream without a closing record is reported with the epoch of its newest record; one whose closing record
/// was torn is open, one whose only record was torn is unknown.
#[test]
fn open_streams_are_reported_with_the_epoch_of_their_newest_record() {
    let bench = Bench::new();
    let first = bench.open().unwrap();
    assert_eq!(first.report.epoch, 1);
    for n in [1, 2, 3] {
        first.commit(Unit::one(record(n, 1, b"text"))).unwrap();
    }
    first.commit(Unit::one(closing(2, 2))).unwrap();
    drop(first);
    let second = bench.open().unwrap();
    let open = |opened: &super::setup::Opened| {
        let facts = opened.report.interrupted.iter().map(|(id, facts)| (*id, facts.epoch, facts.last_event));
        facts.collect::<Vec<_>>()
    };
    assert_eq!(open(&second), [(stream(1), 1, 1), (stream(3), 1, 1)]);
    second.commit(Unit::one(record(1, 2, b"more"))).unwrap();
    second.commit(Unit::one(record(5, 1, b"new"))).unwrap();
    second.commit(Unit::one(closing(3, 2))).unwrap();
    drop(second);
    let image = Image::of(bench);
    let torn = |index: usize| {
        let at = image.frame(2, index);
        let disk = image.disk.fork();
        disk.truncate(&segment(2), at.offset + 100);
        start(&disk)
    };
    assert_eq!(open(&start(&image.disk.fork())), [(stream(1), 2, 2), (stream(5), 2, 1)]);
    let closing_lost = torn(3);
    assert_eq!(open(&closing_lost), [(stream(3), 1, 1), (stream(1), 2, 2), (stream(5), 2, 1)]);
    assert!(closing_lost.report.cut_written_bytes());
    assert_eq!(open(&torn(2)), [(stream(3), 1, 1), (stream(1), 2, 2)]);
}

/// JC-3, row 11: before an empty segment is removed neither slot names it any more, so that one of them may still be
/// lost.
#[test]
fn no_slot_of_the_head_names_a_removed_segment() {
    let image = Image::new(End::Closed);
    let disk = published_fourth(&image);
    let opened = start(&disk);
    assert_eq!(opened.report.repairs.empty_segment_removed, Some(4));
    drop(opened);
    let disk = disk.crash_point().image(Choice::Nothing);
    assert_eq!(disk.bytes(&segment(4)), None);
    for slot in [0, 4096] {
        let disk = disk.fork();
        disk.flip_bit(&root("head"), slot + 100, 1);
        assert_eq!(start(&disk).records, image.records);
    }
}

/// JC-2: an open that writes publishes one new segment, with its own data key, lineage and epoch; one that writes
/// nothing publishes none. Within one writer each segment has its own key.
#[test]
fn every_open_that_writes_has_its_own_segment_and_key() {
    let image = Image::new(End::Closed);
    let idle = start(&image.disk);
    idle.journal.close().unwrap();
    assert_eq!(look(&image.disk).0.segments.len(), 3);
    let mut bench = Bench::on(image.disk.clone(), 15);
    bench.config.tuning.segment_bytes_max = 16 << 10;
    let opened = bench.open().unwrap();
    for event in 1..=12 {
        opened.commit(Unit::one(record(7, event, &noise(event, 3000)))).unwrap();
    }
    drop(opened);
    let (found, _) = look(&image.disk);
    let headers: Vec<_> =
        found.segments.iter().map(|s| image.disk.bytes(&segment(s.number)).unwrap()).collect();
    assert!(headers.len() > 4, "the last writer rolled: {}", headers.len());
    let epochs: Vec<_> = found.segments.iter().map(|s| s.epoch).collect();
    let lineages: Vec<_> = found.segments.iter().map(|s| s.lineage).collect();
    for (at, one) in headers.iter().enumerate() {
        for (other_at, other) in headers.iter().enumerate().skip(at + 1) {
            assert_ne!(one[136..168], other[136..168], "wrap salts");
            assert_ne!(one[168..200], other[168..200], "wrapped keys");
            let same_writer = at >= 3;
            assert_eq!(lineages[at] == lineages[other_at], same_writer);
            assert_eq!(epochs[at] == epochs[other_at], same_writer);
        }
    }
    assert!(epochs.is_sorted());
}

/// JF-5, JK-5, JK-13: with random numbers that repeat, as after a snapshot of a machine, data key and salt still differ, as
/// wall clock, boot and process do.
#[test]
fn the_data_key_is_hedged_against_repeated_randomness() {
    let base = Image::new(End::Closed);
    let frames = |change: fn(&Bench)| {
        let bench = Bench::on(base.disk.fork(), 8);
        change(&bench);
        let opened = bench.open().unwrap();
        opened.commit(group(9, 1)).unwrap();
        drop(opened);
        let bytes = bench.disk.bytes(&segment(4)).unwrap();
        (bytes[136..168].to_vec(), bytes[DATA_START as usize + 160 + 96..][..64].to_vec())
    };
    let (salt, body) = frames(|_| {});
    assert_eq!(frames(|_| {}), (salt.clone(), body.clone()), "the control: everything repeats");
    let changes: [fn(&Bench); 3] = [
        |bench| bench.clock.jump_wall_ms(1),
        |bench| bench.clock.set_boot_id([4; 16]),
        |bench| bench.clock.set_process_id(77),
    ];
    for change in changes {
        let (other_salt, other_body) = frames(change);
        assert_ne!(other_salt, salt);
        assert_ne!(other_body, body);
    }
}
