//! Segment headers that authenticate and say something that no writer says here: another lineage, an epoch that went
//! back, a kind that this release does not write (R18, JF-4).

use sealog_disk::sim::SimDisk;
use sealog_journal_format::SegmentHeader;
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::limits::{DATA_START, HEADER_BYTES};
use sealog_journal_format::segment::SegmentKind;
use sealog_seal::{KeyId, Wrapped};

use super::damage_image::{End, Image, look, open_segment, refused_at, rows, segment, start};
use super::setup::Bench;
use super::tails::published_fourth;
use crate::store::Store;

/// Changes the header of a segment and wraps its data key anew, as who holds the keys could.
fn reforge(disk: &SimDisk, number: u64, change: impl FnOnce(&mut SegmentHeader)) {
    let mut header = open_segment(disk, number).header;
    let store = Store::open(&Bench::on(disk.clone(), 5).config).unwrap();
    let root = store.keyring.root(&KeyId(header.key_id)).unwrap();
    let wrap = header.wrap;
    let wrapped = Wrapped { salt: wrap.salt, sealed: wrap.sealed, tag: wrap.tag, check: wrap.check };
    let key = root.unwrap(&header.wrap_purpose(), &wrapped, &header.wrap_context()).unwrap();
    change(&mut header);
    let again = root.wrap(&header.wrap_purpose(), wrap.salt, &key, |check| {
        header.wrap.check = *check;
        header.wrap_context().to_vec()
    });
    (header.wrap.sealed, header.wrap.tag) = (again.sealed, again.tag);
    for copy in [0, HEADER_BYTES as u64] {
        disk.overwrite(&segment(number), copy, &header.encode());
    }
}

/// Segment 4 published behind a closed journal and without a frame, its header changed.
#[track_caller]
fn follower(change: impl FnOnce(&mut SegmentHeader)) -> (Image, SimDisk) {
    let image = Image::new(End::Closed);
    let disk = published_fourth(&image);
    reforge(&disk, 4, change);
    (image, disk)
}

/// The control: forged without a change the follower is what it was.
#[test]
fn a_header_that_is_wrapped_again_is_taken() {
    let (image, disk) = follower(|_| {});
    assert_eq!(look(&disk).0.empty_segment, Some(4));
    assert_eq!(start(&disk).records, image.records);
}

/// Row 7: lineage and epoch continue the predecessor's, and are those that the head names.
#[test]
fn a_lineage_that_does_not_continue_is_damage() {
    let changes: [fn(&mut SegmentHeader); 5] = [
        |header| header.predecessor_lineage = [9; 16],
        |header| header.predecessor_lineage = [0; 16],
        |header| header.epoch = 3,
        |header| header.epoch = 1,
        |header| header.lineage = [9; 16],
    ];
    for change in changes {
        let (image, disk) = follower(change);
        refused_at(&disk, 4, 0, 7);
        let (found, seen) = look(&disk);
        assert_eq!((rows(&found.problems), seen.records), (vec![(4, 0, 7)], image.records));
    }
    // The same writer's lineage with another epoch is nobody's either.
    let image = Image::new(End::Closed);
    let disk = published_fourth(&image);
    let own = open_segment(&disk, 3).header.lineage;
    reforge(&disk, 4, |header| header.lineage = own);
    refused_at(&disk, 4, 0, 7);
}

/// Row 1: a compacted segment hides under no log segment's name; a number is the one of the name.
#[test]
fn a_kind_or_number_that_is_not_of_the_name_is_damage() {
    let image = Image::new(End::Closed);
    let end = EndRecord {
        segment: 4,
        frames: 1,
        end_offset: DATA_START + 160,
        last_sequence: 3,
        chain: [1; 16],
        how: How::Sealed,
    };
    let disk = published_fourth(&image);
    reforge(&disk, 4, |header| {
        (header.kind, header.generation) = (SegmentKind::Compacted, 1);
        (header.link_in, header.link_out) = (EndRecord { segment: 3, ..end }, end);
    });
    refused_at(&disk, 4, 0, 1);
    assert_eq!(
        look(&disk).0.problems[0].what,
        "the segment's kind, range or generation is not that of its name"
    );
    let disk = published_fourth(&image);
    reforge(&disk, 4, |header| (header.number, header.range_last) = (5, 5));
    refused_at(&disk, 4, 0, 1);
}

/// Row 1, JF-6: a header that authenticates and differs from its copy; frames under another header do not open.
#[test]
fn the_two_copies_are_equal_and_the_frames_are_sealed_under_them() {
    let image = Image::new(End::Closed);
    let disk = image.disk.fork();
    let second = image.bytes(3)[HEADER_BYTES..2 * HEADER_BYTES].to_vec();
    reforge(&disk, 3, |header| header.created_ms += 1);
    let both = disk.fork();
    disk.overwrite(&segment(3), HEADER_BYTES as u64, &second);
    refused_at(&disk, 3, HEADER_BYTES as u64, 1);
    // All of its frames have tags of other keys: the place of frame 0 is foreign.
    refused_at(&both, 3, DATA_START, 7);
}
