//! What holds for any value and any bytes: round trips both ways, no panic, no single flipped bit accepted.

use proptest::prelude::*;
use sealog_journal_format::compacted::{FoldedGroup, FoldedStream, Run, Source, Sources};
use sealog_journal_format::journal_records::{Forget, Restored, Unfenced};
use sealog_journal_format::limits::{HEAD_SLOT_BYTES, HEADER_BYTES, SEQUENCE_MAX, TIME_MS_MAX};
use sealog_journal_format::names::{QuarantineName, SegmentName};
use sealog_journal_format::record::{check_unit, unit_bytes};
use sealog_journal_format::{
    Class, EndRecord, FixedPart, FrameHeader, FrameKind, GroupEncoder, GroupReader, HeadSlot, HeadState, How,
    RecordRef, SegmentHeader, SegmentKind, StoreFile, WrapFields, frame, head,
};
use sha2::Digest;

fn sha256(bytes: &[u8]) -> [u8; 32] {
    sha2::Sha256::digest(bytes).into()
}

fn id() -> impl Strategy<Value = [u8; 16]> {
    // Mostly few ids, so that references happen.
    prop_oneof![3 => (0..5_u8).prop_map(|byte| [byte; 16]), 1 => any::<[u8; 16]>()]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..300_u64, any::<u64>(), Just(u64::MAX)]
}

fn end_of(segment: u64) -> impl Strategy<Value = EndRecord> {
    let how = prop_oneof![Just(How::Sealed), Just(How::CutAtRecovery)];
    (0..1_000_000_u64, 0..1000_u64, 0..=SEQUENCE_MAX, any::<[u8; 16]>(), how).prop_map(
        move |(frames, more, last_sequence, chain, how)| EndRecord {
            segment,
            frames,
            end_offset: 8192 + frames * 160 + more * 32,
            last_sequence,
            chain,
            how,
        },
    )
}

fn end() -> impl Strategy<Value = EndRecord> {
    prop_oneof![1 => Just(EndRecord::NONE), 4 => (1..u64::MAX).prop_flat_map(end_of)]
}

type Ids = ([u8; 16], [u8; 16], [u8; 16], [u8; 16]);

fn header() -> impl Strategy<Value = SegmentHeader> {
    let ids = any::<Ids>().prop_filter("a lineage", |ids| ids.1 != [0; 16]);
    let wrap = any::<([u8; 32], [u8; 32], [u8; 16], [u8; 32])>();
    let range = (2..u64::MAX / 2, 0..1000_u64, 1..u64::MAX);
    let base = (ids, wrap, range, 1..=u64::MAX, number(), any::<bool>());
    base.prop_flat_map(|(ids, wrap, (number, width, generation), epoch, created_ms, compacted)| {
        let links = if compacted {
            (end_of(number - 1), end_of(number + width)).boxed()
        } else {
            Just((EndRecord::NONE, EndRecord::NONE)).boxed()
        };
        links.prop_map(move |(link_in, link_out)| SegmentHeader {
            store_id: ids.0,
            number,
            suite: 1,
            codec: 1,
            kind: if compacted { SegmentKind::Compacted } else { SegmentKind::Log },
            lineage: ids.1,
            predecessor_lineage: ids.2,
            epoch,
            created_ms,
            key_id: ids.3,
            wrap: WrapFields { salt: wrap.0, sealed: wrap.1, tag: wrap.2, check: wrap.3 },
            range_last: if compacted { number + width } else { number },
            generation: if compacted { generation } else { 0 },
            link_in,
            link_out,
        })
    })
}

fn frame_header() -> impl Strategy<Value = FrameHeader> {
    use FrameKind::{Folded, Group, Link, Seal, Sources};
    let kind = prop_oneof![Just(Group), Just(Link), Just(Seal), Just(Folded), Just(Sources)];
    let numbers = (1..1000_u32, 1..=65_536_u32, 1..65_000_u32, 1..u64::MAX / 2, any::<u64>());
    (kind, numbers, any::<(u32, [u8; 16], [u8; 16], [u8; 16])>()).prop_map(
        |(kind, (index, records, units, first_sequence, synced_through), (body_crc, chain, body, tag))| {
            FrameHeader {
                body_length: if matches!(kind, Link | Seal) { 64 } else { units * 64 },
                index: if matches!(kind, Link | Sources) { 0 } else { index },
                kind,
                first_sequence,
                record_count: if matches!(kind, Group | Folded) { records } else { 0 },
                synced_through,
                previous_chain: chain,
                body_crc,
                body_tag: body,
                header_tag: tag,
            }
        },
    )
}

fn slot() -> impl Strategy<Value = HeadSlot> {
    let numbers = (1..=u64::MAX, number(), 1..=u64::MAX, number(), 0..=SEQUENCE_MAX);
    (numbers, any::<Ids>(), any::<bool>()).prop_map(|(numbers, ids, closed)| HeadSlot {
        counter: numbers.0,
        key_id: ids.0,
        store_id: ids.1,
        lineage: ids.2,
        epoch: numbers.1,
        segment: numbers.2,
        frames: numbers.3,
        last_sequence: numbers.4,
        chain: ids.3,
        state: if closed { HeadState::Closed } else { HeadState::Open },
    })
}

type OwnedRecord = (u16, u8, Option<[u8; 16]>, u64, u64, u64, Vec<u8>);

fn record() -> impl Strategy<Value = OwnedRecord> {
    let class = (0..16_u8).prop_map(|bits| bits & !Class::FORGETS.bits());
    let time = prop_oneof![1_700_000_000_000..1_700_000_100_000_u64, 0..=TIME_MS_MAX];
    let stream = proptest::option::weighted(0.8, id());
    let body = proptest::collection::vec(any::<u8>(), 0..80);
    (64..=u16::MAX, class, stream, number(), time, number(), body)
}

fn borrowed(owned: &[OwnedRecord]) -> Vec<RecordRef<'_>> {
    let each = |record: &'_ OwnedRecord| (record.0, record.1, record.2, record.3, record.4, record.5);
    let borrow = |record| {
        let (kind, class, stream, event_number, time_ms, logical_size) = each(record);
        let class = Class::from_bits(class).expect("bits below 16");
        RecordRef { kind, class, stream, event_number, time_ms, logical_size, body: &record.6 }
    };
    owned.iter().map(borrow).collect()
}

fn group_of(base_time_ms: u64, records: &[RecordRef<'_>]) -> Vec<u8> {
    let mut group = GroupEncoder::new(base_time_ms);
    for record in records {
        group.push(record).expect("a good record");
    }
    group.finish()
}

/// Flips each bit of `bytes` in turn and demands that `accepts` refuses.
fn every_flip_is_refused(bytes: &[u8], accepts: impl Fn(&[u8]) -> bool) {
    let mut flipped = bytes.to_vec();
    for bit in 0..bytes.len() * 8 {
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(!accepts(&flipped), "bit {bit}");
        flipped[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(accepts(&flipped));
}

fn slot_bytes(slot: &HeadSlot, mac: &[u8; 32]) -> [u8; HEAD_SLOT_BYTES] {
    let mut bytes = [0; HEAD_SLOT_BYTES];
    bytes[..512].copy_from_slice(&slot.encode(mac));
    bytes
}

proptest! {
    #[test]
    fn jf_1_store(store_id: [u8; 16], created_ms: u64) {
        let store = StoreFile { store_id, created_ms };
        let bytes = store.encode(sha256);
        prop_assert_eq!(StoreFile::decode(&bytes, sha256), Ok(store));
        every_flip_is_refused(&bytes, |bytes| StoreFile::decode(bytes, sha256).is_ok());
    }

    #[test]
    fn jf_2_head_slot(slot in slot(), mac: [u8; 32]) {
        let bytes = slot_bytes(&slot, &mac);
        prop_assert_eq!(HeadSlot::decode(&bytes, head::slot_offset(slot.counter)), Ok((slot, mac)));
        prop_assert!(HeadSlot::decode(&bytes, 4096 - head::slot_offset(slot.counter)).is_err());
    }

    #[test]
    fn jf_4_segment_header(header in header()) {
        let bytes = header.encode();
        prop_assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        let fixed = FixedPart { store_id: header.store_id, number: header.number };
        prop_assert_eq!(FixedPart::decode(&bytes), Ok(fixed));
    }

    #[test]
    fn jf_7_frame_header(header in frame_header()) {
        let bytes = header.encode();
        prop_assert_eq!(FrameHeader::decode(&bytes), Ok(header));
        prop_assert_eq!(frame::tagged_part(&bytes), &header.tagged_bytes());
        prop_assert!(frame::looks_like_header(&bytes));
        every_flip_is_refused(&bytes, |bytes| FrameHeader::decode(bytes).is_ok());
    }

    #[test]
    fn jf_9_end_record(end in end()) {
        prop_assert_eq!(EndRecord::decode(&end.encode()), Ok(end));
    }

    #[test]
    fn jf_12_group(owned in proptest::collection::vec(record(), 1..40), base in 0..=TIME_MS_MAX) {
        let records = borrowed(&owned);
        let bytes = group_of(base, &records);
        let read: Result<Vec<_>, _> = GroupReader::new(&bytes, records.len() as u32).unwrap().collect();
        prop_assert_eq!(read.as_deref(), Ok(&records[..]));
        // Any other count is another group.
        for count in [records.len() - 1, records.len() + 1] {
            let reader = GroupReader::new(&bytes, count as u32);
            prop_assert!(reader.and_then(GroupReader::check).is_err());
        }
    }

    #[test]
    fn jf_12_what_a_reader_accepts_is_what_an_encoder_writes(
        owned in proptest::collection::vec(record(), 1..6),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let records = borrowed(&owned);
        let mut bytes = group_of(records[0].time_ms, &records);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(reader) = GroupReader::new(&bytes, records.len() as u32) {
            let base = reader.base_time_ms();
            if let Ok(read) = reader.collect::<Result<Vec<_>, _>>() {
                prop_assert_eq!(group_of(base, &read), bytes);
            }
        }
    }

    #[test]
    fn units_are_measured_as_they_are_written(
        owned in proptest::collection::vec(record(), 1..20),
        split in any::<prop::sample::Index>(),
    ) {
        let records = borrowed(&owned);
        let bytes = group_of(records[0].time_ms, &records);
        let unit = unit_bytes(&records).unwrap();
        prop_assert!(check_unit(records.iter().copied()).is_ok());
        prop_assert_eq!(unit.next_multiple_of(64), bytes.len());
        let (front, back) = records.split_at(split.index(records.len()));
        let mut group = GroupEncoder::new(records[0].time_ms);
        for record in front {
            group.push(record).unwrap();
        }
        let before = group.len();
        let checkpoint = group.checkpoint();
        prop_assert_eq!(group.would_be_len(back), Ok(bytes.len()));
        prop_assert_eq!(group.len(), before);
        for record in back {
            group.push(record).unwrap();
        }
        group.rollback(checkpoint);
        for record in back {
            group.push(record).unwrap();
        }
        prop_assert_eq!(group.finish(), bytes);
    }

    #[test]
    fn jf_12_own_records(streams in proptest::collection::vec(any::<[u8; 16]>(), 0..50), from in end(), restored_ms: u64, fenced: bool) {
        let forget = Forget { streams };
        prop_assert_eq!(Forget::decode(&forget.encode().unwrap()), Ok(forget));
        let restored = Restored { from, restored_ms, fenced };
        prop_assert_eq!(Restored::decode(&restored.encode()), Ok(restored));
    }

    #[test]
    fn jf_14_sources(lineages in proptest::collection::vec(any::<[u8; 16]>(), 1..9), gaps in proptest::collection::vec((0..1000_u64, 0..100_000_u64), 0..9)) {
        let source = |(index, lineage)| {
            let end = EndRecord { segment: index as u64 + 3, end_offset: 8192, how: How::Sealed, ..EndRecord::NONE };
            Source { end, lineage }
        };
        let mut next = 1;
        let run = |(gap, width)| {
            let run = Run { first: next + gap, last: next + gap + width };
            next = run.last + 2;
            run
        };
        let sources = Sources {
            sources: lineages.into_iter().enumerate().map(source).collect(),
            dropped: gaps.into_iter().map(run).collect(),
        };
        prop_assert_eq!(Sources::decode(&sources.encode().unwrap()), Ok(sources));
    }

    #[test]
    fn jf_14_folded(parts in proptest::collection::vec((1..1000_u64, 0..1000_u64, proptest::collection::vec(any::<u8>(), 0..200)), 1..9)) {
        let each = |(index, part): (usize, &'_ (u64, u64, Vec<u8>))| (index as u8, part.0, part.0 + part.1);
        let streams: Vec<_> = parts.iter().enumerate().map(|part| {
            let (stream, smallest_sequence, largest_sequence) = each(part);
            FoldedStream { stream: [stream; 16], smallest_sequence, largest_sequence, bytes: &part.1.2 }
        }).collect();
        let body = FoldedGroup::encode(&streams).unwrap();
        prop_assert_eq!(FoldedGroup::decode(&body), Ok(streams));
    }

    #[test]
    fn section_2_names(first in 1..=u64::MAX, width: u64, generation in 1..=u64::MAX, frame: u64) {
        let log = SegmentName::Log { number: first };
        prop_assert_eq!(SegmentName::parse(&log.file_name()), Some(log));
        let compacted = SegmentName::Compacted { first, last: first.saturating_add(width), generation };
        prop_assert_eq!(SegmentName::parse(&compacted.file_name()), Some(compacted));
        prop_assert_eq!(SegmentName::parse_summary(&compacted.summary_name()), Some(compacted));
        let quarantine = QuarantineName { segment: first, frame };
        prop_assert_eq!(QuarantineName::parse(&quarantine.tail_name()), Some(quarantine));
    }

    #[test]
    fn section_2_a_name_that_parses_is_one_that_is_made(name in "[0-9.-]{0,45}(\\.seg)?|0{10,12}[0-9]{1,3}(-0{10,11}[0-9]{1,2}\\.0{11}[0-9])?\\.seg") {
        if let Some(parsed) = SegmentName::parse(&name) {
            prop_assert_eq!(parsed.file_name(), name);
        }
    }

    /// JF-4 and all others: any bytes whatever are an answer, never a panic; and what is accepted is written so.
    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600), count in 0..40_u32) {
        // The result is the error or what the bytes would have been written as.
        if let Ok(end) = EndRecord::decode(&bytes) { prop_assert_eq!(&end.encode()[..], &bytes[..]); }
        if let Ok(header) = FrameHeader::decode(&bytes) { prop_assert_eq!(&header.encode()[..], &bytes[..96]); }
        prop_assert!(FixedPart::decode(&bytes).is_err());
        prop_assert!(SegmentHeader::decode(&bytes).is_err());
        prop_assert!(HeadSlot::decode(&bytes, 0).is_err());
        prop_assert!(StoreFile::decode(&bytes, sha256).is_err());
        if let Ok(forget) = Forget::decode(&bytes) { prop_assert_eq!(forget.encode(), Ok(bytes.clone())); }
        if let Ok(restored) = Restored::decode(&bytes) { prop_assert_eq!(&restored.encode()[..], &bytes[..]); }
        prop_assert_eq!(Unfenced::decode(&bytes).is_ok(), bytes.is_empty());
        let whole = &bytes[..bytes.len() / 64 * 64];
        if let Ok(reader) = GroupReader::new(whole, count) {
            prop_assert!(reader.count() <= count as usize + 1);
        }
        if let Ok(sources) = Sources::decode(whole) { prop_assert_eq!(sources.encode(), Ok(whole.to_vec())); }
        if let Ok(streams) = FoldedGroup::decode(whole) {
            prop_assert_eq!(FoldedGroup::encode(&streams), Ok(whole.to_vec()));
        }
        prop_assert_eq!(frame::looks_like_header(&bytes), false);
    }
}

proptest! {
    // Thirty thousand flips over four kilobytes each.
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn every_flip_of_the_long_layouts_is_refused(header in header(), slot in slot(), mac: [u8; 32]) {
        let bytes = header.encode();
        prop_assert_eq!(bytes.len(), HEADER_BYTES);
        every_flip_is_refused(&bytes, |bytes| SegmentHeader::decode(bytes).is_ok());
        let offset = head::slot_offset(slot.counter);
        every_flip_is_refused(&slot_bytes(&slot, &mac), |bytes| HeadSlot::decode(bytes, offset).is_ok());
    }
}
