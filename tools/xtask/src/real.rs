//! The step `real`: tests that need another tool than the Rust toolchain and a C compiler.
//!
//! Such a test lives in a test target with `required-features = ["real"]`, so that the plain test command neither
//! builds nor skips it. A tool that is missing fails the test that needs it; nothing here skips.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::cargo::cargo;
use crate::process::{run, run_tests};
use crate::steps::Report;
use crate::workspace::Workspace;

const FEATURE: &str = "real";

pub fn step(workspace: &Workspace) -> Result<Report> {
    let targets = targets(&workspace.metadata()?);
    if targets.is_empty() {
        bail!("no test target asks for the feature `{FEATURE}`");
    }
    // The process tests start the binaries that this builds, with the features they ship with.
    run(cargo(workspace).args(["build", "--locked", "--package", "sealog", "--package", "crashbox"]))?;
    // The whole workspace is selected so that nothing is compiled again after the step `test`.
    let mut command = cargo(workspace);
    command.args(["test", "--workspace", "--locked"]);
    for (package, names) in &targets {
        command.arg("--features").arg(format!("{package}/{FEATURE}"));
        for name in names {
            command.args(["--test", name]);
        }
    }
    let tests = run_tests(&mut command)?;
    Ok(Report { note: format!("{} tests passed", tests.passed), tests })
}

/// Packages and the names of their test targets that ask for the feature.
fn targets(metadata: &Value) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for package in list(&metadata["packages"]).filter(|package| package["source"].is_null()) {
        let asks = |target: &&Value| list(&target["required-features"]).any(|feature| feature == FEATURE);
        let names: Vec<String> = list(&package["targets"])
            .filter(asks)
            .filter_map(|target| target["name"].as_str())
            .map(String::from)
            .collect();
        if let (Some(name), false) = (package["name"].as_str(), names.is_empty()) {
            found.push((name.to_owned(), names));
        }
    }
    found
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_targets_that_ask_for_the_feature_are_run() {
        let metadata = json!({ "packages": [
            { "name": "a", "source": null, "targets": [
                { "name": "plain" },
                { "name": "needs-tools", "required-features": ["real"] },
                { "name": "other", "required-features": ["testing"] },
            ]},
            { "name": "b", "source": null, "targets": [{ "name": "plain" }] },
            { "name": "c", "source": "registry", "targets": [{ "name": "x", "required-features": ["real"] }] },
        ]});
        assert_eq!(targets(&metadata), [("a".to_owned(), vec!["needs-tools".to_owned()])]);
    }
}
