//! File names that say nothing, macros that do nothing, and sources without a header.

use super::source::closing;
use super::{Finding, Source};
use crate::workspace::TextFile;

/// Names that collect whatever has no place of its own.
const NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "misc"];
/// Macros that leave a hole. Clippy knows them too, but not behind every feature.
const HOLES: &[&str] = &["todo!", "unimplemented!"];

pub fn check(files: &[TextFile], sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().filter_map(name).collect();
    for source in sources {
        findings.extend(header(source));
        findings.extend(holes(source));
        findings.extend(idle_matches(source));
    }
    findings
}

/// A source file or a folder of sources with a name that says nothing.
fn name(file: &TextFile) -> Option<Finding> {
    let bad = file
        .is_rust()
        .then(|| file.path.split('/').find(|part| NAMES.contains(&part.trim_end_matches(".rs"))));
    bad.flatten()
        .map(|part| Finding::new(file, 0, format!("`{part}` names no subject; say what it is about")))
}

/// A module's `tests.rs` stands under the header of its module.
fn header(source: &Source<'_>) -> Option<Finding> {
    let missing = source.header().is_empty() && source.file.name() != "tests.rs";
    missing.then(|| {
        Finding::new(source.file, 1, "no `//!` header that says what the file owns and must never do")
    })
}

fn holes(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for hole in HOLES {
        for (at, _) in source.code.match_indices(hole) {
            findings.push(Finding::new(source.file, source.line_at(at), format!("`{hole}` leaves a hole")));
        }
    }
    findings
}

/// `matches!(..);` as a statement: it computes a truth value and drops it.
fn idle_matches(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, macro_open) in source.code.match_indices("matches!(") {
        let before = source.code[..at].trim_end();
        let end = closing(source.code.as_bytes(), at + macro_open.len() - 1);
        let is_statement = before.is_empty() || before.ends_with([';', '{', '}']);
        if is_statement && source.code[end..].trim_start().starts_with(';') {
            findings.push(Finding::new(source.file, source.line_at(at), "a bare `matches!` asserts nothing"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[track_caller]
    fn check_text(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(findings(check, &[(path, text)]), expected);
    }

    #[test]
    fn names_without_a_subject_are_refused() {
        check_text(
            "a/src/utils.rs",
            "//! x",
            &["a/src/utils.rs: `utils.rs` names no subject; say what it is about"],
        );
        check_text(
            "a/common/b.rs",
            "//! x",
            &["a/common/b.rs: `common` names no subject; say what it is about"],
        );
        check_text("a/src/commonly.rs", "//! x", &[]);
        check_text("docs/misc/b.md", "x", &[]);
    }

    #[test]
    fn a_source_opens_with_its_header() {
        let missing = "a.rs:1: no `//!` header that says what the file owns and must never do";
        check_text("a.rs", "use std::fmt;\n//! late\n", &[missing]);
        check_text("a.rs", "// plain\n", &[missing]);
        check_text("a.rs", "//! Owns it.\n", &[]);
        check_text("a/tests.rs", "use super::*;\n", &[]);
    }

    #[test]
    fn holes_are_found_in_code_only() {
        check_text("a.rs", "//! x\nfn f() { todo!() }\n", &["a.rs:2: `todo!` leaves a hole"]);
        check_text(
            "a.rs",
            "//! x\nfn f() { unimplemented!() }\n",
            &["a.rs:2: `unimplemented!` leaves a hole"],
        );
        check_text("a.rs", "//! Never todo!().\nconst A: &str = \"todo!()\";\n", &[]);
    }

    #[test]
    fn a_matches_that_asserts_nothing_is_found_over_several_lines_too() {
        let found = "a.rs:3: a bare `matches!` asserts nothing";
        check_text("a.rs", "//! x\nfn f() {\n    matches!(x, Err(_));\n}\n", &[found]);
        check_text("a.rs", "//! x\nlet y = 1;\nmatches!(\n    x,\n    Err(_)\n);\n", &[found]);
        check_text("a.rs", "//! x\nfn f() -> bool { matches!(x, Err(_)) }\n", &[]);
        check_text("a.rs", "//! x\nfn f() { assert!(matches!(x, Err(_))); let a = matches!(x, 1); }\n", &[]);
    }
}
