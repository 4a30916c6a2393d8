//! Randomness as an argument.

/// The system had no randomness to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no randomness")]
pub struct EntropyError;

/// A source of unpredictable bytes.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    fn fill(&self, buf: &mut [u8]) -> Result<(), EntropyError>;
}
