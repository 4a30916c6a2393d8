//! Randomness for a change of the keyring, hedged with what differs between two processes (JK-46): numbers that the system
//! repeats do not give two wraps under one key.

use sealog_seal::{RandomBytes, RandomUnavailable, sha256};

use crate::config::Config;

pub(crate) struct Hedged<'a> {
    config: &'a Config,
    counter: u64,
}

impl Hedged<'_> {
    pub(crate) fn new(config: &Config) -> Hedged<'_> {
        Hedged { config, counter: 0 }
    }
}

impl RandomBytes for Hedged<'_> {
    fn fill(&mut self, buf: &mut [u8]) -> Result<(), RandomUnavailable> {
        let clock = &*self.config.clock;
        for piece in buf.chunks_mut(32) {
            self.config.entropy.fill(piece).map_err(|_| RandomUnavailable)?;
            self.counter += 1;
            let hedged = sha256(&[
                piece,
                &clock.wall_ms().to_le_bytes(),
                &clock.monotonic().as_nanos().to_le_bytes(),
                &clock.boot_id(),
                &clock.process_id().to_le_bytes(),
                &self.counter.to_le_bytes(),
            ]);
            piece.copy_from_slice(&hedged[..piece.len()]);
        }
        Ok(())
    }
}
