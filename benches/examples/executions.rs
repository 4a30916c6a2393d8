//! A journal of whole executions, created, followed by their events and ended with their results, 64 at a time: what
//! `sealog journal verify` has everything to check of. `executions DIR EVENTS` makes it in an absent folder; its key is 32
//! bytes of 1.

use std::path::Path;

use anyhow::{Context, Result};
use sealog_benches::executions::Executions;
use sealog_benches::sealed;
use sealog_benches::workload::Deltas;
use sealog_journal::{Admission, Ignore, Journal};

const AT_ONCE: usize = 64;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (folder, events) = (args.next(), args.next());
    let (folder, events) = folder.zip(events).context("a folder and a number of events")?;
    let (folder, events) = (Path::new(&folder), events.parse::<u64>()?);
    let config = sealed::config(folder, true)?;
    sealed::create(&config)?;
    let (journal, _) = Journal::open(&config, &mut Ignore)?;
    let mut running: Vec<_> =
        (0..AT_ONCE as u64).map(|number| Executions::new(Deltas::new(number << 40))).collect();
    let mut written = 0;
    while written < events || running.iter().any(Executions::is_running) {
        let mut tickets = Vec::with_capacity(AT_ONCE);
        for execution in &mut running {
            // What runs is brought to its end, so that every execution has its result.
            if written < events || execution.is_running() {
                written += 1;
                let ticket = journal.submit(execution.next_unit()?, Admission::Ordinary);
                tickets.push(ticket.map_err(|refusal| anyhow::anyhow!("refused: {refusal:?}"))?);
            }
        }
        tickets.into_iter().try_for_each(|ticket| ticket.wait())?;
    }
    journal.close()?;
    println!("{written} events, {} executions", journal.streams());
    Ok(())
}
