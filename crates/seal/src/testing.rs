//! For tests only: small Argon2 costs, a deterministic random source, and the recorder that shows that no (key, nonce)
//! pair is ever used twice. Compiled under `cfg(test)` and the feature `testing`, which no product crate enables.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::sha256;
use crate::key::BodyKey;
use crate::random::{RandomBytes, RandomUnavailable};
use crate::stretch::{SlotParams, StretchBounds};

/// The cheapest Argon2id there is: 8 KiB, one pass, one lane. Only [`test_bounds`] accepts it.
#[must_use]
pub fn test_params() -> SlotParams {
    SlotParams::stored(8, 1, 1)
}

/// Bounds that accept [`test_params`] and refuse anything a test should not wait for.
#[must_use]
pub fn test_bounds() -> StretchBounds {
    StretchBounds::TESTING
}

/// Seals outside [`crate::SealOnce`], for tests that forge frames.
#[must_use]
pub fn seal_forged(key: &BodyKey, index: u64, aad: &[u8], buf: &mut [u8]) -> [u8; 16] {
    key.seal(index, aad, buf)
}

/// Reads hexadecimal digits; white space is skipped. Panics on anything else.
#[must_use]
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("a hexadecimal digit"))
        .collect();
    assert!(digits.len().is_multiple_of(2), "an even number of digits");
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("below 256")).collect()
}

/// A random source that repeats from run to run: SHA-256 in counter mode over a seed.
#[derive(Debug)]
pub struct SeededRandom {
    seed: u64,
    counter: u64,
}

impl SeededRandom {
    #[must_use]
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom { seed, counter: 0 }
    }
}

impl RandomBytes for SeededRandom {
    fn fill(&mut self, buf: &mut [u8]) -> Result<(), RandomUnavailable> {
        for chunk in buf.chunks_mut(32) {
            let block = sha256(&[&self.seed.to_le_bytes(), &self.counter.to_le_bytes()]);
            self.counter += 1;
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
        Ok(())
    }
}

/// Fingerprint of a key (not the key) and a nonce.
pub type Pair = ([u8; 16], [u8; 12]);

#[derive(Default)]
struct Seen {
    pairs: HashSet<Pair>,
    repeated: Vec<Pair>,
    total: u64,
}

/// Collects every (key, nonce) that seals or wraps on the threads it is installed on. Clones share one collection.
#[derive(Clone, Default)]
pub struct NonceRecorder(Arc<Mutex<Seen>>);

thread_local! {
    static INSTALLED: RefCell<Option<NonceRecorder>> = const { RefCell::new(None) };
}

impl NonceRecorder {
    #[must_use]
    pub fn new() -> NonceRecorder {
        NonceRecorder::default()
    }

    /// Records what this thread seals until the guard is dropped.
    #[must_use]
    pub fn install(&self) -> Installed {
        Installed { previous: INSTALLED.with(|slot| slot.replace(Some(self.clone()))) }
    }

    /// How many times something was sealed or wrapped.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.with(|seen| seen.total)
    }

    /// Pairs that were used more than once, in the order of their repetition. Must be empty.
    #[must_use]
    pub fn repeated(&self) -> Vec<Pair> {
        self.with(|seen| seen.repeated.clone())
    }

    fn with<T>(&self, f: impl FnOnce(&mut Seen) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for NonceRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.with(|seen| {
            f.debug_struct("NonceRecorder")
                .field("total", &seen.total)
                .field("repeated", &seen.repeated.len())
                .finish()
        })
    }
}

/// Keeps a [`NonceRecorder`] installed on its thread.
#[derive(Debug)]
pub struct Installed {
    previous: Option<NonceRecorder>,
}

impl Drop for Installed {
    fn drop(&mut self) {
        INSTALLED.with(|slot| slot.replace(self.previous.take()));
    }
}

pub(crate) fn record(key: &[u8; 32], nonce: [u8; 12]) {
    INSTALLED.with(|slot| {
        if let Some(recorder) = slot.borrow().as_ref() {
            let mut fingerprint = [0u8; 16];
            fingerprint.copy_from_slice(&sha256(&[b"sealog key fingerprint", key])[..16]);
            recorder.with(|seen| {
                seen.total += 1;
                if !seen.pairs.insert((fingerprint, nonce)) {
                    seen.repeated.push((fingerprint, nonce));
                }
            });
        }
    });
}
