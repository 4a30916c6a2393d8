//! The end record (section 5).

use super::*;

fn sample() -> EndRecord {
    EndRecord {
        segment: 7,
        frames: 3,
        end_offset: 8192 + 3 * 160 + 64,
        last_sequence: 41,
        chain: [0xc5; 16],
        how: How::CutAtRecovery,
    }
}

#[track_caller]
fn refused(change: impl FnOnce(&mut [u8; 64]), expected: FormatError) {
    let mut bytes = sample().encode();
    change(&mut bytes);
    assert_eq!(EndRecord::decode(&bytes), Err(expected));
}

#[test]
fn jf_9_end_record_layout() {
    let bytes = sample().encode();
    assert_eq!(bytes[..8], [7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[8], 3);
    assert_eq!(bytes[16..19], [0x20, 0x22, 0]);
    assert_eq!(bytes[24], 41);
    assert_eq!(bytes[32..48], [0xc5; 16]);
    assert_eq!(bytes[48], 2);
    assert_eq!(bytes[49..], [0; 15]);
    assert_eq!(EndRecord::decode(&bytes), Ok(sample()));
    assert_eq!(EndRecord::NONE.encode(), [0; 64]);
    assert_eq!(EndRecord::decode(&[0; 64]), Ok(EndRecord::NONE));
}

#[test]
fn jf_9_end_record_refusals() {
    refused(|bytes| bytes[49] = 1, Why::NotZero.of("end record", 49));
    refused(|bytes| bytes[63] = 1, Why::NotZero.of("end record", 63));
    refused(|bytes| bytes[48] = 0, Why::Mismatch.of("how", 48));
    refused(|bytes| bytes[48] = 3, Why::OutOfRange.of("how", 48));
    refused(|bytes| bytes[0] = 0, Why::Mismatch.of("how", 48));
    refused(|bytes| bytes[16] = 0x21, Why::OutOfRange.of("end offset", 16));
    refused(|bytes| bytes[17] = 0x1f, Why::OutOfRange.of("end offset", 16));
    refused(|bytes| bytes[24..32].fill(0xff), Why::OutOfRange.of("last sequence", 24));
    refused(|bytes| bytes[8] = 4, Why::Mismatch.of("frame count", 8));
    let mut none = [0; 64];
    none[24] = 1;
    assert_eq!(EndRecord::decode(&none), Err(Why::NotZero.of("end record", 8)));
    assert_eq!(EndRecord::decode(&[0; 63]), Err(Why::Short.of("end record", 63)));
    assert_eq!(EndRecord::decode(&[0; 65]), Err(Why::Trailing.of("end record", 64)));
}
