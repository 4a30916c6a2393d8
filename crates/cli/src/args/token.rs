//! `sealog token`: its verbs and flags. A token is never a flag's value.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sealog_http::Scope;

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a bearer token, print it once, and add its digest to a token file
    New(New),
}

#[derive(Debug, Args)]
pub struct New {
    /// What the token is good for: read (executions and results), write (also submit and cancel), admin (metrics).
    /// May be given more than once
    #[arg(long, value_name = "SCOPE", required = true)]
    pub scope: Vec<ScopeArg>,
    /// The token file that serve reads; made (0600) if it does not exist
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// What the line in the file is called: letters, digits, `-`, `_` and `.`
    #[arg(long, value_name = "NAME", default_value = "token")]
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    Read,
    Write,
    Admin,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Scope {
        match scope {
            ScopeArg::Read => Scope::Read,
            ScopeArg::Write => Scope::Write,
            ScopeArg::Admin => Scope::Admin,
        }
    }
}
