//! Executions and attempts, counted as the engine tells of them.
//!
//! Must never hold more than numbers and the names of configured providers.

use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use sealog_engine::{Fact, Failing, Following, Observer};
use sealog_events::{ExecutionId, Status};

type One<T> = [(&'static str, T); 1];
type ByState = Family<One<&'static str>, Gauge>;
type Times<T> = Family<One<T>, Histogram, fn() -> Histogram>;

/// The code of what went well.
const NO_ERROR: &str = "none";
const SECONDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// The counters; clones are the same.
#[derive(Clone, Debug)]
pub struct Executions {
    accepted: Counter,
    active: ByState,
    ended: Family<[(&'static str, &'static str); 2], Counter>,
    duration: Times<&'static str>,
    attempts: Family<One<String>, Counter>,
    errors: Family<[(&'static str, String); 2], Counter>,
    attempt_time: Times<String>,
    first_output: Times<String>,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

impl Default for Executions {
    fn default() -> Executions {
        Executions {
            accepted: Counter::default(),
            active: Family::default(),
            ended: Family::default(),
            duration: Family::new_with_constructor(seconds),
            attempts: Family::default(),
            errors: Family::default(),
            attempt_time: Family::new_with_constructor(seconds),
            first_output: Family::new_with_constructor(seconds),
        }
    }
}

impl Executions {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("executions_accepted", "Executions accepted", self.accepted.clone());
        registry.register("executions_active", "Executions under way, by state", self.active.clone());
        registry.register(
            "executions_ended",
            "Executions ended, by status and error code",
            self.ended.clone(),
        );
        registry.register(
            "execution_seconds",
            "From acceptance to the terminal event",
            self.duration.clone(),
        );
        registry.register("provider_attempts", "Attempts begun, by provider", self.attempts.clone());
        registry.register(
            "provider_errors",
            "Attempts that failed, by provider and code",
            self.errors.clone(),
        );
        let help = "From the route to the attempt's end, the wait at the gate included";
        registry.register("provider_attempt_seconds", help, self.attempt_time.clone());
        let help = "From the route to the first output";
        registry.register("provider_first_output_seconds", help, self.first_output.clone());
    }

    fn active(&self, state: Status) -> Gauge {
        self.active.get_or_create_owned(&[("state", state.as_str())])
    }
}

impl Observer for Executions {
    fn accepted(&self, _id: ExecutionId, _ability: &str) -> Box<dyn Following> {
        self.accepted.inc();
        self.active(Status::Accepted).inc();
        let counters = self.clone();
        Box::new(Execution { counters, state: Status::Accepted, began: Instant::now(), attempt: None })
    }
}

struct Execution {
    counters: Executions,
    state: Status,
    began: Instant,
    attempt: Option<Attempt>,
}

struct Attempt {
    provider: String,
    began: Instant,
    output: bool,
}

impl Execution {
    fn move_to(&mut self, state: Status) {
        if self.state != state {
            self.counters.active(self.state).dec();
            self.counters.active(state).inc();
            self.state = state;
        }
    }

    fn attempt_ended(&mut self, error: Option<Failing>) {
        let Some(Attempt { provider, began, output: _ }) = self.attempt.take() else { return };
        let times = self.counters.attempt_time.get_or_create_owned(&[("provider", provider.clone())]);
        times.observe(began.elapsed().as_secs_f64());
        if let Some(error) = error {
            let code = error.code.as_str().to_owned();
            self.counters.errors.get_or_create(&[("provider", provider), ("code", code)]).inc();
        }
    }

    fn ended(&self, status: Status, code: &'static str) {
        let status = status.as_str();
        self.counters.ended.get_or_create(&[("status", status), ("code", code)]).inc();
        let times = self.counters.duration.get_or_create_owned(&[("status", status)]);
        times.observe(self.began.elapsed().as_secs_f64());
    }

    fn output(&mut self) {
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| !attempt.output) else { return };
        attempt.output = true;
        let times = self.counters.first_output.get_or_create_owned(&[("provider", attempt.provider.clone())]);
        times.observe(attempt.began.elapsed().as_secs_f64());
    }
}

impl Following for Execution {
    fn seen(&mut self, _sequence: u64, fact: &Fact) {
        match fact {
            Fact::RouteSelected { target, attempt: _ } => {
                self.move_to(Status::Routing);
                let provider = target.provider.clone();
                self.counters.attempts.get_or_create(&[("provider", provider.clone())]).inc();
                self.attempt = Some(Attempt { provider, began: Instant::now(), output: false });
            }
            Fact::AttemptFailed { error, target: _ } => {
                self.move_to(Status::Routing);
                self.attempt_ended(Some(*error));
            }
            Fact::Output => {
                self.move_to(Status::Running);
                self.output();
            }
            Fact::Progress | Fact::Usage(_) => self.move_to(Status::Running),
            Fact::Completed { target: _ } => {
                self.attempt_ended(None);
                self.ended(Status::Succeeded, NO_ERROR);
            }
            Fact::Failed { error, cancelled } => {
                self.attempt_ended(Some(*error));
                let status = if *cancelled { Status::Cancelled } else { Status::Failed };
                self.ended(status, error.code.as_str());
            }
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.counters.active(self.state).dec();
    }
}
