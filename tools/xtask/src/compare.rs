//! `cargo xtask compare`: Sealog's journal beside other stores, interleaved in one invocation on one directory.
//!
//! Owns the order of what runs and the arithmetic of the rows. The stores live in `benches/compare`, a workspace of
//! its own that is built twice, since one binary links either SQLite or SQLCipher; the two processes take turns.

mod reopen;
mod rows;
mod worker;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use worker::Worker;

/// In the order of the table. The last part runs in the binary with SQLCipher.
const SYSTEMS: [&str; 12] = [
    "floor-append",
    "floor-overwrite",
    "floor-overwrite64",
    "bare",
    "sealog",
    "sealog-portable",
    "sqlite-1txn",
    "sqlite-group",
    "redb-group",
    "fjall-group",
    "okaywal-group",
    "sqlcipher-group",
];
/// Only where it is asked for.
const PORTABLE: &str = "sealog-portable";
const SLICE_MS: u64 = 250;
const SLICES_MIN: u64 = 15;

/// What to compare.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    seconds: u64,
    repeats: u64,
    producers: Vec<u64>,
    systems: Vec<String>,
    json: bool,
    dir: Option<PathBuf>,
    /// Numbers of events for the reopening table; empty: the commit table.
    reopen: Vec<u64>,
}

impl Plan {
    pub fn parse(args: &[String]) -> Result<Plan> {
        let systems = SYSTEMS.into_iter().filter(|system| *system != PORTABLE).map(String::from);
        let mut plan = Plan {
            seconds: 2,
            repeats: 3,
            producers: vec![1, 16, 64, 256],
            systems: systems.collect(),
            json: false,
            dir: None,
            reopen: Vec::new(),
        };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().with_context(|| format!("{flag} wants a value"));
            match flag.as_str() {
                "--json" => plan.json = true,
                "--portable" => plan.systems.push(PORTABLE.to_owned()),
                "--seconds" => plan.seconds = value()?.parse()?,
                "--repeats" => plan.repeats = value()?.parse()?,
                "--producers" => plan.producers = numbers(value()?)?,
                "--reopen" => plan.reopen = numbers(value()?)?,
                "--dir" => plan.dir = Some(value()?.into()),
                "--systems" => plan.systems = value()?.split(',').map(String::from).collect(),
                _ => bail!(
                    "`compare` knows --seconds, --repeats, --producers, --systems, --portable, --reopen, --dir \
                     and --json, not `{flag}`"
                ),
            }
        }
        if let Some(unknown) = plan.systems.iter().find(|name| !SYSTEMS.contains(&name.as_str())) {
            bail!("no system is called `{unknown}`; there are {}", SYSTEMS.join(", "));
        }
        if plan.seconds == 0 || plan.repeats == 0 || plan.producers.contains(&0) {
            bail!("seconds, repeats and producers are at least 1");
        }
        Ok(plan)
    }

    /// Rounds of one slice of each system: what was asked for, and enough that a median means something.
    fn rounds(&self) -> u64 {
        (self.seconds * 1000 / SLICE_MS * self.repeats).max(SLICES_MIN)
    }

    /// The rows, in the order of the table: a floor has one producer by nature.
    fn cells(&self) -> Vec<(&'static str, u64)> {
        let mut cells = Vec::new();
        for producers in &self.producers {
            for system in SYSTEMS.into_iter().filter(|name| self.systems.iter().any(|wanted| wanted == name))
            {
                let floor = system.starts_with("floor");
                if !floor || Some(producers) == self.producers.first() {
                    cells.push((system, if floor { 1 } else { *producers }));
                }
            }
        }
        cells
    }
}

fn numbers(list: &str) -> Result<Vec<u64>> {
    list.split(',').map(|number| number.parse().with_context(|| format!("`{number}` is no number"))).collect()
}

pub fn run_plan(workspace: &Workspace, plan: &Plan) -> Result<()> {
    let target = crate::workspace::target_folder(workspace)?.join("compare");
    let sqlite = build(workspace, &target, "sqlite", &[])?;
    let folder = match &plan.dir {
        Some(dir) => dir.clone(),
        None => target.clone(),
    };
    std::fs::create_dir_all(&folder)?;
    let scratch = tempfile::Builder::new().prefix("run-").tempdir_in(&folder)?;
    if !plan.reopen.is_empty() {
        return reopen::run(&sqlite, scratch.path(), &plan.reopen, plan.repeats, plan.json);
    }
    let encrypted = plan.systems.iter().any(|system| system.starts_with("sqlcipher"));
    let sqlcipher = match encrypted {
        true => Some(build(workspace, &target, "sqlcipher", &["--features", "sqlcipher"])?),
        false => None,
    };
    let mut plain = Worker::start(&sqlite, &scratch.path().join("sqlite"))?;
    let mut sealed =
        sqlcipher.map(|path| Worker::start(&path, &scratch.path().join("sqlcipher"))).transpose()?;
    let mut all: Vec<rows::Series> =
        plan.cells().into_iter().map(|(system, producers)| rows::Series::new(system, producers)).collect();
    // A first round that counts for nothing: files are touched, trees get a root, branches are learned.
    for round in 0..=plan.rounds() {
        for series in &mut all {
            let worker = match series.system.starts_with("sqlcipher") {
                true => sealed.as_mut().context("it was built for this")?,
                false => &mut plain,
            };
            // The ids of executions must not repeat within a store.
            let seed = (round + 1) * 1_000_003 + series.producers * 7;
            let slice = worker.slice(series.system, series.producers, SLICE_MS, seed)?;
            if round > 0 {
                series.slices.push(slice);
            }
        }
    }
    let mut sizes = plain.close()?;
    if let Some(sealed) = sealed {
        sizes.extend(sealed.close()?);
    }
    let rows = rows::rows(&all, &sizes);
    match plan.json {
        true => rows.iter().for_each(|row| println!("{}", row.json())),
        false => print!("{}", rows::table(&rows)),
    }
    eprintln!("{} paired slices of {SLICE_MS} ms; load {}", plan.rounds(), load());
    Ok(())
}

/// Builds the program of `benches/compare` and says where it is. Both builds share one target folder, so that what
/// they have in common is built once; the program is moved out of the next one's way.
fn build(workspace: &Workspace, target: &Path, name: &str, features: &[&str]) -> Result<PathBuf> {
    let folder = workspace.root.join("benches/compare");
    let mut command = crate::cargo::cargo(workspace);
    command.current_dir(&folder).env("CARGO_TARGET_DIR", target);
    command.args(["build", "--release", "--locked", "--quiet"]).args(features);
    run_quietly(&mut command).context("SQLCipher needs OpenSSL's headers (libssl-dev)")?;
    let program = target.join(format!("compare-{name}"));
    std::fs::copy(target.join("release/compare"), &program)?;
    Ok(program)
}

/// Standard output belongs to the rows.
fn run_quietly(command: &mut std::process::Command) -> Result<()> {
    let status = command.stdin(std::process::Stdio::null()).stdout(std::io::stderr()).status()?;
    if !status.success() {
        bail!("the program of benches/compare was not built: {status}");
    }
    Ok(())
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Plan> {
        Plan::parse(&args.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_plan_has_the_systems_of_the_table_and_floors_once() {
        let plan = parse(&["--producers", "1,64"]).unwrap();
        let cells = plan.cells();
        assert_eq!(cells.len(), 3 + 2 * 8);
        assert_eq!(cells.iter().filter(|(system, _)| system.starts_with("floor")).count(), 3);
        assert!(!cells.iter().any(|(system, _)| *system == PORTABLE));
        let portable = parse(&["--portable", "--producers", "1"]).unwrap();
        assert!(portable.cells().contains(&(PORTABLE, 1)));
    }

    #[test]
    fn a_short_run_still_has_enough_slices_for_a_median() {
        assert_eq!(parse(&["--seconds", "1", "--repeats", "1"]).unwrap().rounds(), SLICES_MIN);
        assert_eq!(parse(&["--seconds", "10"]).unwrap().rounds(), 120);
    }

    #[test]
    fn nonsense_is_refused_before_anything_is_built() {
        for wrong in [&["--seconds"][..], &["--second", "1"], &["--systems", "oracle"], &["--producers", "0"]]
        {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
