//! Links between the tree's own pages lead somewhere.

use super::{Finding, Source};
use crate::workspace::TextFile;

pub fn check(files: &[TextFile], _sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            let broken = targets(line).filter(|target| !leads_somewhere(file, target, files));
            findings.extend(
                broken.map(|target| Finding::new(file, index + 1, format!("`{target}` leads nowhere"))),
            );
        }
    }
    findings
}

/// The targets of `[text](target)` that are paths in the tree.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let closed = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    closed.map(|(target, _)| target.split('#').next().unwrap_or(target)).filter(|target| {
        let elsewhere = target.contains("://") || target.starts_with("mailto:");
        !target.is_empty() && !elsewhere
    })
}

/// Whether the target, seen from this page, is a file of the tree or a folder with files in it.
fn leads_somewhere(page: &TextFile, target: &str, files: &[TextFile]) -> bool {
    let mut parts: Vec<&str> = page.path.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return false;
                }
            }
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    let folder = format!("{path}/");
    files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[track_caller]
    fn check_page(line: &str, expected: &[&str]) {
        let files = [("docs/page.md", line), ("docs/how-to/a.md", ""), ("README.md", "")];
        assert_eq!(findings(check, &files), expected);
    }

    #[test]
    fn a_link_to_a_file_or_folder_of_the_tree_is_fine() {
        check_page(
            "[a](how-to/a.md), [all](how-to/), [top](../README.md#start), [x](https://example.com/)",
            &[],
        );
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        check_page("[a](how-to/b.md)", &["docs/page.md:1: `how-to/b.md` leads nowhere"]);
        check_page("[a](../../README.md)", &["docs/page.md:1: `../../README.md` leads nowhere"]);
    }
}
