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

/// The help of every verb below `verb` that has none below itself.
fn leaves(bench: &Bench, verb: &[String], found: &mut Vec<(String, String)>) {
    let arguments: Vec<&str> = ["help"].into_iter().chain(verb.iter().map(String::as_str)).collect();
    let help = bench.run(&arguments).expect(0).stdout;
    let Some((_, commands)) = help.split_once("\nCommands:\n") else {
        found.push((verb.join(" "), help));
        return;
    };
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let name = line.strip_prefix("  ").and_then(|line| line.split(' ').next()).unwrap();
        if !name.is_empty() && name != "help" {
            leaves(bench, &[verb, &[name.to_owned()]].concat(), found);
        }
    }
}

#[test]
fn every_flag_of_every_verb_is_listed() {
    let bench = Bench::new();
    let page = page();
    let mut verbs = Vec::new();
    leaves(&bench, &[], &mut verbs);
    assert!(verbs.len() > 25 && verbs.iter().any(|(verb, _)| verb == "journal rekey list"), "{verbs:?}");
    for (verb, help) in verbs {
        let flags: BTreeSet<&str> = help
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .filter(|word| word.starts_with("--") && word.len() > 2)
            .filter(|word| !["--help", "--version"].contains(word))
            .collect();
        assert!(flags.contains("--json"), "{help}");
        for flag in flags {
            assert!(page.contains(&format!("`{flag}")), "{verb} {flag}");
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
