//! Head slots (section 4).

use super::*;

const MAC: [u8; 32] = [0xdd; 32];

fn sample() -> HeadSlot {
    HeadSlot {
        counter: 5,
        key_id: [1; 16],
        store_id: [2; 16],
        lineage: [3; 16],
        epoch: 4,
        segment: 6,
        frames: 7,
        last_sequence: 8,
        chain: [9; 16],
        state: HeadState::Open,
    }
}

fn whole(slot: &HeadSlot) -> [u8; HEAD_SLOT_BYTES] {
    let mut out = [0; HEAD_SLOT_BYTES];
    put(&mut out, 0, slot.encode(&MAC));
    out
}

#[track_caller]
fn refused(slot: HeadSlot, change: impl FnOnce(&mut [u8; HEAD_SLOT_BYTES]), expected: FormatError) {
    let mut bytes = whole(&slot);
    change(&mut bytes);
    let crc = crc32(&bytes[..CRC_AT]);
    put(&mut bytes, CRC_AT, crc.to_le_bytes());
    assert_eq!(HeadSlot::decode(&bytes, 4096), Err(expected));
}

#[test]
fn jf_2_slot_layout() {
    let bytes = whole(&sample());
    assert_eq!(bytes[..16], *b"SEALOGHD\x01\0\0\x02\0\0\0\0");
    assert_eq!(bytes[16], 5);
    for (at, length, value) in [(24, 16, 1), (40, 16, 2), (56, 16, 3), (104, 16, 9), (128, 32, 0xdd)] {
        assert!(bytes[at..at + length].iter().all(|&byte| byte == value), "at {at}");
    }
    assert_eq!((bytes[72], bytes[80], bytes[88], bytes[96], bytes[120]), (4, 6, 7, 8, 1));
    assert_eq!(bytes[..128], sample().encode_unsealed());
    assert_eq!(HeadSlot::decode(&bytes, 4096), Ok((sample(), MAC)));
    let closed = HeadSlot { counter: 6, state: HeadState::Closed, ..sample() };
    assert_eq!(HeadSlot::decode(&whole(&closed), 0), Ok((closed, MAC)));
}

#[test]
fn jf_2_parity() {
    assert_eq!((slot_offset(1), slot_offset(2), slot_offset(u64::MAX)), (4096, 0, 4096));
    assert_eq!(HeadSlot::decode(&whole(&sample()), 0), Err(Why::Mismatch.of("counter", 16)));
}

#[test]
fn jf_3_a_rewrite_leaves_the_other_slot_and_the_zeros_alone() {
    let mut file = [0; 2 * HEAD_SLOT_BYTES];
    let slots = [sample(), HeadSlot { counter: 6, frames: 8, ..sample() }];
    for slot in &slots {
        put(&mut file, slot_offset(slot.counter) as usize, slot.encode(&MAC));
    }
    assert_eq!(HeadSlot::decode(&file[..HEAD_SLOT_BYTES], 0), Ok((slots[1], MAC)));
    assert_eq!(HeadSlot::decode(&file[HEAD_SLOT_BYTES..], 4096), Ok((slots[0], MAC)));
}

#[test]
fn jf_2_every_flipped_bit_is_refused() {
    let bytes = whole(&sample());
    for bit in 0..HEAD_SLOT_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        let why = HeadSlot::decode(&flipped, 4096).unwrap_err().why;
        assert_eq!(why, if bit < 164 * 8 { Why::Crc } else { Why::NotZero }, "bit {bit}");
    }
}

#[test]
fn jf_2_fields_are_judged_behind_the_crc() {
    refused(sample(), |bytes| bytes[7] = b'X', Why::Magic.of("magic", 0));
    refused(sample(), |bytes| bytes[8] = 2, Why::NewerVersion(2).of("version", 8));
    refused(sample(), |bytes| bytes[8] = 0, Why::OutOfRange.of("version", 8));
    refused(sample(), |bytes| bytes[11] = 4, Why::OutOfRange.of("slot length", 10));
    for at in [12, 15, 121, 127, 164, 511, 512, 4095] {
        refused(sample(), |bytes| bytes[at] = 1, Why::NotZero.of("head slot", at));
    }
    refused(sample(), |bytes| bytes[120] = 0, Why::OutOfRange.of("head state", 120));
    refused(sample(), |bytes| bytes[120] = 3, Why::OutOfRange.of("head state", 120));
    let none = HeadSlot { segment: 0, frames: 0, last_sequence: 0, chain: [0; 16], ..sample() };
    assert_eq!(HeadSlot::decode(&whole(&none), 4096), Ok((none, MAC)));
    refused(none, |bytes| bytes[88] = 1, Why::NotZero.of("frame count", 88));
    refused(none, |bytes| bytes[96] = 1, Why::NotZero.of("last sequence", 96));
    refused(none, |bytes| bytes[104] = 1, Why::NotZero.of("chain value", 104));
    refused(sample(), |bytes| bytes[96..104].fill(0xff), Why::OutOfRange.of("last sequence", 96));
    let zero = HeadSlot { counter: 2, ..sample() };
    let mut bytes = whole(&zero);
    bytes[16] = 0;
    let crc = crc32(&bytes[..CRC_AT]);
    put(&mut bytes, CRC_AT, crc.to_le_bytes());
    assert_eq!(HeadSlot::decode(&bytes, 0), Err(Why::OutOfRange.of("counter", 16)));
}

#[test]
fn lengths_are_exact() {
    let bytes = whole(&sample());
    assert_eq!(HeadSlot::decode(&bytes[..512], 4096), Err(Why::Short.of("head slot", 512)));
    let long = [&bytes[..], &[0]].concat();
    assert_eq!(HeadSlot::decode(&long, 4096), Err(Why::Trailing.of("head slot", 4096)));
}
