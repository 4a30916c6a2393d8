//! The verb and step `contract`: what is generated of the contract is what the code says.
//!
//! The generator is a program of its own, so that no other verb builds the product first.

use anyhow::{Result, bail};

use crate::cargo::cargo;
use crate::process::run;
use crate::steps::Report;
use crate::workspace::Workspace;

/// `cargo xtask contract [--write]`
pub fn run_args(workspace: &Workspace, args: &[String]) -> Result<()> {
    match args {
        [] => generator(workspace, &[]),
        [flag] if flag == "--write" => generator(workspace, &["--write"]),
        _ => bail!("`contract` takes nothing, or --write"),
    }
}

pub fn step(workspace: &Workspace) -> Result<Report> {
    generator(workspace, &[])?;
    Ok(Report::default())
}

fn generator(workspace: &Workspace, args: &[&str]) -> Result<()> {
    let mut command = cargo(workspace);
    command.args(["run", "--quiet", "--locked", "--package", "contract", "--"]).args(args);
    run(&mut command)
}
