use super::*;

#[track_caller]
fn ends(
    end: Result<(), Failure>,
    stop: Option<StopCause>,
    output_exposed: bool,
    expected: Option<(PortableCode, bool, bool)>,
) {
    let target = Target { provider: "p".to_owned(), model: "m".to_owned() };
    let completion = Completion { target, stop_reason: None };
    let ending = match conclude(end.map(|()| completion), stop, output_exposed) {
        Ending::Completed(_) => None,
        Ending::Failed { failure, cancelled } => Some((failure.code, failure.retryable(), cancelled)),
    };
    assert_eq!(ending, expected);
}

fn busy() -> Failure {
    Failure::transient(PortableCode::ProviderUnavailable, "m")
}

#[test]
fn the_table_of_endings() {
    use PortableCode::{Cancelled, DeadlineExceeded, ProviderUnavailable};
    let stops = [None, Some(StopCause::Cancelled), Some(StopCause::DeadlineExceeded)];
    for stop in stops {
        ends(Ok(()), stop, true, None);
        ends(Ok(()), stop, false, None);
    }
    ends(Err(busy()), None, false, Some((ProviderUnavailable, true, false)));
    ends(Err(busy()), None, true, Some((ProviderUnavailable, false, false)));
    for output in [false, true] {
        ends(Err(busy()), Some(StopCause::Cancelled), output, Some((Cancelled, false, true)));
        ends(Err(busy()), Some(StopCause::DeadlineExceeded), output, Some((DeadlineExceeded, false, false)));
        ends(Err(Failure::cancelled()), None, output, Some((Cancelled, false, true)));
    }
}

fn routing(allow_fallback: Option<bool>, max_attempts: Option<u32>, retry_budget_ms: Option<u64>) -> Routing {
    Routing { allow_fallback, max_attempts, retry_budget_ms, ..Routing::default() }
}

#[track_caller]
fn attempts(allow_fallback: Option<bool>, max_attempts: Option<u32>, candidates: usize, expected: usize) {
    let allowance = Allowance::new(&routing(allow_fallback, max_attempts, None), candidates);
    assert_eq!(allowance.attempts, expected, "{allow_fallback:?} {max_attempts:?} {candidates}");
    // The rule seen from outside: so many failures and no more are followed.
    let failure = busy();
    let followed = (1..).take_while(|number| {
        let (stop, output_exposed, elapsed_ms) = (None, false, 0);
        allowance.may_follow(&FailedAttempt {
            number: *number,
            failure: &failure,
            stop,
            output_exposed,
            elapsed_ms,
        })
    });
    assert_eq!(followed.count(), expected - 1);
}

#[test]
fn facts_25_one_attempt_unless_fallback_is_allowed() {
    for max_attempts in [None, Some(1), Some(2), Some(32)] {
        for candidates in [1, 2, 40] {
            attempts(None, max_attempts, candidates, 1);
            attempts(Some(false), max_attempts, candidates, 1);
        }
    }
}

#[test]
fn fallback_goes_through_the_candidates_once() {
    attempts(Some(true), None, 1, 1);
    attempts(Some(true), None, 40, 40);
    attempts(Some(true), Some(1), 40, 1);
    attempts(Some(true), Some(3), 40, 3);
    attempts(Some(true), Some(32), 2, 2);
    attempts(Some(true), Some(2), 0, 1);
}

#[test]
fn the_budget_is_checked_before_an_attempt() {
    let allowance = |budget| Allowance::new(&routing(None, None, budget), 1);
    assert!(allowance(None).may_start(u64::MAX).is_ok());
    assert!(allowance(Some(10)).may_start(9).is_ok());
    let refused = allowance(Some(10)).may_start(10).unwrap_err();
    assert_eq!((refused.code, refused.retryable()), (PortableCode::ProviderUnavailable, true));
}

#[track_caller]
fn follows(change: impl FnOnce(&mut FailedAttempt<'_>), expected: bool) {
    let failure = busy();
    let (stop, output_exposed, elapsed_ms) = (None, false, 99);
    let mut failed = FailedAttempt { number: 1, failure: &failure, stop, output_exposed, elapsed_ms };
    change(&mut failed);
    let allowance = Allowance::new(&routing(Some(true), Some(2), Some(100)), 5);
    assert_eq!(allowance.may_follow(&failed), expected, "{failed:?}");
}

#[test]
fn what_stops_fallback() {
    use sealog_execution::FailureClass;
    follows(|_| {}, true);
    follows(|failed| failed.number = 2, false);
    follows(|failed| failed.elapsed_ms = 100, false);
    follows(|failed| failed.output_exposed = true, false);
    follows(|failed| failed.stop = Some(StopCause::Cancelled), false);
    follows(|failed| failed.stop = Some(StopCause::DeadlineExceeded), false);
    for class in [FailureClass::Permanent, FailureClass::OutcomeUnknown] {
        // The work may have been done, or will fail again: no other candidate is asked to do it.
        let failure = Failure::new(PortableCode::ProviderUnavailable, class, "m");
        let (stop, output_exposed, elapsed_ms) = (None, false, 0);
        let failed = FailedAttempt { number: 1, failure: &failure, stop, output_exposed, elapsed_ms };
        assert!(!Allowance::new(&routing(Some(true), None, None), 5).may_follow(&failed));
    }
}
