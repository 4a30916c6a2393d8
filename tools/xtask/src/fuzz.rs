//! `cargo xtask fuzz`: runs the targets of `fuzz/` for a while each, on the stable toolchain.
//!
//! New inputs go to a scratch folder below cargo's target folder; the kept corpora are only read. A finding is an
//! error that names its file. Needs cargo-fuzz and a C++ compiler, so it is no step of `ci`: there a test replays
//! the kept corpora.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

const SECONDS_DEFAULT: u64 = 60;
/// Longest input, in bytes: room for every fixed layout.
const INPUT_BYTES_MAX: u64 = 4096;
const MEMORY_MIB_MAX: u64 = 2048;
/// One input may take this long.
const INPUT_SECONDS_MAX: u64 = 20;

/// Which targets, and for how long each.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    seconds: u64,
    /// All of them when empty.
    targets: Vec<String>,
}

impl Plan {
    pub fn parse(args: &[String]) -> Result<Self> {
        let mut plan = Self { seconds: SECONDS_DEFAULT, targets: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--seconds" => {
                    let value = args.next().context("--seconds wants a number")?;
                    plan.seconds = value.parse().context("--seconds wants a number")?;
                }
                flag if flag.starts_with('-') => bail!("`fuzz` knows --seconds, not `{flag}`"),
                target => plan.targets.push(target.to_owned()),
            }
        }
        Ok(plan)
    }

    fn targets(&self, known: &BTreeSet<String>) -> Result<Vec<String>> {
        if let Some(unknown) = self.targets.iter().find(|target| !known.contains(*target)) {
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            bail!("no target `{unknown}`; the targets are {}", known.join(", "));
        }
        Ok(if self.targets.is_empty() { known.iter().cloned().collect() } else { self.targets.clone() })
    }
}

/// Runs the plan; a table at the end, and an error if any target found something.
pub fn run(workspace: &Workspace, plan: &Plan) -> Result<()> {
    let folder = workspace.root.join("fuzz");
    let targets = plan.targets(&known(&folder.join("fuzz_targets"))?)?;
    let scratch = crate::workspace::target_folder(workspace)?.join("fuzz");
    crate::process::run(cargo_fuzz(workspace).args(["build", "-s", "none"]))
        .context("cargo-fuzz is needed: cargo install --locked --version 0.13.2 cargo-fuzz")?;
    let mut failed = 0;
    println!("{:<16} {:>12} {:>10} {:>8}", "target", "inputs", "each s", "cover");
    for target in &targets {
        let (corpus, findings) = (scratch.join("corpus").join(target), scratch.join("findings").join(target));
        std::fs::create_dir_all(&corpus)?;
        std::fs::create_dir_all(&findings)?;
        let mut command = cargo_fuzz(workspace);
        command
            .args(["run", "-s", "none", target.as_str()])
            .arg(&corpus)
            .arg(folder.join("corpus").join(target));
        command.args(["--", "-print_final_stats=1"]);
        command.arg(format!("-max_total_time={}", plan.seconds));
        command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
        command.arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
        command.arg(format!("-artifact_prefix={}/", findings.display()));
        let output = command.stdin(Stdio::null()).output().context("cannot start cargo fuzz")?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let (inputs, cover) = (number(&log, "stat::number_of_executed_units:"), number(&log, " cov:"));
        let rate = inputs / plan.seconds.max(1);
        println!("{target:<16} {inputs:>12} {rate:>10} {cover:>8}");
        if !output.status.success() {
            failed += 1;
            println!("{}", finding(&log, &findings));
        }
    }
    if failed > 0 {
        bail!(
            "{failed} targets found something; mend it and keep the input as fuzz/corpus/TARGET/what-it-was"
        );
    }
    Ok(())
}

fn cargo_fuzz(workspace: &Workspace) -> Command {
    let mut command = crate::cargo::cargo(workspace);
    command.arg("fuzz");
    command
}

fn known(folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    Ok(names)
}

/// The last number behind `key` in what a fuzzer printed; 0 where there is none.
fn number(log: &str, key: &str) -> u64 {
    let mut values = log.lines().filter_map(|line| line.split_once(key));
    let last = values.next_back().and_then(|(_, rest)| rest.split_whitespace().next());
    last.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// What a person needs of a fuzzer's log: the first panic, and where the input is.
fn finding(log: &str, folder: &Path) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let panic =
        panic.map_or(&lines[lines.len().saturating_sub(5)..], |at| &lines[at..lines.len().min(at + 3)]);
    format!("{}\ninput in {}", panic.join("\n"), folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Plan> {
        Plan::parse(&args.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_plan_is_a_time_and_targets() {
        let plan = parse(&["--seconds", "5", "head", "frame"]).unwrap();
        assert_eq!(plan, Plan { seconds: 5, targets: vec!["head".into(), "frame".into()] });
        assert_eq!(parse(&[]).unwrap().seconds, SECONDS_DEFAULT);
        assert!(parse(&["--seconds"]).is_err());
        assert!(parse(&["--second", "5"]).is_err());
    }

    #[test]
    fn all_targets_run_unless_some_are_named() {
        let known: BTreeSet<String> = ["frame", "head"].map(String::from).into();
        assert_eq!(parse(&[]).unwrap().targets(&known).unwrap(), ["frame", "head"]);
        assert_eq!(parse(&["head"]).unwrap().targets(&known).unwrap(), ["head"]);
        assert!(parse(&["tail"]).unwrap().targets(&known).is_err());
    }

    #[test]
    fn numbers_and_findings_come_from_the_log() {
        let log = "#2 INITED cov: 10 ft: 1\n#9 NEW cov: 12 ft: 3\nthread panicked at a.rs:1:\nleft is right\n\
                   stat::number_of_executed_units: 1234\n";
        assert_eq!((number(log, " cov:"), number(log, "stat::number_of_executed_units:")), (12, 1234));
        assert_eq!(number(log, "stat::peak:"), 0);
        let text = finding(log, Path::new("here"));
        assert!(
            text.starts_with("thread panicked at a.rs:1:\nleft is right") && text.ends_with("input in here")
        );
    }
}
