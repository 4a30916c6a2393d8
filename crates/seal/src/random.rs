//! Randomness as an argument: this crate never asks the system for it.

/// The source had no randomness to give. Nothing was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no randomness was available")]
pub struct RandomUnavailable;

/// A source of unpredictable bytes. Any `FnMut(&mut [u8]) -> Result<(), RandomUnavailable>` is one.
pub trait RandomBytes {
    /// Fills the whole buffer with fresh random bytes.
    ///
    /// # Errors
    /// [`RandomUnavailable`]; the buffer's content is then unspecified and must not be used.
    fn fill(&mut self, buf: &mut [u8]) -> Result<(), RandomUnavailable>;
}

impl<F: FnMut(&mut [u8]) -> Result<(), RandomUnavailable>> RandomBytes for F {
    fn fill(&mut self, buf: &mut [u8]) -> Result<(), RandomUnavailable> {
        self(buf)
    }
}

/// `N` fresh public bytes: ids and salts. Secrets are filled in place by `KeyBytes::random`.
pub(crate) fn draw<const N: usize>(random: &mut dyn RandomBytes) -> Result<[u8; N], RandomUnavailable> {
    let mut bytes = [0u8; N];
    random.fill(&mut bytes)?;
    Ok(bytes)
}
