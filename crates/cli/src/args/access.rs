//! `sealog serve`: who may reach the node. What stands here comes in addition to the configuration file's `[http]`.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Access")]
pub struct AccessArgs {
    /// Require a bearer token of this file, which `sealog token new` writes; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS with this certificate chain (PEM, the node's own first); read again on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM); a file that others cannot read
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// One more name or address that requests may be sent to, beside the loopback ones
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// One more origin whose pages may send requests, beside the node's own
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
}
