//! A future that finishes even if whoever asked for it goes away.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::future::BoxFuture;
use tokio::runtime::Handle;

/// Runs in the caller; when dropped after it began, it goes on in a task of its own. A unit that was submitted is
/// committed whether or not anybody waits, so what it makes visible must be made visible, too.
pub(crate) struct Finish<T: Send + 'static> {
    work: Option<BoxFuture<'static, T>>,
    begun: bool,
}

impl<T: Send + 'static> Finish<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Finish<T> {
        Finish { work: Some(Box::pin(work)), begun: false }
    }
}

impl<T: Send + 'static> Future for Finish<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.begun = true;
        let Some(work) = self.work.as_mut() else { return Poll::Pending };
        let output = std::task::ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Finish<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take().filter(|_| self.begun)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}
