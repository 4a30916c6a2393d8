//! The one way to ask an execution to stop: a cause, set once, and the abort signal that follows it.

use std::sync::OnceLock;

use sealog_execution::AbortSignal;

use crate::model::attempt::StopCause;

/// Shared by whoever may stop an execution and the driver that obeys.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    cause: OnceLock<StopCause>,
    abort: AbortSignal,
}

impl Stop {
    /// Sets the cause unless one is set, then the signal. The order matters: whoever sees the signal finds the
    /// cause.
    pub(crate) fn fire(&self, cause: StopCause) {
        // A second cause changes nothing: the first one ended the execution.
        let _ = self.cause.set(cause);
        self.abort.cancel();
    }

    pub(crate) fn cause(&self) -> Option<StopCause> {
        self.cause.get().copied()
    }

    /// The signal that providers of this execution derive theirs from.
    pub(crate) fn abort(&self) -> &AbortSignal {
        &self.abort
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_wins() {
        let stop = Stop::default();
        assert_eq!(stop.cause(), None);
        stop.fire(StopCause::DeadlineExceeded);
        stop.fire(StopCause::Cancelled);
        assert_eq!(stop.cause(), Some(StopCause::DeadlineExceeded));
        assert!(stop.abort().is_cancelled());
    }
}
