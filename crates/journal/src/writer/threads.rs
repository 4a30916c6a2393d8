//! The threads of a running journal: the writer, its helper, and the one for what may take its time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::background::Background;
use crate::error::{JournalError, Result};
use crate::shared::{Shared, lock};
use crate::writer::core::{Core, Turn};
use crate::writer::maintain::Maintenance;
use crate::writer::queue::Wait;

const PARK: Duration = Duration::from_secs(3600);
const HELPER_PAUSE: Duration = Duration::from_millis(25);
/// Between two steps of filling: 256 KiB each 2 ms is 128 MB/s, about twice what a busy node appends.
const FILL_PAUSE: Duration = Duration::from_millis(2);

/// Gathering waits only for producers that the writer has itself just woken: it stops when none came for this
/// long, after the cap, or once so many units are queued.
const GATHER_IDLE: Duration = Duration::from_micros(20);
const GATHER_CAP: Duration = Duration::from_micros(100);
const GATHER_ENOUGH: usize = 64;

#[derive(Debug)]
pub(crate) struct Threads {
    writer: Option<JoinHandle<()>>,
    helper: Option<JoinHandle<()>>,
    background: Option<JoinHandle<()>>,
}

impl Threads {
    pub fn start(
        shared: &Arc<Shared>,
        core: &Arc<Mutex<Core>>,
        background: &Arc<Mutex<Background>>,
    ) -> Result<Threads> {
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            Builder::new()
                .name(name.into())
                .spawn(work)
                .map_err(|_| JournalError::Misuse("no thread could be started"))
        };
        let (for_writer, core) = (Arc::clone(shared), Arc::clone(core));
        let writer = spawn("journal-writer", Box::new(move || write(&for_writer, &core)))?;
        let for_helper = Arc::clone(shared);
        let helper = spawn("journal-helper", Box::new(move || help(&for_helper)))?;
        let (for_background, background) = (Arc::clone(shared), Arc::clone(background));
        let tend = move || lock(&background).run(&for_background);
        let background = spawn("journal-background", Box::new(tend))?;
        Ok(Threads { writer: Some(writer), helper: Some(helper), background: Some(background) })
    }

    pub fn join(&mut self) {
        let threads = [self.writer.take(), self.helper.take(), self.background.take()];
        for thread in threads.into_iter().flatten() {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("a thread of the journal panicked");
            }
        }
    }
}

/// A panic of the writer poisons: nobody knows how far its frame came.
struct PoisonOnPanic<'a>(&'a Shared);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison("the writer panicked");
        }
    }
}

fn write(shared: &Shared, core: &Mutex<Core>) {
    let _guard = PoisonOnPanic(shared);
    let mut expected = 0;
    loop {
        match shared.queue.wait(PARK) {
            Wait::Units => {
                gather(shared, expected);
                let turn = lock(core).turn();
                expected = match turn {
                    Turn::Idle | Turn::Decided(..=1) => 0,
                    // Who was just woken, and who came meanwhile: to wait only for as many as the last group held
                    // would settle into two groups that alternate.
                    Turn::Decided(woken) => woken + shared.queue.depth(),
                    Turn::Ended => return,
                };
            }
            Wait::Nothing => expected = 0,
            Wait::Closing => return,
        }
    }
}

/// Avoids two half groups that alternate: gives the producers just woken a moment to come back.
fn gather(shared: &Shared, expected: usize) {
    let enough = expected.min(GATHER_ENOUGH);
    let mut seen = shared.queue.depth();
    if seen >= enough {
        return;
    }
    let start = Instant::now();
    let mut last_arrival = start;
    while seen < enough {
        std::thread::yield_now();
        let (now, depth) = (Instant::now(), shared.queue.depth());
        if depth > seen {
            (seen, last_arrival) = (depth, now);
        }
        if now - last_arrival > GATHER_IDLE || now - start > GATHER_CAP {
            return;
        }
    }
}

fn help(shared: &Shared) {
    let _guard = PoisonOnPanic(shared);
    let mut maintenance = Maintenance::default();
    while !shared.stop_helper.load(Ordering::Acquire) && shared.poisoned().is_none() {
        let more = maintenance.tick(shared);
        std::thread::park_timeout(if more { FILL_PAUSE } else { HELPER_PAUSE });
    }
}
