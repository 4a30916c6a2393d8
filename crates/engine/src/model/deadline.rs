//! When a running execution must be looked at again because of time alone. Counts milliseconds since the run
//! started; silence of a provider is never a reason for anything.

/// What time asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// The deadline passed; stop the execution.
    Deadline,
    /// The time after the stop passed; drop the provider.
    GiveUp,
}

/// The time rules of one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    deadline_ms: Option<u64>,
    cleanup_ms: u64,
    stopped_at_ms: Option<u64>,
}

impl Timing {
    pub(crate) fn new(deadline_ms: Option<u64>, cleanup_ms: u64) -> Timing {
        Timing { deadline_ms, cleanup_ms, stopped_at_ms: None }
    }

    /// Notes when the stop was seen; later notes change nothing.
    pub(crate) fn stopped(&mut self, elapsed_ms: u64) {
        self.stopped_at_ms.get_or_insert(elapsed_ms);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped_at_ms.is_some()
    }

    /// What is due after `elapsed_ms`. Once stopped, the deadline has nothing to add.
    pub(crate) fn due(&self, elapsed_ms: u64) -> Due {
        match (self.stopped_at_ms, self.deadline_ms) {
            (Some(stopped), _) if elapsed_ms >= stopped.saturating_add(self.cleanup_ms) => Due::GiveUp,
            (None, Some(deadline)) if elapsed_ms >= deadline => Due::Deadline,
            (Some(_), _) | (None, _) => Due::Nothing,
        }
    }

    /// The elapsed time at which [`Timing::due`] changes by itself.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        match self.stopped_at_ms {
            Some(stopped) => Some(stopped.saturating_add(self.cleanup_ms)),
            None => self.deadline_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        deadline_ms: Option<u64>,
        stopped_at_ms: Option<u64>,
        elapsed_ms: u64,
        due: Due,
        next_ms: Option<u64>,
    ) {
        let mut timing = Timing::new(deadline_ms, 100);
        if let Some(stopped) = stopped_at_ms {
            timing.stopped(stopped);
            timing.stopped(stopped.saturating_add(50));
        }
        assert_eq!((timing.due(elapsed_ms), timing.next_ms()), (due, next_ms));
        assert_eq!(timing.is_stopped(), stopped_at_ms.is_some());
    }

    #[test]
    fn the_table() {
        check(None, None, u64::MAX, Due::Nothing, None);
        check(Some(20), None, 19, Due::Nothing, Some(20));
        check(Some(20), None, 20, Due::Deadline, Some(20));
        check(Some(20), Some(20), 20, Due::Nothing, Some(120));
        check(Some(20), Some(5), 104, Due::Nothing, Some(105));
        check(Some(20), Some(5), 105, Due::GiveUp, Some(105));
        check(None, Some(5), 105, Due::GiveUp, Some(105));
        check(None, Some(u64::MAX), u64::MAX, Due::GiveUp, Some(u64::MAX));
    }
}
