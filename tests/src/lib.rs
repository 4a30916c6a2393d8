//! What the cross-crate tests share: where the built binaries are.
//!
//! The tests themselves are the targets `tests/<topic>.rs`; those in `tests/real/` need other tools as well. Nothing
//! here starts, builds or replaces a binary, so that a test never runs another one than it says.

pub mod canary;
pub mod workbench;

use std::path::PathBuf;

/// The built program of this name, beside the running test's own folder. `cargo test --workspace` and
/// `cargo xtask real` build it first.
///
/// # Panics
///
/// When it was not built.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let profile = test.ancestors().nth(2).expect("a test runs from <profile>/deps/");
    let path = profile.join(name);
    assert!(path.is_file(), "{name} is not built; run `cargo test --workspace`");
    path
}
