//! What each change makes of a keyring, and what it draws.

use super::*;
use crate::random::{RandomBytes, RandomUnavailable};
use crate::testing::NonceRecorder;

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
    assert_eq!(lost.map(|_| ()), Err(ChangeError::SlotNotCovered { names: vec!["phrase".into()] }));
    // All of them at once, so that nobody learns of them one try at a time.
    let three = old.add_slot(&slot("third", &raw(3)), random).unwrap();
    let lost = three.rotate(&[raw(1)], &[], random);
    let names = vec!["phrase".into(), "third".into()];
    assert_eq!(lost.map(|_| ()), Err(ChangeError::SlotNotCovered { names }));
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
