//! Running other programs: prints what it runs, passes their output on, and counts tests in it.

use std::io::{BufRead, BufReader, Write};
use std::ops::AddAssign;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Numbers of tests, summed over `test result:` lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

impl Tally {
    /// Reads a line like `test result: ok. 3 passed; 0 failed; 1 ignored; ...`; other lines count nothing.
    fn of_line(line: &str) -> Self {
        let mut tally = Self::default();
        let Some(rest) = line.strip_prefix("test result: ") else { return tally };
        let numbers = rest.split_once(". ").map_or("", |(_, numbers)| numbers);
        for part in numbers.split(';') {
            let Some((count, what)) = part.trim().split_once(' ') else { continue };
            let Ok(count) = count.parse::<u64>() else { continue };
            match what {
                "passed" => tally.passed += count,
                "failed" => tally.failed += count,
                "ignored" => tally.ignored += count,
                _ => {}
            }
        }
        tally
    }
}

fn announce(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    println!("$ {line}");
    line
}

/// Runs the command to its end without standard input; a status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let line = announce(command);
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Like [`run`], and returns how many tests its output reports. A run that reports none is an error: it proved nothing.
pub fn run_tests(command: &mut Command) -> Result<Tally> {
    let line = announce(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let output = child.stdout.take().context("its standard output was asked for")?;
    let tally = pass_on(BufReader::new(output), std::io::stdout())?;
    let status = child.wait()?;
    if !status.success() {
        bail!("`{line}` ended with {status}; {} passed, {} failed", tally.passed, tally.failed);
    }
    if tally.passed == 0 {
        bail!("`{line}` ran no test");
    }
    Ok(tally)
}

/// Copies lines as they come and sums what they report.
fn pass_on(from: impl BufRead, mut to: impl Write) -> Result<Tally> {
    let mut tally = Tally::default();
    for line in from.split(b'\n') {
        let mut line = line?;
        tally += Tally::of_line(&String::from_utf8_lossy(&line));
        line.push(b'\n');
        to.write_all(&line)?;
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, passed: u64, failed: u64, ignored: u64) {
        assert_eq!(Tally::of_line(line), Tally { passed, failed, ignored }, "{line}");
    }

    #[test]
    fn result_lines_are_counted_and_others_are_not() {
        check(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s",
            3,
            0,
            1,
        );
        check("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", 3, 2, 0);
        check("running 12 tests", 0, 0, 0);
        check("a line that says 5 passed; 0 failed", 0, 0, 0);
    }

    #[test]
    fn a_program_that_fails_is_an_error_and_one_without_tests_too() {
        assert!(run(&mut Command::new("false")).is_err());
        assert!(run(&mut Command::new("true")).is_ok());
        assert!(run_tests(&mut Command::new("true")).is_err());
    }

    #[test]
    fn output_is_passed_on_unchanged_while_its_tests_are_summed() {
        let text =
            "test result: ok. 4 passed; 0 failed; 1 ignored\nnoise\ntest result: ok. 2 passed; 0 failed\n";
        let mut seen = Vec::new();
        let tally = pass_on(text.as_bytes(), &mut seen).unwrap();
        assert_eq!(tally, Tally { passed: 6, failed: 0, ignored: 1 });
        assert_eq!(seen, text.as_bytes());
    }
}
