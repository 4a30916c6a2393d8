//! The hand-over that every system but Sealog's journal stands behind. Producers put events into a mutex-protected
//! vector; one thread takes all of it, gives it to the system as one group, and answers each by a oneshot once the
//! group is durable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::floor::Filled;
use crate::slice::{Slice, Watch, us_since};
use crate::workload::{Deltas, Keyed};

/// What makes a group durable.
pub trait Sink: Send {
    /// Writes and syncs all of it. Returns the bytes that it wrote itself, 0 where it does not know.
    ///
    /// # Errors
    /// Nothing of the group counts as durable.
    fn commit(&mut self, group: &[Keyed]) -> Result<u64>;
}

/// The bare loop: what a store without format, cipher, checksum and index would do.
#[derive(Debug)]
pub struct Bare {
    filled: Filled,
    buffer: Vec<u8>,
}

impl Bare {
    pub fn new(filled: Filled) -> Bare {
        Bare { filled, buffer: Vec::new() }
    }
}

impl Sink for Bare {
    fn commit(&mut self, group: &[Keyed]) -> Result<u64> {
        self.buffer.clear();
        for event in group {
            self.buffer.extend_from_slice(&event.json);
        }
        self.filled.commit(&self.buffer)?;
        Ok(self.buffer.len() as u64)
    }
}

struct Entry {
    event: Keyed,
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

    /// Groups, bytes, nanoseconds in the system's own calls.
    fn counts(&self) -> [u64; 3] {
        [&self.groups, &self.bytes, &self.disk_ns].map(|count| count.load(Ordering::Relaxed))
    }
}

/// A running system; its thread ends with it.
#[expect(missing_debug_implementations, reason = "holds nothing worth showing")]
pub struct Handover {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<Result<()>>>,
}

impl Handover {
    /// `group_max` events at most are given to the sink at once.
    ///
    /// # Errors
    /// No thread.
    pub fn start(sink: Box<dyn Sink>, group_max: usize) -> Result<Handover> {
        let shared = Arc::new(Shared::default());
        let for_writer = Arc::clone(&shared);
        let writer = std::thread::Builder::new().name("group-writer".into());
        let writer = writer.spawn(move || write(&for_writer, sink, group_max)).context("no thread")?;
        Ok(Handover { shared, writer: Some(writer) })
    }

    /// One slice with `producers` tasks on the calling thread, each waiting for its acknowledgement.
    ///
    /// # Errors
    /// The system failed.
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
        watch.stop(&mut slice);
        slice.events = slice.latencies_us.len() as u64;
        let after = self.shared.counts();
        slice.groups = after[0] - before[0];
        slice.bytes = after[1] - before[1];
        slice.disk_seconds = (after[2] - before[2]) as f64 / 1e9;
        Ok(slice)
    }

    /// Ends the thread and with it the system.
    ///
    /// # Errors
    /// The system failed.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.shared.arrived.notify_one();
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => anyhow::bail!("the writer panicked"),
            None => Ok(()),
        }
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("a writer failed: {error:#}");
        }
    }
}

async fn produce(shared: Arc<Shared>, watch: Arc<Watch>, mut deltas: Deltas) -> Result<Vec<f32>> {
    let mut latencies = Vec::new();
    while !watch.is_over() {
        let event = deltas.next_keyed();
        let start = Instant::now();
        let (done, acknowledged) = oneshot::channel();
        shared.push(Entry { event, done });
        acknowledged.await.context("the writer ended")?;
        latencies.push(us_since(start));
    }
    Ok(latencies)
}

fn write(shared: &Shared, mut sink: Box<dyn Sink>, group_max: usize) -> Result<()> {
    let (mut group, mut waiting) = (Vec::new(), Vec::new());
    loop {
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.entries.is_empty() {
            if state.over {
                return Ok(());
            }
            state.parked = true;
            state = shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut entries = std::mem::take(&mut state.entries);
        drop(state);
        while !entries.is_empty() {
            group.clear();
            for entry in entries.drain(..entries.len().min(group_max)) {
                group.push(entry.event);
                waiting.push(entry.done);
            }
            let start = Instant::now();
            let bytes = sink.commit(&group)?;
            shared.disk_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            shared.groups.fetch_add(1, Ordering::Relaxed);
            shared.bytes.fetch_add(bytes, Ordering::Relaxed);
            for done in waiting.drain(..) {
                // A producer that is gone needs no answer.
                let _ = done.send(());
            }
        }
    }
}
