//! Heads that authenticate and tell of another history than the segments hold: a snapshot resumed twice, a thief of the
//! keys. What the head names must be what is there (R18).

use sealog_disk::sim::SimDisk;
use sealog_journal_format::HeadSlot;

use super::damage_image::{End, Image, look, refused_at, rows, segment, start};
use super::setup::Bench;
use crate::head::{self, HeadContent, HeadWriter};
use crate::store::Store;

/// Rewrites both slots with what the head says now, changed.
fn retold(image: &Image, change: impl FnOnce(&mut HeadContent)) -> SimDisk {
    let disk = image.disk.fork();
    let store = Store::open(&Bench::on(disk.clone(), 5).config).unwrap();
    let state = head::read(&*store.disk, &store.keyring).unwrap();
    let slot = state.slot.unwrap();
    let mut content = HeadContent {
        lineage: slot.lineage,
        epoch: slot.epoch,
        segment: slot.segment,
        frames: slot.frames,
        last_sequence: slot.last_sequence,
        chain: slot.chain,
        closed: false,
    };
    change(&mut content);
    let mut writer = HeadWriter::open(&*store.disk, &store.keyring, &state).unwrap();
    writer.rewrite_both(&content).unwrap();
    writer.close().unwrap();
    disk
}

/// The head that names the state before frame `index` of a segment.
fn naming(image: &Image, number: u64, index: usize) -> impl FnOnce(&mut HeadContent) + use<> {
    let header = image.frame(number, index).header;
    let lineage = super::damage_image::open_segment(&image.disk, number).header.lineage;
    move |content| {
        (content.segment, content.frames, content.lineage) = (number, u64::from(header.index), lineage);
        (content.last_sequence, content.chain) = (header.synced_through, header.previous_chain);
    }
}

/// The control: any place of the history, told rightly, is sound.
#[test]
fn a_head_that_tells_the_history_of_any_place_is_sound() {
    for end in [End::Killed, End::Closed] {
        let image = Image::new(end);
        for at in &image.frames {
            let disk = retold(&image, naming(&image, at.segment, at.header.index as usize));
            assert_eq!(look(&disk).0.problems, []);
            assert_eq!(start(&disk).records, image.records);
        }
    }
}

/// Row 7 in the last segment, row 3 in an ended one: another chain value or sequence for a place that is here.
#[test]
fn a_head_that_tells_another_history_is_damage() {
    let image = Image::new(End::Killed);
    for at in &image.frames {
        let index = at.header.index as usize;
        let row = if at.segment == 3 { 7 } else { 3 };
        let refused = |change: fn(&mut HeadContent)| {
            let right = naming(&image, at.segment, index);
            let disk = retold(&image, |content| {
                right(content);
                change(content);
            });
            refused_at(&disk, at.segment, at.offset, row);
            let (found, seen) = look(&disk);
            assert_eq!(rows(&found.problems), [(at.segment, at.offset, row)]);
            assert_eq!(seen.records, image.records, "what is there is shown");
        };
        refused(|content| content.chain[7] ^= 1);
        refused(|content| content.last_sequence += 1);
    }
}

/// Row 3 and row 5: the head counts more frames than there are.
#[test]
fn a_head_that_counts_more_frames_than_there_are_is_damage() {
    let image = Image::new(End::Killed);
    for (number, row) in [(1, 3), (2, 3), (3, 5)] {
        let count = image.frames_of(number).len();
        let right = naming(&image, number, count - 1);
        let disk = retold(&image, |content| {
            right(content);
            content.frames += 2;
        });
        refused_at(&disk, number, image.end_of(number), row);
    }
    let right = naming(&image, 1, 0);
    let disk = retold(&image, |content| {
        right(content);
        content.lineage = [5; 16];
    });
    refused_at(&disk, 1, 0, 7);
    assert!(disk.bytes(&segment(1)).is_some());
}

/// JF-2: a slot whose CRC is right and whose MAC is not, or that is another store's under our key, is no good one.
#[test]
fn a_slot_needs_its_mac_and_its_store() {
    let image = Image::new(End::Idle);
    let name = super::damage_image::root("head");
    let both = |change: &dyn Fn(&mut HeadSlot) -> [u8; 32]| {
        let disk = image.disk.fork();
        let mut bytes = disk.bytes(&name).unwrap();
        for at in [0, 4096] {
            let (mut slot, mac) = HeadSlot::decode(&bytes[at..at + 4096], at as u64).unwrap();
            let other = change(&mut slot);
            let mac = if other == [0; 32] { mac } else { other };
            bytes[at..at + 512].copy_from_slice(&slot.encode(&mac));
        }
        disk.put(&name, &bytes);
        disk
    };
    assert_eq!(start(&both(&|_| [0; 32])).records, image.records, "the control");
    let no_mac = both(&|slot| {
        slot.epoch += 1;
        [0; 32]
    });
    let store = Store::open(&Bench::on(image.disk.fork(), 5).config).unwrap();
    let key = store.keyring.active_root().mac_key(b"head", &store.id());
    let right_mac = both(&|slot| {
        slot.epoch += 1;
        key.mac(&slot.encode_unsealed())
    });
    assert_eq!(start(&right_mac).records, image.records, "the control: the key makes it good");
    let other_store = both(&|slot| {
        slot.store_id = [8; 16];
        key.mac(&slot.encode_unsealed())
    });
    for disk in [no_mac, other_store] {
        assert_eq!(rows(&look(&disk).0.problems), [(0, 0, 10)]);
        assert!(matches!(super::damage_image::refusal(&disk), crate::JournalError::CorruptFile { .. }));
    }
}
