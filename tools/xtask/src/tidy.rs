//! The step `tidy`: rules about the text of the tree that no compiler checks.
//!
//! Owns the list of rules and the way they are reported. A rule is a pure function from files to findings, so that
//! its test can hand it a sample which breaks it. Rules read; they never repair.

mod clauses;
mod facts;
mod headings;
mod lengths;
mod links;
mod places;
mod source;
mod verbs;
mod words;

use std::fmt;

use anyhow::{Result, bail};

pub use self::source::Source;
use crate::steps::Report;
use crate::workspace::{TextFile, Workspace};

/// One thing to mend, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    /// Counted from 1; 0 speaks of the whole file.
    pub line: usize,
    pub what: String,
}

impl Finding {
    fn new(file: &TextFile, line: usize, what: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// A rule sees the whole tree at once: text files as they are, Rust sources with their strings and comments apart.
type Rule = fn(&[TextFile], &[Source<'_>]) -> Vec<Finding>;

const RULES: &[Rule] = &[
    lengths::check,
    words::check,
    headings::check,
    links::check,
    clauses::check,
    facts::check,
    verbs::check,
    places::check,
];

pub fn step(workspace: &Workspace) -> Result<Report> {
    let files = workspace.text_files()?;
    let sources: Vec<Source<'_>> = files.iter().filter(|file| file.is_rust()).map(Source::new).collect();
    let findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&files, &sources)).collect();
    for finding in &findings {
        println!("tidy: {finding}");
    }
    if !findings.is_empty() {
        bail!("{} untidy places", findings.len());
    }
    Ok(Report::note(format!("{} files, {} clauses", files.len(), clauses::stated(&files).len())))
}

/// Runs one rule over made-up files, given as (path, text), and returns its findings as text.
#[cfg(test)]
fn findings(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<TextFile> = files
        .iter()
        .map(|(path, text)| TextFile { path: (*path).to_owned(), text: (*text).to_owned() })
        .collect();
    let sources: Vec<Source<'_>> = files.iter().filter(|file| file.is_rust()).map(Source::new).collect();
    rule(&files, &sources).iter().map(ToString::to_string).collect()
}
