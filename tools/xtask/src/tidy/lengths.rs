//! Files and functions that no longer fit their size.

use super::source::body;
use super::{Finding, Source};
use crate::workspace::TextFile;

/// Production lines a file may have; more need a reason in its header.
const FILE_LINES_MAX: usize = 600;
/// Lines a function may have, from its `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// A header that contains this explains why the file is long.
const REASON: &str = "Long because";

pub fn check(_files: &[TextFile], sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        findings.extend(file(source));
        findings.extend(functions(source));
    }
    findings
}

fn file(source: &Source<'_>) -> Option<Finding> {
    let lines = source.production_lines().count();
    let explained = source.header().iter().any(|line| line.contains(REASON));
    let long = !source.is_test_file() && lines > FILE_LINES_MAX && !explained;
    long.then(|| {
        let what = format!(
            "{lines} production lines, at most {FILE_LINES_MAX}: split it, or say `{REASON} ..` on top"
        );
        Finding::new(source.file, 0, what)
    })
}

fn functions(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (start, _) in source.code.match_indices("fn ") {
        let begins_word = !source.code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let Some(braces) = begins_word.then(|| body(&source.code, start).ok()).flatten() else { continue };
        let first = source.line_at(start);
        let lines = source.line_at(braces.end - 1) - first + 1;
        if lines > FUNCTION_LINES_MAX {
            let what = format!("a function of {lines} lines, at most {FUNCTION_LINES_MAX} fit a screen");
            findings.push(Finding::new(source.file, first, what));
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
        let found = findings(check, &[(path, text)]);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn a_long_file_needs_a_reason_and_its_tests_do_not_count() {
        let lines = "const A: u8 = 0;\n".repeat(FILE_LINES_MAX);
        check_text("a.rs", &lines, &[]);
        check_text("a.rs", &format!("{lines}const B: u8 = 0;\n"), &["601 production lines"]);
        check_text("a.rs", &format!("//! Long because a table cannot be cut.\n{lines}"), &[]);
        check_text("a.rs", &format!("#[cfg(test)]\nmod tests {{\n{lines}}}\n"), &[]);
        check_text("src/tests.rs", &format!("{lines}{lines}"), &[]);
    }

    #[test]
    fn a_function_longer_than_a_screen_is_named_with_its_line() {
        let function =
            |lines: usize| format!("\npub fn long(a: [u8; 2]) {{\n{}}}\n", "    a();\n".repeat(lines - 2));
        check_text("a.rs", &function(FUNCTION_LINES_MAX), &[]);
        check_text("a.rs", &function(FUNCTION_LINES_MAX + 1), &["a.rs:2: a function of 71 lines"]);
        check_text("a.rs", &format!("trait T {{ fn none(); {} }}", function(20)), &[]);
    }
}
