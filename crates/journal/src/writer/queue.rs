//! Units on their way to the writer: bounded in bytes and number, with permits of their own for what must never be
//! refused.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::error::JournalError;
use crate::record::Unit;

/// How a unit is treated when there is little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Refused at once when the queue is full.
    Create,
    /// Waits for the queue; refused when the disk is full.
    Ordinary,
    /// Never refused for lack of room in the queue. On the disk entitled to the reserve but not to what it keeps for
    /// the ends of open streams; refused when only that is left, to be tried again later.
    Forget,
    /// Terminal, cancel and recovery units: never refused for lack of room in the queue, and entitled to the reserve
    /// on the disk.
    Reserved,
}

#[derive(Debug)]
pub(crate) struct Queued {
    pub unit: Unit,
    pub number: u64,
    pub bytes: usize,
    pub admission: Admission,
}

#[derive(Debug)]
struct State {
    units: VecDeque<Queued>,
    bytes: usize,
    next_number: u64,
    ended: Option<JournalError>,
    closing: bool,
    parked: bool,
    /// A parked writer sleeps until so many units are there.
    wanted: usize,
    waiters: Vec<Waker>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    bytes_max: usize,
    units_max: usize,
    state: Mutex<State>,
    arrived: Condvar,
    /// Units inside, changed under the lock and read without it: the writer looks often while it gathers.
    depth: AtomicUsize,
}

/// Why a unit did not enter.
#[derive(Debug)]
pub(crate) enum NotQueued {
    /// No room now; the unit comes back.
    Busy(Unit),
    Ended(JournalError),
}

impl Queue {
    pub fn new(bytes_max: usize, units_max: usize) -> Queue {
        let state = State {
            units: VecDeque::new(),
            bytes: 0,
            next_number: 1,
            ended: None,
            closing: false,
            parked: false,
            wanted: 1,
            waiters: Vec::new(),
        };
        Queue {
            bytes_max,
            units_max,
            state: Mutex::new(state),
            arrived: Condvar::new(),
            depth: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a unit in and gives its number. `waker` is kept when there is no room.
    pub fn push(
        &self,
        unit: Unit,
        admission: Admission,
        waker: Option<&Waker>,
    ) -> std::result::Result<u64, NotQueued> {
        let bytes = unit.encoded_bytes_max();
        let mut state = self.lock();
        if let Some(error) = &state.ended {
            return Err(NotQueued::Ended(error.clone()));
        }
        if state.closing {
            return Err(NotQueued::Ended(JournalError::Closed));
        }
        let full = !state.units.is_empty()
            && (state.bytes + bytes > self.bytes_max || state.units.len() >= self.units_max);
        let refusable = match admission {
            Admission::Create | Admission::Ordinary => true,
            Admission::Forget | Admission::Reserved => false,
        };
        if full && refusable {
            state.waiters.extend(waker.cloned());
            return Err(NotQueued::Busy(unit));
        }
        let number = state.next_number;
        state.next_number += 1;
        state.bytes += bytes;
        state.units.push_back(Queued { unit, number, bytes, admission });
        self.depth.store(state.units.len(), Ordering::Relaxed);
        let wake = state.parked && state.units.len() >= state.wanted;
        if wake {
            state.parked = false;
        }
        drop(state);
        if wake {
            self.arrived.notify_one();
        }
        Ok(number)
    }

    /// The units of the next group: as many as surely stay below `bytes_soft`, at least one if there is any.
    pub fn take(&self, bytes_soft: usize, records_max: usize) -> Vec<Queued> {
        let mut state = self.lock();
        let (mut bytes, mut records) = (0, 0);
        let mut count = 0;
        for queued in &state.units {
            bytes += queued.bytes;
            records += queued.unit.records.len();
            if count > 0 && (bytes > bytes_soft || records > records_max) {
                break;
            }
            count += 1;
        }
        let group: Vec<Queued> = state.units.drain(..count).collect();
        self.depth.store(state.units.len(), Ordering::Relaxed);
        state.bytes -= group.iter().map(|queued| queued.bytes).sum::<usize>();
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
        group
    }

    /// Units waiting now.
    pub fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Waits until so many units are there, the queue is closing, or the time is over.
    pub fn wait(&self, wanted: usize, timeout: Duration) -> Wait {
        let mut state = self.lock();
        if state.units.len() < wanted && !state.closing && state.ended.is_none() {
            state.parked = true;
            state.wanted = wanted;
            state = match self.arrived.wait_timeout(state, timeout) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
            state.parked = false;
        }
        match (state.units.is_empty(), state.closing || state.ended.is_some()) {
            (false, _) => Wait::Units,
            (true, true) => Wait::Closing,
            (true, false) => Wait::Nothing,
        }
    }

    /// No new units; those inside are still written.
    pub fn close(&self) {
        self.lock().closing = true;
        self.arrived.notify_all();
    }

    /// No new units, and those inside are dropped: their tickets end with the same error.
    pub fn end(&self, error: JournalError) {
        let mut state = self.lock();
        state.ended.get_or_insert(error);
        state.units.clear();
        self.depth.store(0, Ordering::Relaxed);
        state.bytes = 0;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        self.arrived.notify_all();
        waiters.into_iter().for_each(Waker::wake);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Units,
    Nothing,
    Closing,
}
