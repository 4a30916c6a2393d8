//! CRC-32 (IEEE, as in zip and PNG), the only checksum of the format. It tells damage from intact bytes and proves
//! nothing about who wrote them.

/// CRC-32 of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
