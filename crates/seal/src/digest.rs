//! SHA-256, HMAC-SHA256 and HKDF-SHA256: the only file that names their crates.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::key::KeyBytes;

/// SHA-256 over the concatenation of `parts`.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// SHA-256 of what comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct RunningSha256(Sha256);

impl RunningSha256 {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// The next chain value: the first 16 bytes of SHA-256(`prev` ‖ `header`), where `header` is a frame's header with
/// its body tag inside.
#[must_use]
pub fn chain(prev: &[u8; 16], header: &[u8]) -> [u8; 16] {
    cut(sha256(&[prev, header]))
}

/// HKDF-SHA256 with `info` given in pieces; `None` stands for the salt of zero bytes of RFC 5869.
pub(crate) fn hkdf(salt: Option<&[u8]>, ikm: &[u8], info: &[&[u8]]) -> KeyBytes {
    let mut key = KeyBytes::zero();
    Hkdf::<Sha256>::new(salt, ikm)
        .expand_multi_info(info, key.bytes_mut())
        .expect("32 bytes are one block of HKDF's 255");
    key
}

/// A keyed HMAC-SHA256 with its two pads already absorbed; the state is wiped when dropped.
pub(crate) struct KeyedMac(Hmac<Sha256>);

// As in `aead`: the feature that wipes the hash states, of which a keyed MAC consists, is easily lost (JK-14).
const _: fn() = || {
    fn wiped_when_dropped<T: zeroize::ZeroizeOnDrop>() {}
    wiped_when_dropped::<Sha256>();
};

impl KeyedMac {
    pub(crate) fn new(key: &[u8]) -> KeyedMac {
        KeyedMac(Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length"))
    }

    pub(crate) fn tag(&self, bytes: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }
}

/// Equality in constant time, for everything that is compared with a secret or with what a secret made.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

pub(crate) fn cut(full: [u8; 32]) -> [u8; 16] {
    let [head @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = full;
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    // JK-1
    #[test]
    fn sha256_known_answers_and_parts() {
        let abc = hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256(&[b"abc"]).as_slice(), abc);
        assert_eq!(sha256(&[b"a", b"", b"bc"]).as_slice(), abc);
        let mut running = RunningSha256::default();
        [b"a".as_slice(), b"", b"bc"].iter().for_each(|part| running.update(part));
        assert_eq!(running.finish().as_slice(), abc);
        let empty = hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(sha256(&[]).as_slice(), empty);
    }

    // JK-1: RFC 5869, test cases 1 and 3 (first 32 bytes of the output).
    #[test]
    fn hkdf_known_answers() {
        let ikm = [0x0b; 22];
        let okm =
            hkdf(Some(&hex("000102030405060708090a0b0c")), &ikm, &[&hex("f0f1f2f3f4"), &hex("f5f6f7f8f9")]);
        let expected = hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
        assert_eq!(okm.bytes().as_slice(), expected);
        let expected = hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
        assert_eq!(hkdf(None, &ikm, &[]).bytes().as_slice(), expected);
        assert_eq!(hkdf(Some(&[]), &ikm, &[]).bytes().as_slice(), expected);
    }

    // JK-1: RFC 4231, test cases 1, 2 and 6 (a key longer than a block).
    #[test]
    fn hmac_known_answers() {
        let expected = hex("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        assert_eq!(KeyedMac::new(&[0x0b; 20]).tag(b"Hi There").as_slice(), expected);
        let expected = hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert_eq!(KeyedMac::new(b"Jefe").tag(b"what do ya want for nothing?").as_slice(), expected);
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let expected = hex("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
        assert_eq!(KeyedMac::new(&[0xaa; 131]).tag(long).as_slice(), expected);
    }

    // JK-9
    #[test]
    fn chain_is_the_cut_hash_of_both() {
        let prev = [7u8; 16];
        assert_eq!(chain(&prev, b"header").as_slice(), &sha256(&[&prev, b"header"])[..16]);
        assert_ne!(chain(&prev, b"header"), chain(&[8u8; 16], b"header"));
    }
}
