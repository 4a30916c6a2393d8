//! The seeded source of every choice of a campaign.
//!
//! Owns nothing but its state. It never looks at the clock or the host, so a seed names the same choices on every
//! machine; which choice meets which moment of the node is up to the scheduler, and no seed can fix that.

use std::ops::RangeInclusive;

/// SplitMix64: small, fast, and good enough to choose what to do next.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The choices named by `seed`.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// Choices of their own for one more thread, drawn from these.
    pub fn fork(&mut self) -> Random {
        Random::new(self.draw())
    }

    /// 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number of the range, both ends included.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = range.into_inner();
        // The bias of the remainder is far below what a choice of load could notice.
        low + self.draw() % (high - low + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.within(1..=100) <= percent
    }

    /// One of the items, of which there must be at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.within(0..=items.len() as u64 - 1) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_its_choices() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn both_ends_of_a_range_come_up() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..200).map(|_| random.within(3..=5)).collect();
        assert!(drawn.contains(&3) && drawn.contains(&5));
        assert!(drawn.iter().all(|number| (3..=5).contains(number)));
    }

    #[test]
    fn certain_chances_are_certain() {
        let mut random = Random::new(1);
        assert!((0..100).all(|_| random.chance(100) && !random.chance(0)));
    }
}
