//! The host's clock and randomness.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Clock, Entropy, EntropyError};

/// The system clock.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
    boot_id: Option<File>,
}

impl RealClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the kernel's boot id is a file outside every data directory"
    )]
    pub fn new() -> RealClock {
        RealClock { start: Instant::now(), boot_id: File::open("/proc/sys/kernel/random/boot_id").ok() }
    }
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock::new()
    }
}

impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn wall_ms(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    /// Read anew each time: a process that was checkpointed and restored elsewhere sees another boot. All zeros
    /// where the kernel does not show it.
    fn boot_id(&self) -> [u8; 16] {
        let mut text = [0; 36];
        let read = self.boot_id.as_ref().map(|file| file.read_exact_at(&mut text, 0));
        match read {
            Some(Ok(())) => parse_boot_id(&text).unwrap_or_default(),
            Some(Err(_)) | None => [0; 16],
        }
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }
}

fn parse_boot_id(text: &[u8; 36]) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text
        .iter()
        .filter(|byte| **byte != b'-')
        .map(|byte| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    bytes.try_into().ok()
}

/// The kernel's random number generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealEntropy;

impl Entropy for RealEntropy {
    fn fill(&self, buf: &mut [u8]) -> Result<(), EntropyError> {
        getrandom::fill(buf).map_err(|_| EntropyError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_id_is_parsed_and_stable() {
        let parsed = parse_boot_id(b"01234567-89ab-cdef-0123-456789abcdef");
        assert_eq!(parsed.map(|id| id[..4].to_vec()), Some(vec![0x01, 0x23, 0x45, 0x67]));
        assert_eq!(parse_boot_id(b"0123456789abcdef0123456789abcdef0123"), None);
        assert_eq!(parse_boot_id(b"zz234567-89ab-cdef-0123-456789abcdef"), None);
        let clock = RealClock::new();
        assert_eq!(clock.boot_id(), clock.boot_id());
    }

    #[test]
    fn two_draws_differ() {
        let (mut a, mut b) = ([0; 32], [0; 32]);
        RealEntropy.fill(&mut a).unwrap();
        RealEntropy.fill(&mut b).unwrap();
        assert_ne!(a, b);
    }
}
