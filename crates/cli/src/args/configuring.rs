//! `sealog config`: the configuration before a node runs on it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Serve;

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Say whether a node would take a configuration file
    Check(Check),
    /// Show what a node would run with
    Show(Box<Show>),
}

#[derive(Debug, Args)]
pub struct Check {
    /// The configuration file (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Takes every flag of `serve`, so that what is shown is what that would run with.
#[derive(Debug, Args)]
pub struct Show {
    /// Say of each value where it comes from: default, file and line, environment, or flag
    #[arg(long)]
    pub origin: bool,
    #[command(flatten)]
    pub serve: Serve,
}
