//! The version, suite and codec numbers of this format, and the one way a version field is judged.

use crate::error::{FormatError, Why};

/// The format version this build writes and the newest it reads.
pub const FORMAT_VERSION: u16 = 1;
/// ChaCha20-Poly1305 with HKDF and HMAC over SHA-256.
pub const SUITE: u16 = 1;
/// bincode 2.0.1, little endian, variable int, shortest form.
pub const RECORD_CODEC: u16 = 1;

/// A newer version is told apart from damage; version 0 never existed.
pub(crate) fn check_version(version: u16, offset: usize) -> Result<(), FormatError> {
    match version {
        FORMAT_VERSION => Ok(()),
        0 => Err(Why::OutOfRange.of("version", offset)),
        newer => Err(Why::NewerVersion(newer).of("version", offset)),
    }
}
