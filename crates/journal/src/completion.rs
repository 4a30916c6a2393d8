//! Tickets: how a producer learns that its unit is durable. One wake a group: the writer publishes the number of the
//! last durable unit and wakes either one dispatcher or the tickets themselves.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::error::{JournalError, Result};
use crate::writer::queue::Queued;

/// A dispatcher that does not come back to its runtime must not make the journal's memory grow.
const SPENT_GROUPS_MAX: usize = 4;

#[derive(Debug, Default)]
struct State {
    refused: HashMap<u64, JournalError>,
    /// Undecided units whose ticket is gone: nobody will fetch their refusal.
    abandoned: BTreeSet<u64>,
    ended: Option<JournalError>,
    waiting: Waiting,
    /// Units that were written, for the dispatcher to let go of: it runs where most of them were made, and memory
    /// costs least where it is given back by who took it.
    spent: Vec<Vec<Queued>>,
    dispatcher: Option<Waker>,
    has_dispatcher: bool,
}

/// Who waits, by the number of the unit. Numbers are given in order and decided in order, so this is a window.
#[derive(Debug)]
struct Waiting {
    /// The number of the first place.
    first: u64,
    wakers: VecDeque<Option<Waker>>,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting { first: 1, wakers: VecDeque::new() }
    }
}

impl Waiting {
    /// The place of an undecided unit.
    fn at(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).map(|at| at as usize)
    }

    fn put(&mut self, number: u64, waker: &Waker) {
        let Some(at) = self.at(number) else { return };
        if at >= self.wakers.len() {
            self.wakers.resize(at + 1, None);
        }
        match &mut self.wakers[at] {
            Some(held) => held.clone_from(waker),
            free => *free = Some(waker.clone()),
        }
    }

    fn remove(&mut self, number: u64) {
        let place = self.at(number).and_then(|at| self.wakers.get_mut(at));
        place.map(Option::take);
    }

    /// Those up to this number, in order.
    fn take_through(&mut self, number: u64) -> Vec<Waker> {
        let Some(last) = self.at(number) else { return Vec::new() };
        self.first = number + 1;
        self.wakers.drain(..(last + 1).min(self.wakers.len())).flatten().collect()
    }

    fn take_all(&mut self) -> Vec<Waker> {
        self.first += self.wakers.len() as u64;
        self.wakers.drain(..).flatten().collect()
    }
}

/// The cells behind all tickets of one journal.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    state: Mutex<State>,
    /// Units up to this number are decided: durable, or named in `refused`. Changed under the lock, after `refused`;
    /// read without it by every ticket that was woken.
    decided: AtomicU64,
    /// Whether `refused` holds anything.
    any_refused: AtomicBool,
}

impl Completion {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Units up to `number` are durable, except those of `refused`. Once the journal ended nothing is acknowledged any
    /// more, whatever a writer still had in its hands.
    pub fn decide(&self, number: u64, refused: Vec<(u64, JournalError)>, spent: Vec<Queued>) {
        let mut state = self.lock();
        if state.ended.is_some() {
            return;
        }
        if state.abandoned.is_empty() {
            state.refused.extend(refused);
        } else {
            let later = state.abandoned.split_off(&(number + 1));
            let abandoned = std::mem::replace(&mut state.abandoned, later);
            state.refused.extend(refused.into_iter().filter(|(number, _)| !abandoned.contains(number)));
        }
        if state.has_dispatcher && state.spent.len() < SPENT_GROUPS_MAX {
            state.spent.push(spent);
        }
        self.any_refused.store(!state.refused.is_empty(), Ordering::Relaxed);
        // Whoever sees this number sees whether there is a refusal to look for.
        self.decided.fetch_max(number, Ordering::Release);
        self.wake(state);
    }

    /// Nothing undecided will be decided any more.
    pub fn end(&self, error: JournalError) {
        let mut state = self.lock();
        state.ended.get_or_insert(error);
        self.wake(state);
    }

    /// Wakes outside the lock: the dispatcher alone, or every due ticket in journal order.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if state.has_dispatcher && state.ended.is_none() {
            let dispatcher = state.dispatcher.take();
            drop(state);
            if let Some(waker) = dispatcher {
                waker.wake();
            }
            return;
        }
        let due = self.take_due(&mut state);
        let dispatcher = state.dispatcher.take();
        drop(state);
        due.into_iter().chain(dispatcher).for_each(Waker::wake);
    }

    fn take_due(&self, state: &mut State) -> Vec<Waker> {
        if state.ended.is_some() {
            return state.waiting.take_all();
        }
        state.waiting.take_through(self.decided.load(Ordering::Relaxed))
    }

    fn is_decided(&self, number: u64) -> bool {
        number <= self.decided.load(Ordering::Acquire)
    }

    fn poll(&self, number: u64, cx: &Context<'_>) -> Poll<Result<()>> {
        if self.is_decided(number) && !self.any_refused.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let mut state = self.lock();
        if self.is_decided(number) {
            let refused = state.refused.remove(&number);
            self.any_refused.store(!state.refused.is_empty(), Ordering::Relaxed);
            return Poll::Ready(refused.map_or(Ok(()), Err));
        }
        if let Some(error) = &state.ended {
            return Poll::Ready(Err(error.clone()));
        }
        state.waiting.put(number, cx.waker());
        Poll::Pending
    }

    fn forget(&self, number: u64) {
        let mut state = self.lock();
        state.waiting.remove(number);
        if state.refused.remove(&number).is_some() {
            self.any_refused.store(!state.refused.is_empty(), Ordering::Relaxed);
        }
        if !self.is_decided(number) && state.ended.is_none() {
            state.abandoned.insert(number);
        }
    }
}

/// Resolves when the unit is durable (`Ok`), was refused, or can no longer become durable. Dropping it does not
/// take the unit back.
#[derive(Debug)]
#[must_use = "nothing is durable before the ticket says so"]
pub struct Ticket {
    completion: Arc<Completion>,
    number: u64,
    result: Option<Result<()>>,
}

impl Ticket {
    pub(crate) fn new(completion: Arc<Completion>, number: u64) -> Ticket {
        Ticket { completion, number, result: None }
    }

    /// Blocks this thread until the ticket resolves. Only with a writer on another thread.
    ///
    /// # Errors
    /// As the future's output.
    pub fn wait(mut self) -> Result<()> {
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut cx) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    /// The result if there is one already; it does not change any more.
    pub fn try_result(&mut self) -> Option<Result<()>> {
        match Pin::new(self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

impl Future for Ticket {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(result) = &self.result {
            return Poll::Ready(result.clone());
        }
        let result = self.completion.poll(self.number, cx);
        if let Poll::Ready(result) = &result {
            self.result = Some(result.clone());
        }
        result
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.result.is_none() {
            self.completion.forget(self.number);
        }
    }
}

/// Wakes due tickets from the runtime that runs it, so that the writer wakes one task a group. Runs until the
/// journal ends.
#[derive(Debug)]
pub struct Dispatcher(Arc<Completion>);

impl Dispatcher {
    pub(crate) fn new(completion: Arc<Completion>) -> Dispatcher {
        completion.lock().has_dispatcher = true;
        Dispatcher(completion)
    }
}

impl Future for Dispatcher {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        let due = self.0.take_due(&mut state);
        let spent = std::mem::take(&mut state.spent);
        let ended = state.ended.is_some();
        state.dispatcher = Some(cx.waker().clone());
        drop(state);
        due.into_iter().for_each(Waker::wake);
        drop(spent);
        if ended { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Dispatcher {
    /// Without its dispatcher the tickets are woken one by one again; those that are due now as well.
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_dispatcher = false;
        let due = self.0.take_due(&mut state);
        let spent = std::mem::take(&mut state.spent);
        drop(state);
        due.into_iter().for_each(Waker::wake);
        drop(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_nobody_fetches_is_not_kept() {
        let completion = Arc::new(Completion::default());
        let mut tickets: Vec<_> =
            (1..=4).map(|number| Some(Ticket::new(Arc::clone(&completion), number))).collect();
        tickets[0] = None;
        completion.decide(3, (1..=3).map(|number| (number, JournalError::Full)).collect(), Vec::new());
        tickets[1] = None;
        assert!(matches!(tickets[2].as_mut().and_then(Ticket::try_result), Some(Err(JournalError::Full))));
        tickets[3] = None;
        completion.decide(4, vec![(4, JournalError::Full)], Vec::new());
        let state = completion.lock();
        assert!(state.refused.is_empty() && state.abandoned.is_empty());
        assert!(!completion.any_refused.load(Ordering::Relaxed));
        assert!(state.waiting.wakers.iter().all(Option::is_none));
    }

    #[derive(Default)]
    struct Counted(AtomicU64);
    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_ticket_is_woken_once_and_only_when_it_is_due() {
        let completion = Arc::new(Completion::default());
        let counted: Vec<_> = (0..4).map(|_| Arc::new(Counted::default())).collect();
        let woken = || counted.iter().map(|counted| counted.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let mut tickets: Vec<_> =
            (1..=4).map(|number| Ticket::new(Arc::clone(&completion), number)).collect();
        // The last one first, and one of them twice: a window with holes.
        for at in [3, 0, 2, 0] {
            let waker = Waker::from(Arc::clone(&counted[at]));
            assert!(Pin::new(&mut tickets[at]).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        completion.decide(2, vec![(1, JournalError::Full)], Vec::new());
        assert_eq!(woken(), [1, 0, 0, 0]);
        assert!(matches!(tickets[0].try_result(), Some(Err(JournalError::Full))));
        assert!(matches!(tickets[1].try_result(), Some(Ok(()))));
        assert!(tickets[2].try_result().is_none());
        let waker = Waker::from(Arc::clone(&counted[2]));
        assert!(Pin::new(&mut tickets[2]).poll(&mut Context::from_waker(&waker)).is_pending());
        completion.end(JournalError::Closed);
        assert_eq!(woken(), [1, 0, 1, 1]);
        assert!(matches!(tickets[3].try_result(), Some(Err(JournalError::Closed))));
    }

    #[test]
    fn a_dispatcher_takes_what_was_decided_before_it_came() {
        let completion = Arc::new(Completion::default());
        let counted = Arc::new(Counted::default());
        let waker = Waker::from(Arc::clone(&counted));
        let mut early = Dispatcher::new(Arc::clone(&completion));
        let mut tickets: Vec<_> =
            (1..=3).map(|number| Ticket::new(Arc::clone(&completion), number)).collect();
        for ticket in &mut tickets {
            assert!(Pin::new(ticket).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        completion.decide(1, Vec::new(), Vec::new());
        completion.decide(2, Vec::new(), Vec::new());
        assert_eq!(counted.0.load(Ordering::Relaxed), 0, "only the dispatcher wakes");
        assert!(Pin::new(&mut early).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(counted.0.load(Ordering::Relaxed), 2);
        drop(early);
        completion.decide(3, Vec::new(), Vec::new());
        assert_eq!(counted.0.load(Ordering::Relaxed), 3);
    }
}
