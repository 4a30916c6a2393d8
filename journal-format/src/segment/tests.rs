//! The segment header: layout, the order of JF-4, what the wrap covers (JF-5).

use super::*;
use crate::end::How;

fn log() -> SegmentHeader {
    SegmentHeader {
        store_id: [0x11; 16],
        number: 9,
        suite: SUITE,
        codec: RECORD_CODEC,
        kind: SegmentKind::Log,
        lineage: [0x22; 16],
        predecessor_lineage: [0x33; 16],
        epoch: 5,
        created_ms: 1_767_225_600_000,
        key_id: [0x44; 16],
        wrap: WrapFields { salt: [0x55; 32], sealed: [0x66; 32], tag: [0x77; 16], check: [0x88; 32] },
        range_last: 9,
        generation: 0,
        link_in: EndRecord::NONE,
        link_out: EndRecord::NONE,
    }
}

fn end(segment: u64) -> EndRecord {
    EndRecord { segment, frames: 1, end_offset: 8352, last_sequence: 1, chain: [0x99; 16], how: How::Sealed }
}

fn compacted() -> SegmentHeader {
    SegmentHeader {
        kind: SegmentKind::Compacted,
        range_last: 12,
        generation: 2,
        link_in: end(8),
        link_out: end(12),
        ..log()
    }
}

/// Puts both CRCs right again, as only a writer of nonsense would.
fn resign(bytes: &mut [u8; HEADER_BYTES]) {
    let crc = crc32(&bytes[..FIXED_CRC_AT]);
    put(bytes, FIXED_CRC_AT, crc.to_le_bytes());
    let crc = crc32(&bytes[..WHOLE_CRC_AT]);
    put(bytes, WHOLE_CRC_AT, crc.to_le_bytes());
}

#[track_caller]
fn refused(header: SegmentHeader, change: impl FnOnce(&mut [u8; HEADER_BYTES]), expected: FormatError) {
    let mut bytes = header.encode();
    change(&mut bytes);
    resign(&mut bytes);
    assert_eq!(SegmentHeader::decode(&bytes), Err(expected));
}

#[test]
fn jf_4_header_round_trip_and_fixed_part() {
    for header in [log(), compacted()] {
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        let fixed = FixedPart { store_id: header.store_id, number: 9 };
        assert_eq!(FixedPart::decode(&bytes[..64]), Ok(fixed));
        assert_eq!(header.fixed_fields(), bytes[..136]);
    }
}

#[test]
fn jf_4_every_flipped_bit_is_refused() {
    let bytes = compacted().encode();
    for bit in 0..HEADER_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = SegmentHeader::decode(&flipped).unwrap_err();
        // The suite is tested before the CRC of the whole; nothing else is believed without one.
        let unsupported = matches!(error.why, Why::Unsupported(_)) && bit / 8 / 2 == 32;
        assert!(error.why == Why::Crc || unsupported, "bit {bit}: {error}");
    }
}

#[test]
fn jf_4_order_of_tests() {
    let mut bytes = log().encode();
    // Everything is wrong at once; what is put right goes from the front of the order to its back.
    bytes[0] ^= 1;
    put(&mut bytes, 8, 2_u16.to_le_bytes());
    bytes[13] = 1;
    // A change before byte 60 whose CRC is put right leaves the CRC of the whole as it was; this one does not.
    bytes[400] = 1;
    put(&mut bytes, 64, 9_u16.to_le_bytes());
    let decode = |bytes: &[u8], store: bool, key: bool| {
        SegmentHeader::decode_with(bytes, |_| store, |_| key).map(drop).unwrap_err()
    };
    assert_eq!(decode(&bytes, false, false), Why::Crc.of("fixed crc", 60));
    let crc = crc32(&bytes[..FIXED_CRC_AT]);
    put(&mut bytes, FIXED_CRC_AT, crc.to_le_bytes());
    assert_eq!(decode(&bytes, false, false), Why::Magic.of("magic", 0));
    bytes[0] ^= 1;
    let crc = crc32(&bytes[..FIXED_CRC_AT]);
    put(&mut bytes, FIXED_CRC_AT, crc.to_le_bytes());
    assert_eq!(decode(&bytes, false, false), Why::NewerVersion(2).of("version", 8));
    put(&mut bytes, 8, 1_u16.to_le_bytes());
    let crc = crc32(&bytes[..FIXED_CRC_AT]);
    put(&mut bytes, FIXED_CRC_AT, crc.to_le_bytes());
    assert_eq!(decode(&bytes, false, false), Why::Mismatch.of("store id", 16));
    assert_eq!(decode(&bytes, true, false), Why::Mismatch.of("key id", 120));
    assert_eq!(decode(&bytes, true, true), Why::Unsupported(9).of("suite", 64));
    put(&mut bytes, 64, SUITE.to_le_bytes());
    assert_eq!(decode(&bytes, true, true), Why::Crc.of("header crc", 4092));
    resign(&mut bytes);
    assert_eq!(decode(&bytes, true, true), Why::NotZero.of("segment header", 13));
    bytes[13] = 0;
    bytes[400] = 0;
    resign(&mut bytes);
    assert_eq!(SegmentHeader::decode(&bytes), Ok(log()));
}

#[test]
fn jf_4_fields_are_judged_behind_the_crcs() {
    for at in [12, 40, 59, 69, 71, 400, 4091] {
        refused(log(), |bytes| bytes[at] = 1, Why::NotZero.of("segment header", at));
    }
    refused(log(), |bytes| put(bytes, 8, [0, 0]), Why::OutOfRange.of("version", 8));
    refused(log(), |bytes| bytes[10] = 1, Why::OutOfRange.of("header length", 10));
    refused(log(), |bytes| bytes[66] = 2, Why::Unsupported(2).of("record codec", 66));
    refused(log(), |bytes| bytes[68] = 3, Why::OutOfRange.of("segment kind", 68));
    refused(log(), |bytes| put(bytes, 32, [0; 8]), Why::Mismatch.of("range first", 248));
    let zero = |bytes: &mut [u8; HEADER_BYTES]| {
        put(bytes, 32, [0; 8]);
        put(bytes, 248, [0; 8]);
    };
    refused(log(), zero, Why::OutOfRange.of("segment number", 32));
    refused(log(), |bytes| put(bytes, 72, [0; 16]), Why::OutOfRange.of("lineage id", 72));
    refused(log(), |bytes| put(bytes, 104, [0; 8]), Why::OutOfRange.of("epoch", 104));
    refused(log(), |bytes| bytes[256] = 10, Why::Mismatch.of("range last", 256));
    refused(log(), |bytes| bytes[264] = 1, Why::NotZero.of("generation", 264));
    refused(log(), |bytes| put(bytes, 272, end(8).encode()), Why::NotZero.of("link-in", 272));
    refused(log(), |bytes| put(bytes, 336, end(9).encode()), Why::NotZero.of("link-out", 336));
}

#[test]
fn jf_14_compacted_header() {
    refused(compacted(), |bytes| bytes[256] = 8, Why::OutOfRange.of("range last", 256));
    refused(compacted(), |bytes| bytes[264] = 0, Why::OutOfRange.of("generation", 264));
    refused(compacted(), |bytes| put(bytes, 272, end(9).encode()), Why::Mismatch.of("link-in", 272));
    refused(compacted(), |bytes| put(bytes, 336, end(13).encode()), Why::Mismatch.of("link-out", 336));
    refused(compacted(), |bytes| put(bytes, 336, [0; 64]), Why::Mismatch.of("link-out", 336));
    refused(compacted(), |bytes| bytes[272 + 50] = 1, Why::NotZero.of("end record", 322));
    refused(compacted(), |bytes| bytes[336 + 48] = 0, Why::Mismatch.of("how", 384));
}

#[test]
fn jf_5_the_wrap_covers_all_but_itself() {
    let header = compacted();
    let context = header.wrap_context();
    let bytes = header.encode();
    assert_eq!(context[..168], bytes[..168]);
    assert_eq!(context[168..216], [0; 48]);
    assert_eq!(context[216..4092], bytes[216..4092]);
    assert_eq!(context[4092..], [0; 4]);
    let unset = WrapFields { sealed: [0; 32], tag: [0; 16], ..header.wrap };
    assert_eq!(SegmentHeader { wrap: unset, ..header }.wrap_context(), context);
    let purpose = header.wrap_purpose();
    assert_eq!(purpose[..7], *b"segment");
    assert_eq!(purpose[7..23], [0x11; 16]);
    assert_eq!(purpose[23..], [1, 0, 1, 0]);
}

#[test]
fn lengths_are_exact() {
    let bytes = log().encode();
    assert_eq!(FixedPart::decode(&bytes[..63]), Err(Why::Short.of("segment header", 63)));
    assert_eq!(SegmentHeader::decode(&bytes[..4095]), Err(Why::Short.of("segment header", 4095)));
    let long = [&bytes[..], &[0]].concat();
    assert_eq!(SegmentHeader::decode(&long), Err(Why::Trailing.of("segment header", 4096)));
}
