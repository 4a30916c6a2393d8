//! `cargo xtask torture --minutes N`: crash images of the journal, the fault loop and the simulation, in turns, until
//! the time is over and each of them has had one. Prints what they add up to and stops at the first failure.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::simulate;
use crate::workspace::Workspace;

const SEEDS_EACH: u64 = 1000;
/// Turns until each campaign has had one.
const ROUND: usize = 4;

/// How long, and the first seed of the simulation.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    minutes: u64,
    from: u64,
}

impl Plan {
    pub fn parse(args: &[String]) -> Result<Self> {
        let mut plan = Self { minutes: 0, from: 1_000_000 };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let value = args.next().and_then(|value| value.parse().ok());
            let value = value.with_context(|| format!("{flag} wants a number"))?;
            match flag.as_str() {
                "--minutes" => plan.minutes = value,
                "--from" => plan.from = value,
                _ => bail!("`torture` knows --minutes and --from, not `{flag}`"),
            }
        }
        if plan.minutes == 0 {
            bail!("`torture` wants --minutes");
        }
        Ok(plan)
    }
}

pub fn run(workspace: &Workspace, plan: &Plan) -> Result<()> {
    let start = Instant::now();
    let time = Duration::from_secs(plan.minutes * 60);
    let mut totals = Totals::default();
    let mut from = plan.from;
    let journal_tests = ["every_crash_leaves_what_was_acknowledged", "no_fault_loses_what_was_acknowledged"];
    for turn in 0.. {
        let failed = match turn % ROUND {
            // The journal's own campaigns cover the same every time unless they are asked for more each time.
            1 | 3 => {
                let mut command = crate::cargo::cargo(workspace);
                command.args(["test", "--quiet", "--locked", "-p", "sealog-journal", "--lib", "--"]);
                command.args(["--nocapture", journal_tests[turn % ROUND / 2]]);
                command.env("SEALOG_CRASH_SAMPLES", (8 + turn).to_string());
                totals.run(&mut command)?
            }
            _ => {
                let failed =
                    totals.run(simulate::command(workspace).args(simulate::seeds(from, SEEDS_EACH)))?;
                from += SEEDS_EACH;
                failed
            }
        };
        if failed || (turn + 1 >= ROUND && start.elapsed() >= time) {
            let minutes = start.elapsed().as_secs_f64() / 60.0;
            println!("\n{minutes:.1} minutes, simulation seeds {} to {}", plan.from, from - 1);
            totals.0.iter().for_each(|(what, count)| println!("{count:>12}  {what}"));
            if failed {
                bail!("something was violated; its seed stands above");
            }
            return Ok(());
        }
    }
    Ok(())
}

/// Numbers by what they count, as the programs print them: `12 crash images, 3 disk faults`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals(BTreeMap<String, u64>);

impl Totals {
    /// Runs a program, passes its output on and adds up its summaries. `true` if it failed.
    fn run(&mut self, command: &mut Command) -> Result<bool> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.context("cannot start cargo")?;
        let output = child.stdout.take().context("its standard output was asked for")?;
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            self.add(&line);
        }
        Ok(!child.wait()?.success())
    }

    /// Only lines that are such lists throughout count.
    fn add(&mut self, line: &str) {
        let parts: Option<Vec<(u64, &str)>> = line.split(", ").map(counted).collect();
        for (count, what) in parts.filter(|parts| parts.len() > 1).unwrap_or_default() {
            *self.0.entry(what.to_owned()).or_default() += count;
        }
    }
}

fn counted(part: &str) -> Option<(u64, &str)> {
    let (count, what) = part.trim().split_once(' ')?;
    // `12 crash points (3 of them in a recovery)`
    let what = what.split(" (").next().unwrap_or(what);
    Some((count.parse().ok()?, what.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_needs_its_minutes() {
        let parse = |args: &[&str]| Plan::parse(&args.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(parse(&["--minutes", "3"]).unwrap(), Plan { minutes: 3, from: 1_000_000 });
        assert!(parse(&[]).is_err() && parse(&["--minutes"]).is_err() && parse(&["--hours", "1"]).is_err());
    }

    #[test]
    fn summaries_add_up_and_other_lines_do_not() {
        let mut totals = Totals::default();
        for line in [
            "2 lost, 3 crash images (1 large among them)",
            "1 lost, 0 altered",
            "seed 4: LOST, it is",
            "       12  cancel",
        ] {
            totals.add(line);
        }
        let expected = [("altered", 0), ("crash images", 3), ("lost", 3)];
        assert_eq!(totals.0, expected.map(|(what, count)| (what.to_owned(), count)).into());
    }
}
