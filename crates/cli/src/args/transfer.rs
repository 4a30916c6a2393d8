//! `sealog journal export` and `import`: their flags.

use std::path::PathBuf;

use clap::Args;

use super::{KeyArgs, PlaceArgs};

#[derive(Debug, Args)]
pub struct Export {
    /// The journal's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// This execution alone
    #[arg(long, value_name = "ID")]
    pub execution: Option<String>,
    /// A new file (0600) [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Import {
    /// What export wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// An absent or empty directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Leave out executions of which the export of a damaged journal lacks something
    #[arg(long)]
    pub skip_incomplete: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}
