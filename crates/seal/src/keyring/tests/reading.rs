//! What a keyring is read as: sizes, classes and their order, slots, the list of root keys.

use super::*;

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
