//! The bare loop: what a store without format, cipher, checksum and index would do. Producers put JSON into a
//! mutex-protected vector; one thread takes all of it, writes it at the next offset of a zero-filled file, calls
//! fdatasync once, and answers each by a oneshot.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::floor::Filled;
use crate::slice::{Slice, Watch, us_since};
use crate::workload::Deltas;

struct Entry {
    bytes: Vec<u8>,
    done: oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// The writer waits. A condition variable makes a system call for each notice, with or without one who waits.
    parked: bool,
    over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
    groups: AtomicU64,
    bytes: AtomicU64,
    disk_ns: AtomicU64,
}

impl Shared {
    fn push(&self, entry: Entry) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.entries.push(entry);
        let parked = std::mem::take(&mut state.parked);
        drop(state);
        if parked {
            self.arrived.notify_one();
        }
    }

    /// Groups, bytes, nanoseconds in the disk's calls.
    fn counts(&self) -> [u64; 3] {
        [&self.groups, &self.bytes, &self.disk_ns].map(|count| count.load(Ordering::Relaxed))
    }
}

/// A running bare loop; its thread ends with it.
#[expect(missing_debug_implementations, reason = "holds nothing worth showing")]
pub struct Bare {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<std::io::Result<()>>>,
}

impl Bare {
    /// # Errors
    /// No thread.
    pub fn start(filled: Filled) -> Result<Bare> {
        let shared = Arc::new(Shared::default());
        let for_writer = Arc::clone(&shared);
        let writer = std::thread::Builder::new().name("bare-writer".into());
        let writer = writer.spawn(move || write(&for_writer, filled)).context("no thread")?;
        Ok(Bare { shared, writer: Some(writer) })
    }

    /// One slice with `producers` tasks on the calling thread, each waiting for its acknowledgement.
    ///
    /// # Errors
    /// The loop ended.
    pub fn slice(&self, runtime: &Runtime, producers: u64, length: Duration, seed: u64) -> Result<Slice> {
        let before = self.shared.counts();
        let watch = Arc::new(Watch::start(length));
        let mut slice = Slice::default();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..producers)
                .map(|number| {
                    let (shared, watch) = (Arc::clone(&self.shared), Arc::clone(&watch));
                    let deltas = Deltas::new(seed ^ (number << 32));
                    // The tasks run on this thread, between its own awaits.
                    tokio::spawn(produce(shared, watch, deltas))
                })
                .collect();
            for task in tasks {
                slice.latencies_us.extend(task.await.context("a producer ended")??);
            }
            anyhow::Ok(())
        })?;
        (slice.seconds, slice.cpu_seconds) = watch.stop();
        slice.events = slice.latencies_us.len() as u64;
        let after = self.shared.counts();
        slice.groups = after[0] - before[0];
        slice.bytes = after[1] - before[1];
        slice.disk_seconds = (after[2] - before[2]) as f64 / 1e9;
        Ok(slice)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.shared.arrived.notify_one();
        if let Some(Ok(Err(error))) = self.writer.take().map(JoinHandle::join) {
            eprintln!("the bare loop's writer failed: {error}");
        }
    }
}

async fn produce(shared: Arc<Shared>, watch: Arc<Watch>, mut deltas: Deltas) -> Result<Vec<f32>> {
    let mut latencies = Vec::new();
    while !watch.is_over() {
        let bytes = deltas.next_json();
        let start = Instant::now();
        let (done, acknowledged) = oneshot::channel();
        shared.push(Entry { bytes, done });
        acknowledged.await.context("the writer ended")?;
        latencies.push(us_since(start));
    }
    Ok(latencies)
}

fn write(shared: &Shared, mut filled: Filled) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.entries.is_empty() {
            if state.over {
                return Ok(());
            }
            state.parked = true;
            state = shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let entries = std::mem::take(&mut state.entries);
        drop(state);
        buffer.clear();
        for entry in &entries {
            buffer.extend_from_slice(&entry.bytes);
        }
        let start = Instant::now();
        filled.commit(&buffer)?;
        shared.disk_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        shared.groups.fetch_add(1, Ordering::Relaxed);
        shared.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        for entry in entries {
            // A producer that is gone needs no answer.
            let _ = entry.done.send(());
        }
    }
}
