//! Every verb of the command line has a golden case and stands in the interface page.

use super::{Finding, Source};
use crate::workspace::TextFile;

const VERBS: &str = "crates/cli/src/verbs/";
const GOLDEN: &str = "crates/cli/tests/golden/";
const PAGE: &str = "docs/interface.md";

pub fn check(files: &[TextFile], _sources: &[Source<'_>]) -> Vec<Finding> {
    let sources: Vec<&TextFile> =
        files.iter().filter(|file| file.path.starts_with(VERBS) && file.is_rust()).collect();
    let page = files.iter().find(|file| file.path == PAGE);
    let mut findings = Vec::new();
    for file in &sources {
        let Some(verb) = verb(file, &sources) else { continue };
        if !files.iter().any(|case| is_case(case, &verb)) {
            findings.push(Finding::new(file, 0, format!("no golden case {GOLDEN}{}*", verb.join("-"))));
        }
        let spoken = format!("sealog {}", verb.join(" "));
        if !page.is_some_and(|page| page.text.contains(&spoken)) {
            findings.push(Finding::new(file, 0, format!("{PAGE} does not list `{spoken}`")));
        }
    }
    findings
}

/// The words of the verb that this file implements. A file beside a folder of its name is a group of verbs, and test
/// modules are none.
fn verb(file: &TextFile, all: &[&TextFile]) -> Option<Vec<String>> {
    let stem = file.path.strip_prefix(VERBS)?.strip_suffix(".rs")?;
    let group = format!("{VERBS}{stem}/");
    let words: Vec<String> = stem.split('/').map(|word| word.replace('_', "-")).collect();
    let is_part = words.last().is_some_and(|word| word == "mod" || word == "tests");
    let is_group = all.iter().any(|other| other.path.starts_with(&group) && other.name() != "tests.rs");
    (!is_part && !is_group).then_some(words)
}

/// Whether the file is a case for the verb: its name begins with the verb's words, joined by `-`, `_` or folders.
fn is_case(file: &TextFile, verb: &[String]) -> bool {
    let Some(name) = file.path.strip_prefix(GOLDEN) else { return false };
    let plain = name.replace(['/', '_'], "-");
    let rest = plain.strip_prefix(&verb.join("-"));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn groups_and_test_modules_are_no_verbs() {
        let paths = ["serve.rs", "serve/tests.rs", "journal.rs", "journal/verify.rs", "journal/mod.rs"];
        let files: Vec<TextFile> = paths
            .iter()
            .map(|path| TextFile { path: format!("{VERBS}{path}"), text: String::new() })
            .collect();
        let all: Vec<&TextFile> = files.iter().collect();
        let verbs: Vec<String> =
            files.iter().filter_map(|file| verb(file, &all)).map(|words| words.join(" ")).collect();
        assert_eq!(verbs, ["serve", "journal verify"]);
    }

    #[test]
    fn a_verb_needs_a_golden_case_and_a_line_in_the_page() {
        let verb = ("crates/cli/src/verbs/journal/verify.rs", "");
        let page = ("docs/interface.md", "| `sealog journal verify DIR` |");
        let case = ("crates/cli/tests/golden/journal-verify/torn.txt", "");
        assert_eq!(findings(check, &[verb, page, case]).len(), 0);
        let no_case =
            "crates/cli/src/verbs/journal/verify.rs: no golden case crates/cli/tests/golden/journal-verify*";
        assert_eq!(findings(check, &[verb, page]), [no_case]);
        let no_line =
            "crates/cli/src/verbs/journal/verify.rs: docs/interface.md does not list `sealog journal verify`";
        assert_eq!(findings(check, &[verb, case]), [no_line]);
        let other = ("crates/cli/tests/golden/journal-verifying.txt", "");
        assert_eq!(findings(check, &[verb, page, other]), [no_case]);
        assert_eq!(findings(check, &[("crates/cli/src/main.rs", "")]).len(), 0);
    }
}
