//! Files of a newer format are no damage: they are refused as newer and left as they are, also when an older sound copy
//! stands beside them (JF-4, JK-53).

use sealog_disk::Name;
use sealog_disk::sim::SimDisk;
use sealog_journal_format::checksum::crc32;

use super::damage_image::{End, Image, refusal, root, segment, start, try_look};
use crate::{JournalError, look};

/// Where a format keeps the CRC of what it says in every version.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    start: usize,
    crc_at: usize,
}

/// Writes version `version` and makes the CRC of the fixed part right again.
fn renew(disk: &SimDisk, name: &Name, fixed: Fixed, version: u16) {
    let mut bytes = disk.bytes(name).unwrap();
    let part = &mut bytes[fixed.start..];
    part[8..10].copy_from_slice(&version.to_le_bytes());
    let crc = crc32(&part[..fixed.crc_at]);
    part[fixed.crc_at..fixed.crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    disk.put(name, &bytes);
}

#[track_caller]
fn newer(disk: &SimDisk, wanted: &str) {
    let check = |error: JournalError| match error {
        JournalError::NewerFormat { file, version } => assert_eq!((file.as_str(), version), (wanted, 2)),
        other => panic!("{wanted}: {other:?}"),
    };
    check(refusal(disk));
    check(try_look(disk).unwrap_err());
}

fn renewed(image: &Image, name: &Name, parts: &[Fixed]) -> SimDisk {
    let disk = image.disk.fork();
    parts.iter().for_each(|part| renew(&disk, name, *part, 2));
    disk
}

#[test]
fn a_newer_store_or_keyring_is_refused_as_newer() {
    let image = Image::new(End::Closed);
    let store = renewed(&image, &root("store"), &[Fixed { start: 0, crc_at: 92 }]);
    newer(&store, "store");
    assert!(matches!(look(&store), Err(JournalError::NewerFormat { .. })));
    let fixed = [Fixed { start: 0, crc_at: 60 }];
    newer(&renewed(&image, &root("keyring.0"), &fixed), "keyring");
    newer(&renewed(&image, &root("keyring.1"), &fixed), "keyring");
    let both = renewed(&image, &root("keyring.0"), &fixed);
    renew(&both, &root("keyring.1"), fixed[0], 2);
    newer(&both, "keyring");
    // Even beside a copy that is damaged.
    let damaged = renewed(&image, &root("keyring.0"), &fixed);
    damaged.flip_bit(&root("keyring.1"), 100, 1);
    newer(&damaged, "keyring");
}

#[test]
fn a_newer_head_slot_is_refused_as_newer_beside_an_older_one() {
    for end in [End::Killed, End::Idle, End::Closed] {
        let image = Image::new(end);
        let (a, b) = (Fixed { start: 0, crc_at: 160 }, Fixed { start: 4096, crc_at: 160 });
        newer(&renewed(&image, &root("head"), &[a]), "head");
        newer(&renewed(&image, &root("head"), &[b]), "head");
        newer(&renewed(&image, &root("head"), &[a, b]), "head");
    }
}

#[test]
fn a_newer_segment_is_refused_as_newer_whichever_copy_says_so() {
    let image = Image::new(End::Closed);
    let (a, b) = (Fixed { start: 0, crc_at: 60 }, Fixed { start: 4096, crc_at: 60 });
    for number in [1, 2, 3] {
        let wanted = segment(number).to_string();
        newer(&renewed(&image, &segment(number), &[a]), &wanted);
        newer(&renewed(&image, &segment(number), &[b]), &wanted);
        newer(&renewed(&image, &segment(number), &[a, b]), &wanted);
        let damaged = renewed(&image, &segment(number), &[b]);
        damaged.flip_bit(&segment(number), 77, 3);
        newer(&damaged, &wanted);
    }
}

/// A version is believed only behind a right CRC and magic: otherwise it is damage, which a newer program would not
/// cure. The prepared next segment is nobody's yet and goes whatever it says.
#[test]
fn a_version_without_its_crc_is_damage() {
    let image = Image::new(End::Closed);
    for (name, at) in [(root("store"), 8), (segment(2), 8)] {
        let disk = image.disk.fork();
        disk.flip_bit(&name, at, 1);
        let error = refusal(&disk);
        assert!(
            matches!(error, JournalError::CorruptFile { .. } | JournalError::Corrupt { .. }),
            "{error:?}"
        );
    }
    let disk = image.disk.fork();
    let mut bytes = disk.bytes(&segment(2)).unwrap();
    bytes[0] = b'X';
    disk.put(&segment(2), &bytes);
    renew(&disk, &segment(2), Fixed { start: 0, crc_at: 60 }, 2);
    assert!(matches!(refusal(&disk), JournalError::Corrupt { row: 1, .. }));
    let next = Name::new(sealog_disk::Folder::Segments, "next").unwrap();
    let disk = image.disk.fork();
    disk.copy(&segment(3), &next);
    renew(&disk, &next, Fixed { start: 0, crc_at: 60 }, 2);
    let opened = start(&disk);
    assert_eq!(opened.records, image.records);
    opened.journal.maintain();
    assert!(disk.bytes(&next).is_none());
}
