//! The change log keeps the headings that its readers look for.

use super::{Finding, Source};
use crate::workspace::TextFile;

const FILE: &str = "CHANGELOG.md";

pub fn check(files: &[TextFile], _sources: &[Source<'_>]) -> Vec<Finding> {
    let Some(file) = files.iter().find(|file| file.path == FILE) else {
        return vec![Finding { path: FILE.to_owned(), line: 0, what: "is missing".to_owned() }];
    };
    let missing = |heading: &&&str| !file.text.lines().any(|line| line.trim_end() == **heading);
    let wanted = ["## Unreleased", "### Format"];
    wanted
        .iter()
        .filter(missing)
        .map(|heading| Finding::new(file, 0, format!("has no heading `{heading}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn both_headings_are_asked_for() {
        assert_eq!(findings(check, &[(FILE, "# Changes\n## Unreleased\n### Format\n")]).len(), 0);
        assert_eq!(
            findings(check, &[(FILE, "## Unreleased\n")]),
            ["CHANGELOG.md: has no heading `### Format`"]
        );
        assert_eq!(
            findings(check, &[(FILE, "### Format\n")]),
            ["CHANGELOG.md: has no heading `## Unreleased`"]
        );
        assert_eq!(findings(check, &[]), ["CHANGELOG.md: is missing"]);
    }
}
