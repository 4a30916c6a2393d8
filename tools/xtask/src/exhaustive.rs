//! `cargo xtask exhaustive`: every workload of up to three operations on the simulated disk, with every cut and every
//! subset, once. Owns nothing but the call; what is run stands in the journal's tests.

use anyhow::Result;

use crate::process::run;
use crate::workspace::Workspace;

const TEST: &str = "every_small_workload_survives_every_cut_with_every_subset";

pub fn whole(workspace: &Workspace) -> Result<()> {
    let mut command = crate::cargo::cargo(workspace);
    // The assertions of an unoptimised build stay; 80 of the workloads move groups of 256 KiB through every image.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "3");
    command.args(["test", "--quiet", "--locked", "-p", "sealog-journal", "--lib", "--", "--nocapture", TEST]);
    run(command.env("SEALOG_EXHAUSTIVE", "whole"))
}
