//! Two copies of a keyring: which one counts, and what it says about the key.

use super::super::copies::choose_within;
use super::*;

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
