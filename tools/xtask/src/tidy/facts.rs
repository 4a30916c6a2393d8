//! The public protocol's testable statements and the tests that show them: each number has one that can be found by it.
//!
//! A test shows statement 7 if its function's name begins with `facts_07_`.

use std::collections::BTreeSet;

use super::{Finding, Source};
use crate::workspace::TextFile;

/// The numbering has gaps.
const STATEMENTS: [u32; 44] = [
    1, 4, 5, 6, 8, 9, 10, 12, 13, 15, 17, 18, 20, // the store
    21, 22, 23, 25, 26, 27, 28, 29, 32, 33, 35, // the engine
    36, 38, 39, 41, // keys and flow
    43, 44, 46, 47, 48, 51, // HTTP
    52, 54, 55, 56, 57, // lifecycle and configuration
    58, 59, 60, 62, 64, // adapters and transport
];
const PREFIX: &str = "fn facts_";

pub fn check(_files: &[TextFile], sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut shown = BTreeSet::new();
    for source in sources {
        for (at, _) in source.code.match_indices(PREFIX) {
            let number = source.code[at + PREFIX.len()..].get(..3).and_then(|text| text.strip_suffix('_'));
            match number.and_then(|number| number.parse::<u32>().ok()).filter(|n| STATEMENTS.contains(n)) {
                Some(number) => {
                    shown.insert(number);
                }
                None => findings.push(Finding::new(source.file, source.line_at(at), "names no statement")),
            }
        }
    }
    let missing = STATEMENTS.iter().filter(|number| !shown.contains(number));
    findings.extend(missing.map(|number| Finding {
        path: "tools/xtask/src/tidy/facts.rs".to_owned(),
        line: 0,
        what: format!("no test is named facts_{number:02}_.."),
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    fn all_but(left_out: u32) -> String {
        let shown = STATEMENTS.iter().filter(|number| **number != left_out);
        shown.map(|number| format!("#[test]\nasync fn facts_{number:02}_holds() {{}}\n")).collect()
    }

    #[test]
    fn every_statement_needs_a_test_named_after_it() {
        assert_eq!(findings(check, &[("a/src/x/tests.rs", &all_but(0))]), Vec::<String>::new());
        let found = findings(check, &[("a/src/x/tests.rs", &all_but(9))]);
        assert_eq!(found, ["tools/xtask/src/tidy/facts.rs: no test is named facts_09_.."]);
        let comment = format!("{}// fn facts_09_holds() {{}}\n", all_but(9));
        assert_eq!(findings(check, &[("a/src/x/tests.rs", &comment)]).len(), 1);
    }

    #[test]
    fn a_number_is_one_of_the_statements() {
        let text = format!("{}fn facts_03_is_none() {{}}\nfn facts_9_is_short() {{}}\n", all_but(0));
        assert_eq!(findings(check, &[("a/src/x/tests.rs", &text)]).len(), 2);
    }
}
