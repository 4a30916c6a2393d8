//! The command line: verbs, flags and their help. Owns every name a user types; must never read a file, a key or the
//! environment.

pub mod access;
pub mod asking;
pub mod configuring;
#[cfg(test)]
mod generated;
mod rekey;
pub mod token;
mod transfer;

use std::net::SocketAddr;
use std::os::unix::net::SocketAddr as SocketPath;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sealog_seal::StoreId;

pub use access::AccessArgs;
pub use rekey::{AddSlot, ExportKeyring, ImportKeyring, Operation, Rekey, RemoveSlot, Rotate};
pub use transfer::{Export, Import};

/// A durable, encrypted execution journal: runs model requests, writes every fact before anyone sees it, and
/// replays it byte for byte.
#[derive(Debug, Parser)]
#[command(name = "sealog", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
pub struct Cli {
    /// Machine-readable output: JSON on standard output, errors and notes as JSON lines on standard error
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 ok, 1 failed, 2 usage, 4 not found, 10 no journal here, 11 locked, \
12 wrong key, 13 damaged, 14 newer format, 20 execution failed, 21 outcome unknown, 22 cancelled, 75 try again.";

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a node: accept executions over HTTP and journal them
    Serve(Serve),
    /// Submit one text, print the answer as it streams, exit with the outcome
    Run(Run),
    /// List executions, the youngest first
    Ps(asking::Ps),
    /// Show what is known of one execution
    Show(asking::Show),
    /// Print one execution's events, and follow it
    Tail(asking::Tail),
    /// Ask an execution to stop
    Cancel(asking::Cancel),
    /// See the whole promise in a few seconds: stream, kill -9, restart, replay
    Demo(Demo),
    /// See whether directory, disk and clock are fit for a journal
    Doctor(Doctor),
    /// Check a configuration, and see what a node would run with
    #[command(subcommand)]
    Config(configuring::Config),
    /// Make the bearer tokens that a node asks for
    #[command(subcommand)]
    Token(token::Token),
    /// Everything about a journal on disk: check, replay, back up, restore, repair, export, compact, change keys
    #[command(subcommand)]
    Journal(Journal),
}

/// Where the key comes from; the same for every verb that opens a journal. A key is never a flag's value.
#[derive(Clone, Debug, Default, Args)]
#[command(
    next_help_heading = "Key (default: the key file named after the store id in the configuration directory)"
)]
pub struct KeyArgs {
    /// A key file: 32 raw bytes, or one that sealog wrote; a regular file without group or other bits (repeatable)
    #[arg(long, value_name = "FILE", global = true)]
    pub key_file: Vec<PathBuf>,
    /// Read the key from this inherited file descriptor
    #[arg(long, value_name = "N", global = true)]
    pub key_fd: Option<u32>,
    /// A file whose text is the passphrase (repeatable)
    #[arg(long, value_name = "FILE", global = true)]
    pub passphrase_file: Vec<PathBuf>,
    /// Ask for the passphrase on the terminal, without echo
    #[arg(long, global = true)]
    pub prompt: bool,
}

/// What is accepted as a data directory.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct PlaceArgs {
    /// Accept a network file system, where locks and syncs may not hold
    #[arg(long, global = true)]
    pub allow_network_fs: bool,
}

/// Which journal a writer may find or make.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ExpectArgs {
    /// Refuse (exit code 10) instead of creating a journal in an absent or empty directory
    #[arg(long)]
    pub no_create: bool,
    /// The store id that the journal must have; one that is not there is never created (exit code 10)
    #[arg(long, value_name = "ID", value_parser = store_id)]
    pub store_id: Option<StoreId>,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// The journal's directory [default: $XDG_STATE_HOME/sealog, else ~/.local/state/sealog]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one. `unix:PATH`: a socket that only this user may connect to
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4320", value_parser = listen)]
    pub listen: Listen,
    /// Listen beyond this machine without tokens and TLS: put a proxy in front that has both
    #[arg(long)]
    pub allow_remote: bool,
    /// Serve a stopped journal or a backup as it is: no lock, no byte changed, works on read-only media; writes get 503
    #[arg(long, conflicts_with_all = ["no_create", "store_id"])]
    pub read_only: bool,
    /// Providers and limits (TOML)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How log lines look on standard error, with json notes and errors too [default: text, with --json json]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// How long a stop may take until what is still open is dropped
    #[arg(long, value_name = "MS", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub grace_ms: u64,
    #[command(flatten)]
    pub expect: ExpectArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    // Behind the flags without a heading: a heading goes on to whatever stands below it.
    #[command(flatten)]
    pub access: AccessArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Run {
    /// The text to submit; `-` reads it from standard input
    #[arg(value_name = "TEXT")]
    pub text: String,
    #[command(flatten)]
    pub node: asking::NodeArgs,
    /// Run in this process on the journal in DIR instead of asking a node. Only then the flags about journals
    /// and keys below are taken
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "ca_file", "token_file"])]
    pub data_dir: Option<PathBuf>,
    /// Providers and limits (TOML); only with --data-dir
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    pub config: Option<PathBuf>,
    /// The same key and request return the same execution
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// What the model must be able to do; `GET /v1/providers` lists what the node's models can
    #[arg(long, value_name = "NAME", default_value = "text-generation")]
    pub ability: String,
    /// Ask this provider before others that can do it; several are asked in the order given
    #[arg(long, value_name = "ID")]
    pub provider: Vec<String>,
    /// Ask the next provider when one fails in a way that may be retried, before any output
    #[arg(long)]
    pub allow_fallback: bool,
    /// The request's `extensions`, a JSON object
    #[arg(long, value_name = "JSON")]
    pub extensions: Option<String>,
    #[command(flatten)]
    pub expect: ExpectArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Demo {}

#[derive(Debug, Args)]
pub struct Doctor {
    /// The directory [default: $XDG_STATE_HOME/sealog, else ~/.local/state/sealog]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Debug, Subcommand)]
pub enum Journal {
    /// Create a journal
    Init(Init),
    /// Summarise a journal: keys, segments, executions
    Inspect(Inspect),
    /// Check every byte, tag, link and result
    Verify(Verify),
    /// Print one execution's events, offline
    Replay(Replay),
    /// Write every execution as JSON lines
    Export(Export),
    /// Make a new journal from an export
    Import(Import),
    /// Change who can open the journal, and its keys
    Rekey(Rekey),
    /// Copy a journal, also beside its running node; again into the same place copies what is new
    Backup(Backup),
    /// Make a sound journal out of a damaged one, elsewhere, and list every loss
    Repair(Repair),
    /// Make a journal of a backup, in a new lineage and fenced
    Restore(Restore),
    /// Lift the fence of a restored, repaired or imported journal, once the original is gone for good
    Unfence(Unfence),
    /// Fold finished executions and drop what was forgotten, while no node runs
    Compact(Compact),
}

#[derive(Debug, Args)]
pub struct Compact {
    /// The journal's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Only say what would go and why, and what keeps the rest; reads, also beside a running node
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Init {
    /// An absent or empty directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Inspect {
    /// The journal's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// List every execution with its id and status
    #[arg(long)]
    pub executions: bool,
    /// List every segment, however many there are
    #[arg(long)]
    pub segments: bool,
    /// List every frame
    #[arg(long)]
    pub frames: bool,
    /// Show where the events of one execution stand
    #[arg(long, value_name = "ID")]
    pub execution: Option<String>,
    /// List root keys and what names them
    #[arg(long)]
    pub keys: bool,
    /// Print the journal's anchor and nothing else: keep it elsewhere, and ask `verify --anchor` later
    #[arg(long, conflicts_with_all = ["executions", "segments", "frames", "execution", "keys"])]
    pub head: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The journal's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// An anchor that `inspect --head` printed, or a file that holds one: says whether the journal still contains it
    #[arg(long, value_name = "FILE|TEXT")]
    pub anchor: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// The journal's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The execution's id, as `journal inspect DIR --executions` lists it
    #[arg(value_name = "EXECUTION_ID")]
    pub execution: String,
    /// How to print the events [default: sse, with --json jsonl]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReplayFormat>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Backup {
    /// The journal's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// An absent or empty directory, or an earlier backup of this journal
    #[arg(value_name = "DEST")]
    pub dest: PathBuf,
    /// Refuse (exit code 10) where DEST is no backup yet, as the place of a volume that is not mounted is none
    #[arg(long)]
    pub no_create: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Repair {
    /// The damaged journal's directory, or a backup; it is only read
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// An absent or empty directory
    #[arg(value_name = "DEST")]
    pub dest: PathBuf,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Restore {
    /// A backup, or a stopped copy of a journal's directory
    #[arg(value_name = "SRC")]
    pub src: PathBuf,
    /// An absent or empty directory
    #[arg(value_name = "DEST")]
    pub dest: PathBuf,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Debug, Args)]
pub struct Unfence {
    /// The journal's directory; no node may run on it
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayFormat {
    /// The bytes of the live stream, without heartbeats
    Sse,
    /// One event's JSON text per line
    Jsonl,
    /// The text that was put out
    Text,
    /// The state after the last event, as `GET /v1/executions/{id}` answers
    Snapshot,
}

fn store_id(text: &str) -> Result<StoreId, &'static str> {
    StoreId::parse(text).ok_or("a store id has 32 hexadecimal digits")
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    /// One JSON object a line
    Json,
}

impl LogFormat {
    /// What goes with the rest of the output.
    pub fn beside(json: bool) -> LogFormat {
        if json { LogFormat::Json } else { LogFormat::Text }
    }
}

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A literal address, or `localhost`: other names could mean another machine tomorrow.
fn listen(text: &str) -> Result<Listen, &'static str> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match (path.is_empty(), SocketPath::from_pathname(path)) {
            (true, _) => Err("a socket's path follows `unix:`"),
            (false, Err(_)) => Err("the path of a socket has at most 107 bytes"),
            (false, Ok(_)) => Ok(Listen::Unix(path.into())),
        };
    }
    let literal = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    literal.parse().map(Listen::Tcp).map_err(
        |_| "an address looks like 127.0.0.1:4320, [::1]:4320, localhost:4320 or unix:/run/sealog.sock",
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The flags of `verb` below each heading, in the help's order.
    fn headings(verb: &str) -> Vec<(String, Vec<String>)> {
        let mut command = Cli::command();
        command.build();
        let verb = command.find_subcommand(verb).unwrap();
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for argument in verb.get_arguments() {
            let heading = argument.get_help_heading().unwrap_or_default().to_owned();
            let name = argument.get_id().to_string();
            match found.iter_mut().find(|(known, _)| *known == heading) {
                Some((_, names)) => names.push(name),
                None => found.push((heading, vec![name])),
            }
        }
        found
    }

    #[test]
    fn a_heading_holds_its_own_flags_alone() {
        for verb in ["serve", "run", "ps", "tail"] {
            for (heading, names) in headings(verb) {
                let own: &[&str] = match heading.split(' ').next() {
                    Some("Key") => &["key_file", "key_fd", "passphrase_file", "prompt"],
                    Some("Access") => &["token_file", "tls_cert", "tls_key", "allow_host", "allow_origin"],
                    _ => continue,
                };
                assert_eq!(names, own, "{verb}: {heading}");
            }
        }
        assert!(headings("serve").iter().any(|(heading, _)| heading == "Access"));
    }

    #[test]
    fn listen_takes_literal_addresses_and_localhost() {
        assert_eq!(listen("localhost:0"), Ok(Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))));
        assert_eq!(listen("unix:a/b"), Ok(Listen::Unix(PathBuf::from("a/b"))));
        assert!(listen("[::1]:4320").is_ok());
        for text in ["", "4320", "localhost", "example.com:1", "127.0.0.1:65536", "unix:"] {
            assert!(listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_flag_takes_a_key() {
        for key in ["--key", "--passphrase"] {
            let parsed = Cli::try_parse_from(["sealog", "journal", "verify", "d", key, "x"]);
            assert!(parsed.is_err(), "{key}");
        }
    }
}
