//! Leases: something held for the length of an attempt and given back exactly once, and the gate that hands out
//! a bounded number of them in the order they were asked for.
//!
//! Owns capacity bookkeeping. Must never decide what a refused caller is told.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Gives its resource back exactly once: by [`Lease::release`] or when dropped, whichever comes first.
pub struct Lease {
    release: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Lease {
    /// A lease that runs `release` once at its end.
    pub fn new(release: impl FnOnce() + Send + Sync + 'static) -> Lease {
        Lease { release: Some(Box::new(release)) }
    }

    /// Gives the resource back now.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lease")
    }
}

/// The gate has neither a free place nor room in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gate is full")]
pub struct GateFull;

/// How many leases are out and how many callers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateCounts {
    pub active: usize,
    pub queued: usize,
}

/// At most `concurrency` leases at a time, at most `queue` callers waiting, first come first served.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Shared>,
}

struct Shared {
    concurrency: usize,
    queue: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    active: usize,
    ticket_next: u64,
    /// A place is handed over by sending to the front waiter; `active` counts it from then on.
    waiters: VecDeque<(u64, oneshot::Sender<()>)>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, and the counts are consistent between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a place that became free to the first waiter that still listens.
    fn give_back(&self) {
        let mut state = self.state();
        while let Some((_, waiter)) = state.waiters.pop_front() {
            if waiter.send(()).is_ok() {
                return;
            }
        }
        state.active -= 1;
    }
}

impl Gate {
    /// A gate for `concurrency` (at least 1) leases and `queue` waiters.
    pub fn new(concurrency: usize, queue: usize) -> Gate {
        let shared = Shared { concurrency: concurrency.max(1), queue, state: Mutex::default() };
        Gate { shared: Arc::new(shared) }
    }

    /// A lease if a place is free and nobody waits.
    ///
    /// # Errors
    /// No place is free.
    pub fn try_acquire(&self) -> Result<Lease, GateFull> {
        let mut state = self.shared.state();
        if state.active >= self.shared.concurrency || !state.waiters.is_empty() {
            return Err(GateFull);
        }
        state.active += 1;
        drop(state);
        Ok(self.lease())
    }

    /// A lease, after waiting in the queue if need be. Dropping the future leaves the queue at once.
    ///
    /// # Errors
    /// No place is free and the queue is full.
    pub async fn acquire(&self) -> Result<Lease, GateFull> {
        let waiting = {
            let mut state = self.shared.state();
            if state.active < self.shared.concurrency && state.waiters.is_empty() {
                state.active += 1;
                return Ok(self.lease());
            }
            if state.waiters.len() >= self.shared.queue {
                return Err(GateFull);
            }
            let (sender, receiver) = oneshot::channel();
            let ticket = state.ticket_next;
            state.ticket_next += 1;
            state.waiters.push_back((ticket, sender));
            Waiting { gate: self.clone(), ticket, receiver: Some(receiver) }
        };
        waiting.wait().await
    }

    pub fn counts(&self) -> GateCounts {
        let state = self.shared.state();
        GateCounts { active: state.active, queued: state.waiters.len() }
    }

    /// Wraps a place that is already counted.
    fn lease(&self) -> Lease {
        let shared = Arc::clone(&self.shared);
        Lease::new(move || shared.give_back())
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts().fmt(f)
    }
}

/// A place in the queue. Dropped before it was served it leaves the queue, and passes on a place that was handed
/// to it in the same moment.
struct Waiting {
    gate: Gate,
    ticket: u64,
    receiver: Option<oneshot::Receiver<()>>,
}

impl Waiting {
    async fn wait(mut self) -> Result<Lease, GateFull> {
        let Some(receiver) = self.receiver.as_mut() else { return Err(GateFull) };
        let served = receiver.await.is_ok();
        self.receiver = None;
        if served { Ok(self.gate.lease()) } else { Err(GateFull) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(mut receiver) = self.receiver.take() else { return };
        let mut state = self.gate.shared.state();
        state.waiters.retain(|(ticket, _)| *ticket != self.ticket);
        drop(state);
        if receiver.try_recv().is_ok() {
            self.gate.shared.give_back();
        }
    }
}

#[cfg(test)]
mod tests;
