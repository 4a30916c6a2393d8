//! What counts as evidence that a place was once durable, rule by rule (JR-1), and how a follower is judged (JR-2).

use sealog_disk::sim::{Choice, SimDisk};
use sealog_journal_format::limits::{DATA_START, FRAME_HEADER_BYTES};

use super::damage_forge::Forged;
use super::damage_image::{
    At, End, Image, group, look, open_segment, refused_at, root, rows, segment, start, tail_place,
};
use super::setup::Bench;
use super::tails::{killed_while_publishing, published_fourth, writes_fourth};

fn flip_body(disk: &SimDisk, at: &At) {
    disk.flip_bit(&segment(at.segment), at.offset + FRAME_HEADER_BYTES as u64 + 5, 1);
}

fn zero_from(disk: &SimDisk, number: u64, offset: u64) {
    let length = disk.bytes(&segment(number)).unwrap().len() as u64;
    disk.overwrite(&segment(number), offset, &vec![0; (length - offset) as usize]);
}

/// A start cuts at this place and keeps these records.
#[track_caller]
fn cut_at(disk: &SimDisk, number: u64, offset: u64) {
    let (found, seen) = look(disk);
    assert_eq!(rows(&found.problems), []);
    assert_eq!(tail_place(found.tail.as_ref()), Some((number, offset)));
    let opened = start(disk);
    assert_eq!(opened.report.tail, found.tail);
    assert_eq!(opened.records, seen.records);
}

/// JR-1: an authentic header proves the places before it, wherever it stands at 8 bytes, also when all between is lost;
/// it does not prove its own place.
#[test]
fn a_header_behind_damage_proves_what_was_before_it() {
    let image = Image::new(End::Killed);
    let (second, third) = (image.frame(3, 2), image.frame(3, 3));
    let header = image.frame_bytes(&third)[..FRAME_HEADER_BYTES].to_vec();
    let with_header_at = |offset: u64| {
        let disk = image.disk.fork();
        zero_from(&disk, 3, second.offset);
        disk.overwrite(&segment(3), offset, &header);
        disk
    };
    for step in 1..60 {
        refused_at(&with_header_at(second.offset + step * 8), 3, second.offset, 8);
    }
    refused_at(&with_header_at(image.bytes(3).len() as u64 - 96), 3, second.offset, 8);
    // Off the eight bytes it is garbage; at the place itself it is a frame with another index (row 7).
    for odd in [1, 4, 12, 100] {
        cut_at(&with_header_at(second.offset + odd), 3, second.offset);
    }
    refused_at(&with_header_at(second.offset), 3, second.offset, 7);
    // Its own place it does not prove.
    let disk = image.disk.fork();
    zero_from(&disk, 3, third.offset);
    disk.overwrite(&segment(3), third.offset + 64, &header);
    cut_at(&disk, 3, third.offset);
}

/// JR-1: only a header with the right CRC and the right tag is evidence.
#[test]
fn a_header_that_is_not_authentic_proves_nothing() {
    let image = Image::new(End::Killed);
    let (second, third) = (image.frame(3, 2), image.frame(3, 3));
    for damaged in [9, 73, 93] {
        let disk = image.disk.fork();
        flip_body(&disk, &second);
        disk.flip_bit(&segment(3), third.offset + damaged, 4);
        cut_at(&disk, 3, second.offset);
    }
    let disk = image.disk.fork();
    flip_body(&disk, &second);
    flip_body(&disk, &third);
    refused_at(&disk, 3, second.offset, 8);
    // With a right CRC: only the tag tells who wrote it.
    let keys = open_segment(&image.disk, 3);
    let right = Forged::behind(&image, &third);
    for (forged, proves) in [(right.clone().with_wrong_tag(), false), (right, true)] {
        let disk = image.disk.fork();
        flip_body(&disk, &third);
        disk.overwrite(&segment(3), third.end(), &forged.bytes(&keys));
        if proves {
            refused_at(&disk, 3, third.offset, 8);
        } else {
            cut_at(&disk, 3, third.offset);
        }
    }
}

/// JR-1: a link proves the whole predecessor, whatever the head says: segment 2 was cut by recovery and ends where
/// segment 3 says.
#[test]
fn a_link_frame_proves_the_whole_predecessor() {
    let image = Image::new(End::Killed);
    let newest = image.frame(2, 2);
    for offset in [newest.offset, newest.offset + 50, newest.end() - 1] {
        let disk = image.disk.fork();
        disk.truncate(&segment(2), offset);
        refused_at(&disk, 2, newest.offset, 3);
    }
    let disk = image.disk.fork();
    flip_body(&disk, &newest);
    refused_at(&disk, 2, newest.offset, 3);
}

/// Segment 3 killed with its newest group uncovered, then segment 4 published behind it; its link is written.
fn linked_fourth() -> (Image, SimDisk) {
    let image = Image::new(End::Killed);
    let disk = killed_while_publishing(&image, |entry| writes_fourth(entry, DATA_START));
    (image, disk)
}

/// JR-1: also a link whose body is torn, by its header's chain value, and a head with count 0, by its own.
#[test]
fn a_torn_link_and_a_head_with_count_0_prove_the_predecessor() {
    let (image, disk) = linked_fourth();
    let newest = image.newest();
    let link = At { segment: 4, offset: DATA_START, ..image.frame(3, 0) };
    let old_head = image.disk.bytes(&root("head")).unwrap();
    let torn = |link_header: bool, link_body: bool, head: bool| {
        let disk = disk.fork();
        disk.flip_bit(&segment(3), newest.offset + 130, 0);
        if !link_header {
            disk.flip_bit(&segment(4), DATA_START + 20, 0);
        }
        if !link_body {
            flip_body(&disk, &link);
        }
        if !head {
            disk.put(&root("head"), &old_head);
        }
        disk
    };
    refused_at(&torn(true, true, true), 3, newest.offset, 3);
    refused_at(&torn(true, true, false), 3, newest.offset, 3);
    refused_at(&torn(true, false, true), 3, newest.offset, 8);
    refused_at(&torn(true, false, false), 3, newest.offset, 8);
    refused_at(&torn(false, true, true), 3, newest.offset, 8);
    // Nothing is left that proves it: two torn tails, both kept.
    let disk = torn(false, false, false);
    cut_at(&disk, 3, newest.offset);
    assert!(disk.bytes(&super::damage_image::quarantine("tail", 3, 3)).is_some());
    assert!(disk.bytes(&super::damage_image::quarantine("tail", 4, 0)).is_some());
}

/// JR-1: the chain value of a head with count 0 proves the predecessor also against a clean-looking end (row 5).
#[test]
fn a_head_with_count_0_misses_a_group_that_was_zeroed() {
    let (image, disk) = linked_fourth();
    let newest = image.newest();
    zero_from(&disk, 4, DATA_START);
    let (found, _) = look(&disk);
    assert_eq!((found.head.unwrap().frames, found.empty_segment), (0, Some(4)));
    assert_eq!(start(&disk.fork()).records, image.records);
    disk.truncate(&segment(3), newest.offset);
    refused_at(&disk, 3, newest.offset, 5);
    let (found, _) = look(&disk);
    assert_eq!(found.gaps, image.gap_of(&newest), "the head says how far it came");
}

/// JR-1: the head's count covers its places and no more.
#[test]
fn the_heads_count_covers_exactly_its_places() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(group(1, 1)).unwrap();
    opened.commit(group(1, 3)).unwrap();
    bench.clock.advance(bench.config.tuning.head_idle);
    opened.journal.maintain();
    let covered = bench.disk.crash_point().image(Choice::Everything);
    opened.commit(group(1, 5)).unwrap();
    drop(opened);
    let image = Image::of(bench);
    assert_eq!(look(&covered).0.head.unwrap().frames, 3);
    let (second, third) = (image.frame(1, 2), image.frame(1, 3));
    let disk = image.disk.fork();
    disk.truncate(&segment(1), third.offset);
    assert_eq!(start(&disk).records, image.records_without(&third));
    let disk = image.disk.fork();
    disk.truncate(&segment(1), third.offset + 9);
    cut_at(&disk, 1, third.offset);
    for (length, row) in [(second.offset, 5), (second.offset + 9, 8)] {
        let disk = image.disk.fork();
        disk.truncate(&segment(1), length);
        refused_at(&disk, 1, second.offset, row);
    }
    let disk = image.disk.fork();
    zero_from(&disk, 1, second.offset);
    refused_at(&disk, 1, second.offset, 5);
}

/// JR-2: the link of the newest segment is damage once anything proves it: a later header in its own segment, or the
/// head. What lies behind is shown all the same (R21).
#[test]
fn a_damaged_link_of_the_newest_segment_is_judged_at_place_0() {
    for end in [End::Killed, End::Idle, End::Closed] {
        let image = Image::new(end);
        for at in [DATA_START + 3, DATA_START + 100] {
            let disk = image.disk.fork();
            disk.flip_bit(&segment(3), at, 3);
            refused_at(&disk, 3, DATA_START, 8);
            let (found, seen) = look(&disk);
            assert_eq!(rows(&found.problems), [(3, DATA_START, 8)]);
            assert_eq!((found.gaps, found.tail), (vec![], None));
            assert_eq!(seen.records, image.records);
        }
    }
}

/// JR-2: a second segment behind the last one is none that a crash leaves (row 3), not even an empty one.
#[test]
fn only_one_segment_may_follow_the_last() {
    let image = Image::new(End::Closed);
    let fourth = published_fourth(&image);
    assert_eq!(look(&fourth).0.empty_segment, Some(4));
    let disk = image.disk.fork();
    // Segment 3 without any frame: it and its successor both lack a link.
    zero_from(&disk, 3, DATA_START);
    disk.put(&segment(4), &fourth.bytes(&segment(4)).unwrap());
    disk.put(&root("head"), &fourth.bytes(&root("head")).unwrap());
    let (found, _) = look(&disk);
    assert!(rows(&found.problems).contains(&(4, DATA_START, 3)), "{:?}", found.problems);
    assert!(super::damage_image::verdict(&disk).is_err());
}

/// JR-1: evidence inside a follower proves its link, though no frame 0 is there at all (row 5 and row 8).
#[test]
fn a_header_in_a_follower_proves_its_place_0() {
    let image = Image::new(End::Killed);
    let group = image.frame_bytes(&image.frame(3, 1));
    for offset in [DATA_START + 160, DATA_START + 168, DATA_START + 4000] {
        let disk = image.disk.fork();
        zero_from(&disk, 3, DATA_START);
        disk.overwrite(&segment(3), offset, &group);
        refused_at(&disk, 3, DATA_START, 8);
    }
}
