//! The program behind `cargo xtask compare`: commits one workload to one store after another, slice by slice, as
//! its standard input says, and fills and reopens stores for the reopening table.
//!
//! Owns the stores and no decision: what runs when, and what comes of it, is the driver's.

mod host;
mod peers;
mod reopen;
mod systems;

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["serve", folder] => serve(Path::new(folder)),
        ["fill", system, folder, events, producers] => {
            reopen::fill(system, Path::new(folder), events.parse()?, producers.parse()?)
        }
        ["reopen", system, folder] => reopen::reopen(system, Path::new(folder)),
        ["catch-up", folder, readers] => reopen::catch_up(Path::new(folder), readers.parse()?),
        ["verify", folder] => reopen::verify(Path::new(folder)),
        _ => bail!("this program is run by `cargo xtask compare`"),
    }
}

/// One answer a line: `slice SYSTEM PRODUCERS MILLISECONDS SEED`, or `close`, which gives the size of every store.
fn serve(folder: &Path) -> Result<()> {
    let runtime = host::runtime()?;
    let mut systems = systems::Systems::new(folder, &runtime);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words.as_slice() {
            ["slice", system, producers, milliseconds, seed] => {
                systems.slice(system, producers.parse()?, milliseconds.parse()?, seed.parse()?)?
            }
            ["close"] => {
                writeln!(out, "{}", systems.close()?)?;
                return Ok(());
            }
            _ => bail!("not a command: {line}"),
        };
        writeln!(out, "{answer}").context("nobody listens")?;
        out.flush()?;
    }
    Ok(())
}
