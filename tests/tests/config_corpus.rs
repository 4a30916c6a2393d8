//! Replays every kept input of the fuzz target `config` on stable, with the fuzzer's own body.
#![expect(clippy::disallowed_methods, reason = "the corpus is part of the source tree, not of a journal")]

use std::fs;
use std::path::Path;

use sealog_testkit::fuzz::allocation::{Counting, is_counted};

#[path = "../../fuzz/src/config.rs"]
mod config;

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn every_kept_configuration_holds() {
    assert!(is_counted());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/config");
    let inputs: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(inputs.len() >= 15, "{} inputs", inputs.len());
    let accepted = inputs.iter().filter(|path| {
        let data = fs::read(path).unwrap();
        config::config(&data);
        std::str::from_utf8(&data).is_ok_and(|text| sealog_cli::config::parse(text).is_ok())
    });
    let accepted = accepted.count();
    assert!(accepted > 0 && accepted < inputs.len(), "{accepted} of {} are accepted", inputs.len());
}
