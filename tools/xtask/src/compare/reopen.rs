//! The reopening table: stores are filled, killed, and opened again by a fresh process, clock running from its start
//! to the line that says everything in it can be read. The page cache stays warm.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::rows::median;

/// Readers that catch up at once after a restart.
const READERS: u64 = 10_000;

/// One line of the program: a word, then numbers.
fn line_of(program: &Path, args: &[&str], kill: bool) -> Result<(f64, Vec<f64>)> {
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("the program of benches/compare does not start")?;
    let mut line = String::new();
    let output = child.stdout.take().context("it was asked for")?;
    BufReader::new(output).read_line(&mut line)?;
    let seconds = start.elapsed().as_secs_f64();
    if kill {
        child.kill()?;
    }
    let status = child.wait()?;
    if line.is_empty() || (!kill && !status.success()) {
        bail!("`compare {}` ended with {status}", args.join(" "));
    }
    let numbers = line.split_whitespace().skip(1).map(str::parse).collect::<std::result::Result<_, _>>()?;
    Ok((seconds, numbers))
}

/// The median time and the numbers of the last opening.
fn opened(program: &Path, system: &str, folder: &str, repeats: u64) -> Result<(f64, Vec<f64>)> {
    let mut times = Vec::new();
    let mut numbers = Vec::new();
    for _ in 0..repeats {
        let (seconds, said) = line_of(program, &["reopen", system, folder], false)?;
        times.push(seconds);
        numbers = said;
    }
    Ok((median(times).context("at least one repeat")?, numbers))
}

pub fn run(program: &Path, scratch: &Path, sizes: &[u64], repeats: u64, as_json: bool) -> Result<()> {
    if !as_json {
        println!(
            "{:<22} {:>9} {:>9} {:>9} {:>11} {:>9} {:>9} {:>9}",
            "system", "events", "seconds", "CPU s", "MiB memory", "peak", "summaries", "/sqlite"
        );
    }
    for events in sizes {
        let count = events.to_string();
        let folder = |name: &str| scratch.join(format!("{name}-{events}")).to_string_lossy().into_owned();
        let mut sqlite = None;
        // A frame for each event is the worst case of one producer; it is shown, not judged.
        for (name, system, producers) in
            [("sqlite", "sqlite", "64"), ("sealog", "sealog", "64"), ("sealog-one-producer", "sealog", "1")]
        {
            // A frame an event takes a sync each, and SQLite puts each event at a random place of its tree; beyond this
            // the fill alone would take hours.
            let events_max = match (name, producers) {
                (_, "1") => 100_000,
                ("sqlite", _) => 1_000_000,
                _ => u64::MAX,
            };
            if *events > events_max {
                continue;
            }
            let folder = folder(name);
            line_of(program, &["fill", system, &folder, &count, producers], true)?;
            let (seconds, said) = opened(program, system, &folder, repeats)?;
            let [resident, readable, executions, peak, summaries, cpu_s] = said[..] else {
                bail!("no numbers from {name}")
            };
            if readable as u64 != *events {
                bail!("{name} gave back {readable} events of {events}");
            }
            let ratio = sqlite.map(|sqlite: f64| seconds / sqlite);
            if name == "sqlite" {
                sqlite = Some(seconds);
            }
            match as_json {
                true => println!(
                    "{}",
                    json!({"system": name, "events": events, "ready_s": seconds, "resident_bytes": resident,
                           "peak_bytes": peak, "executions": executions, "summaries": summaries, "cpu_s": cpu_s,
                           "ratio_sqlite": ratio})
                ),
                false => println!(
                    "{name:<22} {events:>9} {seconds:>9.3} {cpu_s:>9.3} {:>11.0} {:>9.0} {summaries:>9} {:>9}",
                    resident / 1048576.0,
                    peak / 1048576.0,
                    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
                ),
            }
            if name == "sealog" {
                more(program, &folder, *events, as_json)?;
            }
            std::fs::remove_dir_all(&folder)?;
        }
    }
    Ok(())
}

/// What else is asked of a filled journal: many readers at once, and a check of everything.
fn more(program: &Path, folder: &str, events: u64, as_json: bool) -> Result<()> {
    let readers = READERS.min(events / 24);
    let (_, caught) = line_of(program, &["catch-up", folder, &readers.to_string()], false)?;
    let (_, verified) = line_of(program, &["verify", folder], false)?;
    let ([seconds, read, resident, _], [verify_s, _, bytes, cpu_s]) = (&caught[..], &verified[..]) else {
        bail!("no numbers from the journal")
    };
    match as_json {
        true => println!(
            "{}",
            json!({"system": "sealog-readers", "events": events, "readers": readers, "seconds": seconds,
                   "events_read": read, "resident_bytes": resident})
        ),
        false => println!(
            "  {readers} readers at once: {read} events in {seconds:.2} s, {:.0} MiB",
            resident / 1048576.0
        ),
    }
    match as_json {
        true => println!(
            "{}",
            json!({"system": "sealog-verify", "events": events, "seconds": verify_s, "bytes": bytes, "cpu_s": cpu_s})
        ),
        false => {
            println!("  verify: {verify_s:.2} s, {:.0} MB/s, {cpu_s:.2} s of CPU", bytes / verify_s / 1e6);
        }
    }
    Ok(())
}
