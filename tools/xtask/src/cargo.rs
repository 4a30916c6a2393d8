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

pub fn test(workspace: &Workspace) -> Result<Report> {
    let tests = run_tests(cargo(workspace).args(["test", "--workspace", "--locked"]))?;
    Ok(Report { note: format!("{} tests passed", tests.passed), tests })
}
