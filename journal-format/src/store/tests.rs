//! The file `store` (JF-1).

use super::*;
use sha2::Digest;

fn sha256(bytes: &[u8]) -> [u8; 32] {
    sha2::Sha256::digest(bytes).into()
}

fn sample() -> StoreFile {
    StoreFile { store_id: [0xab; 16], created_ms: 0x0102_0304 }
}

#[track_caller]
fn refused(change: impl FnOnce(&mut [u8; STORE_BYTES]), expected: FormatError) {
    let mut bytes = sample().encode(sha256);
    change(&mut bytes);
    let crc = crc32(&bytes[..CRC_AT]);
    put(&mut bytes, CRC_AT, crc.to_le_bytes());
    let digest = sha256(&bytes[..DIGEST_AT]);
    put(&mut bytes, DIGEST_AT, digest);
    assert_eq!(StoreFile::decode(&bytes, sha256), Err(expected));
}

#[test]
fn jf_1_layout() {
    let bytes = sample().encode(sha256);
    assert_eq!(bytes[..16], *b"SEALOGST\x01\0\x80\0\0\0\0\0");
    assert_eq!(bytes[16..32], [0xab; 16]);
    assert_eq!(bytes[32..40], [4, 3, 2, 1, 0, 0, 0, 0]);
    assert_eq!(bytes[40..92], [0; 52]);
    assert_eq!(StoreFile::decode(&bytes, sha256), Ok(sample()));
}

#[test]
fn jf_1_every_flipped_bit_is_refused() {
    let bytes = sample().encode(sha256);
    for bit in 0..STORE_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        let why = StoreFile::decode(&flipped, sha256).unwrap_err().why;
        let expected = match bit / 8 {
            0..8 => Why::Magic,
            8..96 => Why::Crc,
            _ => Why::Digest,
        };
        assert_eq!(why, expected, "bit {bit}");
    }
}

#[test]
fn jf_1_all_of_it_is_checked() {
    refused(|bytes| bytes[8] = 7, Why::NewerVersion(7).of("version", 8));
    refused(|bytes| bytes[8] = 0, Why::OutOfRange.of("version", 8));
    refused(|bytes| bytes[10] = 127, Why::OutOfRange.of("store length", 10));
    for at in [12, 15, 40, 91] {
        refused(|bytes| bytes[at] = 1, Why::NotZero.of("store", at));
    }
    let bytes = sample().encode(sha256);
    assert_eq!(StoreFile::decode(&bytes[..127], sha256), Err(Why::Short.of("store", 127)));
    let long = [&bytes[..], &[0]].concat();
    assert_eq!(StoreFile::decode(&long, sha256), Err(Why::Trailing.of("store", 128)));
}
