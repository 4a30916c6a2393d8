//! Sealog's journal behind the same hand-over: tasks on one thread, each awaiting the durable acknowledgement.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sealog_disk::real::{OpenOptions, RealClock, RealDisk, RealEntropy};
use sealog_journal::{Admission, Config, Create, Ignore, Journal, Unit};
use sealog_seal::{Secret, SlotParams, StoreId};
use tokio::runtime::Runtime;

use crate::slice::{Slice, Watch, us_since};
use crate::workload::Deltas;

const STORE_ID: StoreId = StoreId([7; 16]);

/// An open journal in a folder of its own.
#[derive(Debug)]
pub struct Sealed {
    journal: Journal,
}

/// The configuration of a journal in `folder`, with the direct write path or without it.
///
/// # Errors
/// The folder cannot be used.
pub fn config(folder: &Path, direct: bool) -> Result<Config> {
    let options = OpenOptions { create: true, allow_network_fs: false };
    let disk = RealDisk::open(folder, options).context("the folder cannot be used")?;
    let secrets = vec![Secret::raw([1; 32])];
    let mut config = Config::new(Arc::new(disk), Arc::new(RealClock::new()), Arc::new(RealEntropy), secrets);
    config.tuning.direct = direct;
    Ok(config)
}

/// Makes an empty journal where `config` points to.
///
/// # Errors
/// There is one already, or the disk refuses.
pub fn create(config: &Config) -> Result<()> {
    let secret = Secret::raw([1; 32]);
    let create = Create {
        disk: Arc::clone(&config.disk),
        clock: Arc::clone(&config.clock),
        entropy: Arc::clone(&config.entropy),
        store_id: STORE_ID,
        slot_name: "bench",
        secret: &secret,
        params: SlotParams::DEFAULT,
    };
    Ok(create.run(&mut || Ok(()))?)
}

impl Sealed {
    /// Makes a journal in `folder` and opens it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn start(folder: &Path, direct: bool, runtime: &Runtime) -> Result<Sealed> {
        let config = config(folder, direct)?;
        create(&config)?;
        let (journal, _) = Journal::open(&config, &mut Ignore)?;
        runtime.spawn(journal.dispatcher());
        Ok(Sealed { journal })
    }

    /// One slice with `producers` tasks on the calling thread.
    ///
    /// # Errors
    /// The journal refuses a record.
    pub fn slice(&self, runtime: &Runtime, producers: u64, length: Duration, seed: u64) -> Result<Slice> {
        let before = self.journal.counters();
        let watch = Arc::new(Watch::start(length));
        let mut slice = Slice::default();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..producers)
                .map(|number| {
                    let deltas = Deltas::new(seed ^ (number << 32));
                    tokio::spawn(produce(self.journal.clone(), Arc::clone(&watch), deltas))
                })
                .collect();
            for task in tasks {
                slice.latencies_us.extend(task.await.context("a producer ended")??);
            }
            anyhow::Ok(())
        })?;
        watch.stop(&mut slice);
        let after = self.journal.counters();
        slice.events = slice.latencies_us.len() as u64;
        slice.groups = after.group_records.count() - before.group_records.count();
        slice.bytes = after.bytes - before.bytes;
        slice.disk_seconds = (after.sync_us.sum - before.sync_us.sum) as f64 / 1e6;
        Ok(slice)
    }

    /// # Errors
    /// Something was not durable.
    pub fn close(&self) -> Result<()> {
        Ok(self.journal.close()?)
    }
}

async fn produce(journal: Journal, watch: Arc<Watch>, mut deltas: Deltas) -> Result<Vec<f32>> {
    let mut latencies = Vec::new();
    while !watch.is_over() {
        let record = deltas.next_record()?;
        let start = Instant::now();
        journal.append(Unit::one(record), Admission::Ordinary).await?;
        latencies.push(us_since(start));
    }
    Ok(latencies)
}
