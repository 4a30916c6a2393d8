//! Every stored byte that evidence covers: a flipped bit is damage, named by its place, and nothing is changed; what
//! else is there is shown, with exact gaps (R03, R06, R21).

use sealog_disk::Operation;
use sealog_disk::sim::{Fault, FaultKind, SimDisk};
use sealog_journal_format::limits::{DATA_START, HEADER_BYTES};

use super::damage_image::{
    At, End, Image, group, look, refusal, refused_at, root, rows, segment, start, tail_place,
};
use super::setup::Bench;
use crate::{Gap, JournalError, KeyringCopy};

/// All eight bits of every sixteenth byte, one bit of the others.
fn bits(offset: u64) -> std::ops::Range<u8> {
    let bit = (offset % 8) as u8;
    if offset.is_multiple_of(16) { 0..8 } else { bit..bit + 1 }
}

/// A flip in a frame that evidence covers: the start refuses at the frame, an audit shows all the other records.
#[track_caller]
fn flip_in_frame(image: &Image, at: &At, offset: u64, bit: u8, row: u8, audited: bool) {
    let disk = image.disk.fork();
    disk.flip_bit(&segment(at.segment), offset, bit);
    refused_at(&disk, at.segment, at.offset, row);
    if audited {
        let (found, seen) = look(&disk);
        assert_eq!(rows(&found.problems), [(at.segment, at.offset, row)], "offset {offset}");
        assert_eq!(found.problems[0].place.sequence, at.header.first_sequence);
        assert_eq!(found.gaps, image.gap_of(at), "offset {offset}");
        assert_eq!(seen.records, image.records_without(at), "offset {offset}");
        assert_eq!(found.tail, None);
    }
}

fn flip_every_byte_of_frames(end: End) {
    let image = Image::new(end);
    for at in &image.frames {
        let row = if at.segment == 3 { 8 } else { 3 };
        for offset in at.offset..at.end() {
            for bit in bits(offset) {
                flip_in_frame(&image, at, offset, bit, row, offset % 5 == 0 && u64::from(bit) == offset % 8);
            }
        }
    }
}

/// Rows 3 and 8; JR-5, JR-10; JF-9 and JF-10 are fields of these headers.
#[test]
fn a_flipped_bit_in_any_frame_of_an_idle_journal_is_refused() {
    flip_every_byte_of_frames(End::Idle);
}

/// Rows 3 and 8, the seal of the last segment among them; JR-5, JR-10.
#[test]
fn a_flipped_bit_in_any_frame_of_a_closed_journal_is_refused() {
    flip_every_byte_of_frames(End::Closed);
}

/// F1: without a pause only the newest group is not covered yet; all before it are, by the header behind them.
#[test]
fn a_flipped_bit_before_the_newest_group_of_a_killed_journal_is_refused() {
    let image = Image::new(End::Killed);
    let newest = image.newest();
    for at in image.frames_of(3).iter().filter(|at| at.offset != newest.offset) {
        for offset in (at.offset..at.end()).step_by(3) {
            flip_in_frame(&image, at, offset, (offset % 8) as u8, 8, false);
        }
    }
}

/// Row 1, JR-10: both copies of every header are judged, byte by byte; read-only tools go on with the other copy.
#[test]
fn a_flipped_bit_in_any_header_copy_is_refused() {
    let image = Image::new(End::Closed);
    let copy_bytes = HEADER_BYTES as u64;
    for number in [1, 2, 3] {
        for offset in 0..2 * copy_bytes {
            let (copy, inside) = (offset / copy_bytes, offset % copy_bytes);
            // All of the fields; of the zeros between them a part here and all of them in the next test.
            if (400..copy_bytes - 4).contains(&inside) && inside % 97 != number {
                continue;
            }
            let disk = image.disk.fork();
            disk.flip_bit(&segment(number), offset, (offset % 8) as u8);
            refused_at(&disk, number, copy * copy_bytes, 1);
            if inside % 29 == 0 {
                let (found, seen) = look(&disk);
                assert_eq!(rows(&found.problems), [(number, copy * copy_bytes, 1)]);
                assert_eq!((found.gaps, found.tail), (vec![], None));
                assert_eq!(seen.records, image.records);
            }
        }
    }
}

/// JF-4, JF-5, JF-6: no byte of a header, zeros included, may differ.
#[test]
fn no_byte_of_a_header_copy_goes_unchecked() {
    let image = Image::new(End::Killed);
    for offset in 0..2 * HEADER_BYTES as u64 {
        let disk = image.disk.fork();
        disk.flip_bit(&segment(3), offset, (offset % 7) as u8);
        let opened = super::damage_image::open_segment(&disk, 3);
        assert_eq!(opened.damaged_copy, Some(offset / HEADER_BYTES as u64), "offset {offset}");
    }
}

/// With both copies gone the records of the segment are one gap and all others are shown (R21).
#[test]
fn a_segment_whose_header_is_lost_is_one_gap() {
    let image = Image::new(End::Closed);
    for number in [1, 2, 3] {
        let disk = image.disk.fork();
        for copy in [0, HEADER_BYTES as u64] {
            disk.flip_bit(&segment(number), copy + 200, 5);
        }
        refused_at(&disk, number, 0, 1);
        let (found, seen) = look(&disk);
        assert_eq!(rows(&found.problems), [(number, 0, 1)]);
        let lost: Vec<_> =
            image.frames_of(number).into_iter().filter(|f| f.header.record_count > 0).collect();
        let (first, last) = (lost[0].header, lost[lost.len() - 1].header);
        let gap = Gap {
            segment: number,
            offset: 0,
            first_sequence: first.first_sequence,
            last_sequence: Some(last.next_sequence() - 1),
        };
        assert_eq!(found.gaps, [gap]);
        let others = image
            .records
            .iter()
            .filter(|r| r.sequence < first.first_sequence || r.sequence >= last.next_sequence());
        assert_eq!(seen.records, others.cloned().collect::<Vec<_>>());
    }
}

/// JF-1: `store` is 128 bytes and all of them are checked.
#[test]
fn a_flipped_bit_in_store_is_refused() {
    let image = Image::new(End::Closed);
    let damaged = |disk: &SimDisk| match refusal(disk) {
        JournalError::CorruptFile { file, .. } => assert_eq!(file, "store"),
        other => panic!("{other:?}"),
    };
    for offset in 0..128 {
        for bit in 0..8 {
            let disk = image.disk.fork();
            disk.flip_bit(&root("store"), offset, bit);
            damaged(&disk);
        }
    }
    for length in [0, 1, 95, 127] {
        let disk = image.disk.fork();
        disk.truncate(&root("store"), length);
        damaged(&disk);
    }
    let disk = image.disk.fork();
    disk.overwrite(&root("store"), 128, &[0]);
    damaged(&disk);
}

/// Row 10, JF-2: one slot is enough, whichever it is; without any there is no start.
#[test]
fn a_head_is_sound_with_one_slot_and_refused_without() {
    for end in [End::Killed, End::Idle, End::Closed] {
        let image = Image::new(end);
        for offset in (0..8192).filter(|at| at % 4096 < 164 || at % 127 == 0) {
            let disk = image.disk.fork();
            disk.flip_bit(&root("head"), offset, (offset % 8) as u8);
            let (found, seen) = look(&disk);
            assert_eq!(found.problems, [], "offset {offset}");
            assert_eq!(found.head.unwrap().good_slots, 1, "offset {offset}");
            assert_eq!((found.tail, seen.records), (None, image.records.clone()));
            assert_eq!(start(&disk).records, image.records);
        }
        let disk = image.disk.fork();
        disk.flip_bit(&root("head"), 17, 0);
        disk.flip_bit(&root("head"), 4096 + 130, 0);
        match refusal(&disk) {
            JournalError::CorruptFile { file, .. } => assert_eq!(file, "head"),
            other => panic!("{other:?}"),
        }
        let (found, seen) = look(&disk);
        assert_eq!(rows(&found.problems), [(0, 0, 10)]);
        assert_eq!((found.gaps, seen.records), (vec![], image.records.clone()));
    }
}

/// Row 10: a head that was cut short still has its first slot, or none.
#[test]
fn a_head_that_was_cut_short_has_the_slots_that_are_whole() {
    let image = Image::new(End::Closed);
    for (length, sound) in [(8191, true), (4096, true), (4095, false), (0, false)] {
        let disk = image.disk.fork();
        disk.truncate(&root("head"), length);
        assert_eq!(look(&disk).0.problems.is_empty(), sound, "{length}");
        if sound {
            assert_eq!(start(&disk).records, image.records);
        } else {
            assert!(matches!(refusal(&disk), JournalError::CorruptFile { .. }));
        }
    }
}

/// JK-50: a damaged copy of the keyring is reported, and rewritten by the next start; JK-51: both are too many.
#[test]
fn a_flipped_bit_in_a_keyring_copy_is_levelled() {
    let image = Image::new(End::Closed);
    let sound = image.disk.bytes(&root("keyring.0")).unwrap();
    for copy in [0, 1] {
        let (name, other) = (root(["keyring.0", "keyring.1"][copy]), root(["keyring.1", "keyring.0"][copy]));
        for offset in 0..sound.len() as u64 {
            let disk = image.disk.fork();
            disk.flip_bit(&name, offset, (offset % 8) as u8);
            if offset % 7 == 0 {
                let found = look(&disk).0;
                assert_eq!(found.keyring_copies[copy], KeyringCopy::Damaged, "offset {offset}");
                assert_eq!(found.keyring_copies[1 - copy], KeyringCopy::Good);
                assert!(found.is_sound());
            }
            if offset % 9 == 0 {
                let both = disk.fork();
                both.flip_bit(&other, (offset * 5) % sound.len() as u64, 3);
                assert!(matches!(refusal(&both), JournalError::KeyringDamaged));
            }
            let opened = start(&disk);
            assert!(opened.report.repairs.keyring_levelled);
            assert_eq!(opened.records, image.records);
            assert_eq!(disk.durable_files()[&name.to_string()], sound, "offset {offset}");
        }
    }
}

/// A journal whose ended segments keep unused zeros behind their seal: the trim is a convenience that may fail.
fn with_leftover_zeros() -> Image {
    let bench = Bench::new();
    let trim_fails = Fault::site(Operation::SetLength, "segments/*.seg", 0, FaultKind::Io).forever();
    let opened = bench.open().unwrap();
    bench.disk.inject(trim_fails);
    let mut event = 1;
    while bench.disk.bytes(&segment(3)).is_none() {
        opened.commit(group(1, event)).unwrap();
        event += 2;
    }
    bench.clock.advance(bench.config.tuning.head_idle);
    opened.journal.maintain();
    bench.disk.clear_faults();
    drop(opened);
    Image::of(bench)
}

/// Rows 2 and 3: behind the named end zeros are leftover preparation, anything else is damage; a file that ends
/// before the named end is damage too.
#[test]
fn zeros_behind_an_ended_segment_are_sound_and_checked() {
    let image = with_leftover_zeros();
    for number in [1, 2] {
        let (end, length) = (image.end_of(number), image.bytes(number).len() as u64);
        assert!(length - end > 200, "segment {number} has zeros to spare: {end} of {length}");
        let near = |at: u64| at - end < 96 || length - at < 8 || at.is_multiple_of(101);
        for offset in (end..length).filter(|at| near(*at)) {
            let disk = image.disk.fork();
            disk.flip_bit(&segment(number), offset, (offset % 8) as u8);
            refused_at(&disk, number, end, 3);
        }
        let disk = image.disk.fork();
        disk.flip_bit(&segment(number), end + 40, 0);
        let (found, seen) = look(&disk);
        assert_eq!(rows(&found.problems), [(number, end, 3)]);
        assert_eq!((found.gaps, seen.records), (vec![], image.records.clone()));
        for kept in [end, end + 7, length + 4096] {
            let disk = image.disk.fork();
            disk.truncate(&segment(number), kept);
            assert_eq!(start(&disk).records, image.records, "zeros may be missing or more");
        }
    }
}

/// Row 3 and row 1: an ended segment that was cut anywhere.
#[test]
fn an_ended_segment_that_was_cut_is_refused_at_the_place_of_the_cut() {
    let image = Image::new(End::Closed);
    for number in [1, 2] {
        for at in image.frames_of(number) {
            for length in [at.offset, at.offset + 1, at.offset + 95, at.offset + 96, at.end() - 1] {
                let disk = image.disk.fork();
                disk.truncate(&segment(number), length);
                refused_at(&disk, number, at.offset, 3);
                let (found, seen) = look(&disk);
                assert_eq!(rows(&found.problems), [(number, at.offset, 3)]);
                let first = at.header.first_sequence;
                let next = image.frame(number + 1, 0).header.first_sequence;
                let whole = |r: &&crate::Record| r.sequence < first || r.sequence >= next;
                assert_eq!(seen.records, image.records.iter().filter(whole).cloned().collect::<Vec<_>>());
                let gap = Gap {
                    segment: number,
                    offset: at.offset,
                    first_sequence: first,
                    last_sequence: Some(next - 1),
                };
                assert_eq!(found.gaps, if first < next { vec![gap] } else { vec![] });
            }
        }
        for (length, copy) in [(0, 0), (100, 0), (4095, 0), (4096, 4096), (DATA_START - 1, 4096)] {
            let disk = image.disk.fork();
            disk.truncate(&segment(number), length);
            refused_at(&disk, number, copy, 1);
        }
    }
}

/// R21: several holes give several gaps, each with its own end, and everything between them is shown.
#[test]
fn several_holes_are_several_exact_gaps() {
    let image = Image::new(End::Closed);
    let holes = [image.frame(1, 1), image.frame(2, 2), image.frame(3, 1), image.frame(3, 3)];
    let disk = image.disk.fork();
    for at in &holes {
        disk.flip_bit(&segment(at.segment), at.offset + 120, 2);
    }
    let (found, seen) = look(&disk);
    let expected: Vec<_> =
        holes.iter().map(|at| (at.segment, at.offset, if at.segment == 3 { 8 } else { 3 })).collect();
    assert_eq!(rows(&found.problems), expected);
    assert_eq!(found.gaps, holes.iter().flat_map(|at| image.gap_of(at)).collect::<Vec<_>>());
    let mut kept = image.records.clone();
    for at in &holes {
        kept.retain(|r| !(at.header.first_sequence..at.header.next_sequence()).contains(&r.sequence));
    }
    assert_eq!(seen.records, kept);
    assert_eq!(tail_place(found.tail.as_ref()), None);
    refused_at(&disk, 1, holes[0].offset, 3);
}

/// Two neighbouring frames behind one damaged place are one hole.
#[test]
fn neighbouring_damaged_frames_are_one_gap() {
    let image = Image::new(End::Closed);
    let (first, second) = (image.frame(3, 1), image.frame(3, 2));
    let disk = image.disk.fork();
    disk.overwrite(&segment(3), first.offset, &vec![0xAB; (second.end() - first.offset) as usize]);
    let (found, seen) = look(&disk);
    assert_eq!(rows(&found.problems), [(3, first.offset, 8)]);
    let gap = Gap {
        segment: 3,
        offset: first.offset,
        first_sequence: first.header.first_sequence,
        last_sequence: Some(second.header.next_sequence() - 1),
    };
    assert_eq!(found.gaps, [gap]);
    assert_eq!(seen.records.len() + 4, image.records.len());
}
