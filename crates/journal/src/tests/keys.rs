//! Keys: the wrong one changes nothing, key id and version stand in every file, no plaintext stands in any (R16, R17).

use std::collections::BTreeMap;

use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::{Folder, Name};
use sealog_seal::{Secret, SlotParams, StoreId};

use super::damage_image::{CANARY, End, Image, group, root, segment, start};
use super::setup::{Bench, record};
use crate::{Config, Create, JournalError, KeyringCopy, Unit, audit};

fn with_secret(disk: &SimDisk, secrets: Vec<Secret>) -> Config {
    Config { secrets, ..Bench::on(disk.clone(), 3).config }
}

/// Neither a writer nor a reader gets in, and not even the text in `LOCK` is touched.
#[track_caller]
fn kept_out(disk: &SimDisk, secrets: Vec<Secret>, wrong: fn(&JournalError) -> bool) {
    let config = with_secret(disk, secrets);
    let before = disk.files();
    disk.start_trace();
    let error = crate::Journal::open_manual(&config, &mut crate::Ignore).unwrap_err();
    assert!(wrong(&error), "{error:?}");
    let error = audit(&config, &mut super::damage_image::Seen::default).unwrap_err();
    assert!(wrong(&error), "{error:?}");
    let changing = disk.take_trace().into_iter().filter(|entry| entry.op.is_some());
    assert_eq!(changing.count(), 0, "not even the text in LOCK");
    assert!(disk.files() == before);
    assert!(disk.is_unlocked(), "the lock is given back");
}

trait Unlocked {
    fn is_unlocked(&self) -> bool;
}

impl Unlocked for SimDisk {
    fn is_unlocked(&self) -> bool {
        !sealog_disk::Disk::is_locked(self).unwrap()
    }
}

/// R17: the keyring alone judges the key, before anything else is looked at or changed.
#[test]
fn a_wrong_key_changes_nothing() {
    let wrong = |e: &JournalError| matches!(e, JournalError::WrongKey);
    for end in [End::Killed, End::Closed] {
        let disk = Image::new(end).disk;
        kept_out(&disk, vec![Secret::raw([8; 32])], wrong);
        kept_out(&disk, vec![], wrong);
        kept_out(&disk, vec![Secret::raw([1; 32]), Secret::passphrase(b"words").unwrap()], wrong);
        // Damage elsewhere does not matter to it.
        disk.flip_bit(&segment(1), 8200, 1);
        disk.flip_bit(&root("head"), 5, 1);
        disk.flip_bit(&root("keyring.0"), 300, 1);
        kept_out(&disk, vec![Secret::raw([8; 32])], wrong);
    }
}

/// A keyring that is damaged is said to be, whatever key is offered (JK-37).
#[test]
fn a_damaged_keyring_is_no_wrong_key() {
    let disk = Image::new(End::Closed).disk;
    disk.flip_bit(&root("keyring.0"), 300, 1);
    disk.flip_bit(&root("keyring.1"), 301, 1);
    let damaged = |e: &JournalError| matches!(e, JournalError::KeyringDamaged);
    kept_out(&disk, vec![Secret::raw([8; 32])], damaged);
    kept_out(&disk, vec![Secret::raw([9; 32])], damaged);
    disk.delete(&root("keyring.1"));
    kept_out(&disk, vec![Secret::raw([9; 32])], damaged);
}

/// Two intact copies of one generation that differ: no writer makes them, so neither is believed (JK-52).
#[test]
fn two_keyrings_of_one_generation_are_damage() {
    let image = Image::new(End::Closed);
    let twin = Bench::on(SimDisk::new(), 404);
    twin.create();
    let disk = image.disk.fork();
    disk.put(&root("keyring.1"), &twin.disk.bytes(&root("keyring.1")).unwrap());
    kept_out(&disk, vec![Secret::raw([9; 32])], |e| matches!(e, JournalError::KeyringDamaged));
}

/// Any of several keys is enough; the good one may stand last.
#[test]
fn any_given_key_that_fits_is_enough() {
    let image = Image::new(End::Closed);
    let config = with_secret(&image.disk, vec![Secret::raw([1; 32]), Secret::raw([9; 32])]);
    let (found, seen) = audit(&config, &mut super::damage_image::Seen::default).unwrap();
    assert_eq!((found.keyring_copies, seen.records.len()), ([KeyringCopy::Good; 2], image.records.len()));
}

/// A segment under a root key that the keyring does not hold: the other keyring of the same store id and secret.
#[test]
fn a_segment_under_an_unknown_root_key_is_named() {
    let image = Image::new(End::Closed);
    let twin = Bench::on(SimDisk::new(), 404);
    twin.create();
    let opened = twin.open().unwrap();
    opened.commit(group(1, 1)).unwrap();
    opened.journal.close().unwrap();
    let disk = image.disk.fork();
    disk.put(&segment(1), &twin.disk.bytes(&segment(1)).unwrap());
    super::damage_image::refused_at(&disk, 1, 0, 1);
    let what = super::damage_image::look(&disk).0.problems[0].what;
    assert_eq!(what, "the segment names a key that the keyring does not hold");
    // A head under that key is no good slot.
    let disk = image.disk.fork();
    disk.put(&root("head"), &twin.disk.bytes(&root("head")).unwrap());
    assert!(matches!(super::damage_image::refusal(&disk), JournalError::CorruptFile { .. }));
}

/// A journal with everything in it that is ever written: ended segments, a prepared one, a torn tail in quarantine.
fn everything() -> (SimDisk, Vec<BTreeMap<String, Vec<u8>>>) {
    let image = Image::new(End::Killed);
    let newest = image.newest();
    image.disk.truncate(&segment(3), newest.end() - 40);
    let bench = Bench::on(image.disk.clone(), 12);
    let mut seen = vec![image.bench.disk.files(), image.disk.files()];
    let opened = bench.open().unwrap();
    for event in 1..40 {
        let body = CANARY.repeat(8);
        opened.commit(Unit::one(record(6, event, &body))).unwrap();
        bench.clock.advance(std::time::Duration::from_millis(300));
        while opened.journal.maintain() {}
        seen.push(bench.disk.files());
    }
    drop(opened);
    assert!(seen.iter().any(|files| files.contains_key("segments/next")), "a next segment was prepared");
    assert!(seen.iter().flatten().any(|(name, _)| name.ends_with(".tail")), "a tail was cut");
    (image.disk, seen)
}

/// R16: no body, no part of one, no stream id, no secret: in no file, prepared and quarantined ones included, at no
/// moment.
#[test]
fn no_plaintext_stands_in_any_file() {
    let (disk, mut seen) = everything();
    seen.push(disk.durable_files());
    let found = |bytes: &[u8], wanted: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
    let words = [&CANARY[..12], &CANARY[10..], &[6; 16], &[9; 16]];
    let mut files = 0;
    for (name, bytes) in seen.into_iter().flatten() {
        files += 1;
        for word in words {
            assert!(!found(&bytes, word), "{word:?} in {name}");
        }
    }
    assert!(files > 100);
}

/// R17: magic and format version at the front of every file, store id and key id where a key is used.
#[test]
fn version_and_key_id_stand_in_every_file() {
    let (disk, seen) = everything();
    let header = |bytes: &[u8]| bytes[120..136].to_vec();
    let key_id = header(&disk.bytes(&segment(1)).unwrap());
    let mut kinds = BTreeMap::new();
    for (name, bytes) in seen.into_iter().flatten() {
        let (magic, key_at, store_at) = match name.as_str() {
            "LOCK" => continue,
            name if name.ends_with(".txt") => continue,
            "store" => (b"SEALOGST", None, 16),
            "keyring.0" | "keyring.1" => (b"SEALOGKR", None, 16),
            "head" => (b"SEALOGHD", Some(24), 40),
            _ => (b"SEALOGSG", Some(120), 16),
        };
        assert_eq!(&bytes[..8], magic, "{name}");
        assert_eq!(bytes[8..10], [1, 0], "{name}");
        assert_eq!(bytes[store_at..store_at + 16], [3; 16], "{name}");
        if let Some(at) = key_at {
            assert_eq!(bytes[at..at + 16], key_id, "{name}");
        }
        *kinds.entry(name.rsplit_once('/').map_or(name.clone(), |(folder, _)| folder.into())).or_insert(0) +=
            1;
    }
    let kinds: Vec<_> = kinds.into_keys().collect();
    assert_eq!(kinds, ["head", "keyring.0", "keyring.1", "quarantine", "segments", "store"]);
}

/// A passphrase opens what it made; the empty journal knows a wrong one as well.
#[test]
fn a_passphrase_is_judged_by_the_keyring_too() {
    let bench = Bench::on(SimDisk::new(), 9);
    let secret = Secret::passphrase(b"correct horse").unwrap();
    let create = Create {
        disk: bench.config.disk.clone(),
        clock: bench.config.clock.clone(),
        entropy: bench.config.entropy.clone(),
        store_id: StoreId([5; 16]),
        slot_name: "words",
        secret: &secret,
        params: SlotParams::new(19_456, 2, 1).unwrap(),
    };
    create.run(&mut || Ok(())).unwrap();
    let disk = bench.disk.crash_point().image(Choice::Everything);
    kept_out(&disk, vec![Secret::passphrase(b"Correct horse").unwrap()], |e| {
        matches!(e, JournalError::WrongKey)
    });
    let config = with_secret(&disk, vec![secret]);
    crate::Journal::open_manual(&config, &mut crate::Ignore).unwrap();
}

/// JR-9: the header that the quarantined bytes were sealed under stands before them, so that they can be opened still.
#[test]
fn a_quarantined_tail_carries_its_header() {
    let image = Image::new(End::Killed);
    let newest = image.newest();
    image.disk.flip_bit(&segment(3), newest.end() + 200, 1);
    start(&image.disk);
    let kept = Name::new(Folder::Quarantine, "000000000003-000000000004.tail").unwrap();
    let bytes = image.disk.bytes(&kept).unwrap();
    assert_eq!(bytes[..4096], image.bytes(3)[..4096]);
    assert_eq!(bytes[4096 + 200], 2);
}
