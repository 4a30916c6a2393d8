//! Clauses of the specification and the tests that hold them: none stands alone.
//!
//! A clause is stated by a line of `spec/*.md` that begins with its id in bold, as in `**XX-3** Text`. A test pairs
//! with it by naming the id in its code, a comment, or the function's name (`xx_3_..`).

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Source};
use crate::workspace::TextFile;

/// A prefix and a number, as in `XX-3`.
type Id<'a> = (&'a str, u32);

pub fn check(files: &[TextFile], sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut clauses: BTreeMap<Id<'_>, (&TextFile, usize)> = BTreeMap::new();
    for (id, file, line) in stated(files) {
        if clauses.insert(id, (file, line)).is_some() {
            findings.push(Finding::new(file, line, format!("states {} a second time", show(id))));
        }
    }
    let prefixes: BTreeSet<&str> = clauses.keys().map(|(prefix, _)| *prefix).collect();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let unknown = cited(line, &prefixes).into_iter().filter(|id| !clauses.contains_key(id));
            findings.extend(
                unknown.map(|id| Finding::new(file, index + 1, format!("cites {}, no clause", show(id)))),
            );
        }
    }
    let tested: BTreeSet<Id<'_>> =
        sources.iter().flat_map(Source::test_text).flat_map(|text| cited(text, &prefixes)).collect();
    for (id, (file, line)) in clauses {
        if !tested.contains(&id) {
            findings.push(Finding::new(file, line, format!("no test names {}", show(id))));
        }
    }
    findings
}

fn show((prefix, number): Id<'_>) -> String {
    format!("{prefix}-{number}")
}

/// Every clause with the file and line that state it.
pub fn stated(files: &[TextFile]) -> Vec<(Id<'_>, &TextFile, usize)> {
    let mut clauses = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("spec/") && file.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            let bold = line.strip_prefix("**").and_then(|rest| rest.split_once("**"));
            if let Some(id) = bold.and_then(|(id, _)| parse(id)) {
                clauses.push((id, file, index + 1));
            }
        }
    }
    clauses
}

fn parse(id: &str) -> Option<Id<'_>> {
    let (prefix, number) = id.split_once('-')?;
    let is_prefix = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    (is_prefix && is_number).then(|| number.parse().ok()).flatten().map(|number| (prefix, number))
}

/// The ids in this text that begin with one of the known prefixes, written `XX-3` or `xx_3`.
fn cited<'a>(text: &str, prefixes: &BTreeSet<&'a str>) -> Vec<Id<'a>> {
    let mut ids = Vec::new();
    for prefix in prefixes {
        for spelling in [format!("{prefix}-"), format!("{}_", prefix.to_lowercase())] {
            for (at, _) in text.match_indices(&spelling) {
                let begins_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-');
                let rest = &text[at + spelling.len()..];
                let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                if let Some(number) = begins_word.then(|| rest[..digits].parse().ok()).flatten() {
                    ids.push((*prefix, number));
                }
            }
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    const SPEC: (&str, &str) = ("spec/made-up.md", "text\n**ZZ-1** One.\n\n**ZZ-12** Twelve, see ZZ-1.\n");

    #[track_caller]
    fn check_tree(files: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(findings(check, files), expected);
    }

    #[test]
    fn every_clause_needs_a_test_that_names_it() {
        let both = ("a/src/x/tests.rs", "// ZZ-1\nfn zz_12_holds() {}\n");
        check_tree(&[SPEC, both], &[]);
        let one = ("a/src/x/tests.rs", "// ZZ-12\n");
        check_tree(&[SPEC, one], &["spec/made-up.md:2: no test names ZZ-1"]);
        let production = ("a/src/x.rs", "// ZZ-1 ZZ-12\nfn x() {}\n");
        check_tree(
            &[SPEC, production],
            &["spec/made-up.md:2: no test names ZZ-1", "spec/made-up.md:4: no test names ZZ-12"],
        );
        let inline = ("a/src/x.rs", "fn x() {}\n#[cfg(test)]\nmod tests {\n// ZZ-1 ZZ-12\n}\n");
        check_tree(&[SPEC, inline], &[]);
    }

    #[test]
    fn a_cited_id_must_be_a_clause() {
        let test = ("a/src/x/tests.rs", "// ZZ-1, ZZ-12\n// ZZ-13\n// SHA-256 and XZZ-14 are none\n");
        check_tree(&[SPEC, test], &["a/src/x/tests.rs:2: cites ZZ-13, no clause"]);
    }

    #[test]
    fn a_clause_is_stated_once() {
        let again = ("spec/other.md", "**ZZ-1** Again.\n");
        let test = ("tests/tests/x.rs", "// ZZ-1 ZZ-12\n");
        check_tree(&[SPEC, again, test], &["spec/other.md:1: states ZZ-1 a second time"]);
    }
}
