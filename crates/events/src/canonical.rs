//! Canonical JSON text, and the hashes that make two submissions the same one.
//!
//! Members sorted by UTF-16 code units, no white space, strings and numbers as ECMAScript prints them, with one
//! exception: a number that a double cannot hold keeps its exact digits, so that two different numbers never share a
//! fingerprint. Strict where a lenient parser would let two readers see different requests: duplicate members, lone
//! surrogates, invalid UTF-8 and numbers beyond a double are refused. Must never fill in a default.

mod number;
mod parse;

use sha2::{Digest, Sha256};

/// Why a text has no canonical form; says nothing about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    #[error("the text is longer than 1 MiB, or would be in canonical form")]
    TooLong,
    #[error("the text is not UTF-8")]
    NotUtf8,
    #[error("the text begins with a byte order mark")]
    ByteOrderMark,
    #[error("the text is not one JSON value")]
    Syntax,
    #[error("an object holds a member twice")]
    DuplicateMember,
    #[error("arrays and objects are nested too deep")]
    TooDeep,
    #[error("a string holds half of a surrogate pair")]
    LoneSurrogate,
    #[error("a number is beyond the range of a double")]
    NumberRange,
}

/// The canonical text of one JSON value.
///
/// # Errors
/// [`CanonicalError`] for text that is not JSON by RFC 8259, above [`crate::limits::CANONICAL_BYTES_MAX`] before or
/// after, nested deeper than [`crate::limits::JSON_DEPTH_MAX`], or ambiguous as the module's text says.
pub fn canonical_json(text: &[u8]) -> Result<String, CanonicalError> {
    parse::canonical(text)
}

/// SHA-256 of the canonical text.
///
/// # Errors
/// Those of [`canonical_json`].
pub fn fingerprint(text: &[u8]) -> Result<[u8; 32], CanonicalError> {
    Ok(Sha256::digest(canonical_json(text)?.as_bytes()).into())
}

/// SHA-256 of an idempotency key's UTF-8.
#[must_use]
pub fn key_hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests;
