//! Replays every kept input of the fuzz targets on stable, so that a property once broken stays checked without a
//! fuzzer. Inputs that once failed are kept in the same folders.
#![expect(clippy::disallowed_methods, reason = "the corpus is part of the source tree, not of a journal")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sealog_testkit::fuzz::allocation::{Counting, is_counted};
use sealog_testkit::fuzz::{TARGETS, Target};

#[global_allocator]
static COUNTING: Counting = Counting;

/// All corpora together; a corpus is minimised before it is kept.
const CORPORA_BYTES_MAX: u64 = 1 << 20;

/// Their bodies reach higher than the testkit may; `sealog-tests` replays their corpora.
const ELSEWHERE: [&str; 1] = ["config"];

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("names here are UTF-8");
    entries.map(|entry| name(entry.expect("a readable folder"))).collect()
}

fn replay(target: &Target, failed: &mut Vec<String>) -> u64 {
    let folder = fuzz_folder().join("corpus").join(target.name);
    let names = names_in(&folder);
    assert!(!names.is_empty(), "{} has no corpus", target.name);
    let mut bytes = 0;
    for name in names {
        let path = folder.join(&name);
        let data = fs::read(&path).expect("a readable input");
        bytes += data.len() as u64;
        if std::panic::catch_unwind(|| (target.body)(&data)).is_err() {
            failed.push(format!("corpus/{}/{name}", target.name));
        }
    }
    bytes
}

#[test]
fn memory_is_counted() {
    assert!(is_counted());
}

#[test]
fn every_kept_input_holds() {
    let mut failed = Vec::new();
    let bytes: u64 = TARGETS.iter().map(|target| replay(target, &mut failed)).sum();
    assert!(failed.is_empty(), "{} inputs fail: {failed:#?}", failed.len());
    assert!(bytes < CORPORA_BYTES_MAX, "{bytes} bytes of corpora; minimise them");
}

#[test]
fn every_target_has_a_binary_and_every_binary_a_target() {
    let mut targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    targets.extend(ELSEWHERE.map(str::to_owned));
    let stem = |name: String| name.strip_suffix(".rs").map(str::to_owned);
    let binaries: BTreeSet<String> =
        names_in(&fuzz_folder().join("fuzz_targets")).into_iter().filter_map(stem).collect();
    assert_eq!(targets, binaries);
    assert_eq!(targets, names_in(&fuzz_folder().join("corpus")));
    for name in targets {
        let file = fs::read_to_string(fuzz_folder().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        let end = if ELSEWHERE.contains(&name.as_str()) { ", " } else { ")" };
        assert!(file.contains(&format!("target!(\"{name}\"{end}")), "{name} runs another body");
    }
}

/// The bodies have teeth: bytes that no decoder takes change nothing, and a wrong name is no target.
#[test]
#[should_panic(expected = "no target is called")]
fn an_unknown_target_is_refused() {
    sealog_testkit::fuzz::run("no_such_target", b"");
}
