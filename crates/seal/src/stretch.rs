//! Argon2id: the only file that names its crate. Parameters are bounded before any work; the work area is our own
//! and is wiped, because the crate's is not.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use zeroize::Zeroizing;

use crate::key::KeyBytes;
use crate::secret::Passphrase;

/// Cost of a passphrase slot: memory in KiB, passes, lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotParams {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// The parameters are outside the bounds, or the memory for them was not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StretchError {
    BadParameters,
    OutOfMemory,
}

/// What parameters are accepted, in a new slot and in a stored one. Production code has one value of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StretchBounds {
    floor: SlotParams,
    ceiling: SlotParams,
}

impl SlotParams {
    /// 64 MiB, 3 passes, 4 lanes: the second recommendation of RFC 9106.
    pub const DEFAULT: SlotParams = SlotParams { memory_kib: 64 << 10, passes: 3, lanes: 4 };
    /// 19 MiB, 2 passes, 1 lane.
    pub const FLOOR: SlotParams = SlotParams { memory_kib: 19 << 10, passes: 2, lanes: 1 };
    /// 1 GiB, 16 passes, 8 lanes.
    pub const CEILING: SlotParams = SlotParams { memory_kib: 1 << 20, passes: 16, lanes: 8 };

    /// Parameters within the bounds of production; `None` outside them.
    #[must_use]
    pub fn new(memory_kib: u32, passes: u32, lanes: u32) -> Option<SlotParams> {
        let params = SlotParams { memory_kib, passes, lanes };
        StretchBounds::PRODUCTION.allow(&params).then_some(params)
    }

    /// As stored, unchecked; [`StretchBounds::allow`] decides.
    pub(crate) fn stored(memory_kib: u32, passes: u32, lanes: u32) -> SlotParams {
        SlotParams { memory_kib, passes, lanes }
    }

    #[must_use]
    pub fn memory_kib(&self) -> u32 {
        self.memory_kib
    }

    #[must_use]
    pub fn passes(&self) -> u32 {
        self.passes
    }

    #[must_use]
    pub fn lanes(&self) -> u32 {
        self.lanes
    }
}

impl Default for SlotParams {
    fn default() -> SlotParams {
        SlotParams::DEFAULT
    }
}

impl StretchBounds {
    /// Floor 19 MiB/2/1, ceiling 1 GiB/16/8.
    pub const PRODUCTION: StretchBounds =
        StretchBounds { floor: SlotParams::FLOOR, ceiling: SlotParams::CEILING };

    #[cfg(any(test, feature = "testing"))]
    pub(crate) const TESTING: StretchBounds = StretchBounds {
        floor: SlotParams { memory_kib: 8, passes: 1, lanes: 1 },
        ceiling: SlotParams { memory_kib: 1 << 10, passes: 4, lanes: 4 },
    };

    /// Whether work with these parameters may start.
    #[must_use]
    pub fn allow(&self, params: &SlotParams) -> bool {
        let within = |low: u32, value: u32, high: u32| low <= value && value <= high;
        within(self.floor.memory_kib, params.memory_kib, self.ceiling.memory_kib)
            && within(self.floor.passes, params.passes, self.ceiling.passes)
            && within(self.floor.lanes, params.lanes, self.ceiling.lanes)
    }
}

/// Argon2id version 0x13 of the passphrase, 32 bytes.
pub(crate) fn stretch(
    passphrase: &Passphrase,
    salt: &[u8; 16],
    params: &SlotParams,
    bounds: &StretchBounds,
) -> Result<KeyBytes, StretchError> {
    if !bounds.allow(params) {
        return Err(StretchError::BadParameters);
    }
    let costs = Params::new(params.memory_kib, params.passes, params.lanes, Some(32))
        .map_err(|_| StretchError::BadParameters)?;
    let mut work = WorkArea::new(costs.block_count())?;
    let mut key = KeyBytes::zero();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, costs)
        .hash_password_into_with_memory(passphrase.bytes(), salt, key.bytes_mut(), work.0.as_mut_slice())
        .map_err(|_| StretchError::BadParameters)?;
    Ok(key)
}

/// Up to 1 GiB that holds a passphrase's traces; wiped when dropped, also after a failure.
struct WorkArea(Zeroizing<Vec<Block>>);

impl WorkArea {
    fn new(blocks: usize) -> Result<WorkArea, StretchError> {
        let mut area = Vec::new();
        // An ordinary allocation would abort the process where the memory is not there.
        area.try_reserve_exact(blocks).map_err(|_| StretchError::OutOfMemory)?;
        area.resize(blocks, Block::new());
        Ok(WorkArea(Zeroizing::new(area)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{hex, test_params};

    fn phrase() -> Passphrase {
        Passphrase::from_bytes(b"correct horse").unwrap()
    }

    fn salt() -> [u8; 16] {
        std::array::from_fn(|i| i as u8)
    }

    // JK-21: computed with another implementation.
    #[test]
    fn argon2id_known_answers() {
        let key = stretch(&phrase(), &salt(), &SlotParams::FLOOR, &StretchBounds::PRODUCTION).unwrap();
        let expected = hex("d00b90c40f918cf889780d7d3a9ec3c2b1719df87dc5e4d4d93ea6163db04e17");
        assert_eq!(key.bytes().as_slice(), expected);
        let key = stretch(&phrase(), &salt(), &test_params(), &StretchBounds::TESTING).unwrap();
        let expected = hex("3bfa796a86260b73457e1290b51695931a17e266f601d0fb45563e282fb6865b");
        assert_eq!(key.bytes().as_slice(), expected);
    }

    // JK-22
    #[test]
    fn parameters_outside_the_bounds_are_refused_before_work() {
        assert_eq!(SlotParams::new(64 << 10, 3, 4), Some(SlotParams::DEFAULT));
        for (memory_kib, passes, lanes) in [(19_456, 2, 1), (1_048_576, 16, 8)] {
            assert!(SlotParams::new(memory_kib, passes, lanes).is_some());
        }
        let outside = [
            (19_455, 2, 1),
            (19_456, 1, 1),
            (19_456, 2, 0),
            (1_048_577, 16, 8),
            (1_048_576, 17, 8),
            (1_048_576, 16, 9),
            (u32::MAX, u32::MAX, u32::MAX),
            (0, 0, 0),
        ];
        for (memory_kib, passes, lanes) in outside {
            assert_eq!(SlotParams::new(memory_kib, passes, lanes), None);
            let params = SlotParams::stored(memory_kib, passes, lanes);
            let refused = stretch(&phrase(), &salt(), &params, &StretchBounds::PRODUCTION);
            assert_eq!(refused.map(|_| ()), Err(StretchError::BadParameters));
        }
        let refused = stretch(&phrase(), &salt(), &test_params(), &StretchBounds::PRODUCTION);
        assert_eq!(refused.map(|_| ()), Err(StretchError::BadParameters), "test costs do not leak");
    }

    // JK-23
    #[test]
    fn memory_that_is_not_there_is_an_error() {
        assert_eq!(WorkArea::new(usize::MAX / 2048).map(|_| ()), Err(StretchError::OutOfMemory));
    }

    // JK-14: the owners of secrets wipe when dropped; a type that stopped doing so would not compile here.
    #[test]
    fn the_work_area_wipes() {
        fn wipes<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        wipes(&WorkArea::new(8).unwrap().0);
        wipes(&Zeroizing::new([0u8; 32]));
    }
}
