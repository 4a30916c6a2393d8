//! The plaintext of a group (section 5.2, JF-11, JF-12).

use super::*;
use crate::limits::{BODY_BYTES_MAX, RECORDS_MAX, TIME_MS_MAX, UNIT_BYTES_MAX, padded};

fn record(stream: Option<[u8; 16]>, time_ms: u64, body: &[u8]) -> RecordRef<'_> {
    RecordRef { kind: 64, class: Class::NONE, stream, event_number: 1, time_ms, logical_size: 2, body }
}

fn id(number: u64) -> [u8; 16] {
    (u128::from(number) << 64 | 1).to_le_bytes()
}

fn encode(base_time_ms: u64, records: &[RecordRef<'_>]) -> Vec<u8> {
    let mut group = GroupEncoder::new(base_time_ms);
    for record in records {
        group.push(record).unwrap();
    }
    assert_eq!(group.record_count() as usize, records.len());
    let length = group.len();
    let bytes = group.finish();
    assert_eq!(bytes.len(), length);
    bytes
}

fn decode(bytes: &[u8], count: usize) -> Result<Vec<RecordRef<'_>>, FormatError> {
    GroupReader::new(bytes, count as u32)?.collect()
}

/// A plaintext by hand, padded.
fn raw(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = parts.concat();
    bytes.resize(padded(bytes.len()), 0);
    bytes
}

#[track_caller]
fn refused(parts: &[&[u8]], count: usize, expected: FormatError) {
    assert_eq!(decode(&raw(parts), count), Err(expected));
}

#[test]
fn jf_12_layout_and_stream_references() {
    let records = [
        RecordRef { kind: 300, class: Class::OPENS | Class::IDENTITY, ..record(Some(id(1)), 1000, b"ab") },
        record(None, 999, b""),
        record(Some(id(2)), 1001, b"c"),
        RecordRef { event_number: 300, ..record(Some(id(1)), 1000, b"") },
        RecordRef { class: Class::CLOSES, logical_size: 128, ..record(Some(id(2)), 1064, b"") },
    ];
    let bytes = encode(1000, &records);
    let expected = raw(&[
        &[0xe8, 7],
        &[0xac, 2, 9, 1],
        &id(1),
        &[1, 0, 2, 2, b'a', b'b'],
        &[64, 0, 0, 1, 1, 2, 0],
        &[64, 0, 1],
        &id(2),
        &[1, 2, 2, 1, b'c'],
        &[64, 0, 2, 0xac, 2, 0, 2, 0],
        &[64, 2, 3, 1, 0x80, 1, 0x80, 1, 0],
    ]);
    assert_eq!(bytes, expected);
    assert_eq!(decode(&bytes, 5).unwrap(), records);
}

#[test]
fn jf_12_values_at_their_ends() {
    let records = [
        RecordRef { kind: u16::MAX, event_number: u64::MAX, logical_size: u64::MAX, ..record(None, 0, b"") },
        record(None, TIME_MS_MAX, b""),
    ];
    for base in [0, 1, TIME_MS_MAX] {
        let bytes = encode(base, &records);
        assert_eq!(decode(&bytes, 2).unwrap(), records);
    }
    let late = record(None, TIME_MS_MAX + 1, b"");
    assert_eq!(GroupEncoder::new(0).push(&late), Err(Why::OutOfRange.of("time", 0)));
    assert_eq!(encode(u64::MAX, &records), encode(TIME_MS_MAX, &records));
}

#[test]
fn jf_12_journal_kinds() {
    let forget = Forget { streams: vec![id(1)] }.encode().unwrap();
    let restored = Restored { from: crate::EndRecord::NONE, restored_ms: 5, fenced: true }.encode();
    let of = |kind: u16, class: Class, body| RecordRef { kind, class, ..record(None, 5, body) };
    let good = [
        of(KIND_FORGET, Class::FORGETS, &forget[..]),
        of(KIND_RESTORED, Class::NONE, &restored[..]),
        of(KIND_UNFENCED, Class::NONE, b""),
    ];
    assert_eq!(decode(&encode(5, &good), 3).unwrap(), good);
    let mismatch = Why::Mismatch.of("class", 0);
    let unknown = Why::OutOfRange.of("record kind", 0);
    for (bad, expected) in [
        (of(KIND_FORGET, Class::NONE, &forget), mismatch),
        (of(KIND_FORGET, Class::FORGETS | Class::OPENS, &forget), mismatch),
        (of(64, Class::FORGETS, &forget), mismatch),
        (of(KIND_RESTORED, Class::FORGETS, &restored), mismatch),
        (of(0, Class::NONE, b""), unknown),
        (of(4, Class::NONE, b""), unknown),
        (of(63, Class::NONE, b""), unknown),
        (of(KIND_FORGET, Class::FORGETS, b""), Why::Short.of("forget count", 0)),
        (of(KIND_RESTORED, Class::NONE, b""), Why::Short.of("restored", 0)),
        (of(KIND_UNFENCED, Class::NONE, b"x"), Why::Trailing.of("unfenced", 0)),
    ] {
        assert_eq!(bad.check(), Err(expected), "{bad:?}");
        let mut group = GroupEncoder::new(5);
        assert_eq!(group.push(&bad), Err(expected));
        assert_eq!(group.record_count(), 0);
        let head = [5, bad.kind as u8, bad.class.bits(), 0, 1, 0, 2, bad.body.len() as u8];
        refused(&[&head, bad.body], 1, expected.shifted(1));
    }
}

#[test]
fn jf_12_refusals_of_a_reader() {
    let one = [64, 0, 0, 1, 0, 2, 0];
    refused(&[&[5], &one, &[0; 64]], 1, Why::Trailing.of("padding", 8));
    refused(&[&[5], &one, &[1]], 1, Why::NotZero.of("padding", 8));
    refused(&[&[5], &one, &one], 1, Why::NotZero.of("padding", 8));
    refused(&[&[5], &one], 2, Why::OutOfRange.of("record kind", 8));
    refused(&[&[5], &[64, 16, 0, 1, 0, 2, 0]], 1, Why::NotZero.of("class", 2));
    refused(&[&[5], &[0x80, 0x80, 4, 0, 0, 1, 0, 2, 0]], 1, Why::OutOfRange.of("record kind", 1));
    refused(&[&[5], &[0xc0, 0, 0, 0, 1, 0, 2, 0]], 1, Why::NotMinimal.of("record kind", 1));
    refused(&[&[5], &[64, 0, 2, 1, 0, 2, 0]], 1, Why::OutOfRange.of("stream", 3));
    refused(
        &[&[5], &[64, 0, 1], &id(1), &[1, 0, 2, 0, 64, 0, 3, 1, 0, 2, 0]],
        2,
        Why::OutOfRange.of("stream", 26),
    );
    refused(
        &[&[5], &[64, 0, 1], &id(1), &[1, 0, 2, 0, 64, 0, 1], &id(1), &[1, 0, 2, 0]],
        2,
        Why::NotMinimal.of("stream", 26),
    );
    refused(&[&[5], &[64, 0, 0, 1, 11, 2, 0]], 1, Why::OutOfRange.of("time", 5));
    refused(&[&[5], &[64, 0, 0, 1, 0, 2, 60], &[1; 50]], 1, Why::Short.of("body length", 8));
    refused(&[&[5], &[64, 0, 0, 1, 0, 2, 0x81, 0x80, 0x80, 1]], 1, Why::TooLong.of("body length", 7));
    let late = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    refused(&[&late, &[64, 0, 0, 1, 2, 2, 0]], 1, Why::OutOfRange.of("time", 9));
    let later = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
    refused(&[&later, &one], 1, Why::OutOfRange.of("base time", 0));
    refused(&[&[0x85, 0], &one], 1, Why::NotMinimal.of("base time", 0));
}

#[test]
fn jf_11_a_reader_checks_sizes_before_it_reads() {
    let new = |bytes: &[u8], count| GroupReader::new(bytes, count).map(drop).unwrap_err();
    assert_eq!(new(&[], 1), Why::OutOfRange.of("body length", 0));
    assert_eq!(new(&[0; 63], 1), Why::OutOfRange.of("body length", 0));
    assert_eq!(new(&vec![0; BODY_BYTES_MAX + 64], 1), Why::TooLong.of("body length", 0));
    assert_eq!(new(&[0; 64], 0), Why::OutOfRange.of("record count", 0));
    assert_eq!(new(&[0; 64], 10), Why::Short.of("record count", 0));
    assert!(GroupReader::new(&[0; 64], 9).is_ok());
    let longest = vec![0; BODY_BYTES_MAX];
    assert_eq!(new(&longest, RECORDS_MAX + 1), Why::TooLong.of("record count", 0));
    assert!(GroupReader::new(&longest, RECORDS_MAX).is_ok());
}

#[test]
fn a_reader_stops_at_its_first_error() {
    let bytes = raw(&[&[5], &[64, 0, 0, 1, 0, 2, 0], &[0, 0, 0, 1, 0, 2, 0], &[64, 0, 0, 1, 0, 2, 0]]);
    let mut reader = GroupReader::new(&bytes, 3).unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
    assert!(GroupReader::new(&bytes, 3).unwrap().check().is_err());
    assert_eq!(GroupReader::new(&bytes, 3).unwrap().base_time_ms(), 5);
}

#[test]
fn jf_11_write_limits_are_read_limits() {
    let body = vec![7; RECORD_BYTES_MAX + 1];
    let mut group = GroupEncoder::new(0);
    assert_eq!(group.push(&record(None, 0, &body)), Err(Why::TooLong.of("body length", 0)));
    let largest = record(Some(id(1)), 0, &body[..RECORD_BYTES_MAX]);
    group.push(&largest).unwrap();
    group.push(&largest).unwrap();
    // 64 KiB are left, less two envelopes.
    let before = group.len();
    let rest = record(Some(id(2)), 0, &body[..64 << 10]);
    assert_eq!(group.push(&rest), Err(Why::TooLong.of("body length", 0)));
    assert_eq!(group.would_be_len(&[rest]), Err(Why::TooLong.of("body length", 0)));
    assert_eq!((group.len(), group.record_count()), (before, 2));
    // The refused record's stream is not taken for one that was named.
    group.push(&record(Some(id(2)), 0, &body[..(64 << 10) - 100])).unwrap();
    let bytes = group.finish();
    assert_eq!(bytes.len(), BODY_BYTES_MAX);
    assert_eq!(decode(&bytes, 3).unwrap()[2].stream, Some(id(2)));
}

#[test]
fn jf_11_records_of_a_frame() {
    let mut group = GroupEncoder::new(0);
    let mut records = Vec::new();
    for number in 0..u64::from(RECORDS_MAX) {
        // Every stream twice, half of the references long after the name.
        records.push(record(Some(id(number % (u64::from(RECORDS_MAX) / 2))), 0, b""));
        group.push(&records[number as usize]).unwrap();
    }
    let full = Err(Why::TooLong.of("record count", 0));
    assert_eq!(group.push(&records[0]), full);
    assert_eq!(group.would_be_len(&records[..1]).map(drop), full);
    assert_eq!(decode(&group.finish(), records.len()).unwrap(), records);
}

#[test]
fn a_unit_leaves_whole() {
    let mut group = GroupEncoder::new(0);
    group.push(&record(Some(id(0)), 0, b"first")).unwrap();
    let alone = group.clone().finish();
    // Enough new streams to make the table grow between checkpoint and rollback.
    let unit: Vec<_> = (0..200).map(|number| record(Some(id(number)), 3, b"unit")).collect();
    let before = group.checkpoint();
    let would_be = group.would_be_len(&unit).unwrap();
    for record in &unit {
        group.push(record).unwrap();
    }
    assert_eq!(group.len(), would_be);
    let with_unit = group.clone().finish();
    group.rollback(before);
    assert_eq!(group.clone().finish(), alone);
    for record in &unit {
        group.push(record).unwrap();
    }
    assert_eq!(group.finish(), with_unit);
}

#[test]
fn jf_11_unit_limit() {
    let body = vec![0; RECORD_BYTES_MAX];
    assert_eq!(unit_bytes(&[]), Err(Why::OutOfRange.of("record count", 0)));
    // Base time 1; a record's envelope: kind, class, stream, number, time, size, and a length of 4 or 3.
    assert_eq!(unit_bytes(&[record(None, 9, &body)]), Ok(1 + 10 + RECORD_BYTES_MAX));
    let second = RECORD_BYTES_MAX - 1 - 10 - 9;
    let fits = [record(None, 9, &body), record(None, 9, &body[..second])];
    assert_eq!(unit_bytes(&fits), Ok(UNIT_BYTES_MAX));
    assert_eq!(decode(&encode(9, &fits), 2).unwrap(), fits);
    let over = [record(None, 9, &body), record(None, 9, &body[..second + 1])];
    assert_eq!(unit_bytes(&over), Err(Why::TooLong.of("unit", 0)));
    for (unit, verdict) in [(&fits[..], true), (&over[..], false), (&fits[..1], true), (&[][..], false)] {
        assert_eq!(check_unit(unit.iter().copied()).is_ok(), verdict);
    }
    let many = vec![record(None, 9, b""); RECORDS_MAX as usize + 1];
    assert_eq!(check_unit(many.iter().copied()), Err(Why::TooLong.of("record count", 0)));
    assert_eq!(check_unit(many[1..].iter().copied()), Ok(()));
    let late = RecordRef { time_ms: TIME_MS_MAX + 1, ..many[0] };
    assert_eq!(check_unit([late].into_iter()), Err(Why::OutOfRange.of("time", 0)));
}

#[test]
fn classes() {
    assert_eq!(Class::from_bits(15).map(Class::bits), Some(15));
    assert_eq!(Class::from_bits(16), None);
    let both = Class::OPENS | Class::IDENTITY;
    assert_eq!(both.bits(), 9);
    assert!(both.contains(Class::OPENS) && !both.contains(Class::CLOSES));
    assert!(!Class::OPENS.contains(both));
}
