//! The keys of one segment, and the MAC key of files outside segments. Every secret is wiped when dropped; none is
//! printed, compared in variable time or handed out as bytes.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::aead::{self, index_nonce};
use crate::digest::{KeyedMac, cut, equal, hkdf, sha256};
use crate::label;
use crate::random::{RandomBytes, RandomUnavailable};
use crate::rejected::Rejected;
use crate::wrap::OneTime;

/// 32 secret bytes. Boxed, so that moving the owner leaves no copy behind; wiped when dropped.
pub(crate) struct KeyBytes(Box<[u8; 32]>);

impl KeyBytes {
    pub(crate) fn zero() -> KeyBytes {
        KeyBytes(Box::new([0; 32]))
    }

    pub(crate) fn copy_of(bytes: &[u8; 32]) -> KeyBytes {
        let mut key = KeyBytes::zero();
        key.0.copy_from_slice(bytes);
        key
    }

    pub(crate) fn random(random: &mut dyn RandomBytes) -> Result<KeyBytes, RandomUnavailable> {
        let mut key = KeyBytes::zero();
        random.fill(key.0.as_mut_slice())?;
        Ok(key)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; 32] {
        &mut self.0
    }
}

impl Drop for KeyBytes {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for KeyBytes {}

/// Redacted `Debug` for the key types.
macro_rules! redacted {
    ($($name:ident),+) => {$(
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    )+};
}
pub(crate) use redacted;

redacted!(KeyBytes, DataKey, BodyKey, HeaderKey, SummaryKey, MacKey);

/// The random key of one segment. Stored only wrapped by a root key.
pub struct DataKey(pub(crate) KeyBytes);

impl DataKey {
    /// HKDF-SHA256(`random`, info = "sealog data key" ‖ `hedge`). The hedge (header fields, wall clock, boot id,
    /// process id) keeps keys apart even where the random source repeats itself, as after a resumed snapshot.
    #[must_use]
    pub fn generate(mut random: [u8; 32], hedge: &[u8]) -> DataKey {
        let key = hkdf(None, &random, &[label::DATA_KEY, hedge]);
        random.zeroize();
        DataKey(key)
    }

    /// The subkeys of the segment whose complete header is `header`.
    #[must_use]
    pub fn segment_keys(&self, header: &[u8]) -> SegmentKeys {
        let context = sha256(&[header]);
        let body = hkdf(None, self.0.bytes(), &[label::BODY_KEY, &context]);
        let header = hkdf(None, self.0.bytes(), &[label::HEADER_KEY, &context]);
        let summary = hkdf(None, self.0.bytes(), &[label::SUMMARY_KEY, &context]);
        SegmentKeys {
            body: BodyKey(body),
            header: HeaderKey(KeyedMac::new(header.bytes())),
            summary: SummaryKey(summary),
        }
    }
}

/// What [`DataKey::segment_keys`] derives.
#[derive(Debug)]
pub struct SegmentKeys {
    pub body: BodyKey,
    pub header: HeaderKey,
    pub summary: SummaryKey,
}

/// Seals and opens the summaries of one segment, each under a key of its own (JK-15).
pub struct SummaryKey(KeyBytes);

impl SummaryKey {
    /// Encrypts `buf` in place and returns its tag. `salt` is 32 fresh random bytes, never used for a second summary;
    /// `aad` receives the key check and returns every other byte of the file's header (salt and check included).
    #[must_use]
    pub fn seal(
        &self,
        what: &SummaryOf,
        salt: &[u8; 32],
        aad: impl FnOnce(&[u8; 32]) -> Vec<u8>,
        buf: &mut [u8],
    ) -> [u8; 16] {
        let once = OneTime::derive(&self.0, &what.bytes(), salt);
        let aad = aad(once.check());
        once.seal(&aad, buf)
    }

    /// Decrypts `buf` in place. On failure it still holds the ciphertext.
    ///
    /// # Errors
    /// [`Rejected`] if key, salt, check, tag, body or associated data are not the ones that were sealed.
    pub fn open(
        &self,
        what: &SummaryOf,
        salt: &[u8; 32],
        check: &[u8; 32],
        aad: &[u8],
        buf: &mut [u8],
        tag: &[u8; 16],
    ) -> Result<(), Rejected> {
        OneTime::derive(&self.0, &what.bytes(), salt).open(check, aad, buf, tag).map_err(|_| Rejected)
    }
}

/// Which format a summary is of, for its key's derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryOf {
    pub store_id: [u8; 16],
    pub version: u16,
    pub suite: u16,
}

impl SummaryOf {
    fn bytes(&self) -> Vec<u8> {
        let (version, suite) = (self.version.to_le_bytes(), self.suite.to_le_bytes());
        [label::SUMMARY, self.store_id.as_slice(), &version, &suite].concat()
    }
}

/// Opens frame bodies. Sealing goes through [`crate::SealOnce`], which takes the key.
pub struct BodyKey(KeyBytes);

impl BodyKey {
    pub(crate) fn seal(&self, index: u64, aad: &[u8], buf: &mut [u8]) -> [u8; 16] {
        aead::seal(&self.0, index_nonce(index), aad, buf)
    }

    /// Decrypts the body of frame `index` in place. On failure `buf` still holds the ciphertext.
    ///
    /// # Errors
    /// [`Rejected`] if body, tag, index or associated data are not the ones that were sealed.
    pub fn open(&self, index: u64, aad: &[u8], buf: &mut [u8], tag: &[u8; 16]) -> Result<(), Rejected> {
        aead::open(&self.0, index_nonce(index), aad, buf, tag)
    }
}

/// Authenticates frame headers: HMAC-SHA256 cut to 16 bytes.
pub struct HeaderKey(KeyedMac);

impl HeaderKey {
    /// The tag of the header bytes before the tag field.
    #[must_use]
    pub fn tag(&self, bytes: &[u8]) -> [u8; 16] {
        cut(self.0.tag(bytes))
    }

    /// Compares in constant time.
    ///
    /// # Errors
    /// [`Rejected`] if the tag is not the one [`HeaderKey::tag`] gives.
    pub fn verify(&self, bytes: &[u8], tag: &[u8; 16]) -> Result<(), Rejected> {
        if equal(&self.tag(bytes), tag) { Ok(()) } else { Err(Rejected) }
    }
}

/// Authenticates a file that is not a segment (`head`, a manifest): HMAC-SHA256, 32 bytes.
pub struct MacKey(KeyedMac);

impl MacKey {
    pub(crate) fn new(key: &KeyBytes) -> MacKey {
        MacKey(KeyedMac::new(key.bytes()))
    }

    #[must_use]
    pub fn mac(&self, bytes: &[u8]) -> [u8; 32] {
        self.0.tag(bytes)
    }

    /// Compares in constant time.
    ///
    /// # Errors
    /// [`Rejected`] if the code is not the one [`MacKey::mac`] gives.
    pub fn verify(&self, bytes: &[u8], mac: &[u8; 32]) -> Result<(), Rejected> {
        if equal(&self.mac(bytes), mac) { Ok(()) } else { Err(Rejected) }
    }
}
