//! Where hyper runs the streams of an HTTP/2 connection: counted, and gone when the server gives up.

use std::future::Future;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[derive(Debug, Clone)]
pub(crate) struct TrackedExecutor {
    pub tasks: TaskTracker,
    pub kill: CancellationToken,
}

impl<F> hyper::rt::Executor<F> for TrackedExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let kill = self.kill.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = kill.cancelled() => {}
                _ = stream => {}
            }
        });
    }
}
