//! Bodies: one encoding only, unknown numbers refused, bounded cost, round trips.
//! Must never hold a body that only this program could have written; those are the vectors'.

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;
use crate::{
    Artifact, ErrorFact, Identity, JsonText, Outcome, Phase, PortableCode, ProgressNumber, Quantity, Status,
    Target, Timestamp, UsageFact, UsageSource, arbitrary,
};

mod vectors;

/// Every kind number there is, and some that there are not.
fn kinds() -> impl Strategy<Value = u16> {
    prop_oneof![9 => 64_u16..=91, 1 => any::<u16>()]
}

/// What a decoded body of any kind encodes to again; `None` if it was refused.
fn again(kind: u16, bytes: &[u8]) -> Option<Vec<u8>> {
    match RecordKind::from_number(kind) {
        Some(RecordKind::Created) => decode_created(bytes).ok().map(|created| encode_created(&created)),
        Some(RecordKind::Origin) => {
            decode_origin(bytes).ok().map(|origin| encode_origin(&origin).expect("it was decoded"))
        }
        Some(RecordKind::Labels) => {
            decode_labels(bytes).ok().map(|labels| encode_labels(&labels).expect("they were decoded"))
        }
        Some(RecordKind::MaterializedResult) => {
            decode_result(bytes).ok().map(|result| encode_result(&result).expect("it was decoded"))
        }
        Some(RecordKind::AttemptEvidence) => {
            decode_evidence(bytes).ok().map(|evidence| encode_evidence(&evidence).expect("it was decoded"))
        }
        _ => decode(kind, bytes).ok().map(|body| {
            assert_eq!(body.kind(), kind);
            encode(&body).expect("it was decoded")
        }),
    }
}

#[track_caller]
fn check_refused(kind: RecordKind, bytes: &[u8], expected: BodyError) {
    assert_eq!(decode(kind.number(), bytes), Err(expected));
}

#[test]
fn one_encoding_only() {
    // Output index 5, delta "a".
    assert_eq!(
        decode(83, &[5, 1, b'a']),
        Ok(EventBody::OutputDelta { output_index: 5, delta: "a".to_owned() })
    );
    // The same index in longer integers, which bincode itself would read.
    check_refused(RecordKind::OutputDelta, &[251, 5, 0, 1, b'a'], BodyError::NotCanonical);
    check_refused(RecordKind::OutputDelta, &[252, 5, 0, 0, 0, 1, b'a'], BodyError::NotCanonical);
    check_refused(RecordKind::OutputDelta, &[5, 251, 1, 0, b'a'], BodyError::NotCanonical);
    check_refused(RecordKind::OutputDelta, &[5, 1, b'a', 0], BodyError::NotCanonical);
    check_refused(RecordKind::OutputDelta, &[5, 2, b'a'], BodyError::Malformed);
    check_refused(RecordKind::OutputDelta, &[5, 1, 0xff], BodyError::Malformed);
    check_refused(RecordKind::OutputDelta, &[], BodyError::Malformed);
    check_refused(RecordKind::Accepted, &[0], BodyError::NotCanonical);
}

#[test]
fn evidence_is_a_step_that_no_event_tells() {
    assert!(decode_evidence(&[1, 2, 0]).is_ok());
    // Selected and first output, an unknown step, an identifier with a request that has no answer.
    for (bytes, expected) in [
        (&[1, 1, 0][..], BodyError::InvalidValue),
        (&[1, 4, 0], BodyError::InvalidValue),
        (&[1, 5, 0], BodyError::UnknownNumber),
        (&[1, 2, 1, 1, b'a'], BodyError::InvalidValue),
        (&[1, 3, 1, 0], BodyError::InvalidValue),
        (&[1, 3, 1, 1, b' '], BodyError::InvalidValue),
        (&[0, 2, 0], BodyError::Unproducible(Unproducible::AttemptZero)),
        (&[1, 2, 0, 0], BodyError::NotCanonical),
        (&[251, 1, 0, 2, 0], BodyError::NotCanonical),
        (&[1, 2], BodyError::Malformed),
    ] {
        assert_eq!(decode_evidence(bytes), Err(expected), "{bytes:?}");
    }
    let nobody = AttemptEvidence { attempt: 0, mark: crate::Mark::RequestSent };
    assert!(encode_evidence(&nobody).is_err());
    assert_eq!(decode(66, &[1, 2, 0]), Err(BodyError::UnknownKind));
}

#[test]
fn unknown_numbers_are_errors() {
    assert_eq!(decode(0, &[]), Err(BodyError::UnknownKind));
    assert_eq!(decode(79, &[]), Err(BodyError::UnknownKind));
    assert_eq!(decode(92, &[]), Err(BodyError::UnknownKind));
    check_refused(RecordKind::Created, &[0, 0], BodyError::UnknownKind);
    check_refused(RecordKind::Progress, &[3, 0], BodyError::UnknownNumber);
    check_refused(RecordKind::Progress, &[0, 0], BodyError::UnknownNumber);
    check_refused(RecordKind::Progress, &[1, 2], BodyError::Malformed);
    // Status, code, message, retryable, no provider code, no outcome.
    assert!(decode(90, &[5, 9, 1, b'm', 0, 0, 0]).is_ok());
    check_refused(RecordKind::Failed, &[7, 9, 1, b'm', 0, 0, 0], BodyError::UnknownNumber);
    check_refused(RecordKind::Failed, &[4, 9, 1, b'm', 0, 0, 0], BodyError::InvalidValue);
    check_refused(RecordKind::Failed, &[5, 10, 1, b'm', 0, 0, 0], BodyError::UnknownNumber);
    check_refused(RecordKind::Failed, &[5, 9, 1, b'm', 2, 0, 0], BodyError::Malformed);
    check_refused(RecordKind::Failed, &[5, 9, 1, b'm', 0, 0, 1, 3], BodyError::UnknownNumber);
    check_refused(
        RecordKind::Failed,
        &[6, 9, 1, b'm', 0, 0, 0],
        BodyError::Unproducible(Unproducible::CancelledCode),
    );
    // One fact: unit, quantity, source, complete.
    assert!(decode(88, &[1, 1, b'u', 0, 1, 0]).is_ok());
    check_refused(RecordKind::UsageReported, &[1, 1, b'u', 0, 3, 0], BodyError::UnknownNumber);
}

#[test]
fn numbers_that_are_none_are_errors() {
    for value in [f64::NAN, f64::INFINITY, -0.0, -1.0] {
        let bits = value.to_bits().to_le_bytes();
        let fact = [&[1, 1, b'u', 253], bits.as_slice(), &[1, 0]].concat();
        check_refused(RecordKind::UsageReported, &fact, BodyError::InvalidValue);
    }
    for value in [f64::NAN, f64::NEG_INFINITY, -0.0] {
        let bits = value.to_bits().to_le_bytes();
        check_refused(
            RecordKind::Progress,
            &[&[1, 1, 253], bits.as_slice()].concat(),
            BodyError::InvalidValue,
        );
    }
    for text in ["", "[1", "[\n1]", "1e999"] {
        let length = u8::try_from(text.len()).expect("short");
        let body = [&[length], text.as_bytes(), &[0]].concat();
        check_refused(RecordKind::OutputResult, &body, BodyError::InvalidValue);
    }
}

#[test]
fn claimed_lengths_cost_nothing() {
    let claim = |bytes: u64| [[253].as_slice(), &bytes.to_le_bytes()].concat();
    for bytes in [limits::BODY_BYTES_MAX as u64, 1 << 40, u64::MAX] {
        check_refused(RecordKind::UsageReported, &claim(bytes), BodyError::Malformed);
        check_refused(RecordKind::OutputResult, &claim(bytes), BodyError::Malformed);
        check_refused(
            RecordKind::OutputDelta,
            &[&[0], claim(bytes).as_slice()].concat(),
            BodyError::Malformed,
        );
    }
    check_refused(RecordKind::Accepted, &vec![0; limits::BODY_BYTES_MAX + 1], BodyError::TooLong);
    // More items than an event may list, all well-formed: refused before they are copied.
    let items = [&[251, 1, 4], [1, b'u', 0, 1, 0].repeat(1025).as_slice()].concat();
    check_refused(RecordKind::UsageReported, &items, Unproducible::TooManyItems.into());
}

#[test]
fn result_records_fit_themselves() {
    let text = "{\"a\":1}".to_owned();
    let result = MaterializedResult {
        rule_version: 1,
        status: Status::Succeeded,
        bytes: text.len() as u64,
        sha256: Sha256::digest(text.as_bytes()).into(),
        text: Some(text),
    };
    let bytes = encode_result(&result).expect("consistent");
    assert_eq!(decode_result(&bytes).as_ref(), Ok(&result));
    let broken = [
        MaterializedResult { status: Status::Running, ..result.clone() },
        MaterializedResult { bytes: 6, ..result.clone() },
        MaterializedResult { sha256: [0; 32], ..result.clone() },
        MaterializedResult { text: Some("{\"a\":2}".to_owned()), ..result.clone() },
        MaterializedResult { bytes: 0, text: None, ..result.clone() },
        MaterializedResult {
            bytes: 0,
            sha256: Sha256::digest(b"").into(),
            text: Some(String::new()),
            ..result
        },
    ];
    for result in broken {
        assert_eq!(encode_result(&result), Err(BodyError::InvalidValue));
    }
    let tampered =
        bytes.iter().enumerate().map(|(at, byte)| if at == bytes.len() - 2 { b'2' } else { *byte });
    assert_eq!(decode_result(&tampered.collect::<Vec<u8>>()), Err(BodyError::InvalidValue));
}

#[test]
fn bodies_are_small() {
    // The journal's promise of text plus at most 32 bytes leaves this much to the body: a length and an index.
    let delta = |text: &str| encode(&EventBody::OutputDelta { output_index: 0, delta: text.to_owned() });
    assert_eq!(delta("hello").map(|bytes| bytes.len()), Ok(7));
    assert_eq!(delta(&"x".repeat(100_000)).map(|bytes| bytes.len()), Ok(100_006));
    assert_eq!(encode(&EventBody::Accepted), Ok(Vec::new()));
}

proptest! {
    #[test]
    fn events_survive_encoding(body in arbitrary::body()) {
        let bytes = encode(&body).expect("a bounded event");
        prop_assert_eq!(decode(body.kind(), &bytes), Ok(body));
    }

    #[test]
    fn created_survives_encoding(created in arbitrary::created()) {
        prop_assert_eq!(decode_created(&encode_created(&created)), Ok(created));
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_ours(kind in kinds(), bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Some(again) = again(kind, &bytes) {
            prop_assert_eq!(again, bytes);
        }
    }

    /// Damage to a valid body is refused or gives another valid body, never a panic; a cut body is always refused.
    #[test]
    fn damaged_bodies_are_refused_or_ours(body in arbitrary::body(), at: prop::sample::Index, byte: u8) {
        let bytes = encode(&body).expect("a bounded event");
        prop_assume!(!bytes.is_empty());
        let at = at.index(bytes.len());
        prop_assert_eq!(again(body.kind(), &bytes[..at]), None);
        let mut damaged = bytes;
        damaged[at] = byte;
        if let Some(again) = again(body.kind(), &damaged) {
            prop_assert_eq!(again, damaged);
        }
    }
}
