//! Runs the steps in order, stops at the first that fails, and says how long each took.

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::process::Tally;
use crate::steps::{self, STEPS, Step};
use crate::workspace::Workspace;

/// Which steps to run: all, those named by `--only`, or all but those named by `--skip`.
#[derive(Debug, Default)]
pub struct Selection {
    only: Vec<&'static str>,
    skip: Vec<&'static str>,
}

impl Selection {
    pub fn parse(args: &[String]) -> Result<Self> {
        let mut selection = Self::default();
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let list = match flag.as_str() {
                "--only" => &mut selection.only,
                "--skip" => &mut selection.skip,
                _ => bail!("`ci` knows --only and --skip, not `{flag}`"),
            };
            let names =
                args.next().with_context(|| format!("{flag} wants names of steps, joined by commas"))?;
            for name in names.split(',') {
                list.push(steps::named(name)?.name);
            }
        }
        Ok(selection)
    }

    fn takes(&self, step: &Step) -> bool {
        (self.only.is_empty() || self.only.contains(&step.name)) && !self.skip.contains(&step.name)
    }
}

/// Runs the selected steps. The error names the step that failed; the table of seconds is printed either way.
pub fn run(workspace: &Workspace, selection: &Selection) -> Result<()> {
    let start = Instant::now();
    let mut lines = Vec::new();
    let mut tests = Tally::default();
    let mut failure = None;
    for step in STEPS {
        if !selection.takes(step) {
            lines.push(format!("{:<8}      -    left out by a flag", step.name));
            continue;
        }
        println!("== {}: {}", step.name, step.about);
        let begun = Instant::now();
        let outcome = (step.run)(workspace);
        let seconds = begun.elapsed().as_secs_f64();
        match outcome {
            Ok(report) => {
                tests += report.tests;
                println!("== {} passed in {seconds:.1} s. {report}", step.name);
                lines.push(format!("{:<8} {seconds:>8.1} s  {report}", step.name));
            }
            Err(error) => {
                lines.push(format!("{:<8} {seconds:>8.1} s  FAILED", step.name));
                failure = Some(error.context(format!("step `{}` failed", step.name)));
                break;
            }
        }
    }
    println!("\nstep      seconds");
    for line in lines {
        println!("{line}");
    }
    println!("{:<8} {:>8.1} s", "total", start.elapsed().as_secs_f64());
    println!("{} passed, {} failed, {} skipped", tests.passed, tests.failed, tests.ignored);
    failure.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(args: &[&str]) -> Result<Vec<&'static str>> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let selection = Selection::parse(&args)?;
        Ok(STEPS.iter().filter(|step| selection.takes(step)).map(|step| step.name).collect())
    }

    #[test]
    fn without_flags_every_step_runs() {
        assert_eq!(taken(&[]).unwrap().len(), STEPS.len());
    }

    #[test]
    fn only_and_skip_choose() {
        assert_eq!(taken(&["--only", "fmt,deny"]).unwrap(), ["fmt", "deny"]);
        assert_eq!(taken(&["--only", "fmt,deny", "--skip", "fmt"]).unwrap(), ["deny"]);
        assert!(!taken(&["--skip", "real"]).unwrap().contains(&"real"));
    }

    #[test]
    fn a_name_that_is_no_step_is_refused() {
        assert!(taken(&["--skip", "reel"]).is_err());
        assert!(taken(&["--only"]).is_err());
        assert!(taken(&["fmt"]).is_err());
    }
}
