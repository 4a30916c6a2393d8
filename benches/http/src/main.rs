//! A node under load over HTTP: executions from POST to the terminal event, memory of idle subscribers, and paused
//! readers. The node runs in a process of its own, started by this one. How to read the tables: `docs/performance.md`.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench reads the kernel's figures about a process it started"
)]

mod connection;
mod load;
mod node;
mod process;
mod readers;
mod report;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

const USAGE: &str = "http-bench [rate] [--dir DIR] [--clients 1,16,64] [--rounds N] [--slice-ms N] [--restate ADDR] \
                     [--json]\nhttp-bench subscribers [--count N] [--dir DIR] [--json]\nhttp-bench paused [--count N] \
                     [--dir DIR] [--json]";

/// What the command line says.
#[derive(Debug)]
struct Options {
    verb: String,
    dir: PathBuf,
    clients: Vec<usize>,
    rounds: usize,
    slice: Duration,
    restate: Option<SocketAddr>,
    count: Option<usize>,
    json: bool,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    process::raise_descriptor_limit()?;
    if let [verb, store, folder] = args.as_slice()
        && verb == "node"
    {
        return node::run(store, Path::new(folder));
    }
    let options = Options::parse(&args)?;
    // One thread: the other CPU is the node's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match options.verb.as_str() {
            "rate" => rate(&options).await,
            "subscribers" => {
                readers::subscribers(&options.dir, options.count.unwrap_or(10_000), options.json).await
            }
            "paused" => readers::paused(&options.dir, options.count.unwrap_or(32), options.json).await,
            verb => bail!("there is no `{verb}`\n{USAGE}"),
        }
    })
}

/// The systems take turns, slice by slice, so that a machine that drifts does so under all of them.
async fn rate(options: &Options) -> Result<()> {
    let mut systems =
        vec![load::System::node("journal", &options.dir)?, load::System::node("memory", &options.dir)?];
    systems.extend(options.restate.map(load::System::restate));
    let mut series: Vec<load::Series> = Vec::new();
    for clients in &options.clients {
        series.extend((0..systems.len()).map(|system| load::Series::new(system, *clients)));
    }
    // A first round that counts for nothing.
    for round in 0..=options.rounds {
        for one in &mut series {
            let slice = systems[one.system].slice(one.clients, options.slice).await?;
            if round > 0 {
                one.slices.push(slice);
            }
        }
    }
    let rows = report::rows(&systems, &series);
    match options.json {
        true => rows.iter().for_each(|row| println!("{}", row.json())),
        false => print!("{}", report::table(&rows)),
    }
    eprintln!(
        "{} paired slices of {} ms; load {}",
        options.rounds,
        options.slice.as_millis(),
        process::load()
    );
    for system in &mut systems {
        system.stop()?;
    }
    Ok(())
}

impl Options {
    fn parse(args: &[String]) -> Result<Options> {
        let mut options = Options {
            verb: "rate".to_owned(),
            dir: std::env::temp_dir(),
            clients: vec![1, 16, 64],
            rounds: 9,
            slice: Duration::from_millis(400),
            restate: None,
            count: None,
            json: false,
        };
        let mut args = args.iter().peekable();
        if let Some(verb) = args.next_if(|arg| !arg.starts_with('-')) {
            options.verb.clone_from(verb);
        }
        while let Some(flag) = args.next() {
            let mut value = || args.next().with_context(|| format!("{flag} wants a value"));
            match flag.as_str() {
                "--json" => options.json = true,
                "--dir" => options.dir = value()?.into(),
                "--rounds" => options.rounds = value()?.parse()?,
                "--slice-ms" => options.slice = Duration::from_millis(value()?.parse()?),
                "--restate" => options.restate = Some(value()?.parse()?),
                "--count" => options.count = Some(value()?.parse()?),
                "--clients" => {
                    options.clients = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?
                }
                _ => bail!("unknown argument {flag}\n{USAGE}"),
            }
        }
        if options.rounds == 0 || options.clients.contains(&0) || options.count == Some(0) {
            bail!("rounds, clients and the count are at least 1");
        }
        Ok(options)
    }
}
