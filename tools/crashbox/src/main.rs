//! Kills the real binary under load and checks what survived: `crashbox --binary PATH --kills N --seed S`.
//!
//! Exit code 0: every history was right. 1: one was wrong; the evidence is printed and the directory kept. 2: the
//! campaign could not be run.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use crashbox::campaign::Campaign;

/// Kill the real binary under load and check what survived
#[derive(Debug, Parser)]
struct Arguments {
    /// The binary to kill [default: `sealog` beside this program]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// SIGKILLs in all
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    kills: u64,
    /// Names every choice of the campaign
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Clients at the same time
    #[arg(long, value_name = "C", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=512))]
    clients: u64,
    /// Longest life of a node under load
    #[arg(long, value_name = "MS", default_value_t = 900)]
    life_ms: u64,
    /// An absent or empty directory, kept afterwards [default: a temporary one, kept only if a history is wrong]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// One JSON object on standard output instead of text
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("crashbox: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<bool> {
    let Arguments { binary, kills, seed, clients, life_ms, dir, json } = arguments;
    let binary = match binary {
        Some(binary) => binary,
        None => std::env::current_exe()?.with_file_name("sealog"),
    };
    anyhow::ensure!(binary.is_file(), "{} is not there; build it first", binary.display());
    let temporary = match &dir {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary directory")?),
    };
    let dir = dir.or_else(|| Some(temporary.as_ref()?.path().join("campaign"))).context("no directory")?;
    let campaign = Campaign { binary, kills, seed, clients, dir, life_ms_max: life_ms, progress: !json };
    let summary = campaign.run()?;
    if json {
        println!("{}", summary.json());
    } else {
        print!("{}", summary.text());
    }
    let right = summary.findings.is_empty();
    if let (false, Some(temporary)) = (right, temporary) {
        eprintln!("kept: {}", temporary.keep().display());
    }
    Ok(right)
}
