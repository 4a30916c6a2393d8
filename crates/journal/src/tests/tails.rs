//! Torn tails: what stands at the end of the last segment and is covered by nothing is cut, kept in quarantine and
//! said, at every byte offset, with the same verdict from a start and from read-only tools (R03, R06, JR-4, JR-9).

use sealog_disk::Name;
use sealog_disk::sim::{Choice, SimDisk};
use sealog_journal_format::limits::{DATA_START, HEADER_BYTES};

use super::damage_image::{
    At, End, Image, group, look, noise, quarantine, refused_at, rows, segment, start, tail_place,
};
use super::setup::{Bench, Records};
use crate::{Journal, Record};

/// What is put from an offset of the newest group on.
#[derive(Clone, Copy, Debug)]
enum Rot {
    Cut,
    Zeros,
    Noise,
    Ones,
    /// Two frames of this segment, older ones, from four bytes behind the place on.
    OlderFrames,
    /// The damaged frame itself once more, eight bytes behind the place.
    SameFrame,
    /// One bit of one byte.
    Flip,
}

const ROTS: [Rot; 7] =
    [Rot::Cut, Rot::Zeros, Rot::Noise, Rot::Ones, Rot::OlderFrames, Rot::SameFrame, Rot::Flip];

fn put(disk: &SimDisk, image: &Image, frame: &At, offset: u64, rot: Rot) {
    let name = segment(frame.segment);
    let length = disk.bytes(&name).unwrap().len() as u64;
    let rest = (length - offset) as usize;
    let fill = |bytes: &[u8]| disk.overwrite(&name, offset, bytes);
    match rot {
        Rot::Cut => disk.truncate(&name, offset),
        Rot::Zeros => fill(&vec![0; rest]),
        Rot::Noise => fill(&noise(offset, rest)),
        Rot::Ones => fill(&vec![0xFF; rest]),
        Rot::OlderFrames => {
            let frames = image.frames_of(frame.segment);
            let older = frames.iter().filter(|at| at.offset < frame.offset).rev().take(2);
            let copies = older.map(|at| image.frame_bytes(at)).collect::<Vec<_>>().concat();
            fill(&[&[0xFF; 4], copies.as_slice()].concat());
        }
        Rot::SameFrame => fill(&[&[0xFF; 8], image.frame_bytes(frame).as_slice()].concat()),
        Rot::Flip => disk.flip_bit(&name, offset, (offset % 8) as u8),
    }
}

/// Both tools say `tail` (offset of the frame), and the start leaves `records`, the cut bytes and a working journal.
#[track_caller]
fn torn(disk: &SimDisk, at: (u64, u64, u64), records: &[Record], deep: bool) {
    let (number, frame, offset) = at;
    let stood = disk.bytes(&segment(number)).unwrap();
    let (found, seen) = look(disk);
    assert_eq!((found.problems, found.gaps), (vec![], vec![]));
    let tail = found.tail.unwrap();
    assert_eq!((tail.place.segment, tail.place.frame, tail.place.offset), at);
    assert_eq!(tail.bytes, stood.len() as u64 - offset);
    assert_eq!(seen.records, records);
    let opened = start(disk);
    assert_eq!(opened.report.tail.as_ref(), Some(&tail), "one judge (JR-4)");
    assert!(opened.report.cut_written_bytes() && opened.report.repairs.tail_quarantined);
    assert_eq!(opened.records, records);
    let kept = [&stood[..HEADER_BYTES], &stood[offset as usize..]].concat();
    assert!(disk.durable_files()[&quarantine("tail", number, frame).to_string()] == kept);
    if deep {
        numbers_only(disk, &quarantine("txt", number, frame));
        opened.commit(group(9, 1)).unwrap();
        drop(opened);
        let again = start(&disk.crash_point().image(Choice::Everything));
        assert_eq!(again.report.tail, None);
        assert_eq!(again.records[..records.len()], *records);
        assert_eq!(again.records.len(), records.len() + 2);
    }
}

/// JR-9: beside the bytes a text of numbers only.
fn numbers_only(disk: &SimDisk, name: &Name) {
    let text = String::from_utf8(disk.bytes(name).unwrap()).unwrap();
    for line in text.lines() {
        let (label, number) = line.rsplit_once(' ').unwrap();
        assert!(label.chars().all(|c| c.is_ascii_lowercase() || c == ' '), "{line}");
        assert!(number.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
    }
}

/// The place is the plain end of the data: nothing is cut that was ever written there, and nothing is said.
#[track_caller]
fn plain_end(disk: &SimDisk, records: &[Record]) {
    let (found, seen) = look(disk);
    assert_eq!((rows(&found.problems), tail_place(found.tail.as_ref())), (vec![], None));
    assert_eq!(seen.records, records);
    let opened = start(disk);
    assert_eq!((opened.report.tail, opened.records), (None, records.to_vec()));
}

/// Rows 4 and 9; JR-1: nothing covers the newest group. Every byte offset of it, every kind of rot: only that group is
/// dropped, and each tool says so.
#[test]
fn the_newest_group_alone_is_dropped_at_every_offset() {
    let image = Image::new(End::Killed);
    let newest = image.newest();
    let older = image.records_without(&newest);
    let place = (3, u64::from(newest.header.index), newest.offset);
    for offset in newest.offset..newest.end() {
        for rot in ROTS {
            let disk = image.disk.fork();
            put(&disk, &image, &newest, offset, rot);
            let same = disk.same_durable(&image.disk);
            match rot {
                _ if same => plain_end(&disk, &image.records),
                Rot::Cut | Rot::Zeros if offset == newest.offset => plain_end(&disk, &older),
                _ => torn(&disk, place, &older, offset % 11 == 0),
            }
        }
    }
}

/// The same for the only group of the first segment of a journal.
#[test]
fn the_only_group_of_a_journal_may_be_torn() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(group(1, 1)).unwrap();
    drop(opened);
    let image = Image::of(bench);
    let newest = image.newest();
    for offset in (newest.offset..newest.end()).step_by(3) {
        for rot in ROTS {
            let disk = image.disk.fork();
            put(&disk, &image, &newest, offset, rot);
            match rot {
                Rot::Cut | Rot::Zeros if offset == newest.offset => plain_end(&disk, &[]),
                _ => torn(&disk, (1, 1, newest.offset), &[], offset % 9 == 0),
            }
        }
    }
}

/// Row 8: once the head covers it, the same rot is damage.
#[test]
fn the_newest_group_is_damage_once_the_head_covers_it() {
    let image = Image::new(End::Idle);
    let newest = image.newest();
    for offset in (newest.offset..newest.end()).step_by(2) {
        for rot in ROTS {
            let disk = image.disk.fork();
            put(&disk, &image, &newest, offset, rot);
            if disk.same_durable(&image.disk) {
                continue;
            }
            let row = if offset == newest.offset && matches!(rot, Rot::Cut | Rot::Zeros) { 5 } else { 8 };
            refused_at(&disk, 3, newest.offset, row);
            let (found, seen) = look(&disk);
            assert_eq!(rows(&found.problems), [(3, newest.offset, row)]);
            assert_eq!(found.gaps, image.gap_of(&newest));
            assert_eq!((found.tail, seen.records), (None, image.records_without(&newest)));
        }
    }
}

/// Rows 4 and 9, covered or not: bytes behind the end of the data, near and far, also beyond the end of the file.
#[test]
fn garbage_behind_the_end_of_the_data_is_a_torn_tail() {
    for end in [End::Killed, End::Idle] {
        let image = Image::new(end);
        let newest = image.newest();
        let place = (3, u64::from(newest.header.index) + 1, newest.end());
        let length = image.bytes(3).len() as u64;
        let far = [newest.end() + 1000, length - 1, length, length + 77];
        for offset in (newest.end()..newest.end() + 100).chain(far) {
            for garbage in
                [noise(offset, 300), vec![0xFF; 1], vec![0x53, 0x4C, 0xF7, 0x01], image.frame_bytes(&newest)]
            {
                let aligned = offset == newest.end() && garbage.len() as u64 == newest.header.frame_bytes();
                if aligned {
                    continue;
                }
                let disk = image.disk.fork();
                disk.overwrite(&segment(3), offset, &garbage);
                torn(&disk, place, &image.records, offset % 13 == 0);
            }
        }
    }
}

/// Row 6: a sealed last segment ends at its seal; whatever stands behind it is cut.
#[test]
fn garbage_behind_the_seal_is_a_torn_tail() {
    let image = Image::new(End::Closed);
    let seal = image.newest();
    let place = (3, u64::from(seal.header.index) + 1, seal.end());
    assert_eq!(seal.end(), image.bytes(3).len() as u64, "a clean close trims");
    let group = image.frame(3, 1);
    for gap in (0..64).chain([500, 4096]) {
        for garbage in [noise(gap, 200), vec![1], image.frame_bytes(&group), image.frame_bytes(&seal)] {
            let disk = image.disk.fork();
            disk.overwrite(&segment(3), seal.end() + gap, &garbage);
            torn(&disk, place, &image.records, gap % 21 == 0);
        }
    }
    let disk = image.disk.fork();
    disk.overwrite(&segment(3), seal.end(), &[0; 5000]);
    plain_end(&disk, &image.records);
}

/// The journal of `image` opened again and killed inside its first commit, at the first call for which `stop` holds.
pub(super) fn killed_while_publishing(
    image: &Image,
    stop: impl Fn(&sealog_disk::sim::TraceEntry) -> bool,
) -> SimDisk {
    let run = |disk: &SimDisk| {
        let (journal, _) =
            Journal::open_manual(&Bench::on(disk.clone(), 31).config, &mut Records::default()).unwrap();
        let ticket = journal.submit(group(4, 1), crate::Admission::Reserved).unwrap();
        journal.turn();
        drop(ticket);
    };
    let rehearsal = image.disk.fork();
    rehearsal.start_trace();
    run(&rehearsal);
    let op = rehearsal.take_trace().iter().find(|entry| stop(entry)).unwrap().op.unwrap();
    let disk = image.disk.fork();
    disk.cut_at(op);
    run(&disk);
    disk.crash_point().image(Choice::Everything)
}

pub(super) fn writes_fourth(entry: &sealog_disk::sim::TraceEntry, offset: u64) -> bool {
    let wanted = segment(4).to_string();
    let writes = matches!(entry.call, sealog_disk::sim::Call::WriteDurable | sealog_disk::sim::Call::Write);
    writes && entry.file == wanted && entry.offset == offset
}

/// JR-2: a follower that was published and never written is removed; with it goes whatever was torn at its place 0.
#[test]
fn a_follower_is_judged_at_its_place_0_at_every_offset() {
    let base = Image::new(End::Closed);
    // On the direct path frame 0 is one block from 8192 on; the cut leaves all of its bytes, unsynced and uncovered.
    let disk = killed_while_publishing(&base, |entry| writes_fourth(entry, DATA_START));
    let (found, _) = look(&disk);
    assert_eq!(found.head.unwrap().segment, 4, "the head names the follower before its link is written");
    assert_eq!(found.segments.len(), 4, "the link is whole: segment 4 is the last one");
    let link = At { segment: 4, offset: DATA_START, ..base.frame(3, 0) };
    let with_link =
        Image { disk, frames: vec![link], records: base.records.clone(), bench: base.bench.clone() };
    for offset in link.offset..link.end() {
        for rot in ROTS {
            let disk = with_link.disk.fork();
            put(&disk, &with_link, &link, offset, rot);
            match rot {
                _ if disk.same_durable(&with_link.disk) => {}
                Rot::Cut | Rot::Zeros if offset == link.offset => {
                    assert_eq!(look(&disk).0.empty_segment, Some(4));
                    plain_end(&disk, &base.records);
                    assert_eq!(disk.bytes(&segment(4)), None, "an empty segment is removed");
                }
                _ => {
                    torn(&disk, (4, 0, DATA_START), &base.records, offset % 15 == 0);
                    let gone = offset % 15 != 0;
                    assert!(!gone || disk.bytes(&segment(4)).is_none(), "its tail goes with it");
                }
            }
        }
    }
}

/// Segment 4 published and named by the head, its frame 0 not written.
pub(super) fn published_fourth(image: &Image) -> SimDisk {
    let disk = killed_while_publishing(image, |entry| writes_fourth(entry, DATA_START));
    let length = disk.bytes(&segment(4)).unwrap().len() as u64;
    disk.overwrite(&segment(4), DATA_START, &vec![0; (length - DATA_START) as usize]);
    disk
}

/// JR-2, JC-1: the same where the head was not rewritten yet, and far behind place 0.
#[test]
fn a_follower_that_no_head_names_is_judged_alike() {
    for base in [Image::new(End::Closed), Image::new(End::Killed), Image::new(End::Idle)] {
        let head_writes = |entry: &sealog_disk::sim::TraceEntry| {
            entry.file == "head" && entry.call == sealog_disk::sim::Call::Write
        };
        let disk = killed_while_publishing(&base, head_writes);
        let (found, _) = look(&disk);
        assert_eq!(found.empty_segment, Some(4));
        plain_end(&disk.fork(), &base.records);
        for offset in [DATA_START, DATA_START + 1, DATA_START + 511, DATA_START + 8000] {
            for garbage in [vec![0xFF; 1], noise(offset, 100)] {
                let disk = disk.fork();
                disk.overwrite(&segment(4), offset, &garbage);
                torn(&disk, (4, 0, DATA_START), &base.records, false);
                assert_eq!(disk.bytes(&segment(4)), None);
            }
        }
    }
}

/// JR-9: at most 64 files and 64 MiB, the oldest go first.
#[test]
fn the_quarantine_is_bounded() {
    let image = Image::new(End::Closed);
    let fill = |disk: &SimDisk, count: u64, bytes: usize, tail: usize| {
        for frame in 0..count {
            disk.put(&quarantine("tail", 1, frame), &vec![7; bytes]);
            disk.put(&quarantine("txt", 1, frame), b"frame 1\n");
        }
        disk.overwrite(&segment(3), image.end_of(3) + 10, &vec![1; tail]);
        start(disk);
        let kept: Vec<_> =
            disk.files().into_iter().filter(|(name, _)| name.starts_with("quarantine/")).collect();
        let tails: Vec<_> = kept.iter().filter(|(name, _)| name.ends_with(".tail")).collect();
        assert!(tails.len() <= 64, "{}", tails.len());
        assert_eq!(tails.len() * 2, kept.len(), "each with its report");
        let total: usize = tails.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(total <= 64 << 20, "{total} bytes");
        assert!(disk.bytes(&quarantine("tail", 3, u64::from(image.newest().header.index) + 1)).is_some());
        tails.len()
    };
    assert_eq!(fill(&image.disk.fork(), 70, 100, 3000), 64);
    assert_eq!(fill(&image.disk.fork(), 2, 1000, 3000), 3);
    assert_eq!(fill(&image.disk.fork(), 3, 22 << 20, 3000), 3);
    assert_eq!(fill(&image.disk.fork(), 2, 31 << 20, 3 << 20), 2, "the new one is counted");
}

/// JR-7, JR-9: without room for the copy the cut goes on and says so; nothing else is lost.
#[test]
fn a_full_disk_does_not_keep_a_torn_tail_from_being_cut() {
    let image = Image::new(End::Killed);
    let newest = image.newest();
    let disk = image.disk.fork();
    disk.flip_bit(&segment(3), newest.offset + 7, 1);
    disk.inject(
        sealog_disk::sim::Fault::site(
            sealog_disk::Operation::Write,
            "quarantine/*",
            0,
            sealog_disk::sim::FaultKind::Full,
        )
        .forever(),
    );
    let opened = start(&disk);
    assert!(!opened.report.repairs.tail_quarantined);
    assert!(opened.report.tail.is_some());
    assert_eq!(opened.records, image.records_without(&newest));
    assert_eq!(disk.bytes(&segment(3)).unwrap().len() as u64, newest.offset);
    assert!(disk.files().keys().all(|name| !name.starts_with("quarantine/")), "nothing half done takes room");
}
