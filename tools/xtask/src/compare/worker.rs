//! One running program of `benches/compare`: commands go in, one line of JSON comes back for each.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// What one slice measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    pub events: f64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub groups: f64,
    pub p50_us: f64,
    pub p99_us: f64,
}

impl Slice {
    pub fn events_per_s(&self) -> f64 {
        self.events / self.seconds
    }

    fn read(value: &Value) -> Result<Slice> {
        let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name} in an answer"));
        Ok(Slice {
            events: number("events")?,
            seconds: number("seconds")?,
            cpu_seconds: number("cpu_seconds")?,
            groups: number("groups")?,
            p50_us: number("p50_us")?,
            p99_us: number("p99_us")?,
        })
    }
}

pub struct Worker {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    pub fn start(program: &Path, folder: &Path) -> Result<Worker> {
        let mut child = Command::new(program)
            .arg("serve")
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the program of benches/compare does not start")?;
        let commands = child.stdin.take().context("it was asked for")?;
        let answers = BufReader::new(child.stdout.take().context("it was asked for")?);
        Ok(Worker { child, commands, answers })
    }

    fn ask(&mut self, command: &str) -> Result<Value> {
        writeln!(self.commands, "{command}")
            .and_then(|()| self.commands.flush())
            .context("it ended early")?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("it ended at `{command}`");
        }
        Ok(serde_json::from_str(&line)?)
    }

    pub fn slice(&mut self, system: &str, producers: u64, length_ms: u64, seed: u64) -> Result<Slice> {
        Slice::read(&self.ask(&format!("slice {system} {producers} {length_ms} {seed}"))?)
    }

    /// Bytes an event takes on disk, by system and producers.
    pub fn close(mut self) -> Result<BTreeMap<String, f64>> {
        let sizes = self.ask("close")?;
        let sizes = sizes.as_object().context("sizes by name")?;
        let sizes =
            sizes.iter().map(|(name, size)| (name.clone(), size.as_f64().unwrap_or(f64::NAN))).collect();
        self.child.wait()?;
        Ok(sizes)
    }
}
