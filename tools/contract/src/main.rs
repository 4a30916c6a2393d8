//! Writes and checks what is generated of Sealog's contract: `spec/openapi.yaml` and
//! `spec/schema/execution-request.json`.
//!
//! Owns where the files stand and how they are laid out. What they say is `sealog_http::document`'s and the request
//! types'; nothing is decided here. `cargo xtask contract` runs it.
#![expect(clippy::disallowed_methods, reason = "a development tool reads the source tree, not a journal")]

mod yaml;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const COMMENT: &str = "# Generated from the code: `cargo xtask contract --write`. Never edited by hand.\n";

/// Every generated file and its text.
fn files() -> Vec<(&'static str, String)> {
    let request = sealog_execution::request::schema::document();
    vec![
        ("spec/openapi.yaml", format!("{COMMENT}{}", yaml::text(&sealog_http::document::openapi()))),
        ("spec/schema/execution-request.json", format!("{request:#}\n")),
    ]
}

/// The files whose text is not what the code says.
fn drifted() -> Vec<&'static str> {
    let differs = |path: &str, text: &str| {
        std::fs::read_to_string(Path::new(ROOT).join(path)).map_or(true, |found| found != text)
    };
    files().into_iter().filter(|(path, text)| differs(path, text)).map(|(path, _)| path).collect()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("contract: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> anyhow::Result<()> {
    match args {
        [] => {
            let drifted = drifted();
            if !drifted.is_empty() {
                bail!("{} not what the code says; run `cargo xtask contract --write`", drifted.join(", "));
            }
            println!("{} files are what the code says", files().len());
        }
        [flag] if flag == "--write" => {
            for (path, text) in files() {
                std::fs::write(Path::new(ROOT).join(path), text)
                    .with_context(|| format!("cannot write {path}"))?;
                println!("{path}");
            }
        }
        _ => bail!("takes nothing, or --write"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_generated_is_what_is_checked_in() {
        assert_eq!(drifted(), [""; 0], "run `cargo xtask contract --write`");
    }
}
