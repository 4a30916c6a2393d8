//! Known answers and rules of keys, wraps, secrets and the key file. The expected bytes were computed with another
//! implementation of the same primitives.

use proptest::prelude::*;

use crate::key::KeyBytes;
use crate::testing::{NonceRecorder, SeededRandom, hex, seal_forged, test_params};
use crate::*;

fn data_key() -> DataKey {
    DataKey::generate(std::array::from_fn(|i| i as u8), b"hedge")
}

fn root_key() -> RootKey {
    RootKey { id: KeyId([4; 16]), state: RootState::Active, key: KeyBytes::copy_of(&[0x11; 32]) }
}

fn sealer() -> SealOnce {
    SealOnce::new(data_key().segment_keys(b"header").body)
}

#[test]
fn jk_5_data_key_known_answer_and_hedge() {
    let expected = hex("a0a53e7e482a2a10e8cbf5561ccd31a8076575040c849d317949ad54d8cba427");
    assert_eq!(data_key().0.bytes().as_slice(), expected);
    let other = DataKey::generate(std::array::from_fn(|i| i as u8), b"hedgf");
    assert_ne!(other.0.bytes(), data_key().0.bytes(), "equal randomness, another hedge");
}

#[test]
fn jk_6_jk_7_segment_keys_known_answer() {
    let keys = data_key().segment_keys(&[0x5a; 4096]);
    let mut body = *b"one commit group";
    let tag = SealOnce::new(keys.body).seal(7, b"aad", &mut body).unwrap();
    assert_eq!(body.as_slice(), hex("c367f6e7769f41ebadcf8f639e619d1d"));
    assert_eq!(tag.as_slice(), hex("8360bf4e20bad6c898536903290f026f"));

    let mut header = [0x5a; 4096];
    header[4095] ^= 1;
    let other = data_key().segment_keys(&header);
    assert_eq!(other.body.open(7, b"aad", &mut body, &tag), Err(Rejected));
    let same = data_key().segment_keys(&[0x5a; 4096]);
    for (index, aad, flip) in [(8, b"aad", 0), (7, b"aae", 0), (7, b"aad", 1)] {
        let mut changed = body;
        changed[3] ^= flip;
        assert_eq!(same.body.open(index, aad, &mut changed, &tag), Err(Rejected));
    }
    same.body.open(7, b"aad", &mut body, &tag).unwrap();
    assert_eq!(&body, b"one commit group");
}

// JK-15
#[test]
fn jk_15_summary_key_known_answer() {
    let key = data_key().segment_keys(&[0x5a; 4096]).summary;
    let of = SummaryOf { store_id: [3; 16], version: 1, suite: 1 };
    let mut body = *b"one summary body";
    let mut check = [0; 32];
    let tag = key.seal(
        &of,
        &[7; 32],
        |own| {
            check = *own;
            b"aad".to_vec()
        },
        &mut body,
    );
    assert_eq!(check.as_slice(), hex("5942243981a6110b3a823af9e4c2133aa8c2049c9679d1a09a4091ba2b5d9531"));
    assert_eq!(body.as_slice(), hex("4ddaff0b2d04e2eb341081a8cbda8bff"));
    assert_eq!(tag.as_slice(), hex("9c4f9277131a7c7171028bbce2bf2817"));
    let opens = |of: &SummaryOf, salt: u8, check: &[u8; 32], aad: &[u8], tag: &[u8; 16], header: u8| {
        let key = data_key().segment_keys(&[header; 4096]).summary;
        let mut buf = body;
        key.open(of, &[salt; 32], check, aad, &mut buf, tag).map(|()| buf)
    };
    assert_eq!(opens(&of, 7, &check, b"aad", &tag, 0x5a).unwrap().as_slice(), b"one summary body");
    let other = SummaryOf { store_id: [4; 16], ..of };
    assert_eq!(opens(&other, 7, &check, b"aad", &tag, 0x5a), Err(Rejected));
    assert_eq!(opens(&of, 8, &check, b"aad", &tag, 0x5a), Err(Rejected));
    assert_eq!(opens(&of, 7, &[0; 32], b"aad", &tag, 0x5a), Err(Rejected));
    assert_eq!(opens(&of, 7, &check, b"aae", &tag, 0x5a), Err(Rejected));
    assert_eq!(opens(&of, 7, &check, b"aad", &[0; 16], 0x5a), Err(Rejected));
    assert_eq!(opens(&of, 7, &check, b"aad", &tag, 0x5b), Err(Rejected));
}

#[test]
fn jk_10_header_tag_known_answer() {
    let key = data_key().segment_keys(&[0x5a; 4096]).header;
    let tag = key.tag(b"frame header");
    assert_eq!(tag.as_slice(), hex("41f7ef68904b45e59fd345e59020b2d5"));
    key.verify(b"frame header", &tag).unwrap();
    assert_eq!(key.verify(b"frame headez", &tag), Err(Rejected));
    for bit in 0..128 {
        let mut wrong = tag;
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(key.verify(b"frame header", &wrong), Err(Rejected), "bit {bit}");
    }
}

#[test]
fn jk_11_mac_key_known_answer_and_separation() {
    let store = StoreId([0x22; 16]);
    let key = root_key().mac_key(b"head", &store);
    let mac = key.mac(b"bytes");
    assert_eq!(mac.as_slice(), hex("e0885bbea35b87b173e8e17dd7fb9146f8f410c036feb3dcb27136aef55da952"));
    key.verify(b"bytes", &mac).unwrap();
    assert_eq!(key.verify(b"bytez", &mac), Err(Rejected));
    assert_eq!(root_key().mac_key(b"heae", &store).verify(b"bytes", &mac), Err(Rejected));
    assert_eq!(root_key().mac_key(b"head", &StoreId([0x23; 16])).verify(b"bytes", &mac), Err(Rejected));
}

const WHAT: &[u8] =
    b"segment\x22\x22\x22\x22\x22\x22\x22\x22\x22\x22\x22\x22\x22\x22\x22\x22\x01\x00\x01\x00";

fn wrap() -> (Wrapped, Vec<u8>) {
    let mut aad = Vec::new();
    let wrapped = root_key().wrap(WHAT, [0x33; 32], &data_key(), |check| {
        aad = [b"header".as_slice(), &[0x33; 32], check].concat();
        aad.clone()
    });
    (wrapped, aad)
}

#[test]
fn jk_3_wrap_known_answer() {
    let (wrapped, aad) = wrap();
    assert_eq!(wrapped.salt, [0x33; 32]);
    assert_eq!(
        wrapped.sealed.as_slice(),
        hex("870a1feaf7dd87b0131059d106430674f92c5b37eb7b532edf61e230127f36d0")
    );
    assert_eq!(wrapped.tag.as_slice(), hex("50edea97a6abf6f0c1e0158386e4f7f3"));
    assert_eq!(
        wrapped.check.as_slice(),
        hex("80a24619ab6c6b53638294164b78f6c0037e318400c94e32e69f1ebb274893a8")
    );
    let key = root_key().unwrap(WHAT, &wrapped, &aad).unwrap();
    assert_eq!(key.0.bytes(), data_key().0.bytes());
}

#[test]
fn jk_4_every_changed_part_of_a_wrap_is_rejected() {
    let (wrapped, aad) = wrap();
    let refused = |what: &[u8], wrapped: &Wrapped, aad: &[u8]| {
        assert_eq!(root_key().unwrap(what, wrapped, aad).map(|_| ()), Err(Rejected));
    };
    refused(b"head", &wrapped, &aad);
    refused(WHAT, &wrapped, b"");
    for byte in 0..32 {
        let mut changed = wrapped;
        changed.salt[byte] ^= 1;
        refused(WHAT, &changed, &aad);
        let mut changed = wrapped;
        changed.sealed[byte] ^= 1;
        refused(WHAT, &changed, &aad);
        let mut changed = wrapped;
        changed.check[byte] ^= 1;
        refused(WHAT, &changed, &aad);
        let mut changed = wrapped;
        changed.tag[byte / 2] ^= 1;
        refused(WHAT, &changed, &aad);
    }
    let other = RootKey { id: KeyId([4; 16]), state: RootState::Active, key: KeyBytes::copy_of(&[0x12; 32]) };
    assert_eq!(other.unwrap(WHAT, &wrapped, &aad).map(|_| ()), Err(Rejected));
}

// JK-4: the check is judged first, so another key and changed bytes are told apart.
#[test]
fn the_check_is_compared_before_the_tag() {
    use crate::wrap::{Unopened, unwrap_key};
    let (mut wrapped, aad) = wrap();
    wrapped.tag[0] ^= 1;
    let right = unwrap_key(&KeyBytes::copy_of(&[0x11; 32]), WHAT, &wrapped, &aad);
    assert_eq!(right.map(|_| ()).unwrap_err(), Unopened::Changed);
    let wrong = unwrap_key(&KeyBytes::copy_of(&[0x12; 32]), WHAT, &wrapped, &aad);
    assert_eq!(wrong.map(|_| ()).unwrap_err(), Unopened::OtherKey);
}

#[test]
fn jk_8_an_index_is_sealed_once_and_upwards() {
    let mut sealer = sealer();
    let mut body = *b"body";
    sealer.seal(0, b"", &mut body).unwrap();
    sealer.seal(5, b"", &mut body).unwrap();
    let before = body;
    for index in [0, 4, 5] {
        assert_eq!(sealer.seal(index, b"", &mut body), Err(SealError::IndexNotIncreasing), "{index}");
    }
    assert_eq!(body, before, "a refused body is untouched");
    sealer.seal(u64::MAX, b"", &mut body).unwrap();
    assert_eq!(sealer.seal(u64::MAX, b"", &mut body), Err(SealError::IndexNotIncreasing));
    assert_eq!((sealer.frames(), sealer.bytes()), (3, 12));

    let mut retired = SealOnce::new(data_key().segment_keys(b"other").body);
    retired.seal(0, b"", &mut body).unwrap();
    retired.retire();
    assert_eq!(retired.seal(1, b"", &mut body), Err(SealError::Retired));
}

#[test]
fn jk_12_soft_and_hard_limits() {
    let limits = SealLimits { frames_soft: 2, frames_hard: 3, bytes_soft: 20, bytes_hard: 30 };
    let key = || data_key().segment_keys(b"header").body;
    let mut frames = SealOnce::with_limits(key(), limits);
    frames.seal(0, b"", &mut [0; 1]).unwrap();
    assert!(!frames.at_soft_limit());
    frames.seal(1, b"", &mut [0; 1]).unwrap();
    assert!(frames.at_soft_limit());
    frames.seal(2, b"", &mut [0; 1]).unwrap();
    assert_eq!(frames.seal(3, b"", &mut [0; 1]), Err(SealError::LimitReached));

    let mut bytes = SealOnce::with_limits(key(), limits);
    bytes.seal(0, b"", &mut [0; 20]).unwrap();
    assert!(bytes.at_soft_limit());
    assert_eq!(bytes.seal(1, b"", &mut [0; 11]), Err(SealError::LimitReached));
    // A refused index is not used up.
    bytes.seal(1, b"", &mut [0; 10]).unwrap();

    let segment = SealLimits::SEGMENT;
    assert_eq!((segment.frames_soft, segment.frames_hard), (1_048_576, 2_097_152));
    assert_eq!((segment.bytes_soft, segment.bytes_hard), (64 << 20, 256 << 20));
}

#[test]
fn jk_13_the_recorder_sees_seals_wraps_and_repetitions() {
    let recorder = NonceRecorder::new();
    let installed = recorder.install();
    let mut sealer = sealer();
    sealer.seal(0, b"", &mut [1; 8]).unwrap();
    sealer.seal(1, b"", &mut [1; 8]).unwrap();
    let (_, _) = wrap();
    assert_eq!((recorder.total(), recorder.repeated().len()), (3, 0));
    let _ = seal_forged(sealer.key(), 1, b"", &mut [2; 8]);
    assert_eq!(recorder.repeated().len(), 1, "the same index again");
    let _ = wrap();
    assert_eq!(recorder.repeated().len(), 2, "the same salt again");
    let other = recorder.clone();
    std::thread::spawn(move || {
        let _installed = other.install();
        let _ = wrap();
    })
    .join()
    .unwrap();
    assert_eq!(recorder.repeated().len(), 3, "on another thread");
    drop(installed);
    let _ = wrap();
    assert_eq!(recorder.total(), 6, "not installed, not recorded");
}

#[test]
fn jk_14_no_debug_output_shows_a_secret() {
    let raw = Secret::raw([0xab; 32]);
    let phrase = Secret::passphrase(b"correct horse").unwrap();
    let slots = [
        NewSlot { name: "file", secret: &raw, params: SlotParams::DEFAULT },
        NewSlot { name: "phrase", secret: &phrase, params: test_params() },
    ];
    let bounds = testing::test_bounds();
    let mut random = |buf: &mut [u8]| {
        buf.fill(0xab);
        Ok(())
    };
    let keyring = Keyring::create_within(StoreId([1; 16]), &slots, &mut random, bounds).unwrap();
    let file = KeyFile::generate(StoreId([1; 16]), &mut random).unwrap();
    let keys = data_key().segment_keys(b"header");
    let shown = format!(
        "{raw:?} {phrase:?} {slots:?} {file:?} {keys:?} {:?} {:?} {:#?} {:?}",
        data_key(),
        root_key(),
        SealOnce::new(data_key().segment_keys(b"h").body),
        root_key().mac_key(b"head", &StoreId([1; 16])),
    );
    // Ids are public and, in this test, of the same bytes as the secrets: shown once each, 32 digits.
    let ring = format!("{keyring:?}").replace(&"ab".repeat(16), "<id>");
    for secret in ["abab", "171, 171", "correct horse", "0x11", "17, 17", "a0a53e7e", "160, 165"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
        assert!(!ring.contains(secret), "{secret} in {ring}");
    }
    assert!(ring.contains("phrase"), "names are shown: {ring}");
}

#[test]
fn jk_20_passphrase_rules() {
    let bytes = |input: &[u8]| Passphrase::from_bytes(input).map(|phrase| phrase.bytes().to_vec());
    assert_eq!(bytes(b"horse"), Ok(b"horse".to_vec()));
    assert_eq!(bytes(b"horse\n"), Ok(b"horse".to_vec()));
    assert_eq!(bytes(b"horse\n\n"), Ok(b"horse\n".to_vec()));
    assert_eq!(bytes(b" horse\r\n"), Ok(b" horse\r".to_vec()));
    assert_eq!(bytes("Pferd\u{e4}".as_bytes()), Ok("Pferd\u{e4}".as_bytes().to_vec()));
    assert_eq!(bytes(b""), Err(SecretError::Empty));
    assert_eq!(bytes(b"\n"), Err(SecretError::Empty));
    assert_eq!(bytes(b"horse\xff"), Err(SecretError::NotUtf8));
}

#[test]
fn jk_60_key_file_round_trip_and_raw_form() {
    let file = KeyFile::generate(StoreId([7; 16]), &mut SeededRandom::new(1)).unwrap();
    let bytes = file.encode();
    let (store, secret) = KeyFile::parse(bytes.as_slice()).unwrap();
    assert_eq!(store, Some(StoreId([7; 16])));
    match (secret, file.secret()) {
        (Secret::Raw(read), Secret::Raw(made)) => assert_eq!(read, made),
        (read, made) => panic!("{read:?} {made:?}"),
    }
    let (store, secret) = KeyFile::parse(&[9; 32]).unwrap();
    assert_eq!(store, None);
    assert!(matches!(secret, Secret::Raw(raw) if *raw == [9; 32]));
    let refused = KeyFile::generate(StoreId([7; 16]), &mut |_: &mut [u8]| Err(RandomUnavailable));
    assert_eq!(refused.map(|_| ()), Err(RandomUnavailable));
}

#[test]
fn jk_61_key_file_refusals() {
    let file = KeyFile::generate(StoreId([7; 16]), &mut SeededRandom::new(1)).unwrap();
    let good = file.encode().to_vec();
    let refused = |bytes: &[u8]| KeyFile::parse(bytes).map(|_| ()).unwrap_err();
    for length in (0..200).filter(|length| *length != 32 && *length != 64) {
        assert_eq!(refused(&vec![0; length]), KeyFileError::WrongLength, "{length}");
    }
    for bit in 0..512 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let expected = if bit < 64 { KeyFileError::NotAKeyFile } else { KeyFileError::Damaged };
        assert_eq!(refused(&bytes), expected, "bit {bit}");
    }
    let resummed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        refused(&bytes)
    };
    assert_eq!(resummed(8, 2), KeyFileError::UnsupportedVersion(2));
    assert_eq!(resummed(11, 1), KeyFileError::Damaged);
    let said = format!("{:?} {}", refused(&good[..63]), refused(&[0x5a; 64]));
    assert!(!said.contains("5a") && !said.contains("90"), "{said}");
}

proptest! {
    // JK-61
    #[test]
    fn parsing_a_key_file_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..130)) {
        let parsed = KeyFile::parse(&bytes).is_ok();
        prop_assert!(!parsed || bytes.len() == 32, "random bytes are no written key file");
    }

    // JK-7
    #[test]
    fn what_is_sealed_opens(index: u64, aad: Vec<u8>, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut buf = body.clone();
        let mut sealer = sealer();
        let tag = sealer.seal(index, &aad, &mut buf).unwrap();
        sealer.key().open(index, &aad, &mut buf, &tag).unwrap();
        prop_assert_eq!(buf, body);
    }
}
