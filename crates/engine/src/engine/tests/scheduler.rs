//! A seeded scheduler: while a seed is set on a thread, each task that is started there is passed over at polls that the
//! seed chooses. On one thread with a paused clock the seed then decides every order in which tasks meet.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sealog_disk::testing::SeededEntropy;

thread_local! {
    static DRAWS: RefCell<Option<SeededEntropy>> = const { RefCell::new(None) };
}

/// Shuffles what is started on this thread, until dropped.
pub(crate) struct Shuffling(());

impl Shuffling {
    pub(crate) fn with(seed: u64) -> Shuffling {
        DRAWS.with(|draws| draws.replace(Some(SeededEntropy::new(seed))));
        Shuffling(())
    }
}

impl Drop for Shuffling {
    fn drop(&mut self) {
        DRAWS.with(|draws| draws.replace(None));
    }
}

/// The task as the scheduler of this thread runs it.
pub(crate) fn scheduled<F: Future>(task: F) -> Scheduled<F> {
    Scheduled { task: Box::pin(task) }
}

pub(crate) struct Scheduled<F> {
    task: Pin<Box<F>>,
}

impl<F: Future> Future for Scheduled<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let passed_over =
            DRAWS.with(|draws| draws.borrow().as_ref().is_some_and(|draws| draws.draw().is_multiple_of(3)));
        if passed_over {
            // Behind whoever is ready now.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.task.as_mut().poll(cx)
    }
}
