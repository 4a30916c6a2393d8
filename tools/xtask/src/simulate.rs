//! `cargo xtask simulate`: the seeded simulation, one seed or many. Owns nothing but the call; what a run is stands in
//! the testkit.

use std::process::Command;

use anyhow::{Result, bail};

use crate::process::run;
use crate::steps::Report;
use crate::workspace::Workspace;

/// Seeds of the form that `ci` runs.
const SEEDS: u64 = 2000;

/// `simulate [--seeds N [--from M] [--threads T] | --seed N [--steps N]]`
pub fn run_args(workspace: &Workspace, args: &[String]) -> Result<()> {
    for (flag, value) in args.iter().step_by(2).zip(args.iter().skip(1).step_by(2)) {
        let known = ["--seed", "--seeds", "--steps", "--from", "--threads"].contains(&flag.as_str());
        if !known || value.parse::<u64>().is_err() {
            bail!("`simulate` knows --seed, --seeds, --steps, --from and --threads, each with a number");
        }
    }
    if args.len() % 2 == 1 {
        bail!("`{}` wants a number", args[args.len() - 1]);
    }
    let args = if args.is_empty() { seeds(1, SEEDS) } else { args.to_vec() };
    run(command(workspace).args(args))
}

pub fn step(workspace: &Workspace) -> Result<Report> {
    run(command(workspace).args(seeds(1, SEEDS)))?;
    Ok(Report::note(format!("{SEEDS} seeds")))
}

pub fn seeds(from: u64, seeds: u64) -> Vec<String> {
    ["--seeds", &seeds.to_string(), "--from", &from.to_string()].map(str::to_owned).to_vec()
}

pub fn command(workspace: &Workspace) -> Command {
    let mut command = crate::cargo::cargo(workspace);
    command.args(["run", "--quiet", "--locked", "-p", "sealog-testkit", "--example", "simulate", "--"]);
    command
}
