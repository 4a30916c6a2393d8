//! The threads of a running journal: the writer, its helper, and the one for what may take its time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::background::Background;
use crate::error::{JournalError, Result};
use crate::shared::{Shared, lock};
use crate::writer::core::{Core, Turn};
use crate::writer::maintain::Maintenance;
use crate::writer::queue::{Queue, Wait};

const PARK: Duration = Duration::from_secs(3600);
const HELPER_PAUSE: Duration = Duration::from_millis(25);
/// Between two steps of filling: 256 KiB each 2 ms is 128 MB/s, about twice what a busy node appends.
const FILL_PAUSE: Duration = Duration::from_millis(2);

/// Gathering waits only for producers that the writer has itself just woken: it stops once so many units are queued,
/// or after this time, to which the kernel adds some 50 us of its own. Enough is what keeps the disk and the producers
/// busy at the same time: with a quick disk to wait for all of 64 was slower, with a slower one to wait for 24
/// (docs/performance.md).
const GATHER_ENOUGH: usize = 48;
const GATHER_CAP: Duration = Duration::from_micros(50);
/// Gathers that are left out after one that waited in vain; doubled each time that happens again.
const GATHER_SKIP_MAX: u32 = 64;

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
            Builder::new().name(name.into()).spawn(work).map_err(|_| JournalError::NoThreads)
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
    let mut gathering = Gathering::default();
    loop {
        match shared.queue.wait(1, PARK) {
            Wait::Units => {
                gathering.wait(&shared.queue);
                let turn = lock(core).turn();
                gathering.expected = match turn {
                    Turn::Idle | Turn::Decided(..=1) => 0,
                    // Who was just woken, and who came meanwhile: to wait only for as many as the last group held
                    // would settle into two groups that alternate.
                    Turn::Decided(woken) => woken + shared.queue.depth(),
                    Turn::Ended => return,
                };
            }
            Wait::Nothing => gathering.expected = 0,
            Wait::Closing => return,
        }
    }
}

/// Avoids two half groups that alternate: gives the producers just woken a moment to come back. The writer sleeps
/// meanwhile, until the last of them that it waits for wakes it: the producers may need its processor. (To yield it
/// in a loop is worse on a busy machine: since Linux 6.18 each `sched_yield` costs the caller its place in the queue.)
#[derive(Debug, Default)]
struct Gathering {
    expected: usize,
    /// So many gathers are left out, and so many at the next failure: producers that have other things to do
    /// between two units cost a commit its latency once in a while, not each time.
    skip: u32,
    skip_next: u32,
}

impl Gathering {
    fn wait(&mut self, queue: &Queue) {
        let enough = self.expected.min(GATHER_ENOUGH);
        if queue.depth() >= enough {
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        queue.wait(enough, GATHER_CAP);
        if queue.depth() >= enough {
            self.skip_next = 0;
        } else {
            self.skip_next = (self.skip_next * 2).clamp(1, GATHER_SKIP_MAX);
            self.skip = self.skip_next;
        }
    }
}

fn help(shared: &Shared) {
    let _guard = PoisonOnPanic(shared);
    shared.helper.get_or_init(std::thread::current);
    let mut maintenance = Maintenance::default();
    while !shared.stop_helper.load(Ordering::Acquire) && shared.poisoned().is_none() {
        let more = maintenance.tick(shared);
        std::thread::park_timeout(if more { FILL_PAUSE } else { HELPER_PAUSE });
    }
}
