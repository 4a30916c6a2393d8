//! Whether an attempt may start, and what its end means for the execution.
//!
//! One attempt on the first candidate is made today. An attempt's end is not the execution's: a router that tries
//! further candidates belongs between [`may_start`] and [`conclude`], before output and after the lease was given
//! back.

use sealog_events::{PortableCode, Target};
use sealog_execution::Failure;

/// Why an execution was asked to stop; the first cause counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// By a caller or by shutdown.
    Cancelled,
    DeadlineExceeded,
}

impl StopCause {
    pub(crate) fn to_failure(self) -> Failure {
        match self {
            StopCause::Cancelled => Failure::cancelled(),
            StopCause::DeadlineExceeded => {
                Failure::outcome_unknown(PortableCode::DeadlineExceeded, "Execution deadline was exceeded")
            }
        }
    }
}

/// How an execution ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed(Target),
    Failed {
        failure: Failure,
        /// The status is `cancelled` instead of `failed`.
        cancelled: bool,
    },
}

/// Whether the next attempt may start `elapsed_ms` after routing began. The budget never interrupts an attempt.
///
/// # Errors
/// The retry budget is used up.
pub(crate) fn may_start(elapsed_ms: u64, retry_budget_ms: Option<u64>) -> Result<(), Failure> {
    if retry_budget_ms.is_some_and(|budget| elapsed_ms >= budget) {
        return Err(Failure::transient(PortableCode::ProviderUnavailable, "Retry budget is exhausted"));
    }
    Ok(())
}

/// What the attempt's end makes of the execution. A completion wins over a stop; a stop wins over the provider's
/// own failure; exposed output makes a failure final.
pub(crate) fn conclude(
    end: Result<Target, Failure>,
    stop: Option<StopCause>,
    output_exposed: bool,
) -> Ending {
    match (end, stop) {
        (Ok(target), _) => Ending::Completed(target),
        (Err(_), Some(cause)) => failed(cause.to_failure()),
        (Err(failure), None) if output_exposed => failed(failure.after_output()),
        (Err(failure), None) => failed(failure),
    }
}

/// Ends the execution with exactly this failure.
pub(crate) fn failed(failure: Failure) -> Ending {
    let cancelled = failure.code == PortableCode::Cancelled;
    Ending::Failed { failure, cancelled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        end: Result<(), Failure>,
        stop: Option<StopCause>,
        output_exposed: bool,
        expected: Option<(PortableCode, bool, bool)>,
    ) {
        let target = Target { provider: "p".to_owned(), model: "m".to_owned() };
        let ending = match conclude(end.map(|()| target), stop, output_exposed) {
            Ending::Completed(_) => None,
            Ending::Failed { failure, cancelled } => Some((failure.code, failure.retryable(), cancelled)),
        };
        assert_eq!(ending, expected);
    }

    #[test]
    fn the_table_of_endings() {
        use PortableCode::{Cancelled, DeadlineExceeded, ProviderUnavailable};
        let busy = || Err(Failure::transient(ProviderUnavailable, "m"));
        let stops = [None, Some(StopCause::Cancelled), Some(StopCause::DeadlineExceeded)];
        for stop in stops {
            check(Ok(()), stop, true, None);
            check(Ok(()), stop, false, None);
        }
        check(busy(), None, false, Some((ProviderUnavailable, true, false)));
        check(busy(), None, true, Some((ProviderUnavailable, false, false)));
        for output in [false, true] {
            check(busy(), Some(StopCause::Cancelled), output, Some((Cancelled, false, true)));
            check(busy(), Some(StopCause::DeadlineExceeded), output, Some((DeadlineExceeded, false, false)));
            check(Err(Failure::cancelled()), None, output, Some((Cancelled, false, true)));
        }
    }

    #[test]
    fn the_budget_is_checked_before_an_attempt() {
        assert!(may_start(u64::MAX, None).is_ok());
        assert!(may_start(9, Some(10)).is_ok());
        let refused = may_start(10, Some(10)).unwrap_err();
        assert_eq!((refused.code, refused.retryable()), (PortableCode::ProviderUnavailable, true));
    }
}
