//! The order of what the provider does, as a state machine without time: each step says what comes next.

use sealog_events::UsageSource;
use sealog_execution::{Failure, ProviderEvent, ReportedUsage};

use crate::settings::Settings;

const WORDS: [&str; 3] = ["hello", " from", " mock"];

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Wait `delay_ms`, then send this delta.
    Delta(ProviderEvent),
    Send(ProviderEvent),
    Fail(Failure),
    /// Silence until the abort signal, and for ever if that is ignored.
    Stall,
    /// The stream is over.
    End,
}

/// How far the script got.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    settings: Settings,
    deltas: u64,
    calls: usize,
    call_started: bool,
    result_sent: bool,
    usage_sent: bool,
    reason_sent: bool,
    over: bool,
}

impl Script {
    pub(crate) fn new(settings: Settings) -> Script {
        Script {
            settings,
            deltas: 0,
            calls: 0,
            call_started: false,
            result_sent: false,
            usage_sent: false,
            reason_sent: false,
            over: false,
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The next step. Deltas, then tool calls, the result, usage, the reason to stop and the
    /// completion signal; failing and stalling are
    /// due as soon as their number of deltas was sent, failing first.
    pub(crate) fn step(&mut self) -> Step {
        if self.over {
            return Step::End;
        }
        if self.settings.fail_after == Some(self.deltas) {
            self.over = true;
            return Step::Fail(self.failure());
        }
        if self.settings.stall_after == Some(self.deltas) {
            return Step::Stall;
        }
        if self.deltas < self.settings.chunks {
            let delta = self.text();
            self.deltas += 1;
            return Step::Delta(ProviderEvent::OutputDelta { output_index: 0, delta });
        }
        if let Some(step) = self.tool_call() {
            return step;
        }
        if let Some(result) = self.settings.result.clone().filter(|_| !self.result_sent) {
            self.result_sent = true;
            let artifacts = self.settings.artifacts.clone();
            return Step::Send(ProviderEvent::Result { result, artifacts });
        }
        if !self.usage_sent {
            self.usage_sent = true;
            return Step::Send(ProviderEvent::Usage(self.usage()));
        }
        if let Some(reason) = self.settings.stop_reason.filter(|_| !self.reason_sent) {
            self.reason_sent = true;
            return Step::Send(ProviderEvent::Stopped(reason));
        }
        self.over = true;
        if self.settings.never_complete { Step::End } else { Step::Send(ProviderEvent::Completed) }
    }

    /// Ends the script early.
    pub(crate) fn stop(&mut self) {
        self.over = true;
    }

    fn text(&self) -> String {
        match self.settings.chunk_bytes {
            // Letters in turn, begun anew in each delta at its own number: deltas differ and bytes are countable.
            Some(bytes) => {
                let first = (self.deltas % 26) as usize;
                (b'a'..=b'z').cycle().skip(first).take(bytes).map(char::from).collect()
            }
            None => WORDS[(self.deltas % WORDS.len() as u64) as usize].to_owned(),
        }
    }

    fn tool_call(&mut self) -> Option<Step> {
        let call = self.settings.tool_calls.get(self.calls)?;
        let call_id = call.call_id.clone();
        if !self.call_started {
            self.call_started = true;
            return Some(Step::Send(ProviderEvent::ToolCallStarted { call_id, name: call.name.clone() }));
        }
        let delta = call.arguments.clone();
        self.call_started = false;
        self.calls += 1;
        Some(Step::Send(ProviderEvent::ToolCallArgumentsDelta { call_id, delta }))
    }

    fn usage(&self) -> Vec<ReportedUsage> {
        let fact = |unit: &str, quantity: u64| ReportedUsage {
            unit: unit.to_owned(),
            quantity: quantity as f64,
            source: UsageSource::Runtime,
            complete: None,
        };
        let default = || vec![fact("input_token", 1), fact("output_token", self.settings.chunks)];
        self.settings.usage.clone().unwrap_or_else(default)
    }

    fn failure(&self) -> Failure {
        let (code, message) = (self.settings.fail_code, "Mock provider was told to fail");
        if self.settings.fail_retryable {
            Failure::transient(code, message)
        } else {
            Failure::permanent(code, message)
        }
    }
}
