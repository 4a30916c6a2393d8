//! Numbers from a seed (SplitMix64). Same seed, same numbers, on every machine.

#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// A source of its own for one subject, so that drawing more of one thing moves nothing of another.
    pub(super) fn of(seed: u64, subject: u64) -> Random {
        let mut random = Random(seed ^ subject.wrapping_mul(0xA076_1D64_78BD_642F));
        random.next();
        random
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `bound - 1`; 0 for a bound of 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// `low` to `high`, both possible.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }

    /// An index, each as likely as its weight.
    pub(super) fn weighted(&mut self, weights: impl Iterator<Item = u32> + Clone) -> usize {
        let all: u64 = weights.clone().map(u64::from).sum();
        let mut point = self.below(all);
        for (index, weight) in weights.enumerate() {
            match point.checked_sub(u64::from(weight)) {
                Some(rest) => point = rest,
                None => return index,
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_kept_and_bounds_too() {
        let mut random = Random::of(1, 1);
        let mut seen = [0; 3];
        for _ in 0..4000 {
            seen[random.weighted([1, 0, 3].into_iter())] += 1;
            assert!((5..=7).contains(&random.between(5, 7)));
        }
        assert!(seen[1] == 0 && seen[2] > 2 * seen[0] && seen[0] > 500, "{seen:?}");
    }
}
