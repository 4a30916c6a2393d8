//! The frame header (section 5.1).

use super::*;

fn sample() -> FrameHeader {
    FrameHeader {
        body_length: 128,
        index: 4,
        kind: FrameKind::Group,
        first_sequence: 100,
        record_count: 3,
        synced_through: 99,
        previous_chain: [0xa1; 16],
        body_crc: 0x0403_0201,
        body_tag: [0xb2; 16],
        header_tag: [0xc3; 16],
    }
}

fn link() -> FrameHeader {
    FrameHeader { body_length: 64, index: 0, kind: FrameKind::Link, record_count: 0, ..sample() }
}

#[track_caller]
fn refused(header: FrameHeader, change: impl FnOnce(&mut [u8; 96]), expected: FormatError) {
    let mut bytes = header.encode();
    change(&mut bytes);
    let crc = crc32(&bytes[..CRC_AT]);
    put(&mut bytes, CRC_AT, crc.to_le_bytes());
    assert!(looks_like_header(&bytes) || expected.why == Why::Magic);
    assert_eq!(FrameHeader::decode(&bytes), Err(expected));
}

#[test]
fn jf_7_header_layout() {
    let header = sample();
    let bytes = header.encode();
    assert_eq!(bytes[..4], [0x53, 0x4c, 0xf7, 0x01]);
    assert_eq!(bytes[4..16], [128, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(bytes[16..24], [100, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[24..32], [3, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(bytes[32], 99);
    assert_eq!(bytes[40..56], [0xa1; 16]);
    assert_eq!(bytes[56..72], [0xb2; 16]);
    assert_eq!(bytes[72..88], [0xc3; 16]);
    assert_eq!(bytes[88..92], [0; 4]);
    assert_eq!(FrameHeader::decode(&bytes), Ok(header));
    assert_eq!(FrameHeader::decode(&[&bytes[..], &[7]].concat()), Ok(header));
    assert_eq!(tagged_part(&bytes), &header.tagged_bytes());
    assert_eq!(header_tag(&bytes), [0xc3; 16]);
    assert_eq!((header.next_sequence(), header.frame_bytes()), (103, 224));
}

#[test]
fn jf_7_body_context() {
    let context = sample().body_context(&[0xee; 16], 0x0102);
    let expected = [
        &[0xee; 16][..],
        &[2, 1, 0, 0, 0, 0, 0, 0],
        &[4, 0, 0, 0],
        &[1, 0],
        &[100, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0],
        &[128, 0, 0, 0],
    ]
    .concat();
    assert_eq!(context[..], expected);
    let later = FrameHeader { body_crc: 0, body_tag: [0; 16], previous_chain: [0; 16], ..sample() };
    assert_eq!(later.body_context(&[0xee; 16], 0x0102), context);
}

#[test]
fn jf_8_chain_input() {
    let bytes = sample().encode();
    let input = chain_input(&[5; 16], &bytes);
    assert_eq!(input[..16], [5; 16]);
    assert_eq!(input[16..], bytes);
}

#[test]
fn every_flipped_bit_is_refused() {
    for header in [sample(), link()] {
        let bytes = header.encode();
        for bit in 0..96 * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let why = FrameHeader::decode(&flipped).unwrap_err().why;
            assert_eq!(why, if bit < 32 { Why::Magic } else { Why::Crc }, "bit {bit}");
            assert!(!looks_like_header(&flipped));
        }
    }
}

#[test]
fn jf_9_and_jf_11_fields_are_judged_behind_the_crc() {
    refused(sample(), |bytes| bytes[0] = 0, Why::Magic.of("frame magic", 0));
    for at in [13, 14, 15] {
        refused(sample(), |bytes| bytes[at] = 1, Why::NotZero.of("flags", at));
    }
    refused(sample(), |bytes| bytes[91] = 1, Why::NotZero.of("frame header", 91));
    for kind in [0, 6, 255] {
        refused(sample(), |bytes| bytes[12] = kind, Why::OutOfRange.of("frame kind", 12));
    }
    refused(sample(), |bytes| bytes[4] = 0, Why::OutOfRange.of("body length", 4));
    refused(sample(), |bytes| bytes[4] = 130, Why::OutOfRange.of("body length", 4));
    let longest = BODY_BYTES_MAX as u32;
    refused(sample(), |bytes| put(bytes, 4, (longest + 64).to_le_bytes()), Why::TooLong.of("body length", 4));
    refused(sample(), |bytes| put(bytes, 24, 65_537_u32.to_le_bytes()), Why::TooLong.of("record count", 24));
    refused(sample(), |bytes| put(bytes, 24, [0; 4]), Why::Mismatch.of("record count", 24));
    refused(sample(), |bytes| put(bytes, 16, [0; 8]), Why::OutOfRange.of("first sequence", 16));
    refused(sample(), |bytes| put(bytes, 16, [0xff; 8]), Why::OutOfRange.of("first sequence", 16));
    refused(sample(), |bytes| put(bytes, 8, [0; 4]), Why::Mismatch.of("frame index", 8));
    refused(link(), |bytes| bytes[8] = 1, Why::Mismatch.of("frame index", 8));
    refused(link(), |bytes| bytes[24] = 1, Why::Mismatch.of("record count", 24));
    refused(link(), |bytes| bytes[4] = 128, Why::Mismatch.of("body length", 4));
    let widest = FrameHeader { body_length: longest, record_count: RECORDS_MAX, ..sample() };
    assert_eq!(FrameHeader::decode(&widest.encode()), Ok(widest));
}

#[test]
fn jf_9_kinds_and_places() {
    use FrameKind::{Folded, Group, Link, Seal, Sources};
    for (kind, index, count) in [(Group, 1, 1), (Link, 0, 0), (Seal, 1, 0), (Folded, 1, 1), (Sources, 0, 0)] {
        let header = FrameHeader { kind, index, record_count: count, body_length: 64, ..sample() };
        assert_eq!(FrameHeader::decode(&header.encode()), Ok(header));
        let elsewhere = FrameHeader { index: 1 - index, ..header };
        assert_eq!(elsewhere.check(), Err(Why::Mismatch.of("frame index", 8)));
        let counted = FrameHeader { record_count: 1 - count, ..header };
        assert_eq!(counted.check(), Err(Why::Mismatch.of("record count", 24)));
    }
}

#[test]
fn jf_10_synced_through() {
    assert_eq!(sample().check_synced_through(), Ok(()));
    for synced_through in [98, 100] {
        let header = FrameHeader { synced_through, ..sample() };
        assert_eq!(header.check_synced_through(), Err(Why::Mismatch.of("synced through", 32)));
    }
}

#[test]
fn jf_13_sequences_of_neighbours() {
    let group = sample();
    let next = FrameHeader { index: 5, first_sequence: group.next_sequence(), synced_through: 102, ..group };
    assert_eq!(next.check_synced_through(), Ok(()));
    let seal = FrameHeader { kind: FrameKind::Seal, index: 6, record_count: 0, body_length: 64, ..next };
    assert_eq!(seal.next_sequence(), 103);
    let last = FrameHeader { first_sequence: u64::MAX - 3, ..group };
    assert_eq!((last.check(), last.next_sequence()), (Ok(()), u64::MAX));
}

#[test]
fn short_slices() {
    let bytes = sample().encode();
    assert_eq!(FrameHeader::decode(&bytes[..95]), Err(Why::Short.of("frame header", 95)));
    assert!(!looks_like_header(&bytes[..95]));
    assert!(!looks_like_header(&bytes[..3]));
    assert!(!looks_like_header(&[0; 96]));
    assert!(looks_like_header(&bytes));
}
