//! The steps that are one call of cargo each.

use std::process::Command;

use anyhow::Result;

use crate::process::{run, run_tests};
use crate::steps::Report;
use crate::workspace::Workspace;

/// The cargo that started this program, in the workspace's root.
pub fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&workspace.root);
    command
}

pub fn fmt(workspace: &Workspace) -> Result<Report> {
    run(cargo(workspace).args(["fmt", "--all", "--check"]))?;
    Ok(Report::default())
}

pub fn clippy(workspace: &Workspace) -> Result<Report> {
    run(cargo(workspace).args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Report::default())
}

/// The build that exports traces: linted, and its own tests run against it.
pub fn otel(workspace: &Workspace) -> Result<Report> {
    let build = ["--package", "sealog", "--features", "otel", "--locked"];
    run(cargo(workspace).arg("clippy").args(build).args(["--all-targets", "--", "-D", "warnings"]))?;
    let tests = run_tests(cargo(workspace).arg("test").args(build).args(["--test", "otel"]))?;
    Ok(Report { note: format!("{} tests passed", tests.passed), tests })
}

pub fn test(workspace: &Workspace) -> Result<Report> {
    let tests = run_tests(cargo(workspace).args(["test", "--workspace", "--locked"]))?;
    Ok(Report { note: format!("{} tests passed", tests.passed), tests })
}
