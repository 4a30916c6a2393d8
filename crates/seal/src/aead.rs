//! Suite 1, ChaCha20-Poly1305 (RFC 8439): the only file that names its crate, and the only place that encrypts.
//!
//! Every encryption passes through [`seal`], so the nonce recorder of instrumented runs misses none.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce, Tag};

use crate::key::KeyBytes;
use crate::rejected::Rejected;

/// Longest message RFC 8439 allows under one nonce, in bytes: 2^32 - 1 blocks of 64.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 64 * (u32::MAX as u64);

/// The nonce of everything that is sealed under a one-time key.
pub(crate) const ZERO_NONCE: [u8; 12] = [0; 12];

/// A frame index as a 96-bit little-endian number.
pub(crate) fn index_nonce(index: u64) -> [u8; 12] {
    let mut nonce = [0u8; 12];
    nonce[..8].copy_from_slice(&index.to_le_bytes());
    nonce
}

// Without its `zeroize` feature the cipher compiles, passes every test, and leaves its key in memory (JK-14).
const _: fn() = || {
    fn wiped_when_dropped<T: zeroize::ZeroizeOnDrop>() {}
    wiped_when_dropped::<ChaCha20Poly1305>();
};

/// Encrypts `buf` in place and returns the tag. The caller has made sure that this (key, nonce) is new and that
/// `buf` is no longer than [`MESSAGE_BYTES_MAX`].
pub(crate) fn seal(key: &KeyBytes, nonce: [u8; 12], aad: &[u8], buf: &mut [u8]) -> [u8; 16] {
    #[cfg(any(test, feature = "testing"))]
    crate::testing::record(key.bytes(), nonce);
    let cipher = ChaCha20Poly1305::new(key.bytes().into());
    cipher
        .encrypt_inout_detached(&Nonce::from(nonce), aad, buf.into())
        .expect("the callers bound the message length")
        .into()
}

/// Decrypts `buf` in place; on failure it still holds the ciphertext.
pub(crate) fn open(
    key: &KeyBytes,
    nonce: [u8; 12],
    aad: &[u8],
    buf: &mut [u8],
    tag: &[u8; 16],
) -> Result<(), Rejected> {
    let cipher = ChaCha20Poly1305::new(key.bytes().into());
    cipher
        .decrypt_inout_detached(&Nonce::from(nonce), aad, buf.into(), &Tag::from(*tag))
        .map_err(|_| Rejected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    // JK-1: RFC 8439, section 2.8.2.
    #[test]
    fn rfc_8439_2_8_2() {
        let key = KeyBytes::copy_of(
            &hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f").try_into().unwrap(),
        );
        let nonce: [u8; 12] = hex("070000004041424344454647").try_into().unwrap();
        let aad = hex("50515253c0c1c2c3c4c5c6c7");
        let text =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
                     sunscreen would be it.";
        let mut buf = text.to_vec();
        let tag = seal(&key, nonce, &aad, &mut buf);
        let expected = hex(
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b\
             1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
             3ff4def08e4b7a9de576d26586cec64b6116",
        );
        assert_eq!(buf, expected);
        assert_eq!(tag.as_slice(), hex("1ae10b594f09e26a7e902ecbd0600691"));
        open(&key, nonce, &aad, &mut buf, &tag).unwrap();
        assert_eq!(buf, text);
    }

    // JK-1
    #[test]
    fn a_failed_open_leaves_the_ciphertext() {
        let key = KeyBytes::copy_of(&[9; 32]);
        let mut buf = *b"plaintext";
        let tag = seal(&key, index_nonce(3), b"aad", &mut buf);
        let sealed = buf;
        assert_eq!(open(&key, index_nonce(4), b"aad", &mut buf, &tag), Err(Rejected));
        assert_eq!(open(&key, index_nonce(3), b"aae", &mut buf, &tag), Err(Rejected));
        assert_eq!(buf, sealed);
    }

    // JK-7
    #[test]
    fn the_index_is_little_endian_in_96_bits() {
        assert_eq!(index_nonce(0x0102_0304_0506_0708), [8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0]);
    }
}
