//! Nonces that are unique by construction: the one way to seal a frame body owns the key and only counts upwards.

use crate::key::{BodyKey, redacted};
use crate::limits::SealLimits;

/// Why a body was not sealed. The buffer is untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// This index, or a later one, was already sealed under this key.
    #[error("a frame index must be higher than every earlier one of its segment")]
    IndexNotIncreasing,
    /// The key has sealed as much as one key may.
    #[error("the key of this segment has reached its limit")]
    LimitReached,
    /// The key was retired after a failure.
    #[error("the key of this segment was retired")]
    Retired,
}

/// Seals the frame bodies of one segment. Each index is sealed at most once: an index that is not strictly above
/// all earlier ones is refused, whatever became of the earlier write.
pub struct SealOnce {
    key: BodyKey,
    limits: SealLimits,
    /// The lowest index that may still be sealed; `None` once the last index was used or the key was retired.
    next: Next,
    frames: u64,
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    AtLeast(u64),
    Exhausted,
    Retired,
}

redacted!(SealOnce);

impl SealOnce {
    /// Takes the key, with the limits of a segment.
    #[must_use]
    pub fn new(key: BodyKey) -> SealOnce {
        SealOnce::with_limits(key, SealLimits::SEGMENT)
    }

    #[must_use]
    pub fn with_limits(key: BodyKey, limits: SealLimits) -> SealOnce {
        SealOnce { key, limits, next: Next::AtLeast(0), frames: 0, bytes: 0 }
    }

    /// Encrypts `buf` in place as the body of frame `index` and returns its tag.
    ///
    /// # Errors
    /// [`SealError`]; nothing was sealed and `buf` is unchanged.
    pub fn seal(&mut self, index: u64, aad: &[u8], buf: &mut [u8]) -> Result<[u8; 16], SealError> {
        match self.next {
            Next::Retired => return Err(SealError::Retired),
            Next::Exhausted => return Err(SealError::IndexNotIncreasing),
            Next::AtLeast(lowest) if index < lowest => return Err(SealError::IndexNotIncreasing),
            Next::AtLeast(_) => {}
        }
        let frames = self.frames.saturating_add(1);
        let bytes = self.bytes.saturating_add(buf.len() as u64);
        if frames > self.limits.frames_hard
            || bytes > self.limits.bytes_hard
            || buf.len() as u64 > crate::aead::MESSAGE_BYTES_MAX
        {
            return Err(SealError::LimitReached);
        }
        // Counted before the cipher runs: a panic in between must not leave the index free.
        self.next = index.checked_add(1).map_or(Next::Exhausted, Next::AtLeast);
        self.frames = frames;
        self.bytes = bytes;
        Ok(self.key.seal(index, aad, buf))
    }

    /// True once the soft limit is reached: begin a new segment.
    #[must_use]
    pub fn at_soft_limit(&self) -> bool {
        self.frames >= self.limits.frames_soft || self.bytes >= self.limits.bytes_soft
    }

    /// Nothing is ever sealed under this key again; for a writer after a failed write or sync.
    pub fn retire(&mut self) {
        self.next = Next::Retired;
    }

    /// The key, for opening what was sealed.
    #[must_use]
    pub fn key(&self) -> &BodyKey {
        &self.key
    }

    /// Bodies sealed so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Body bytes sealed so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
