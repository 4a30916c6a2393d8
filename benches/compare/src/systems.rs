//! Every store of a run, each (system, producers) in a folder of its own, started when it is first asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sealog_benches::floor::{self, Filled, Grown};
use sealog_benches::handover::{Bare, Handover};
use sealog_benches::sealed::Sealed;
use sealog_benches::slice::Slice;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{host, peers};

/// Room for a few tenths of a second of the bare loop before it begins anew.
const FILE_BYTES: u64 = 256 << 20;
const BATCH: u64 = 64;

enum System {
    Append(Grown),
    Overwrite(Filled, u64),
    Sealed(Sealed),
    Peer(Handover),
}

struct Running {
    system: System,
    folder: PathBuf,
    events: u64,
    written_bytes: u64,
}

pub struct Systems<'a> {
    folder: PathBuf,
    runtime: &'a Runtime,
    running: BTreeMap<(String, u64), Running>,
}

impl<'a> Systems<'a> {
    pub fn new(folder: &Path, runtime: &'a Runtime) -> Systems<'a> {
        Systems { folder: folder.to_path_buf(), runtime, running: BTreeMap::new() }
    }

    fn start(&self, system: &str, folder: &Path) -> Result<System> {
        std::fs::create_dir_all(folder)?;
        let filled = || Filled::new(&folder.join("file"), FILE_BYTES);
        let peer = |sink, group_max| Handover::start(sink, group_max).map(System::Peer);
        match system {
            "floor-append" => Ok(System::Append(Grown::new(&folder.join("file"))?)),
            "floor-overwrite" => Ok(System::Overwrite(filled()?, 1)),
            "floor-overwrite64" => Ok(System::Overwrite(filled()?, BATCH)),
            "bare" => peer(Box::new(Bare::new(filled()?)), usize::MAX),
            "sealog" => Ok(System::Sealed(Sealed::start(&folder.join("journal"), true, self.runtime)?)),
            "sealog-portable" => {
                Ok(System::Sealed(Sealed::start(&folder.join("journal"), false, self.runtime)?))
            }
            other => {
                let (sink, group_max) = peers::start(other, folder)?;
                peer(sink, group_max)
            }
        }
    }

    /// One slice, as JSON.
    pub fn slice(&mut self, system: &str, producers: u64, milliseconds: u64, seed: u64) -> Result<Value> {
        let key = (system.to_owned(), producers);
        if !self.running.contains_key(&key) {
            let folder = self.folder.join(format!("{system}-{producers}"));
            let system = self.start(system, &folder)?;
            self.running.insert(key.clone(), Running { system, folder, events: 0, written_bytes: 0 });
        }
        let running = self.running.get_mut(&key).context("it was just put there")?;
        let length = Duration::from_millis(milliseconds);
        let slice = match &mut running.system {
            System::Append(grown) => floor::slice(&mut |bytes| grown.commit(bytes), 1, length, seed)?,
            System::Overwrite(filled, batch) => {
                floor::slice(&mut |bytes| filled.commit(bytes), *batch, length, seed)?
            }
            System::Sealed(sealed) => sealed.slice(self.runtime, producers, length, seed)?,
            System::Peer(peer) => peer.slice(self.runtime, producers, length, seed)?,
        };
        running.events += slice.events;
        running.written_bytes += slice.bytes;
        Ok(as_json(&slice))
    }

    /// Ends every store; bytes an event takes on disk, by `SYSTEM PRODUCERS`.
    pub fn close(&mut self) -> Result<Value> {
        let mut sizes = serde_json::Map::new();
        for ((name, producers), running) in std::mem::take(&mut self.running) {
            let written = match running.system {
                // Prepared space is not what an event takes.
                System::Append(_) | System::Overwrite(..) => running.written_bytes,
                System::Sealed(sealed) => {
                    sealed.close()?;
                    running.written_bytes
                }
                System::Peer(peer) => {
                    peer.close()?;
                    match running.written_bytes {
                        0 => host::size_bytes(&running.folder)?,
                        written => written,
                    }
                }
            };
            if running.events == 0 {
                bail!("{name} committed nothing");
            }
            sizes.insert(format!("{name} {producers}"), json!(written as f64 / running.events as f64));
        }
        Ok(Value::Object(sizes))
    }
}

fn as_json(slice: &Slice) -> Value {
    let mut latencies = slice.latencies_us.clone();
    latencies.sort_by(f32::total_cmp);
    let percentile = |part: f64| {
        let at = (latencies.len() as f64 * part) as usize;
        latencies.get(at.min(latencies.len().saturating_sub(1))).copied().unwrap_or(0.0)
    };
    json!({
        "events": slice.events,
        "seconds": slice.seconds,
        "cpu_seconds": slice.cpu_seconds,
        "groups": slice.groups,
        "p50_us": percentile(0.50),
        "p99_us": percentile(0.99),
    })
}
