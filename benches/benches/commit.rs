//! The commit path against the disk's own floor and against a bare loop, in one run, in short interleaved slices.
//!
//! `cargo bench -p sealog-benches --bench commit -- [--dir DIR] [--producers 1,16,64,256] [--rounds N]
//! [--slice-ms N] [--systems LIST] [--json]`. How to read the table: `docs/performance.md`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sealog_benches::floor::{self, Filled};
use sealog_benches::handover::{Bare, Handover};
use sealog_benches::report::{self, Series};
use sealog_benches::sealed::Sealed;
use sealog_benches::{host, slice::Slice};
use tokio::runtime::Runtime;

/// Room for a few tenths of a second of the bare loop before it begins anew.
const FILE_BYTES: u64 = 256 << 20;
const SYSTEMS: [&str; 4] = ["floor", "bare", "sealog", "sealog-portable"];

struct Options {
    dir: PathBuf,
    producers: Vec<u64>,
    rounds: u64,
    slice: Duration,
    systems: BTreeSet<String>,
    json: bool,
}

fn main() -> Result<()> {
    let options = options()?;
    let folder = tempfile::Builder::new().prefix("sealog-bench-").tempdir_in(&options.dir)?;
    eprintln!("{}", host::describe(folder.path()));
    // The server's kind of runtime: with the I/O driver, a wake from another thread costs a system call.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut systems = Systems::start(&options, folder.path(), &runtime)?;
    let mut all: Vec<Series> = Vec::new();
    for producers in &options.producers {
        for name in SYSTEMS.into_iter().filter(|name| options.systems.contains(*name)) {
            if name != "floor" || *producers == 1 {
                all.push(Series { system: name, producers: *producers, slices: Vec::new() });
            }
        }
    }
    // A first round that counts for nothing: files are touched, segments grow, branches are learned.
    for round in 0..=options.rounds {
        for series in &mut all {
            let slice = systems.slice(series.system, series.producers, options.slice, round)?;
            if round > 0 {
                series.slices.push(slice);
            }
        }
    }
    systems.close()?;
    let rows = report::rows(&all);
    match options.json {
        true => rows.iter().for_each(|row| println!("{}", report::json_line(row))),
        false => print!("{}", report::table(&rows)),
    }
    eprintln!(
        "{} rounds of {} ms slices; load at the end {}",
        options.rounds,
        options.slice.as_millis(),
        host::load()
    );
    Ok(())
}

struct Systems<'a> {
    runtime: &'a Runtime,
    floor: Option<Filled>,
    bare: Option<Handover>,
    direct: Option<Sealed>,
    portable: Option<Sealed>,
}

impl<'a> Systems<'a> {
    fn start(options: &Options, folder: &std::path::Path, runtime: &'a Runtime) -> Result<Systems<'a>> {
        let wanted = |name: &str| options.systems.contains(name).then(|| folder.join(name));
        let filled = |path: Option<PathBuf>| path.map(|path| Filled::new(&path, FILE_BYTES)).transpose();
        let journal = |name: &str, direct: bool| {
            wanted(name).map(|folder| Sealed::start(&folder, direct, runtime)).transpose()
        };
        let bare = filled(wanted("bare"))?;
        Ok(Systems {
            runtime,
            floor: filled(wanted("floor"))?,
            bare: bare.map(|file| Handover::start(Box::new(Bare::new(file)), usize::MAX)).transpose()?,
            direct: journal("sealog", true)?,
            portable: journal("sealog-portable", false)?,
        })
    }

    fn slice(&mut self, system: &str, producers: u64, length: Duration, round: u64) -> Result<Slice> {
        // The ids of executions must not repeat within a journal.
        let seed = (round + 1) * 1_000_003 + producers * 7;
        let sealed = |sealed: &Option<Sealed>| {
            sealed.as_ref().context("not started")?.slice(self.runtime, producers, length, seed)
        };
        match system {
            "floor" => {
                let floor = self.floor.as_mut().context("not started")?;
                floor::slice(&mut |bytes| floor.commit(bytes), 1, length, seed)
            }
            "bare" => {
                let bare = self.bare.as_ref().context("not started")?;
                bare.slice(self.runtime, producers, length, seed)
            }
            "sealog" => sealed(&self.direct),
            _ => sealed(&self.portable),
        }
    }

    fn close(&self) -> Result<()> {
        [&self.direct, &self.portable].into_iter().flatten().try_for_each(Sealed::close)
    }
}

fn options() -> Result<Options> {
    let mut options = Options {
        dir: std::env::temp_dir(),
        producers: vec![1, 16, 64, 256],
        rounds: 15,
        slice: Duration::from_millis(250),
        systems: SYSTEMS.map(String::from).into(),
        json: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let mut value = || args.next().with_context(|| format!("{flag} wants a value"));
        match flag.as_str() {
            // What cargo passes on.
            "--bench" => {}
            "--json" => options.json = true,
            "--dir" => options.dir = value()?.into(),
            "--rounds" => options.rounds = value()?.parse()?,
            "--slice-ms" => options.slice = Duration::from_millis(value()?.parse()?),
            "--producers" => {
                options.producers = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?
            }
            "--systems" => options.systems = value()?.split(',').map(String::from).collect(),
            _ => bail!("unknown argument {flag}"),
        }
    }
    if let Some(unknown) = options.systems.iter().find(|name| !SYSTEMS.contains(&name.as_str())) {
        bail!("no system is called {unknown}; there are {SYSTEMS:?}");
    }
    Ok(options)
}
