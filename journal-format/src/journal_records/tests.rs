//! The journal's own records (JF-12).

use super::*;
use crate::end::How;

#[test]
fn jf_12_forget() {
    let forget = Forget { streams: vec![[1; 16], [2; 16]] };
    let body = forget.encode().unwrap();
    assert_eq!(body, [&[2][..], &[1; 16], &[2; 16]].concat());
    assert_eq!(Forget::decode(&body), Ok(forget));
    assert_eq!(Forget::decode(&[0]), Ok(Forget::default()));
    assert_eq!(Forget::decode(&body[..32]), Err(Why::Short.of("forget count", 0)));
    let long = [&body[..], &[0]].concat();
    assert_eq!(Forget::decode(&long), Err(Why::Trailing.of("forget", 33)));
    assert_eq!(Forget::decode(&[]), Err(Why::Short.of("forget count", 0)));
    assert_eq!(Forget::decode(&[0x80, 0]), Err(Why::NotMinimal.of("forget count", 0)));
}

#[test]
fn jf_11_a_forget_record_keeps_to_the_limit_of_records() {
    let most = Forget { streams: vec![[7; 16]; Forget::STREAMS_MAX] };
    let body = most.encode().unwrap();
    assert!(body.len() <= RECORD_BYTES_MAX);
    assert_eq!(Forget::decode(&body), Ok(most));
    let more = Forget { streams: vec![[7; 16]; Forget::STREAMS_MAX + 1] };
    assert_eq!(more.encode(), Err(Why::TooLong.of("forget count", 0)));
    let mut body = Vec::new();
    push_varint(&mut body, more.streams.len() as u64);
    body.extend(more.streams.iter().flatten());
    assert_eq!(Forget::decode(&body), Err(Why::TooLong.of("forget count", 0)));
}

#[test]
fn jf_12_restored() {
    let from = EndRecord {
        segment: 3,
        frames: 2,
        end_offset: 8512,
        last_sequence: 9,
        chain: [4; 16],
        how: How::CutAtRecovery,
    };
    for fenced in [false, true] {
        let restored = Restored { from, restored_ms: 77, fenced };
        let body = restored.encode();
        assert_eq!(body[..64], from.encode());
        assert_eq!(body[64..], [77, 0, 0, 0, 0, 0, 0, 0, u8::from(fenced), 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Restored::decode(&body), Ok(restored));
    }
    let body = Restored { from, restored_ms: 77, fenced: true }.encode();
    let refused = |at: usize, value: u8| {
        let mut body = body;
        body[at] = value;
        Restored::decode(&body).unwrap_err()
    };
    assert_eq!(refused(72, 2), Why::OutOfRange.of("fenced", 72));
    assert_eq!(refused(73, 1), Why::NotZero.of("restored", 73));
    assert_eq!(refused(79, 1), Why::NotZero.of("restored", 79));
    assert_eq!(refused(48, 9), Why::OutOfRange.of("how", 48));
    assert_eq!(Restored::decode(&body[..79]), Err(Why::Short.of("restored", 79)));
    assert_eq!(Restored::decode(&[&body[..], &[0]].concat()), Err(Why::Trailing.of("restored", 80)));
}

#[test]
fn jf_12_unfenced() {
    assert_eq!(Unfenced::decode(&Unfenced.encode()), Ok(Unfenced));
    assert_eq!(Unfenced::decode(&[0]), Err(Why::Trailing.of("unfenced", 0)));
}
