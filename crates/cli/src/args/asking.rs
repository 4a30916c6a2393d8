//! The verbs that ask about executions: `ps`, `show`, `tail`, `cancel`.

use std::path::PathBuf;

use clap::Args;

use super::{KeyArgs, PlaceArgs};

/// The node that is asked.
#[derive(Clone, Debug, Default, Args)]
pub struct NodeArgs {
    /// The node to ask: https://HOST:PORT, http://HOST:PORT or unix:PATH [default: http://127.0.0.1:4320]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The certificates of a private CA, PEM: over https whoever they signed is trusted, and nobody else [default: the
    /// system's roots]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// A file that holds a token of the node, 0600 [default: the file that SEALOG_TOKEN_FILE names, if any]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// Who is asked: a node, or a journal that no node runs on.
#[derive(Clone, Debug, Default, Args)]
pub struct WhereArgs {
    #[command(flatten)]
    pub node: NodeArgs,
    /// Read the journal in DIR, or a backup, instead of asking a node. Only then the flags about journals and keys
    /// below are taken
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "ca_file", "token_file"])]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Ps {
    /// Only executions of this status
    #[arg(long, value_name = "STATUS",
          value_parser = ["accepted", "routing", "running", "succeeded", "failed", "cancelled"])]
    pub status: Option<String>,
    /// Only executions that were submitted for this ability
    #[arg(long, value_name = "NAME")]
    pub ability: Option<String>,
    /// Most executions that are listed
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Goes on behind a list: the place that it printed at its end
    #[arg(long, value_name = "PLACE")]
    pub after: Option<String>,
    #[command(flatten)]
    pub from: WhereArgs,
}

#[derive(Debug, Args)]
pub struct Show {
    /// The execution's id, as `ps` lists it
    #[arg(value_name = "EXECUTION_ID")]
    pub execution: String,
    #[command(flatten)]
    pub from: WhereArgs,
}

#[derive(Debug, Args)]
pub struct Tail {
    /// The execution's id, as `ps` lists it
    #[arg(value_name = "EXECUTION_ID")]
    pub execution: String,
    /// Go on to the end, across lost connections and restarts of the node
    #[arg(short, long)]
    pub follow: bool,
    /// Only events behind this sequence
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    pub after: u64,
    #[command(flatten)]
    pub from: WhereArgs,
}

#[derive(Debug, Args)]
pub struct Cancel {
    /// The execution's id, as `ps` lists it
    #[arg(value_name = "EXECUTION_ID")]
    pub execution: String,
    #[command(flatten)]
    pub node: NodeArgs,
}
