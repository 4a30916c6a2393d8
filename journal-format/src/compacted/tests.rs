//! Bodies of compacted segments (JF-14).

use super::*;
use crate::end::How;

fn source(segment: u64) -> Source {
    let end = EndRecord {
        segment,
        frames: 1,
        end_offset: 8352,
        last_sequence: 5,
        chain: [6; 16],
        how: How::Sealed,
    };
    Source { end, lineage: [8; 16] }
}

fn sources(runs: &[(u64, u64)]) -> Sources {
    let dropped = runs.iter().map(|&(first, last)| Run { first, last }).collect();
    Sources { sources: vec![source(3), source(5)], dropped }
}

#[track_caller]
fn refused(bad: &Sources, expected: FormatError) {
    assert_eq!(bad.encode(), Err(expected));
}

#[test]
fn jf_14_sources() {
    let value = sources(&[(1, 1), (3, 200)]);
    let body = value.encode().unwrap();
    assert_eq!(body.len(), 192);
    assert_eq!(body[0], 2);
    assert_eq!(body[1..65], source(3).end.encode());
    assert_eq!(body[65..81], [8; 16]);
    assert_eq!(body[161..167], [2, 1, 1, 3, 0xc8, 1]);
    assert_eq!(body[167..], [0; 25]);
    assert_eq!(Sources::decode(&body), Ok(value));
    let none = sources(&[]);
    assert_eq!(Sources::decode(&none.encode().unwrap()), Ok(none));
}

#[test]
fn jf_14_sources_order() {
    refused(&Sources::default(), Why::OutOfRange.of("source count", 0));
    let swapped = Sources { sources: vec![source(5), source(3)], dropped: vec![] };
    refused(&swapped, Why::OutOfRange.of("source", 0));
    let twice = Sources { sources: vec![source(5), source(5)], dropped: vec![] };
    refused(&twice, Why::OutOfRange.of("source", 0));
    for runs in [[(0, 1), (9, 9)], [(2, 1), (9, 9)], [(1, 4), (5, 9)], [(1, 4), (2, 9)], [(7, 9), (1, 2)]] {
        refused(&sources(&runs), Why::OutOfRange.of("dropped run", 0));
    }
    refused(&sources(&[(1, u64::MAX)]), Why::OutOfRange.of("dropped run", 0));
    let widest = sources(&[(1, SEQUENCE_MAX)]);
    assert_eq!(Sources::decode(&widest.encode().unwrap()), Ok(widest));
}

#[test]
fn jf_14_sources_bytes() {
    let body = sources(&[(1, 1)]).encode().unwrap();
    let decode = |at: usize, value: u8| {
        let mut body = body.clone();
        body[at] = value;
        Sources::decode(&body).unwrap_err()
    };
    assert_eq!(decode(0, 3), Why::Short.of("source count", 0));
    assert_eq!(decode(0, 0), Why::Trailing.of("padding", 2 + 2 * 3));
    assert_eq!(decode(161, 20), Why::Short.of("run count", 161));
    assert_eq!(decode(1 + 49, 1), Why::NotZero.of("end record", 50));
    assert_eq!(decode(191, 1), Why::NotZero.of("padding", 191));
    assert_eq!(Sources::decode(&body[..128]).unwrap_err(), Why::Short.of("source count", 0));
    let long = [&body[..], &[0; 64]].concat();
    assert_eq!(Sources::decode(&long), Err(Why::Trailing.of("padding", 164)));
    assert_eq!(Sources::decode(&body[..191]), Err(Why::OutOfRange.of("body length", 0)));
    assert_eq!(Sources::decode(&[]), Err(Why::OutOfRange.of("body length", 0)));
    let long = vec![0; BODY_BYTES_MAX + 64];
    assert_eq!(Sources::decode(&long), Err(Why::TooLong.of("body length", 0)));
}

fn folded(stream: u8, smallest: u64, largest: u64, bytes: &[u8]) -> FoldedStream<'_> {
    FoldedStream { stream: [stream; 16], smallest_sequence: smallest, largest_sequence: largest, bytes }
}

#[test]
fn jf_14_folded_group() {
    let streams = [folded(1, 10, 300, b"columns"), folded(2, 11, 11, b"")];
    let body = FoldedGroup::encode(&streams).unwrap();
    assert_eq!(body.len(), 64);
    assert_eq!(body[0], 2);
    assert_eq!(body[1..17], [1; 16]);
    assert_eq!(body[17..28], *b"\x0a\xac\x02\x07columns");
    assert_eq!(body[28..44], [2; 16]);
    assert_eq!(body[44..47], [11, 11, 0]);
    assert_eq!(body[47..], [0; 17]);
    assert_eq!(FoldedGroup::decode(&body).unwrap(), streams);
}

#[test]
fn jf_14_folded_group_refusals() {
    let refused = |streams: &[FoldedStream<'_>]| FoldedGroup::encode(streams).unwrap_err();
    assert_eq!(refused(&[]), Why::OutOfRange.of("folded count", 0));
    assert_eq!(
        refused(&[folded(1, 1, 1, b""), folded(1, 2, 2, b"")]),
        Why::NotMinimal.of("folded stream", 0)
    );
    assert_eq!(refused(&[folded(1, 0, 1, b"")]), Why::OutOfRange.of("folded sequences", 0));
    assert_eq!(refused(&[folded(1, 2, 1, b"")]), Why::OutOfRange.of("folded sequences", 0));
    assert_eq!(refused(&[folded(1, 2, u64::MAX, b"")]), Why::OutOfRange.of("folded sequences", 0));
    let long = vec![1; BODY_BYTES_MAX];
    assert_eq!(refused(&[folded(1, 1, 1, &long)]), Why::TooLong.of("body length", 0));
    let body = FoldedGroup::encode(&[folded(1, 10, 12, b"abc"), folded(2, 1, 1, b"")]).unwrap();
    let decode = |at: usize, value: u8| {
        let mut body = body.clone();
        body[at] = value;
        FoldedGroup::decode(&body).map(drop).unwrap_err()
    };
    assert_eq!(decode(0, 0), Why::OutOfRange.of("folded count", 0));
    assert_eq!(decode(0, 4), Why::Short.of("folded count", 0));
    assert_eq!(decode(17, 13), Why::OutOfRange.of("folded sequences", 1));
    assert_eq!(decode(19, 60), Why::Short.of("folded length", 20));
    assert_eq!(decode(63, 1), Why::NotZero.of("padding", 63));
    let mut twice = body.clone();
    twice.copy_within(1..17, 23);
    assert_eq!(FoldedGroup::decode(&twice), Err(Why::NotMinimal.of("folded stream", 23)));
}

#[test]
fn jf_11_a_folded_group_as_long_as_a_frame_allows() {
    let bytes = vec![1; BODY_BYTES_MAX - 1 - 16 - 2 - 4];
    let streams = [folded(1, 1, 1, &bytes)];
    let body = FoldedGroup::encode(&streams).unwrap();
    assert_eq!(body.len(), BODY_BYTES_MAX);
    assert_eq!(FoldedGroup::decode(&body).unwrap(), streams);
}
