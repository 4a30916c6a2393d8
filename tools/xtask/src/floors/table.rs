//! Which package stands on which floor, and what floor 0 may be built from.
//!
//! A new package needs a row here; a package without one fails the step.

use std::fmt;

/// The height of a floor in tenths, so that a mezzanine fits between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Height(pub u8);

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (floor, 0) => write!(f, "{floor}"),
            (floor, tenths) => write!(f, "{floor}.{tenths}"),
        }
    }
}

/// Where a package of the workspace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Product code; may name lower floors only.
    Floor(Height),
    /// What several packages' tests share; never part of the product.
    Testkit,
    /// Tools, benches and the cross-crate tests; may name any floor, and nobody names them.
    Outside,
}

/// The testkit may name every floor up to this one.
pub const TESTKIT_REACH: Height = Height(50);

const PLACES: &[(&str, Place)] = &[
    ("sealog", floor(60)),
    ("sealog-http", floor(50)),
    ("sealog-client", floor(50)),
    ("sealog-engine", floor(40)),
    ("sealog-dialects", floor(40)),
    ("sealog-providers-mock", floor(40)),
    ("sealog-providers-openai-chat", floor(40)),
    ("sealog-providers-anthropic-messages", floor(40)),
    ("sealog-providers-openai-responses", floor(40)),
    ("sealog-providers-ollama", floor(40)),
    ("sealog-providers-fal-queue", floor(40)),
    // A mezzanine: upstream turns transport faults into execution's typed failures, once for every provider.
    ("sealog-upstream", floor(35)),
    ("sealog-execution", floor(30)),
    ("sealog-journal", floor(20)),
    ("sealog-disk", floor(10)),
    ("sealog-journal-format", floor(0)),
    ("sealog-seal", floor(0)),
    ("sealog-events", floor(0)),
    ("sealog-testkit", Place::Testkit),
    ("sealog-tests", Place::Outside),
    ("sealog-benches", Place::Outside),
    ("sealog-http-bench", Place::Outside),
    ("crashbox", Place::Outside),
    ("contract", Place::Outside),
    ("xtask", Place::Outside),
];

/// The process tests drive the binary with crashbox's own client and upstream.
pub const EXCEPTED: &[(&str, &str)] = &[("sealog-tests", "crashbox")];

/// The folders of floor 0, whose sources are read as well.
pub const PURE_FOLDERS: &[&str] = &["journal-format/src/", "crates/seal/src/", "crates/events/src/"];

/// Everything that a crate on floor 0 may name in its manifest, besides development tools.
pub const PURE_DEPENDENCIES: &[&str] = &[
    "argon2",
    "bincode",
    "chacha20poly1305",
    "crc32fast",
    "hkdf",
    "hmac",
    "ryu-js",
    "serde",
    "serde_json",
    "sha2",
    "subtle",
    "thiserror",
    "zeroize",
];

/// What tests of floor 0 may use besides.
pub const PURE_DEV_DEPENDENCIES: &[&str] = &["insta", "proptest", "serde_json"];

/// Crates that reach the host; none of them may be built into floor 0, however far down.
pub const HOST_CRATES: &[&str] =
    &["fs2", "getrandom", "memmap2", "mio", "rand", "rustix", "socket2", "tempfile", "tokio"];

/// Paths into the standard library that reach the host.
pub const HOST_PATHS: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::",
    "println!",
];

/// The floor that everything else may stand on.
pub const GROUND: Place = floor(0);

const fn floor(tenths: u8) -> Place {
    Place::Floor(Height(tenths))
}

pub fn place(package: &str) -> Option<Place> {
    PLACES.iter().find(|(name, _)| *name == package).map(|(_, place)| *place)
}

pub fn on_floor_0() -> impl Iterator<Item = &'static str> {
    PLACES.iter().filter(|(_, place)| *place == GROUND).map(|(name, _)| *name)
}
