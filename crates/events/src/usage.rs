//! The usage family: what was counted, by whom.

use crate::UsageSource;

/// One counted quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFact {
    /// For instance `output_token`; not empty, at most [`crate::limits::NAME_BYTES_MAX`] bytes. Units are open.
    pub unit: String,
    pub quantity: Quantity,
    pub source: UsageSource,
    /// Whether the source says that the count covers everything; absent when it does not say.
    pub complete: Option<bool>,
}

/// A finite number of at least zero, kept as the double's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quantity(u64);

impl Quantity {
    /// `None` unless the value is finite and at least zero. Negative zero becomes zero.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then(|| Self((value + 0.0).to_bits()))
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
        Self::new(f64::from_bits(bits)).filter(|quantity| quantity.0 == bits)
    }
}

impl From<u32> for Quantity {
    fn from(count: u32) -> Self {
        Self(f64::from(count).to_bits())
    }
}
