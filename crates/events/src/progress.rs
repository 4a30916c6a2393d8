//! The progress family: how far an asynchronous provider is.

/// A progress value as the provider gave it: any finite number, no scale implied.
///
/// Kept as the double's bits, so that equality is exact and a record needs no floating-point field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProgressNumber(u64);

impl ProgressNumber {
    /// `None` unless the value is finite. Negative zero becomes zero.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then(|| Self((value + 0.0).to_bits()))
    }

    #[must_use]
    pub const fn get(self) -> f64 {
        f64::from_bits(self.0)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// `None` for bits that [`Self::new`] would never produce.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        Self::new(f64::from_bits(bits)).filter(|number| number.0 == bits)
    }
}
