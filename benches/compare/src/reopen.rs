//! Reopening: fills a store and waits to be killed; opens one and says when everything in it can be read; lets many
//! readers catch up at once.

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sealog_benches::handover::Sink;
use sealog_benches::sealed;
use sealog_benches::slice::process_cpu;
use sealog_benches::workload::{Deltas, EVENTS_EACH};
use sealog_journal::{Admission, Config, Ignore, Journal, StreamId, Unit};

use crate::host;
use crate::peers::sqlite::Sqlite;

/// Readers that are under way at once.
const INTERLEAVED: usize = 256;
/// From so many events on a journal is filled until its ended segments have summaries.
const SUMMARISED_FROM: u64 = 1_000_000;
/// Events a transaction, where nobody waits for one.
const BULK: usize = 10_000;

fn producers(count: u64) -> Vec<Deltas> {
    (0..count).map(|number| Deltas::new(number << 40)).collect()
}

fn config(folder: &Path) -> Result<Config> {
    // A folder of its own: the journal insists on making it.
    sealed::config(&folder.join("journal"), true)
}

/// Fills an empty folder with `events` and tells so; then it waits for its end by SIGKILL.
pub fn fill(system: &str, folder: &Path, events: u64, producers: u64) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    // Open until the end: it is a running node that is killed.
    let (written_bytes, _journal) = match system {
        "sealog" => fill_sealog(folder, events, producers)?,
        "sqlite" => (fill_sqlite(folder, events, producers)?, None),
        _ => bail!("no system is called {system} here"),
    };
    println!("filled {written_bytes}");
    std::io::stdout().flush()?;
    loop {
        std::thread::park();
    }
}

/// One event of each producer in a group, as if each waited for its acknowledgement.
fn fill_sealog(folder: &Path, events: u64, count: u64) -> Result<(u64, Option<Journal>)> {
    let config = config(folder)?;
    sealed::create(&config)?;
    let (journal, _) = Journal::open(&config, &mut Ignore)?;
    let mut producers = producers(count);
    let mut written = 0;
    while written < events {
        let mut tickets = Vec::with_capacity(producers.len());
        for deltas in producers.iter_mut().take((events - written) as usize) {
            let unit = Unit::one(deltas.next_record()?);
            let ticket = journal
                .submit(unit, Admission::Ordinary)
                .map_err(|refusal| anyhow::anyhow!("a record was refused: {refusal:?}"))?;
            tickets.push(ticket);
            written += 1;
        }
        tickets.into_iter().try_for_each(|ticket| ticket.wait())?;
    }
    if events > SUMMARISED_FROM {
        await_summaries(&folder.join("journal/segments"))?;
    }
    Ok((journal.counters().bytes, Some(journal)))
}

/// Waits until every ended segment has a summary. Beside a filler that never pauses they come a few segments later.
fn await_summaries(segments: &Path) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(120) {
        let (mut all, mut summaries) = (0, 0);
        for entry in std::fs::read_dir(segments)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            all += usize::from(name.ends_with(".seg"));
            summaries += usize::from(name.ends_with(".idx"));
        }
        if summaries + 1 >= all {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    bail!("the summaries did not come")
}

fn fill_sqlite(folder: &Path, events: u64, count: u64) -> Result<u64> {
    let mut sqlite = Sqlite::open(folder)?;
    let mut producers = producers(count);
    let mut group = Vec::with_capacity(BULK);
    let mut written = 0;
    while written < events {
        group.clear();
        for at in 0..BULK.min((events - written) as usize) {
            let turn = (written as usize + at) % producers.len();
            group.push(producers[turn].next_keyed());
        }
        sqlite.commit(&group)?;
        written += group.len() as u64;
    }
    host::size_bytes(folder)
}

/// Opens, and says how much memory that took and how many events can be read.
pub fn reopen(system: &str, folder: &Path) -> Result<()> {
    let events = match system {
        "sealog" => {
            let (journal, report) = Journal::open(&config(folder)?, &mut Ignore)?;
            let (resident, peak) = (host::resident_bytes()?, host::peak_bytes()?);
            let streams = journal.streams();
            let (last, summaries, cpu_s) =
                (report.last_sequence, report.unchecked.len(), process_cpu().as_secs_f64());
            println!("ready {resident} {last} {streams} {peak} {summaries} {cpu_s}");
            std::io::stdout().flush()?;
            // As a node that is killed: closing is not what is measured.
            std::process::exit(0);
        }
        "sqlite" => Sqlite::open(folder)?.scan()?.0,
        _ => bail!("no system is called {system} here"),
    };
    let cpu_s = process_cpu().as_secs_f64();
    println!("ready {} {events} 0 {} 0 {cpu_s}", host::resident_bytes()?, host::peak_bytes()?);
    Ok(())
}

/// The first `readers` executions, read from their start, so many at once, one record at a time.
pub fn catch_up(folder: &Path, readers: usize) -> Result<()> {
    let (journal, report) = Journal::open(&config(folder)?, &mut Ignore)?;
    let mut streams = Vec::with_capacity(readers);
    let mut all = producers(64);
    while streams.len() < readers {
        let before = streams.len();
        for deltas in &mut all {
            let (execution, _) = deltas.next_event();
            (1..EVENTS_EACH).for_each(|_| drop(deltas.next_event()));
            let stream = StreamId(*execution.as_bytes());
            if streams.len() < readers && journal.stream(stream).is_some() {
                streams.push(stream);
            }
        }
        if streams.len() == before {
            bail!("the journal holds {before} executions, not {readers}");
        }
    }
    let start = Instant::now();
    let mut waiting = streams.iter();
    let mut running: VecDeque<_> =
        waiting.by_ref().take(INTERLEAVED).map(|stream| journal.read_stream(*stream, 1)).collect();
    let mut events = 0_u64;
    while let Some(mut reader) = running.pop_front() {
        match reader.next() {
            Some(record) => {
                record.context("a record does not read back")?;
                events += 1;
                running.push_back(reader);
            }
            None => running.extend(waiting.next().map(|stream| journal.read_stream(*stream, 1))),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("caught {seconds} {events} {} {}", host::resident_bytes()?, report.last_sequence);
    Ok(())
}

/// Reads and authenticates everything.
pub fn verify(folder: &Path) -> Result<()> {
    struct Nothing;
    impl sealog_journal::Sink for Nothing {
        fn wants_contents(&self) -> bool {
            false
        }
    }
    let config = config(folder)?;
    let start = Instant::now();
    let (audit, _) = sealog_journal::audit(&config, &mut || Nothing)?;
    if !audit.is_sound() {
        bail!("the journal is damaged");
    }
    let (took, cpu_s) = (start.elapsed().as_secs_f64(), process_cpu().as_secs_f64());
    println!("verified {took} {} {} {cpu_s}", audit.last_sequence, host::size_bytes(folder)?);
    Ok(())
}
