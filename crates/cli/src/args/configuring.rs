//! `sealog config`: the configuration before a node runs on it.

use std::path::{Path, PathBuf};

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
    #[arg(value_name = "FILE", required_unless_present = "config", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The same, as `serve` takes it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Check {
    /// Either of the two: clap takes exactly one.
    pub fn file(&self) -> &Path {
        self.file.as_deref().or(self.config.as_deref()).unwrap_or(Path::new(""))
    }
}

/// Takes every flag of `serve`, so that what is shown is what that would run with.
#[derive(Debug, Args)]
pub struct Show {
    /// Say of each value where it comes from: default, file and line, environment, or flag
    #[arg(long)]
    pub origin: bool,
    /// The configuration file, as `--config FILE` names it
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pub serve: Serve,
}

impl Show {
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref().or(self.serve.config.as_deref())
    }
}
