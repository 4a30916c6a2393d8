//! Changing the keyring of a stopped journal: what each change leaves, and what it refuses.

use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::{Disk, Folder, Name};
use sealog_seal::testing::NonceRecorder;
use sealog_seal::{ChangeError, NewSlot, Secret, SlotKind, SlotParams};

use super::crash_judge::read_only;
use super::setup::{Bench, record};
use crate::{
    Config, JournalError, KeyFacts, KeyringCopy, KeyringRefusal, Rekey, Unit, export_keyring, import_keyring,
    key_facts,
};

pub(crate) fn raw(byte: u8) -> Secret {
    Secret::raw([byte; 32])
}

pub(crate) fn slot<'a>(name: &'a str, secret: &'a Secret) -> NewSlot<'a> {
    NewSlot { name, secret, params: SlotParams::FLOOR }
}

/// A process on `disk` that holds these secrets.
pub(crate) fn holding(disk: &SimDisk, seed: u64, secrets: Vec<Secret>) -> Config {
    Config { secrets, ..Bench::on(disk.clone(), seed).config }
}

/// A journal with records in two segments, closed in order.
pub(crate) fn written() -> SimDisk {
    let bench = Bench::new();
    for epoch in 1..=2 {
        write_more(&bench, epoch);
    }
    bench.disk
}

fn write_more(bench: &Bench, n: u8) {
    let opened = bench.open().unwrap();
    opened.commit(Unit::one(record(n, 1, &[n; 700]))).unwrap();
    opened.journal.close().unwrap();
}

/// [`written`], with a second slot `second`.
pub(crate) fn with_second() -> SimDisk {
    let disk = written();
    Rekey::open(&holding(&disk, 21, vec![raw(9)])).unwrap().add_slot(&slot("second", &raw(8)), None).unwrap();
    disk
}

pub(crate) fn opens(disk: &SimDisk, secret: &Secret) -> bool {
    match key_facts(&holding(disk, 1, vec![secret.clone()])) {
        Ok(_) => true,
        Err(JournalError::WrongKey | JournalError::KeyringDamaged | JournalError::Missing { .. }) => false,
        Err(other) => panic!("{other:?}"),
    }
}

fn looked(disk: &SimDisk) -> KeyFacts {
    key_facts(&holding(disk, 1, vec![raw(9)])).unwrap()
}

fn names(facts: &KeyFacts) -> Vec<&str> {
    facts.slots.iter().map(|slot| slot.name.as_str()).collect()
}

fn copy(index: usize) -> Name {
    Name::new(Folder::Root, ["keyring.0", "keyring.1"][index]).unwrap()
}

/// JK-41, JK-47: a slot of either kind, opened through before it counts as there.
#[test]
fn added_slots_open_and_removed_ones_do_not() {
    let disk = written();
    let phrase = Secret::passphrase(b"correct horse").unwrap();
    let config = holding(&disk, 2, vec![raw(9)]);
    let done = Rekey::open(&config).unwrap().add_slot(&slot("words", &phrase), None).unwrap();
    assert_eq!(names(&done.facts), ["key", "words"]);
    assert_eq!(done.facts.slots[1].kind, SlotKind::Passphrase(SlotParams::FLOOR));
    assert!(opens(&disk, &phrase) && opens(&disk, &raw(9)));
    assert_eq!(disk.bytes(&copy(0)), disk.bytes(&copy(1)));
    // With the other one's secret, and the one that was first.
    let other = holding(&disk, 3, vec![phrase.clone()]);
    let done = Rekey::open(&other).unwrap().remove_slot("key").unwrap();
    assert_eq!((names(&done.facts), done.removed_slots), (vec!["words"], vec!["key".to_owned()]));
    assert!(opens(&disk, &phrase) && !opens(&disk, &raw(9)));
    let last = Rekey::open(&other).unwrap().remove_slot("words").unwrap_err();
    assert!(matches!(last, JournalError::Slots(ChangeError::LastSlot)), "{last:?}");
    let unknown = Rekey::open(&other).unwrap().remove_slot("key").unwrap_err();
    assert!(matches!(unknown, JournalError::Slots(ChangeError::UnknownSlot)), "{unknown:?}");
    // A refused change leaves the bytes alone.
    assert_eq!(key_facts(&other).unwrap().generation, 3);
}

/// JK-45: a passphrase is changed in one generation, under the same name or another.
#[test]
fn a_slot_is_replaced_in_one_step() {
    let disk = written();
    let done = Rekey::open(&holding(&disk, 2, vec![raw(9)])).unwrap();
    let done = done.add_slot(&slot("key", &raw(8)), Some("key")).unwrap();
    assert_eq!((done.facts.generation, names(&done.facts)), (2, vec!["key"]));
    assert!(opens(&disk, &raw(8)) && !opens(&disk, &raw(9)));
    let again = Rekey::open(&holding(&disk, 3, vec![raw(8)])).unwrap();
    let absent = again.add_slot(&slot("more", &raw(7)), Some("none")).unwrap_err();
    assert!(matches!(absent, JournalError::Slots(ChangeError::UnknownSlot)));
    let taken = Rekey::open(&holding(&disk, 3, vec![raw(8)])).unwrap();
    let taken = taken.add_slot(&slot("key", &raw(7)), None).unwrap_err();
    assert!(matches!(taken, JournalError::Slots(ChangeError::DuplicateName)));
}

/// JK-42: what is written afterwards is under a new root key; what was written before stays readable.
#[test]
fn rotating_gives_new_segments_a_new_key_and_keeps_the_old() {
    let disk = with_second();
    let before = looked(&disk);
    let config = holding(&disk, 4, vec![raw(9)]);
    let lost = Rekey::open(&config).unwrap().rotate(&[], None).unwrap_err();
    match lost {
        JournalError::Slots(ChangeError::SlotNotCovered { names }) => assert_eq!(names, ["second"]),
        other => panic!("{other:?}"),
    }
    let done = Rekey::open(&config).unwrap().rotate(&["second"], None).unwrap();
    assert_eq!((names(&done.facts), done.removed_slots), (vec!["key"], vec!["second".to_owned()]));
    assert_eq!(done.facts.roots.len(), 2);
    assert!(!opens(&disk, &raw(8)));
    write_more(&Bench::on(disk.clone(), 5), 3);
    let (found, records) = read_only(&Bench::on(disk.clone(), 6)).unwrap();
    assert!(found.is_sound() && records.len() == 3, "{found:?}");
    let ids: Vec<_> = found.segments.iter().map(|segment| segment.key_id).collect();
    let (old, new) = (before.roots[0].id, done.facts.roots[1].id);
    assert_eq!(ids, [old, old, new]);
    // All secrets given: nobody goes, and everybody opens the new one.
    let disk = with_second();
    let all = holding(&disk, 4, vec![raw(8), raw(9)]);
    let done = Rekey::open(&all).unwrap().rotate(&[], None).unwrap();
    assert_eq!(names(&done.facts), ["key", "second"]);
    assert!(opens(&disk, &raw(8)) && opens(&disk, &raw(9)));
}

/// JK-42: a recovery slot in the place of all that were not given, whatever they are called.
#[test]
fn rotating_with_a_new_recovery_slot() {
    let disk = with_second();
    let recovery = raw(5);
    for round in 0..2 {
        let open = Rekey::open(&holding(&disk, 30 + round, vec![raw(9)])).unwrap();
        let done = open.rotate(&[], Some(&slot("recovery", &recovery))).unwrap();
        assert_eq!(names(&done.facts), ["key", "recovery"]);
        let gone = if round == 0 { "second" } else { "recovery" };
        assert_eq!(done.removed_slots, [gone]);
        assert!(opens(&disk, &recovery) && opens(&disk, &raw(9)) && !opens(&disk, &raw(8)));
    }
}

/// JK-43, JK-56: a retired root key goes when nothing names it any more, and not before.
#[test]
fn old_root_keys_go_when_nothing_names_them() {
    let disk = written();
    let config = |seed| holding(&disk, seed, vec![raw(9)]);
    Rekey::open(&config(4)).unwrap().rotate(&[], None).unwrap();
    let kept = Rekey::open(&config(5)).unwrap().add_slot(&slot("second", &raw(8)), None).unwrap();
    assert_eq!((kept.facts.roots.len(), kept.dropped_roots.len()), (2, 0));
    assert_eq!(kept.facts.roots[0].named_by.segments, 2);
    assert_eq!(kept.facts.roots[0].named_by.head_slots, 2);
    // Nothing was written under the key that retires now: it goes at once.
    let again = Rekey::open(&config(6)).unwrap().rotate(&["second"], None).unwrap();
    assert_eq!((again.facts.roots.len(), again.dropped_roots), (2, vec![kept.facts.roots[1].id]));
    let idle = Rekey::open(&config(7)).unwrap().add_slot(&slot("second", &raw(8)), None).unwrap();
    assert_eq!((idle.facts.roots.len(), idle.dropped_roots.len()), (2, 0));
    let (found, records) = read_only(&Bench::on(disk.clone(), 8)).unwrap();
    assert!(found.is_sound() && records.len() == 2);
    // The first key is named by the head and by a tail in quarantine even where the segments are gone.
    let first = idle.facts.roots[0].id;
    for number in 1..=2 {
        disk.delete(&Name::new(Folder::Segments, &format!("{number:012}.seg")).unwrap());
    }
    let named = looked(&disk).roots[0].named_by;
    assert_eq!((named.segments, named.head_slots, named.quarantined), (0, 2, 0));
    let still = Rekey::open(&config(9)).unwrap().remove_slot("second").unwrap();
    assert_eq!((still.facts.roots[0].id, still.dropped_roots.len()), (first, 0));
}

/// JK-56: a start drops what compaction left without use; a full disk and a damaged file keep it.
#[test]
fn a_start_drops_root_keys_that_nothing_names() {
    let disk = written();
    let first = looked(&disk).roots[0].id;
    Rekey::open(&holding(&disk, 4, vec![raw(9)])).unwrap().rotate(&[], None).unwrap();
    let opened = Bench::on(disk.clone(), 5).open().unwrap();
    assert_eq!(opened.report.repairs.root_keys_dropped, 0, "segments are sealed under it");
    opened.journal.compact_all(&mut |_| {}).unwrap();
    opened.commit(Unit::one(record(3, 1, b"more"))).unwrap();
    opened.journal.close().unwrap();
    drop(opened);
    let ids = |disk: &SimDisk| looked(disk).roots.iter().map(|root| root.id).collect::<Vec<_>>();
    assert_eq!(ids(&disk).len(), 2);
    let (_, shown) = read_only(&Bench::on(disk.clone(), 1)).unwrap();
    let full = disk.fork();
    full.set_capacity(Some(full.files().values().map(|bytes| bytes.len() as u64).sum::<u64>() + (512 << 10)));
    assert_eq!(Bench::on(full.clone(), 6).open().unwrap().report.repairs.root_keys_dropped, 0);
    let unread = disk.fork();
    let other = Name::new(Folder::Quarantine, "000000000001-000000000001.tail").unwrap();
    unread.make_folder(Folder::Quarantine).unwrap();
    unread.put(&other, b"no header");
    assert_eq!(Bench::on(unread.clone(), 6).open().unwrap().report.repairs.root_keys_dropped, 0);
    disk.record_crash_points();
    let opened = Bench::on(disk.clone(), 6).open().unwrap();
    assert_eq!(opened.report.repairs.root_keys_dropped, 1);
    assert_eq!(opened.records, shown);
    opened.commit(Unit::one(record(4, 1, b"still"))).unwrap();
    drop(opened);
    assert!(!ids(&disk).contains(&first) && ids(&disk).len() == 1);
    assert_eq!(disk.bytes(&copy(0)), disk.bytes(&copy(1)));
    assert_eq!(Bench::on(disk.clone(), 7).open().unwrap().report.repairs.root_keys_dropped, 0, "once");
    for point in disk.take_crash_points() {
        for choice in [Choice::Nothing, Choice::Everything] {
            let opened = Bench::on(point.image(choice), 8).open().unwrap();
            assert_eq!(opened.records[..shown.len()], shown[..]);
        }
    }
}

/// JK-56: where a file does not say which key it names, nothing is dropped.
#[test]
fn an_unreadable_header_keeps_every_key() {
    let disk = written();
    let config = |seed| holding(&disk, seed, vec![raw(9)]);
    Rekey::open(&config(4)).unwrap().rotate(&[], None).unwrap();
    let first = Name::new(Folder::Segments, "000000000001.seg").unwrap();
    disk.flip_bit(&first, 130, 1);
    assert!(looked(&disk).unreadable);
    let kept = Rekey::open(&config(5)).unwrap().rotate(&[], None).unwrap();
    assert_eq!((kept.facts.roots.len(), kept.dropped_roots.len()), (3, 0));
    disk.flip_bit(&first, 130, 1);
    let gone = Rekey::open(&config(7)).unwrap().add_slot(&slot("second", &raw(8)), None).unwrap();
    assert_eq!((gone.facts.roots.len(), gone.dropped_roots), (2, vec![kept.facts.roots[1].id]));
}

/// R29: a running writer keeps every change out; looking and exporting go on beside it.
#[test]
fn a_running_writer_keeps_changes_out() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    let second = holding(&bench.disk, 2, vec![raw(9)]);
    let before = bench.disk.files();
    assert!(matches!(Rekey::open(&second).unwrap_err(), JournalError::Locked { .. }));
    let (bytes, _) = export_keyring(&second).unwrap();
    let import = import_keyring(&second, &bytes, true).unwrap_err();
    assert!(matches!(import, JournalError::Locked { .. }));
    assert!(bench.disk.files() == before);
    drop(opened);
    Rekey::open(&second).unwrap();
}

/// JK-57: an exported keyring opens a journal whose both copies are gone or damaged.
#[test]
fn an_exported_keyring_restores_a_destroyed_one() {
    let disk = written();
    let (bytes, facts) = export_keyring(&holding(&disk, 2, vec![raw(9)])).unwrap();
    assert_eq!(facts.opened_slot.as_deref(), Some("key"));
    let destroy: [fn(&SimDisk, usize); 3] = [
        |disk, index| disk.delete(&copy(index)),
        |disk, index| disk.put(&copy(index), &[]),
        |disk, index| disk.flip_bit(&copy(index), 100, 1),
    ];
    for destroy in destroy {
        let disk = disk.fork();
        [0, 1].into_iter().for_each(|index| destroy(&disk, index));
        assert!(!opens(&disk, &raw(9)));
        let wrong = import_keyring(&holding(&disk, 3, vec![raw(8)]), &bytes, false).unwrap_err();
        assert!(matches!(wrong, JournalError::WrongKey), "{wrong:?}");
        let config = holding(&disk, 3, vec![raw(9)]);
        let cut = import_keyring(&config, &bytes[..bytes.len() - 1], false).unwrap_err();
        assert!(matches!(cut, JournalError::KeyringDamaged), "{cut:?}");
        let done = import_keyring(&config, &bytes, false).unwrap();
        assert_eq!((done.unchanged, done.reissued), (false, false));
        write_more(&Bench::on(disk.clone(), 4), 3);
        assert_eq!(read_only(&Bench::on(disk.clone(), 5)).unwrap().1.len(), 3);
        assert!(import_keyring(&config, &disk.bytes(&copy(0)).unwrap(), false).unwrap().unchanged);
    }
}

/// JK-57: not over a newer keyring, not one that lacks a key that is needed, not one of another store.
#[test]
fn a_keyring_that_does_not_belong_here_is_not_put_back() {
    let disk = with_second();
    let config = |disk: &SimDisk, seed| holding(disk, seed, vec![raw(9)]);
    let (old, _) = export_keyring(&config(&disk, 2)).unwrap();
    Rekey::open(&config(&disk, 3)).unwrap().rotate(&["second"], None).unwrap();
    write_more(&Bench::on(disk.clone(), 4), 3);
    let older = import_keyring(&config(&disk, 5), &old, false).unwrap_err();
    match older {
        JournalError::KeyringRefused(KeyringRefusal::NotNewer { here, given }) => {
            assert_eq!((here, given), (3, 2))
        }
        other => panic!("{other:?}"),
    }
    // The fixed part of a damaged copy still tells that it was of a higher one.
    let damaged = disk.fork();
    [0, 1].into_iter().for_each(|index| damaged.flip_bit(&copy(index), 100, 1));
    let older = import_keyring(&config(&damaged, 5), &old, false).unwrap_err();
    assert!(
        matches!(older, JournalError::KeyringRefused(KeyringRefusal::NotNewer { here: 3, .. })),
        "{older:?}"
    );
    // Both copies gone: the segments tell that a key is lacking.
    let gone = disk.fork();
    [0, 1].into_iter().for_each(|index| gone.delete(&copy(index)));
    let lacks = import_keyring(&config(&gone, 5), &old, false).unwrap_err();
    assert!(matches!(lacks, JournalError::KeyringRefused(KeyringRefusal::LacksKeys)), "{lacks:?}");
    import_keyring(&config(&gone, 5), &old, true).unwrap();
    let (found, records) = read_only(&Bench::on(gone.clone(), 6)).unwrap();
    assert!(!found.is_sound() && records.len() == 2, "what the old keys open is there");
    // Told to: issued anew above what was here, so that it counts.
    let done = import_keyring(&config(&disk, 7), &old, true).unwrap();
    assert_eq!((done.facts.generation, done.reissued), (4, true));
    assert!(opens(&disk, &raw(8)));
    // Another store's, and another store's copies here.
    let other = Bench::on(SimDisk::new(), 99);
    let secret = raw(9);
    let create = crate::Create {
        disk: other.config.disk.clone(),
        clock: other.config.clock.clone(),
        entropy: other.config.entropy.clone(),
        store_id: sealog_seal::StoreId([4; 16]),
        slot_name: "key",
        secret: &secret,
        params: SlotParams::DEFAULT,
    };
    create.run(&mut || Ok(())).unwrap();
    let foreign = import_keyring(&config(&other.disk, 8), &old, true).unwrap_err();
    assert!(matches!(foreign, JournalError::WrongStore), "{foreign:?}");
    let mixed = disk.fork();
    [0, 1].into_iter().for_each(|index| mixed.put(&copy(index), &other.disk.bytes(&copy(index)).unwrap()));
    let refused = import_keyring(&config(&mixed, 9), &old, false).unwrap_err();
    assert!(matches!(refused, JournalError::WrongStore), "{refused:?}");
    import_keyring(&config(&mixed, 9), &old, true).unwrap();
    assert!(opens(&mixed, &raw(8)));
    // A copy of a newer format is never replaced.
    let newer = disk.fork();
    let mut bytes = newer.bytes(&copy(0)).unwrap();
    bytes[8] = 2;
    let crc = sealog_journal_format::checksum::crc32(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    newer.put(&copy(0), &bytes);
    let refused = import_keyring(&config(&newer, 9), &old, true).unwrap_err();
    assert!(matches!(refused, JournalError::NewerFormat { .. }), "{refused:?}");
    let nothing = SimDisk::new();
    let none = import_keyring(&config(&nothing, 9), &old, true).unwrap_err();
    assert!(matches!(none, JournalError::NoJournal), "{none:?}");
}

/// JK-55: a start that finds the copies unequal makes both the newer one before it writes under its key.
#[test]
fn a_start_levels_before_it_uses_a_new_key() {
    let disk = written();
    let old = disk.bytes(&copy(1)).unwrap();
    Rekey::open(&holding(&disk, 4, vec![raw(9)])).unwrap().rotate(&[], None).unwrap();
    disk.put(&copy(1), &old);
    let bench = Bench::on(disk.clone(), 5);
    assert_eq!(read_only(&bench).unwrap().0.keyring_copies, [KeyringCopy::Good, KeyringCopy::Stale]);
    // No room for the copies: no start, and nothing under the new key.
    let full = disk.fork();
    full.set_capacity(Some(0));
    assert!(Bench::on(full.clone(), 6).open().is_err());
    assert_eq!(read_only(&Bench::on(full, 6)).unwrap().0.segments.len(), 2);
    write_more(&bench, 3);
    let durable = disk.crash_point().image(Choice::Nothing);
    for lost in 0..2 {
        let disk = durable.fork();
        disk.delete(&copy(lost));
        let (found, records) = read_only(&Bench::on(disk, 7)).unwrap();
        assert!(found.is_sound() && records.len() == 3, "copy {lost}: {found:?}");
    }
}

/// R19, JK-13, JK-46: no change of a keyring repeats a wrap, also where the system's randomness repeats itself.
#[test]
fn no_wrap_is_repeated_across_changes_clones_and_crashes() {
    let recorder = NonceRecorder::new();
    let _installed = recorder.install();
    let disk = with_second();
    disk.record_crash_points();
    for process in 0..12_u32 {
        // Every clone of the directory draws the same numbers; only its process differs.
        let bench = Bench::on(disk.fork(), 50);
        bench.clock.set_process_id(1000 + process);
        let config = Config { secrets: vec![raw(9), raw(8)], ..bench.config.clone() };
        Rekey::open(&config).unwrap().rotate(&[], None).unwrap();
        bench.clock.advance(std::time::Duration::from_millis(1));
        Rekey::open(&config).unwrap().add_slot(&slot("third", &raw(7)), None).unwrap();
        let opened = bench.open().unwrap();
        opened.commit(Unit::one(record(1, 2, b"more"))).unwrap();
        opened.journal.close().unwrap();
    }
    assert!(recorder.total() > 12 * 8, "{recorder:?}");
    assert_eq!(recorder.repeated(), []);
}

/// R16: neither file of a keyring shows a secret.
#[test]
fn no_secret_stands_in_a_keyring() {
    let disk = with_second();
    let (bytes, _) = export_keyring(&holding(&disk, 2, vec![raw(8)])).unwrap();
    for secret in [8_u8, 9] {
        let found = bytes.windows(16).any(|part| part == [secret; 16]);
        assert!(!found, "{secret}");
    }
    disk.sync_folder(Folder::Root).unwrap();
}

/// Revoking: after a rotation, compacting everything leaves no segment under the old root key.
#[test]
fn a_compaction_of_everything_leaves_nothing_under_the_old_root_key() {
    let disk = written();
    let config = holding(&disk, 31, vec![raw(9)]);
    Rekey::open(&config).unwrap().rotate(&[], None).unwrap();
    let (before, shown) = read_only(&Bench::on(disk.clone(), 1)).unwrap();
    assert!(before.segments.iter().all(|segment| segment.key_id != before.active_root));
    let opened = Bench::on(disk.clone(), 32).open().unwrap();
    opened.journal.compact_all(&mut |_| {}).unwrap();
    opened.journal.close().unwrap();
    drop(opened);
    let (after, left) = read_only(&Bench::on(disk, 1)).unwrap();
    assert_eq!(after.problems, []);
    assert!(after.segments.iter().all(|segment| segment.key_id == after.active_root), "{:?}", after.segments);
    assert_eq!(left[..shown.len()], shown[..]);
}
