//! Tickets: how a producer learns that its unit is durable. One wake a group: the writer publishes the number of the
//! last durable unit and wakes either one dispatcher or the tickets themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::error::{JournalError, Result};

#[derive(Debug, Default)]
struct State {
    /// Units up to this number are decided: durable, or named in `refused`.
    decided: u64,
    refused: HashMap<u64, JournalError>,
    /// Undecided units whose ticket is gone: nobody will fetch their refusal.
    abandoned: BTreeSet<u64>,
    ended: Option<JournalError>,
    waiting: BTreeMap<u64, Waker>,
    dispatcher: Option<Waker>,
    has_dispatcher: bool,
}

/// The cells behind all tickets of one journal.
#[derive(Debug, Default)]
pub(crate) struct Completion(Mutex<State>);

impl Completion {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Units up to `number` are durable, except those of `refused`. Once the journal ended nothing is acknowledged any
    /// more, whatever a writer still had in its hands.
    pub fn decide(&self, number: u64, refused: Vec<(u64, JournalError)>) {
        let mut state = self.lock();
        if state.ended.is_some() {
            return;
        }
        state.decided = state.decided.max(number);
        if state.abandoned.is_empty() {
            state.refused.extend(refused);
        } else {
            let later = state.abandoned.split_off(&(number + 1));
            let abandoned = std::mem::replace(&mut state.abandoned, later);
            state.refused.extend(refused.into_iter().filter(|(number, _)| !abandoned.contains(number)));
        }
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
        let due = take_due(&mut state);
        let dispatcher = state.dispatcher.take();
        drop(state);
        due.into_iter().chain(dispatcher).for_each(Waker::wake);
    }

    fn poll(&self, number: u64, cx: &Context<'_>) -> Poll<Result<()>> {
        let mut state = self.lock();
        if number <= state.decided {
            // Almost always empty, and then not worth a hash.
            let refused = if state.refused.is_empty() { None } else { state.refused.remove(&number) };
            return Poll::Ready(refused.map_or(Ok(()), Err));
        }
        if let Some(error) = &state.ended {
            return Poll::Ready(Err(error.clone()));
        }
        state.waiting.insert(number, cx.waker().clone());
        Poll::Pending
    }

    fn forget(&self, number: u64) {
        let mut state = self.lock();
        state.waiting.remove(&number);
        state.refused.remove(&number);
        if number > state.decided && state.ended.is_none() {
            state.abandoned.insert(number);
        }
    }
}

fn take_due(state: &mut State) -> Vec<Waker> {
    if state.ended.is_some() {
        return std::mem::take(&mut state.waiting).into_values().collect();
    }
    let later = state.waiting.split_off(&(state.decided + 1));
    std::mem::replace(&mut state.waiting, later).into_values().collect()
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
        let due = take_due(&mut state);
        let ended = state.ended.is_some();
        state.dispatcher = Some(cx.waker().clone());
        drop(state);
        due.into_iter().for_each(Waker::wake);
        if ended { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Dispatcher {
    /// Without its dispatcher the tickets are woken one by one again; those that are due now as well.
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_dispatcher = false;
        let due = take_due(&mut state);
        drop(state);
        due.into_iter().for_each(Waker::wake);
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
        completion.decide(3, (1..=3).map(|number| (number, JournalError::Full)).collect());
        tickets[1] = None;
        assert!(matches!(tickets[2].as_mut().and_then(Ticket::try_result), Some(Err(JournalError::Full))));
        tickets[3] = None;
        completion.decide(4, vec![(4, JournalError::Full)]);
        let state = completion.lock();
        assert!(state.refused.is_empty() && state.abandoned.is_empty() && state.waiting.is_empty());
    }
}
