//! A clock and a source of bytes that tests hold in their hands. Same seed, same run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Clock, Entropy, EntropyError};

/// A clock that moves only when told. A clone is the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock {
    now: Arc<Mutex<Now>>,
}

#[derive(Debug)]
struct Now {
    wall_ms: u64,
    monotonic: Duration,
    boot_id: [u8; 16],
    process_id: u32,
}

impl ManualClock {
    /// Starts at this wall time, monotonic time zero, boot id of all ones, process 1.
    pub fn new(wall_ms: u64) -> ManualClock {
        let now = Now { wall_ms, monotonic: Duration::ZERO, boot_id: [1; 16], process_id: 1 };
        ManualClock { now: Arc::new(Mutex::new(now)) }
    }

    /// Time passes: both clocks move.
    pub fn advance(&self, by: Duration) {
        let mut now = self.lock();
        now.monotonic += by;
        now.wall_ms = now.wall_ms.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
    }

    /// Only the monotonic clock moves.
    pub fn advance_monotonic(&self, by: Duration) {
        self.lock().monotonic += by;
    }

    /// The wall clock is set, in either direction.
    pub fn set_wall_ms(&self, wall_ms: u64) {
        self.lock().wall_ms = wall_ms;
    }

    /// The wall clock jumps by this many milliseconds.
    pub fn jump_wall_ms(&self, by: i64) {
        let mut now = self.lock();
        now.wall_ms = now.wall_ms.saturating_add_signed(by);
    }

    /// The machine was started anew, or a snapshot was resumed elsewhere.
    pub fn set_boot_id(&self, boot_id: [u8; 16]) {
        self.lock().boot_id = boot_id;
    }

    pub fn set_process_id(&self, process_id: u32) {
        self.lock().process_id = process_id;
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.lock().wall_ms
    }

    fn monotonic(&self) -> Duration {
        self.lock().monotonic
    }

    fn boot_id(&self) -> [u8; 16] {
        self.lock().boot_id
    }

    fn process_id(&self) -> u32 {
        self.lock().process_id
    }
}

/// Bytes from a seed (SplitMix64), or an error on request. A clone continues the same sequence. Never for keys
/// that protect anything.
#[derive(Clone, Debug)]
pub struct SeededEntropy {
    source: Arc<Mutex<Source>>,
}

#[derive(Debug)]
struct Source {
    state: u64,
    failing: bool,
}

impl SeededEntropy {
    pub fn new(seed: u64) -> SeededEntropy {
        SeededEntropy { source: Arc::new(Mutex::new(Source { state: seed, failing: false })) }
    }

    /// From now on every call fails, or none.
    pub fn set_failing(&self, failing: bool) {
        self.lock().failing = failing;
    }

    /// The next eight bytes as a number, for tests that draw decisions from the same seed.
    pub fn draw(&self) -> u64 {
        step(&mut self.lock().state)
    }

    fn lock(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buf: &mut [u8]) -> Result<(), EntropyError> {
        let mut source = self.lock();
        if source.failing {
            return Err(EntropyError);
        }
        for piece in buf.chunks_mut(8) {
            let bytes = step(&mut source.state).to_le_bytes();
            piece.copy_from_slice(&bytes[..piece.len()]);
        }
        Ok(())
    }
}

/// SplitMix64.
pub(crate) fn step(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_move_apart_only_when_told() {
        let clock = ManualClock::new(1_000);
        let other = clock.clone();
        clock.advance(Duration::from_millis(5));
        clock.jump_wall_ms(-900);
        assert_eq!((other.wall_ms(), other.monotonic()), (105, Duration::from_millis(5)));
        clock.advance_monotonic(Duration::from_secs(1));
        clock.set_boot_id([2; 16]);
        assert_eq!((other.wall_ms(), other.boot_id()), (105, [2; 16]));
    }

    #[test]
    fn a_seed_gives_one_sequence() {
        let (a, b) = (SeededEntropy::new(7), SeededEntropy::new(7));
        let (mut x, mut y) = ([0; 21], [0; 21]);
        a.fill(&mut x).unwrap();
        b.fill(&mut y).unwrap();
        assert_eq!(x, y);
        a.fill(&mut x).unwrap();
        assert_ne!(x, y);
        a.set_failing(true);
        assert_eq!(b.fill(&mut y), Ok(()));
        assert_eq!(a.fill(&mut x), Err(EntropyError));
    }
}
