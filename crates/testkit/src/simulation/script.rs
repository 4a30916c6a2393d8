//! The provider of a simulation: every request's number draws a script, and what was asked and sent is written down
//! for the oracle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use sealog_events::{EventBody, ExecutionId, PortableCode, Quantity, UsageFact, UsageSource};
use sealog_execution::manifest::PROTOCOL_VERSION;
use sealog_execution::{
    AbortSignal, Failure, Modality, ModelCall, ModelManifest, ModelProvider, Part, ProviderEvent,
    ProviderManifest, ProviderStream, ReportedUsage,
};
use sealog_journal::Journal;

use super::plan::SCRIPTS;
use super::random::Random;

#[derive(Clone, Debug)]
enum Line {
    Delta(String),
    ToolStarted(String),
    ToolArguments(String),
    Usage(u64),
    Wait(u64),
    /// Silence until the abort signal; for ever if that is ignored.
    Stall,
    Fail(PortableCode, bool),
    Complete,
    /// Ends without a completion signal.
    End,
}

#[derive(Clone, Debug)]
struct Script {
    lines: Vec<Line>,
    ignores_abort: bool,
}

/// The body of the request with this number.
pub(super) fn request_body(seed: u64, request: u32) -> String {
    let mut random = Random::of(seed ^ u64::from(request), SCRIPTS + 100);
    let deadline = match random.below(5) {
        0 => format!(",\"deadline_ms\":{}", random.pick(&[1, 150, 2_000, 20_000])),
        _ => String::new(),
    };
    format!(r#"{{"ability":"chat","input":[{{"type":"text","text":"{request}"}}]{deadline}}}"#)
}

fn script(seed: u64, request: u32, large: bool) -> Script {
    let mut random = Random::of(seed ^ u64::from(request), SCRIPTS);
    let mut lines = Vec::new();
    for delta in 0..random.pick(&[0, 1, 3, 6, 12]) {
        if random.percent(40) {
            lines.push(Line::Wait(random.pick(&[1, 20, 400])));
        }
        if random.percent(15) {
            lines.push(Line::ToolStarted(format!("call-{delta}")));
            lines.push(Line::ToolArguments(format!("call-{delta}")));
        }
        let filler = match large {
            true => random.pick(&[10, 6_000, 30_000]),
            false => random.pick(&[0, 3, 40, 400, 3_000]),
        };
        lines.push(Line::Delta(format!("{request}.{delta}:{}", "x".repeat(filler))));
    }
    if random.percent(60) {
        lines.push(Line::Usage(random.below(1000)));
    }
    lines.push(match random.below(10) {
        0 => Line::Fail(PortableCode::ProviderUnavailable, true),
        1 => Line::Fail(PortableCode::RateLimited, false),
        2 => Line::Stall,
        3 => Line::End,
        _ => Line::Complete,
    });
    Script { lines, ignores_abort: random.percent(15) }
}

/// What one execution asked of the provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    /// Attempts whose stream was polled.
    pub(super) polled: u32,
    /// How far the journal was durable when the first was.
    pub(super) durable: u64,
    /// What was handed out, as the events it becomes.
    pub(super) sent: Vec<EventBody>,
    pub(super) completed: bool,
}

/// What was asked and sent, over all lives.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) journal: Option<Journal>,
    pub(super) by_execution: BTreeMap<ExecutionId, Call>,
}

#[derive(Clone, Debug)]
pub(super) struct ScriptedProvider {
    pub(super) seed: u64,
    pub(super) large: bool,
    pub(super) calls: Arc<Mutex<Calls>>,
}

pub(super) fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelProvider for ScriptedProvider {
    fn id(&self) -> &str {
        "scripted"
    }

    fn manifest(&self) -> Result<ProviderManifest, Failure> {
        let model = ModelManifest {
            model: "model".to_owned(),
            abilities: vec!["chat".to_owned()],
            input_modalities: vec![Modality::Text],
            output_modalities: vec![Modality::Text],
            stream: true,
            tools: true,
            structured_output: false,
            asynchronous: false,
            cancel: true,
        };
        Ok(ProviderManifest {
            provider: "scripted".to_owned(),
            protocol_version: PROTOCOL_VERSION.to_owned(),
            models: vec![model],
            limits: None,
        })
    }

    fn execute(&self, call: ModelCall) -> ProviderStream {
        let request = match call.request.input.first() {
            Some(Part::Text { text }) => text.parse().unwrap_or(0),
            Some(Part::Json { .. } | Part::Media { .. }) | None => 0,
        };
        let script = script(self.seed, request, self.large);
        let playing = Playing {
            id: call.execution_id,
            abort: call.abort,
            ignores_abort: script.ignores_abort,
            lines: script.lines.into_iter(),
            calls: Arc::clone(&self.calls),
            begun: false,
        };
        Box::pin(stream::unfold(playing, |mut playing| async move {
            let item = playing.next().await?;
            Some((item, playing))
        }))
    }
}

struct Playing {
    id: ExecutionId,
    abort: AbortSignal,
    ignores_abort: bool,
    lines: std::vec::IntoIter<Line>,
    calls: Arc<Mutex<Calls>>,
    begun: bool,
}

impl Playing {
    async fn next(&mut self) -> Option<Result<ProviderEvent, Failure>> {
        if !self.begun {
            self.begun = true;
            let mut calls = lock(&self.calls);
            let durable = calls.journal.as_ref().map_or(0, Journal::durable_sequence);
            let call = calls.by_execution.entry(self.id).or_default();
            call.polled += 1;
            call.durable = durable;
        }
        loop {
            if self.abort.is_cancelled() && !self.ignores_abort {
                return Some(Err(Failure::cancelled()));
            }
            let sent = match self.lines.next()? {
                Line::Wait(ms) => {
                    self.wait(Some(ms)).await;
                    continue;
                }
                Line::Stall => {
                    self.wait(None).await;
                    continue;
                }
                Line::Fail(code, true) => return Some(Err(Failure::transient(code, "Scripted failure"))),
                Line::Fail(code, false) => return Some(Err(Failure::permanent(code, "Scripted failure"))),
                Line::End => return None,
                Line::Complete => {
                    lock(&self.calls).by_execution.entry(self.id).or_default().completed = true;
                    return Some(Ok(ProviderEvent::Completed));
                }
                Line::Delta(delta) => (
                    ProviderEvent::OutputDelta { output_index: 0, delta: delta.clone() },
                    EventBody::OutputDelta { output_index: 0, delta },
                ),
                Line::ToolStarted(call_id) => {
                    let name = "tool".to_owned();
                    (
                        ProviderEvent::ToolCallStarted { call_id: call_id.clone(), name: name.clone() },
                        EventBody::ToolCallStarted { call_id, name },
                    )
                }
                Line::ToolArguments(call_id) => {
                    let delta = "{}".to_owned();
                    (
                        ProviderEvent::ToolCallArgumentsDelta {
                            call_id: call_id.clone(),
                            delta: delta.clone(),
                        },
                        EventBody::ToolCallArgumentsDelta { call_id, delta },
                    )
                }
                Line::Usage(count) => usage(count)?,
            };
            lock(&self.calls).by_execution.entry(self.id).or_default().sent.push(sent.1);
            return Some(Ok(sent.0));
        }
    }

    async fn wait(&self, ms: Option<u64>) {
        let time = async {
            match ms {
                Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                None => std::future::pending().await,
            }
        };
        let aborted = async {
            if self.ignores_abort { std::future::pending().await } else { self.abort.cancelled().await }
        };
        tokio::select! {
            biased;
            () = aborted => {}
            () = time => {}
        }
    }
}

fn usage(count: u64) -> Option<(ProviderEvent, EventBody)> {
    let unit = "output_token".to_owned();
    let (quantity, source) = (count as f64, UsageSource::Runtime);
    let fact =
        UsageFact { unit: unit.clone(), quantity: Quantity::new(quantity)?, source, complete: Some(true) };
    let reported = ReportedUsage { unit, quantity, source, complete: Some(true) };
    Some((ProviderEvent::Usage(vec![reported]), EventBody::UsageReported { facts: vec![fact] }))
}
