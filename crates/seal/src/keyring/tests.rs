//! The keyring's bytes, classes, changes and copies, at Argon2 costs that only tests can name.

use proptest::prelude::*;

use super::copies::choose_within;
use super::*;
use crate::digest::sha256;
use crate::random::{RandomBytes, RandomUnavailable};
use crate::testing::{NonceRecorder, SeededRandom, test_bounds, test_params};

const STORE: StoreId = StoreId([0x51; 16]);

fn raw(byte: u8) -> Secret {
    Secret::raw([byte; 32])
}

fn phrase(text: &str) -> Secret {
    Secret::passphrase(text.as_bytes()).unwrap()
}

fn slot<'a>(name: &'a str, secret: &'a Secret) -> NewSlot<'a> {
    NewSlot { name, secret, params: test_params() }
}

fn create(slots: &[NewSlot<'_>]) -> Result<Keyring, ChangeError> {
    Keyring::create_within(STORE, slots, &mut SeededRandom::new(7), test_bounds())
}

/// One raw slot.
fn small() -> Keyring {
    create(&[slot("file", &raw(1))]).unwrap()
}

/// A raw slot and a passphrase slot.
fn pair() -> Keyring {
    create(&[slot("file", &raw(1)), slot("phrase", &phrase("horse"))]).unwrap()
}

fn open(bytes: &[u8], secrets: &[Secret]) -> Result<Keyring, KeyringError> {
    Keyring::open_within(bytes, Some(STORE), secrets, test_bounds())
}

/// The class of a refusal, or of success.
fn class(bytes: &[u8], secrets: &[Secret]) -> &'static str {
    match open(bytes, secrets) {
        Ok(_) => "opens",
        Err(error) => name(&error),
    }
}

fn name(error: &KeyringError) -> &'static str {
    match error {
        KeyringError::Damaged { .. } => "damaged",
        KeyringError::UnsupportedVersion(_) => "newer",
        KeyringError::WrongStore => "wrong store",
        KeyringError::WrongKey => "wrong key",
        KeyringError::BadParameters => "bad parameters",
        KeyringError::TooLarge => "too large",
        KeyringError::DamagedBehindSlot => "damaged behind a slot",
        KeyringError::OutOfMemory => "out of memory",
        KeyringError::Missing => "missing",
    }
}

/// The bytes with `change` made to them and both unkeyed sums right again, as only a writer or a forger makes them.
fn resummed(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    if bytes.len() >= 64 {
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        let hash_at = bytes.len() - 32;
        let hash = sha256(&[&bytes[..hash_at]]);
        bytes[hash_at..].copy_from_slice(&hash);
    }
    bytes
}

/// A keyring whose MAC is right too, as only the holder of the keyring key can make it.
fn forged_inside(ring: &Keyring, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    resummed(&ring.bytes, |bytes| {
        change(bytes);
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        let mac_at = bytes.len() - 64;
        let mac = super::open::mac_key(&ring.key, &STORE).mac(&bytes[..mac_at]);
        bytes[mac_at..mac_at + 32].copy_from_slice(&mac);
    })
}

#[test]
fn jk_30_sizes() {
    assert_eq!(small().encode().len(), 208 + 208 + 56);
    assert_eq!(pair().encode().len(), 208 + 2 * 208 + 56);
    assert_eq!((SLOTS_MAX, ROOT_KEYS_MAX, KEYRING_BYTES_MAX), (8, 1024, 65_536));
    let bytes = small().encode();
    for cut in 0..bytes.len() {
        assert_eq!(class(&bytes[..cut], &[raw(1)]), "damaged", "cut at {cut}");
    }
    let longer = |length: usize| {
        let mut longer = bytes.clone();
        longer.resize(length, 0);
        class(&longer, &[raw(1)])
    };
    assert_eq!(longer(bytes.len() + 1), "damaged");
    assert_eq!(longer(KEYRING_BYTES_MAX), "damaged");
    assert_eq!(longer(KEYRING_BYTES_MAX + 1), "too large");
}

#[test]
fn jk_37_a_flipped_bit_is_damage_whatever_key_is_given() {
    let ring = pair();
    for bit in 0..ring.bytes.len() * 8 {
        let mut bytes = ring.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(class(&bytes, &[raw(1)]), "damaged", "bit {bit}, the right key");
        assert_eq!(class(&bytes, &[raw(2)]), "damaged", "bit {bit}, another key");
    }
}

#[test]
fn jk_31_classes_and_their_order() {
    let bytes = pair().encode();
    let check = |at: usize, value: u8, expected: &str| {
        let changed = resummed(&bytes, |bytes| bytes[at] = value);
        assert_eq!(class(&changed, &[raw(1)]), expected, "byte {at} = {value}");
        assert_eq!(class(&changed, &[raw(9)]), expected, "byte {at} = {value}, no secret needed");
    };
    check(0, b'X', "damaged");
    check(8, 2, "newer");
    check(8, 0, "newer");
    check(10, 65, "damaged");
    check(12, 0, "damaged");
    check(16, 0, "wrong store");
    check(32, 0, "damaged");
    check(40, 0, "damaged");
    check(40, 1, "damaged");
    check(40, 9, "too large");
    check(42, 0, "damaged");
    check(43, 5, "too large");
    check(44, 2, "damaged");
    for at in 46..60 {
        check(at, 1, "damaged");
    }
    // Each test precedes those that follow it in the clause.
    let both = |change: fn(&mut Vec<u8>)| class(&resummed(&bytes, change), &[raw(1)]);
    assert_eq!(both(|b| (b[0], b[8]) = (0, 2)), "damaged");
    assert_eq!(both(|b| (b[8], b[16]) = (2, 0)), "newer");
    assert_eq!(both(|b| (b[16], b[40]) = (0, 9)), "wrong store");
    assert_eq!(both(|b| (b[40], b[46]) = (9, 1)), "too large");
    let mut unsummed = bytes.clone();
    unsummed[8] = 2;
    assert_eq!(class(&unsummed, &[raw(1)]), "damaged", "a version behind a wrong CRC says nothing");
    assert!(Keyring::open_within(&bytes, None, &[raw(1)], test_bounds()).is_ok(), "any store");
}

// JK-31: the place is named.
#[test]
fn damage_names_field_and_offset() {
    let mut bytes = pair().encode();
    bytes[100] ^= 1;
    let end = bytes.len() - 32;
    assert_eq!(open(&bytes, &[]).unwrap_err(), KeyringError::Damaged { field: "SHA-256", offset: end });
    let at_slot = resummed(&pair().encode(), |bytes| bytes[64 + 208] = 7);
    assert_eq!(open(&at_slot, &[]).unwrap_err(), KeyringError::Damaged { field: "slot kind", offset: 272 });
}

#[test]
fn jk_32_slot_rules() {
    let bytes = pair().encode();
    let check = |at: usize, value: u8, expected: &str| {
        let changed = resummed(&bytes, |bytes| bytes[at] = value);
        assert_eq!(class(&changed, &[raw(1)]), expected, "byte {at} = {value}");
    };
    for kind in (0..=255).filter(|kind| *kind != 1 && *kind != 2) {
        check(64, kind, "damaged");
    }
    check(64, 2, "bad parameters");
    check(64 + 2, 1, "damaged");
    check(64 + 3, 1, "damaged");
    for unused in 4..32 {
        check(64 + unused, 1, "damaged");
    }
    // The passphrase slot's salt is any bytes; the wrap notices.
    check(64 + 208 + 16, 0, "damaged behind a slot");
}

#[test]
fn jk_33_slot_names() {
    let long = "n".repeat(64);
    for good in ["a", "~", "key file 1", long.as_str()] {
        assert_eq!(create(&[slot(good, &raw(1))]).unwrap().slots()[0].name, good);
    }
    let too_long = "n".repeat(65);
    for bad in ["", " a", "a ", "a\n", "a\x1b[31m", "\u{e4}", too_long.as_str()] {
        assert_eq!(create(&[slot(bad, &raw(1))]).map(|_| ()), Err(ChangeError::BadName), "{bad:?}");
    }
    let twice = create(&[slot("a", &raw(1)), slot("a", &raw(2))]);
    assert_eq!(twice.map(|_| ()), Err(ChangeError::DuplicateName));

    let bytes = pair().encode();
    let check = |change: fn(&mut Vec<u8>)| assert_eq!(class(&resummed(&bytes, change), &[raw(1)]), "damaged");
    check(|b| b[64 + 1] = 0);
    check(|b| b[64 + 1] = 65);
    check(|b| b[64 + 1] = 255);
    check(|b| b[64 + 1] = 3);
    check(|b| b[64 + 32] = b' ');
    check(|b| b[64 + 33] = 0xff);
    check(|b| b[64 + 33] = 0x07);
    check(|b| b[64 + 95] = b'x');
    check(|b| {
        b[64 + 208 + 1] = 4;
        b.copy_within(64 + 32..64 + 96, 64 + 208 + 32);
    });
}

#[test]
fn jk_22_refused_parameters_need_no_secret_and_no_work() {
    let bytes = pair().encode();
    let params = |memory: u32, passes: u32, lanes: u32| {
        resummed(&bytes, |bytes| {
            bytes[276..280].copy_from_slice(&memory.to_le_bytes());
            bytes[280..284].copy_from_slice(&passes.to_le_bytes());
            bytes[284..288].copy_from_slice(&lanes.to_le_bytes());
        })
    };
    let production = |bytes: &[u8], secret: Secret| Keyring::open(bytes, Some(STORE), &[secret]).map(|_| ());
    for (memory, passes, lanes) in [
        (8, 1, 1),
        (19_455, 2, 1),
        (1_048_577, 3, 4),
        (65_536, 17, 4),
        (65_536, 3, 9),
        (u32::MAX, u32::MAX, u32::MAX),
    ] {
        let bytes = params(memory, passes, lanes);
        for secret in [raw(1), phrase("horse"), raw(9)] {
            assert_eq!(production(&bytes, secret), Err(KeyringError::BadParameters));
        }
        assert_eq!(Outline::read(&bytes, None), Err(KeyringError::BadParameters));
    }
    // At the ceiling the raw slot is judged without a run that would take minutes; the MAC knows the change.
    assert_eq!(production(&params(1_048_576, 16, 8), raw(1)), Err(KeyringError::DamagedBehindSlot));
    assert_eq!(production(&params(1_048_576, 16, 8), raw(9)), Err(KeyringError::WrongKey));
    let refused = Keyring::create(STORE, &[slot("phrase", &phrase("horse"))], &mut SeededRandom::new(1));
    assert_eq!(refused.map(|_| ()), Err(ChangeError::BadParameters));
}

#[test]
fn jk_21_each_slot_opens_with_its_own_secret() {
    let bytes = pair().encode();
    for (secret, name) in [(raw(1), "file"), (phrase("horse"), "phrase"), (phrase("horse\n"), "phrase")] {
        let ring = open(&bytes, &[secret]).unwrap();
        assert_eq!(ring.opened_slot().name, name);
        assert_eq!(ring.active_root().id(), pair().active_root().id());
        assert_eq!((ring.generation(), ring.store_id(), ring.roots().len()), (1, STORE, 1));
        assert_eq!(ring.encode(), bytes);
    }
    for secrets in [vec![], vec![raw(2)], vec![phrase("house")], vec![raw(2), phrase("Horse")]] {
        assert_eq!(class(&bytes, &secrets), "wrong key");
    }
    // The same 32 bytes as passphrase and as raw secret are two secrets.
    let text = Secret::passphrase(&[1; 32]).unwrap();
    assert_eq!(class(&small().encode(), &[text]), "wrong key");
}

#[test]
fn jk_39_raw_secrets_come_first() {
    let ring = open(&pair().encode(), &[phrase("horse"), phrase("other"), raw(1)]).unwrap();
    assert_eq!(ring.opened_slot().name, "file");
    let ring = open(&pair().encode(), &[phrase("other"), raw(2), phrase("horse")]).unwrap();
    assert_eq!(ring.opened_slot().name, "phrase");
}

#[test]
fn jk_36_jk_38_what_fails_behind_a_slot_is_damage() {
    let ring = pair();
    let bytes = ring.encode();
    let list_at = 64 + 2 * 208;
    let places = [
        ("wrapped keyring key", 64 + 160),
        ("wrap tag", 64 + 192),
        ("the slot's name", 64 + 32),
        ("another slot's check", 64 + 208 + 128),
        ("another slot's key", 64 + 208 + 160),
        ("generation", 33),
        ("list salt", list_at),
        ("list check", list_at + 32),
        ("list tag", list_at + 64),
        ("list", list_at + 80),
        ("list end", bytes.len() - 65),
        ("MAC", bytes.len() - 64),
    ];
    for (what, at) in places {
        let changed = resummed(&bytes, |bytes| bytes[at] ^= 1);
        assert_eq!(class(&changed, &[raw(1)]), "damaged behind a slot", "{what}");
        assert_eq!(class(&changed, &[raw(2)]), "wrong key", "{what}, a key that opens nothing");
    }
    // The opened slot's own check is what tells the keys apart.
    let changed = resummed(&bytes, |bytes| bytes[64 + 128] ^= 1);
    assert_eq!(class(&changed, &[raw(1)]), "wrong key");
}

// JK-34: the list is bound to the bytes before it, even for a holder of the keyring key.
#[test]
fn jk_34_the_list_knows_its_keyring() {
    let ring = pair();
    assert_eq!(class(&forged_inside(&ring, |_| ()), &[raw(1)]), "opens");
    for at in [33, 64 + 208 + 160, 64 + 2 * 208, 64 + 2 * 208 + 32, 64 + 2 * 208 + 64, 64 + 2 * 208 + 80] {
        let changed = forged_inside(&ring, |bytes| bytes[at] ^= 1);
        assert_eq!(class(&changed, &[raw(1)]), "damaged behind a slot", "byte {at}");
    }
}

/// A keyring whose list holds `entries` instead of its own.
fn with_list(entries: &[([u8; 16], u8, u8)]) -> Vec<u8> {
    let ring = small();
    let mut bytes = layout::fixed_part(&STORE, 1, 1, entries.len()).to_vec();
    bytes.extend_from_slice(&ring.bytes[64..64 + 208]);
    let salt = [5; 32];
    let what = layout::what(crate::label::ROOT_LIST, &STORE);
    let once = crate::wrap::OneTime::derive(&ring.key, &what, &salt);
    bytes.extend_from_slice(&salt);
    bytes.extend_from_slice(once.check());
    let mut list = Vec::new();
    for (id, state, zero) in entries {
        list.extend_from_slice(id);
        list.push(*state);
        list.extend_from_slice(&[0, 0, 0, 0, 0, 0, *zero]);
        list.extend_from_slice(&[0x77; 32]);
    }
    let tag = once.seal(&bytes, &mut list);
    bytes.extend_from_slice(&tag);
    bytes.extend_from_slice(&list);
    let mac = super::open::mac_key(&ring.key, &STORE).mac(&bytes);
    bytes.extend_from_slice(&mac);
    let hash = sha256(&[&bytes]);
    bytes.extend_from_slice(&hash);
    bytes
}

#[test]
fn jk_35_rules_of_the_list() {
    let (a, b) = ([1; 16], [2; 16]);
    let check = |entries: &[([u8; 16], u8, u8)], expected: &str| {
        assert_eq!(class(&with_list(entries), &[raw(1)]), expected, "{entries:?}");
    };
    check(&[(a, 1, 0)], "opens");
    check(&[(a, 2, 0), (b, 1, 0)], "opens");
    check(&[(a, 2, 0)], "damaged behind a slot");
    check(&[(a, 1, 0), (b, 1, 0)], "damaged behind a slot");
    check(&[(a, 1, 0), (a, 2, 0)], "damaged behind a slot");
    check(&[(a, 0, 0)], "damaged behind a slot");
    check(&[(a, 1, 0), (b, 3, 0)], "damaged behind a slot");
    check(&[(a, 1, 1)], "damaged behind a slot");
    let many: Vec<_> = (0..1024u32)
        .map(|i| (std::array::from_fn(|b| (i >> (b % 4 * 8)) as u8), 2 - (i == 3) as u8, 0))
        .collect();
    let ring = open(&with_list(&many), &[raw(1)]).unwrap();
    assert_eq!((ring.roots().len(), ring.active_root().id()), (1024, KeyId(many[3].0)));
    let full = ring.rotate(&[raw(1)], &[], &mut SeededRandom::new(1));
    assert_eq!(full.map(|_| ()), Err(ChangeError::TooManyRootKeys));
}

#[test]
fn jk_40_jk_41_adding_and_removing_slots() {
    let random = &mut SeededRandom::new(8);
    let first = small();
    let second = first.add_slot(&slot("phrase", &phrase("horse")), random).unwrap();
    assert_eq!((first.generation(), second.generation()), (1, 2));
    assert_eq!(second.bytes[64..272], first.bytes[64..272], "the untouched slot");
    assert_ne!(second.bytes[480..512], first.bytes[272..304], "a fresh list salt");
    let again = open(&second.encode(), &[phrase("horse")]).unwrap();
    assert_eq!(again.active_root().id(), first.active_root().id());
    assert_eq!(again.slots().iter().map(|slot| slot.name.as_str()).collect::<Vec<_>>(), ["file", "phrase"]);
    assert_eq!(again.slots()[1].kind, SlotKind::Passphrase(test_params()));

    let twice = second.add_slot(&slot("phrase", &raw(3)), random);
    assert_eq!(twice.map(|_| ()), Err(ChangeError::DuplicateName));

    let third = again.remove_slot("file", random).unwrap();
    assert_eq!(third.generation(), 3);
    assert_eq!(class(&third.encode(), &[raw(1)]), "wrong key");
    assert_eq!(class(&third.encode(), &[phrase("horse")]), "opens");
    assert_eq!(third.remove_slot("phrase", random).map(|_| ()), Err(ChangeError::LastSlot));
    assert_eq!(third.remove_slot("file", random).map(|_| ()), Err(ChangeError::UnknownSlot));

    assert_eq!(create(&[]).map(|_| ()), Err(ChangeError::NoSlot));
    let mut full = small();
    for index in 1..SLOTS_MAX {
        full = full.add_slot(&slot(&format!("slot {index}"), &raw(1)), random).unwrap();
    }
    assert_eq!(full.add_slot(&slot("ninth", &raw(1)), random).map(|_| ()), Err(ChangeError::TooManySlots));
    assert_eq!(open(&full.encode(), &[raw(1)]).unwrap().slots().len(), 8);
}

#[test]
fn jk_42_rotating() {
    let random = &mut SeededRandom::new(9);
    let old = pair();
    let rotated = old.rotate(&[phrase("horse"), raw(1)], &[], random).unwrap();
    assert_eq!((rotated.generation(), rotated.roots().len()), (2, 2));
    assert_ne!(rotated.active_root().id(), old.active_root().id());
    assert_ne!(rotated.key.bytes(), old.key.bytes(), "a new keyring key");
    let kept = rotated.root(&old.active_root().id()).unwrap();
    assert_eq!(kept.state(), RootState::Retired);
    assert_eq!(kept.key.bytes(), old.active_root().key.bytes());
    for secret in [raw(1), phrase("horse")] {
        let ring = open(&rotated.encode(), &[secret]).unwrap();
        assert_eq!(ring.slots(), old.slots());
        assert_eq!(ring.active_root().id(), rotated.active_root().id());
    }
    assert_ne!(
        rotated.bytes[64 + 208 + 16..64 + 208 + 32],
        old.bytes[64 + 208 + 16..64 + 208 + 32],
        "a fresh salt"
    );

    let lost = old.rotate(&[raw(1)], &[], random);
    assert_eq!(lost.map(|_| ()), Err(ChangeError::SlotNotCovered { name: "phrase".into() }));
    let dropped = old.rotate(&[raw(1)], &["phrase"], random).unwrap();
    assert_eq!(class(&dropped.encode(), &[phrase("horse")]), "wrong key");
    assert_eq!(class(&dropped.encode(), &[raw(1)]), "opens");
    assert_eq!(old.rotate(&[raw(1)], &["other"], random).map(|_| ()), Err(ChangeError::UnknownSlot));
    assert_eq!(old.rotate(&[raw(1)], &["phrase", "file"], random).map(|_| ()), Err(ChangeError::LastSlot));
}

#[test]
fn jk_45_replacing_a_slot_is_one_generation() {
    let random = &mut SeededRandom::new(9);
    let next = pair().replace_slot("phrase", &slot("third", &raw(3)), random).unwrap();
    assert_eq!((next.generation(), next.slots().len()), (2, 2));
    assert_eq!(class(&next.encode(), &[phrase("horse")]), "wrong key");
    assert_eq!(class(&next.encode(), &[raw(3)]), "opens");
    // The last slot too: one comes as the other goes.
    let only = small().replace_slot("file", &slot("file", &raw(2)), random).unwrap();
    assert_eq!(class(&only.encode(), &[raw(2)]), "opens");
    assert_eq!(
        pair().replace_slot("none", &slot("x", &raw(2)), random).map(|_| ()),
        Err(ChangeError::UnknownSlot)
    );
    let taken = pair().replace_slot("phrase", &slot("file", &raw(2)), random);
    assert_eq!(taken.map(|_| ()), Err(ChangeError::DuplicateName));
}

#[test]
fn jk_42_which_slots_a_set_of_secrets_leaves_uncovered() {
    assert_eq!(pair().uncovered_slots(&[raw(1)]).unwrap(), ["phrase"]);
    assert_eq!(pair().uncovered_slots(&[phrase("horse"), raw(1)]).unwrap(), [""; 0]);
    let random = &mut SeededRandom::new(9);
    let next = pair().rotate_adding(&[raw(1)], &["phrase"], &[slot("phrase", &raw(4))], random).unwrap();
    assert_eq!((next.generation(), next.slots().len()), (2, 2));
    assert_eq!(class(&next.encode(), &[raw(4)]), "opens");
}

#[test]
fn jk_57_issued_anew_above_what_was_seen() {
    let random = &mut SeededRandom::new(9);
    for (above, expected) in [(0, 2), (1, 2), (7, 8)] {
        let next = pair().reissue_above(above, random).unwrap();
        let ring = open(&next.encode(), &[raw(1)]).unwrap();
        assert_eq!((ring.generation(), ring.slots()), (expected, pair().slots()));
    }
    assert_eq!(pair().reissue_above(u64::MAX, random).map(|_| ()), Err(ChangeError::GenerationExhausted));
    let mut bytes = pair().encode();
    let stated = |bytes: &[u8]| crate::Outline::stated_generation(bytes, STORE);
    bytes.truncate(64);
    assert_eq!(stated(&bytes), Some(1), "the fixed part alone");
    assert_eq!(stated(&bytes[..63]), None);
    assert_eq!(crate::Outline::stated_generation(&bytes, StoreId([0; 16])), None);
    bytes[33] ^= 1;
    assert_eq!(stated(&bytes), None);
}

#[test]
fn jk_43_dropping_root_keys() {
    let random = &mut SeededRandom::new(9);
    let old = small();
    let rotated = old.rotate(&[raw(1)], &[], random).unwrap();
    let dropped = rotated.drop_root(&old.active_root().id(), random).unwrap();
    let ring = open(&dropped.encode(), &[raw(1)]).unwrap();
    assert_eq!((ring.generation(), ring.roots().len()), (3, 1));
    assert!(ring.root(&old.active_root().id()).is_none());
    let active = rotated.drop_root(&rotated.active_root().id(), random);
    assert_eq!(active.map(|_| ()), Err(ChangeError::RootKeyActive));
    assert_eq!(old.drop_root(&KeyId([0; 16]), random).map(|_| ()), Err(ChangeError::UnknownRootKey));
}

#[test]
fn jk_13_no_change_repeats_a_key_and_nonce() {
    let recorder = NonceRecorder::new();
    let _installed = recorder.install();
    let random = &mut SeededRandom::new(10);
    let (file, passphrase) = (raw(1), phrase("horse"));
    let slots = [slot("file", &file), slot("phrase", &passphrase)];
    let ring = Keyring::create_within(STORE, &slots, random, test_bounds()).unwrap();
    assert_eq!(recorder.total(), 3, "two slots, one list");
    let ring = ring.add_slot(&slot("third", &raw(1)), random).unwrap();
    let ring = ring.remove_slot("third", random).unwrap();
    let ring = ring.rotate(&[raw(1), phrase("horse")], &[], random).unwrap();
    // Twice from one generation, as after a failed write of the first attempt.
    for _ in 0..2 {
        let _ = ring.rotate(&[raw(1), phrase("horse")], &[], random).unwrap();
    }
    assert_eq!(recorder.total(), 3 + 2 + 1 + 3 + 3 + 3);
    assert_eq!(recorder.repeated(), []);
}

#[test]
fn jk_44_one_generation_has_one_encoding() {
    let ring = pair();
    assert_eq!(ring.encode(), ring.encode());
    assert_eq!(open(&ring.encode(), &[raw(1)]).unwrap().encode(), ring.encode());
    let last = forged_inside(&ring, |bytes| bytes[32..40].fill(0xff));
    assert_eq!(class(&last, &[raw(1)]), "damaged behind a slot");
    let mut at_the_end = ring;
    at_the_end.outline.generation = u64::MAX;
    let refused = at_the_end.add_slot(&slot("more", &raw(1)), &mut SeededRandom::new(1));
    assert_eq!(refused.map(|_| ()), Err(ChangeError::GenerationExhausted));
}

// JK-13: no salt, no id and no key is used unless it was drawn.
#[test]
fn missing_randomness_stops_every_change_at_every_draw() {
    struct Fails(u64, SeededRandom);
    impl RandomBytes for Fails {
        fn fill(&mut self, buf: &mut [u8]) -> Result<(), RandomUnavailable> {
            self.0 = self.0.checked_sub(1).ok_or(RandomUnavailable)?;
            self.1.fill(buf)
        }
    }
    let ring = pair();
    let (file, passphrase) = (raw(1), phrase("horse"));
    let slots = [slot("file", &file), slot("phrase", &passphrase)];
    let draws = |change: &dyn Fn(&mut dyn RandomBytes) -> Result<Keyring, ChangeError>| {
        for draws in 0.. {
            match change(&mut Fails(draws, SeededRandom::new(1))) {
                Err(error) => assert_eq!(error, ChangeError::RandomUnavailable),
                Ok(_) => return draws,
            }
        }
        0
    };
    assert_eq!(draws(&|random| Keyring::create_within(STORE, &slots, random, test_bounds())), 7);
    assert_eq!(draws(&|random| ring.add_slot(&slot("third", &raw(3)), random)), 2);
    assert_eq!(draws(&|random| ring.remove_slot("phrase", random)), 1);
    assert_eq!(draws(&|random| ring.rotate(&[raw(1)], &["phrase"], random)), 5);
}

// ---- two copies ----

fn verdict(copies: [Option<&[u8]>; 2]) -> Result<(usize, bool), &'static str> {
    choose_within(copies, Some(STORE), test_bounds())
        .map(|choice| (choice.used, choice.level))
        .map_err(|error| name(&error))
}

/// Generations 1 and 2 of one keyring.
fn generations() -> (Vec<u8>, Vec<u8>) {
    let ring = small();
    let next = ring.add_slot(&slot("second", &raw(2)), &mut SeededRandom::new(3)).unwrap();
    (ring.encode(), next.encode())
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[200] ^= 4;
    bytes
}

#[test]
fn jk_50_the_higher_intact_generation_counts() {
    let (old, new) = generations();
    let bad = flipped(&new);
    let check = |copies, expected| assert_eq!(verdict(copies), expected);
    check([Some(&new), Some(&new)], Ok((0, false)));
    check([Some(&new), Some(&old)], Ok((0, true)));
    check([Some(&old), Some(&new)], Ok((1, true)));
    check([Some(&old), Some(&bad)], Ok((0, true)));
    check([Some(&bad), Some(&old)], Ok((1, true)));
    check([Some(&old), None], Ok((0, true)));
    check([None, Some(&old)], Ok((1, true)));

    let choice = choose_within([Some(&bad), Some(&old)], None, test_bounds()).unwrap();
    assert_eq!(choice.bytes, old.as_slice());
    let end = bad.len() - 32;
    let damaged = CopyState::Damaged { field: "SHA-256", offset: end };
    assert_eq!(choice.copies, [damaged, CopyState::Intact { generation: 1 }]);
    assert_eq!((choice.outline.generation, choice.outline.store_id), (1, STORE));
    assert_eq!(choice.open(&[raw(1)]).unwrap().generation(), 1);
}

#[test]
fn jk_51_no_intact_copy() {
    let (old, new) = generations();
    let (bad_old, bad_new) = (flipped(&old), flipped(&new));
    let mut oversize = old.clone();
    oversize.resize(KEYRING_BYTES_MAX + 1, 0);
    let check = |copies, expected| assert_eq!(verdict(copies), expected);
    check([None, None], Err("missing"));
    check([Some(&bad_old), Some(&bad_new)], Err("damaged"));
    check([Some(&bad_old), None], Err("damaged"));
    check([None, Some(&bad_new)], Err("damaged"));
    check([Some(&[]), Some(&[])], Err("damaged"));
    check([Some(&oversize), None], Err("damaged"));
    check([Some(&oversize), Some(&new)], Ok((1, true)));
}

#[test]
fn jk_52_one_generation_twice() {
    let (old, _) = generations();
    let other = create(&[slot("file", &raw(1)), slot("more", &raw(1))]).unwrap().encode();
    assert_eq!(verdict([Some(&old), Some(&other)]), Err("damaged"));
}

#[test]
fn jk_53_what_must_not_be_passed_over() {
    let (old, new) = generations();
    let newer = resummed(&new, |bytes| bytes[8] = 2);
    let foreign = resummed(&new, |bytes| bytes[16] = 0);
    let hostile = resummed(&pair().encode(), |bytes| bytes[279] = 0xff);
    for (copy, expected) in [(newer, "newer"), (foreign, "wrong store"), (hostile, "bad parameters")] {
        for sound in [Some(old.as_slice()), None] {
            assert_eq!(verdict([Some(&copy), sound]), Err(expected));
            assert_eq!(verdict([sound, Some(&copy)]), Err(expected));
        }
    }
    let foreign = resummed(&new, |bytes| bytes[16] = 0);
    let unexpected = choose_within([Some(&old), Some(&foreign)], None, test_bounds());
    assert_eq!(unexpected.map(|_| ()), Err(KeyringError::WrongStore), "two stores, none expected");
    assert_eq!(choose([Some(&old), None], Some(STORE)).unwrap().used, 0);
}

#[test]
fn jk_54_the_copy_that_counts_judges_the_key() {
    let ring = pair();
    let next = ring.remove_slot("file", &mut SeededRandom::new(4)).unwrap();
    let (old, new) = (ring.encode(), next.encode());
    let choice = choose_within([Some(&old), Some(&new)], Some(STORE), test_bounds()).unwrap();
    assert_eq!(choice.open(&[raw(1)]).map(|_| ()), Err(KeyringError::WrongKey));
    assert_eq!(choice.open(&[phrase("horse")]).unwrap().generation(), 2);
    let forged = resummed(&new, |bytes| bytes[64 + 192] ^= 1);
    let choice = choose_within([Some(&old), Some(&forged)], Some(STORE), test_bounds()).unwrap();
    assert_eq!(choice.open(&[phrase("horse")]).map(|_| ()), Err(KeyringError::DamagedBehindSlot));
}

// ---- arbitrary bytes ----

proptest! {
    // JK-30
    #[test]
    fn arbitrary_bytes_never_panic_and_never_open(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(open(&bytes, &[raw(1), phrase("horse")]).is_err());
        prop_assert!(choose([Some(&bytes), Some(&bytes)], None).is_err());
    }

    // JK-30: with right sums and a right magic, so that the inner rules meet arbitrary bytes too.
    #[test]
    fn arbitrary_bytes_behind_right_sums_never_open(
        slots in 0u16..10, roots in 0u16..4, tail in proptest::collection::vec(any::<u8>(), 0..2000), fit: bool,
    ) {
        let mut tail = tail;
        if fit {
            tail.resize(144 + 208 * usize::from(slots) + 56 * usize::from(roots), 0x20);
        }
        let mut bytes = layout::fixed_part(&STORE, 1, 1, 1).to_vec();
        bytes.extend_from_slice(&tail);
        let length = u32::try_from(bytes.len()).unwrap();
        let bytes = resummed(&bytes, |bytes| {
            bytes[12..16].copy_from_slice(&length.to_le_bytes());
            bytes[40..42].copy_from_slice(&slots.to_le_bytes());
            bytes[42..44].copy_from_slice(&roots.to_le_bytes());
        });
        prop_assert!(open(&bytes, &[raw(1)]).is_err());
    }

    // JK-37, JK-36: several changed bytes, with the sums wrong or right again.
    #[test]
    fn a_changed_keyring_never_opens(
        changes in proptest::collection::vec((0usize..680, 1u8..=255), 1..6), right_sums: bool, known: bool,
    ) {
        let original = pair().encode();
        let mut bytes = original.clone();
        for (at, mask) in &changes {
            let at = at % bytes.len();
            bytes[at] ^= mask;
        }
        // Two changes of one byte can cancel out.
        prop_assume!(bytes != original);
        let secret = if known { raw(1) } else { raw(2) };
        if right_sums {
            let bytes = resummed(&bytes, |_| ());
            prop_assume!(bytes != original);
            prop_assert!(open(&bytes, &[secret]).is_err());
        } else {
            prop_assert_eq!(class(&bytes, &[secret]), "damaged");
        }
    }
}
