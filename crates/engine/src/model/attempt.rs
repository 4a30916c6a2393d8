//! Whether an attempt may start, whether another one may follow it, and what its end means for the execution.
//!
//! An attempt's end is not the execution's: between [`Allowance::may_start`] and [`conclude`] further candidates are
//! tried, each once, only before output, and only after the lease of the one before was given back. Nothing is
//! remembered from one execution to the next.

use sealog_events::{PortableCode, StopReason, Target};
use sealog_execution::{Failure, Routing};

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

/// An attempt that the provider completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) target: Target,
    /// What the provider said about it, if anything.
    pub(crate) stop_reason: Option<StopReason>,
}

/// How an execution ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed(Completion),
    Failed {
        failure: Failure,
        /// The status is `cancelled` instead of `failed`.
        cancelled: bool,
    },
}

/// What a request allows in the way of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// At least 1; never more than there are candidates, unless there is none.
    attempts: usize,
    retry_budget_ms: Option<u64>,
}

/// How an attempt failed, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedAttempt<'a> {
    /// From 1.
    pub(crate) number: u32,
    pub(crate) failure: &'a Failure,
    pub(crate) stop: Option<StopCause>,
    /// By this attempt or one before it.
    pub(crate) output_exposed: bool,
    /// Since routing began.
    pub(crate) elapsed_ms: u64,
}

impl Allowance {
    /// Without `allow_fallback` one attempt is made, whatever `max_attempts` says.
    pub(crate) fn new(routing: &Routing, candidates: usize) -> Allowance {
        let asked =
            routing.max_attempts.map_or(usize::MAX, |asked| usize::try_from(asked).unwrap_or(usize::MAX));
        let attempts = if routing.allow_fallback == Some(true) { asked.min(candidates).max(1) } else { 1 };
        Allowance { attempts, retry_budget_ms: routing.retry_budget_ms }
    }

    /// Whether the first attempt may start `elapsed_ms` after routing began. The budget never interrupts an attempt.
    ///
    /// # Errors
    /// The retry budget is used up.
    pub(crate) fn may_start(&self, elapsed_ms: u64) -> Result<(), Failure> {
        if self.is_spent(elapsed_ms) {
            return Err(Failure::transient(PortableCode::ProviderUnavailable, "Retry budget is exhausted"));
        }
        Ok(())
    }

    /// Whether the next candidate is attempted. Said once for both, the announcement of the failure and the attempt
    /// that follows: a failure that is announced is always followed.
    pub(crate) fn may_follow(&self, failed: &FailedAttempt<'_>) -> bool {
        failed.stop.is_none()
            && !failed.output_exposed
            && failed.failure.retryable()
            && usize::try_from(failed.number).is_ok_and(|number| number < self.attempts)
            && !self.is_spent(failed.elapsed_ms)
    }

    fn is_spent(&self, elapsed_ms: u64) -> bool {
        self.retry_budget_ms.is_some_and(|budget| elapsed_ms >= budget)
    }
}

/// What the attempt's end makes of the execution. A completion wins over a stop; a stop wins over the provider's
/// own failure; exposed output makes a failure final.
pub(crate) fn conclude(
    end: Result<Completion, Failure>,
    stop: Option<StopCause>,
    output_exposed: bool,
) -> Ending {
    match (end, stop) {
        (Ok(completion), _) => Ending::Completed(completion),
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
mod tests;
