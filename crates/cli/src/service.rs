//! What the service manager is told: that a start takes long, that the node serves, that it stops, and that its writer
//! lives.
//!
//! Without `NOTIFY_SOCKET` nobody is told anything. What cannot be told changes nothing: the node is more than its
//! notes.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sd_notify::NotifyState;
use sealog_engine::store::journal::JournalStore;
use sealog_journal::Health;

/// How often a start asks for more time, and how much.
const EXTEND_EVERY: Duration = Duration::from_secs(20);
const EXTEND_BY_US: u32 = 90_000_000;

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(kind = ?error.kind(), "the service manager cannot be told");
    }
}

/// Asks for more time until it is dropped: recovering a large journal takes as long as it takes.
#[derive(Debug)]
pub struct Starting {
    over: Arc<(Mutex<bool>, Condvar)>,
}

impl Starting {
    pub fn begin() -> Starting {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let shared = Arc::clone(&over);
        let extend = move || {
            let (over, changed) = &*shared;
            let mut is_over = over.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_over {
                tell(&[
                    NotifyState::ExtendTimeoutUsec(EXTEND_BY_US),
                    NotifyState::Status("recovering the journal"),
                ]);
                let waited = changed.wait_timeout_while(is_over, EXTEND_EVERY, |is_over| !*is_over);
                is_over = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        // Without it a long start may be killed by the service manager; the next one begins anew.
        if let Err(error) = thread::Builder::new().name("starting".into()).spawn(extend) {
            tracing::warn!(kind = ?error.kind(), "the service manager is not asked for more time");
        }
        Starting { over }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let (over, changed) = &*self.over;
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }
}

/// The node serves at `place`.
pub fn ready(place: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(&format!("listening on {place}"))]);
}

/// The node was asked to stop.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Feeds the watchdog while the writer lives; inside a tokio runtime, until it is shut down.
pub fn watch(store: Arc<JournalStore>) {
    let Some(interval) = sd_notify::watchdog_enabled() else { return };
    tokio::spawn(async move {
        loop {
            if is_alive(store.health()) {
                tell(&[NotifyState::Watchdog]);
            }
            tokio::time::sleep(interval / 3).await;
        }
    });
}

/// A disk that is full is no reason to start anew, and neither is a stop; a sync that hangs or a writer that gave up is.
fn is_alive(health: Health) -> bool {
    match health {
        Health::Ready | Health::Full | Health::Closed => true,
        Health::Stalled | Health::Poisoned { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_writer_that_cannot_go_on_starves_the_watchdog() {
        let states =
            [Health::Ready, Health::Full, Health::Closed, Health::Stalled, Health::Poisoned { cause: "x" }];
        assert_eq!(states.map(is_alive), [true, true, true, false, false]);
    }
}
