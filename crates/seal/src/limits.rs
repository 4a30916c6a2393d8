//! How much one body key may seal.
//!
//! ChaCha20-Poly1305 itself allows far more; the numbers stand just above what the largest segment can hold, so that
//! a writer that forgets to roll stops long before anything cryptographic is at stake.

/// Soft and hard limits of one [`crate::SealOnce`]. At the soft limit a writer should begin a new segment; past the
/// hard one it cannot seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealLimits {
    pub frames_soft: u64,
    pub frames_hard: u64,
    pub bytes_soft: u64,
    pub bytes_hard: u64,
}

impl SealLimits {
    /// A segment of 64 MiB holds fewer than 2^20 frames; one oversized unit may take it beyond 64 MiB.
    pub const SEGMENT: SealLimits = SealLimits {
        frames_soft: 1 << 20,
        frames_hard: 1 << 21,
        bytes_soft: 64 << 20,
        bytes_hard: 256 << 20,
    };
}

impl Default for SealLimits {
    fn default() -> SealLimits {
        SealLimits::SEGMENT
    }
}
