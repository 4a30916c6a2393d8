//! The interface page lists what there is: every flag, every code word, every exit code.

use std::collections::BTreeSet;
use std::path::Path;

use crate::bench::Bench;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[expect(clippy::disallowed_methods, reason = "the page is a file")]
fn page() -> String {
    std::fs::read_to_string(root().join("../../docs/interface.md")).unwrap()
}

#[test]
fn every_flag_of_every_verb_is_listed() {
    let bench = Bench::new();
    let page = page();
    let verbs: [&[&str]; 7] = [
        &["serve"],
        &["run"],
        &["demo"],
        &["journal", "init"],
        &["journal", "inspect"],
        &["journal", "verify"],
        &["journal", "replay"],
    ];
    for verb in verbs {
        assert!(page.contains(&format!("`sealog {}", verb.join(" "))), "{verb:?}");
        let help = bench.run(&[verb, &["--help"]].concat()).expect(0).stdout;
        let flags: BTreeSet<&str> = help
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .filter(|word| word.starts_with("--") && word.len() > 2)
            .filter(|word| !["--help", "--version"].contains(word))
            .collect();
        assert!(flags.contains("--json"), "{help}");
        for flag in flags {
            assert!(page.contains(&format!("`{flag}")), "{verb:?} {flag}");
        }
    }
}

/// The literal behind each place that makes a failure, or gives one its word.
#[test]
fn every_code_word_is_listed() {
    let page = page();
    let mut words = BTreeSet::new();
    for (path, source) in sources() {
        let production = source.split("#[cfg(test)]").next().unwrap_or_default();
        for opening in ["Failure::usage(", "Failure::new(", "(Exit::"] {
            for (at, _) in production.match_indices(opening) {
                let call = &production[at..];
                let end = call.find(';').unwrap_or(call.len()).min(160);
                let Some(literal) = call[..end].split('"').nth(1) else { continue };
                if literal.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                    words.insert((literal.to_owned(), path.clone()));
                }
            }
        }
    }
    assert!(words.len() > 40, "{words:?}");
    for (word, path) in words {
        assert!(page.contains(&format!("`{word}`")), "{word}, from {path}");
    }
}

fn sources() -> Vec<(String, String)> {
    let bench = Bench::new();
    let folder = root().join("src");
    let files = bench.files(folder.to_str().unwrap());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    files.into_iter().map(|(path, bytes)| (path.display().to_string(), text(bytes))).collect()
}

#[test]
fn every_exit_code_is_listed() {
    let page = page();
    for code in [0, 1, 2, 4, 10, 11, 12, 13, 14, 20, 21, 22, 75] {
        assert!(page.contains(&format!("\n| {code} | ")), "{code}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the source is a file")]
fn every_member_of_the_mock_extension_is_listed() {
    let source = std::fs::read_to_string(root().join("../providers/mock/src/settings.rs")).unwrap();
    let calls = source.match_indices(".optional(").chain(source.match_indices(".require("));
    let members: BTreeSet<&str> = calls.map(|(at, _)| source[at..].split('"').nth(1).unwrap()).collect();
    assert!(members.len() > 15, "{members:?}");
    let page = page();
    let section = page.split("## The mock provider").nth(1).unwrap();
    for member in members {
        assert!(section.contains(member), "{member}");
    }
}
