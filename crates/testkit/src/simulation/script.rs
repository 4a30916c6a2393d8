//! The providers of a simulation: every request's number draws a script for each, and what was asked and sent is
//! written down for the oracle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use sealog_events::{
    EventBody, ExecutionId, Mark, PortableCode, Quantity, StopReason, UsageFact, UsageSource,
};
use sealog_execution::manifest::PROTOCOL_VERSION;
use sealog_execution::{
    AbortSignal, Failure, Modality, ModelCall, ModelManifest, ModelProvider, Part, ProviderEvent,
    ProviderManifest, ProviderStream, Registry, ReportedUsage,
};
use sealog_journal::Journal;

use super::plan::SCRIPTS;
use super::random::Random;

/// Their names, in the order of their registration.
pub(super) const PROVIDERS: [&str; 2] = ["scripted", "second"];
/// The failure after which another provider may be asked.
pub(super) const TRANSIENT: &str = "Scripted failure that may pass";

#[derive(Clone, Debug)]
enum Line {
    /// How far the attempt came.
    Mark(Mark),
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
    let routing = match routing(seed, request) {
        Routing { fallback: None, .. } => String::new(),
        Routing { fallback: Some(fallback), attempts, budget_ms, first } => {
            let attempts = attempts.map_or(String::new(), |most| format!(",\"max_attempts\":{most}"));
            let budget = budget_ms.map_or(String::new(), |ms| format!(",\"retry_budget_ms\":{ms}"));
            let order = first.map_or(String::new(), |name| format!(",\"provider_order\":[\"{name}\"]"));
            format!(",\"routing\":{{\"allow_fallback\":{fallback}{attempts}{budget}{order}}}")
        }
    };
    format!(r#"{{"ability":"{ABILITY}","input":[{{"type":"text","text":"{request}"}}]{deadline}{routing}}}"#)
}

/// The ability that every request asks for.
pub(super) const ABILITY: &str = "chat";

/// What a request says about providers.
#[derive(Clone, Copy, Debug)]
struct Routing {
    /// `None`: it says nothing at all.
    fallback: Option<bool>,
    attempts: Option<u32>,
    budget_ms: Option<u64>,
    first: Option<&'static str>,
}

fn routing(seed: u64, request: u32) -> Routing {
    let mut random = Random::of(seed ^ u64::from(request), SCRIPTS + 101);
    Routing {
        fallback: random.pick(&[None, Some(false), Some(true), Some(true), Some(true)]),
        attempts: random.pick(&[None, None, Some(1), Some(2), Some(9)]),
        budget_ms: random.pick(&[None, None, Some(1), Some(300)]),
        first: random.pick(&[None, Some(PROVIDERS[1])]),
    }
}

/// How many attempts a request allows, and whether time may forbid one of them.
pub(super) fn attempts_allowed(seed: u64, request: u32) -> (u32, bool) {
    let Routing { fallback, attempts, budget_ms, .. } = routing(seed, request);
    let most = attempts.unwrap_or(u32::MAX).min(PROVIDERS.len() as u32);
    (if fallback == Some(true) { most } else { 1 }, budget_ms.is_some())
}

fn script(seed: u64, request: u32, provider: usize, large: bool) -> Script {
    let mut random = Random::of(seed ^ u64::from(request) ^ (provider as u64) << 40, SCRIPTS);
    let mut lines = Vec::new();
    if random.percent(50) {
        lines.push(Line::Mark(Mark::RequestSent));
    }
    if random.percent(50) {
        lines.push(Line::Mark(Mark::ResponseHeaders { request_id: None }));
    }
    // Most of them where another provider may be asked.
    if random.percent(25) {
        if random.percent(30) {
            lines.push(Line::Wait(random.pick(&[1, 20, 400])));
        }
        if random.percent(20) {
            lines.push(Line::Usage(random.below(1000)));
        }
        lines.push(Line::Fail(PortableCode::ProviderUnavailable, random.percent(80)));
        return Script { lines, ignores_abort: random.percent(15) };
    }
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

/// What one execution asked of one provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) request: u32,
    /// Attempts whose stream was polled.
    pub(super) polled: u32,
    /// How far the journal was durable when the first was.
    pub(super) durable: u64,
    /// What was handed out, as the events it becomes.
    pub(super) sent: Vec<EventBody>,
    pub(super) marks: Vec<Mark>,
    pub(super) completed: bool,
    /// What was said of the end, before it.
    pub(super) stopped: Option<StopReason>,
    /// It failed, and may be asked again.
    pub(super) transient: bool,
}

/// What was asked and sent, over all lives.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) journal: Option<Journal>,
    /// By execution and provider.
    pub(super) made: Made,
}

pub(super) type Made = BTreeMap<(ExecutionId, usize), Call>;

#[derive(Clone, Debug)]
struct ScriptedProvider {
    number: usize,
    seed: u64,
    large: bool,
    calls: Arc<Mutex<Calls>>,
}

/// All of them, in their order.
pub(super) fn providers(seed: u64, large: bool, calls: &Arc<Mutex<Calls>>) -> Registry {
    let mut registry = Registry::new();
    for number in 0..PROVIDERS.len() {
        // Each is the first of its name.
        let _ =
            registry.register(Arc::new(ScriptedProvider { number, seed, large, calls: Arc::clone(calls) }));
    }
    registry
}

pub(super) fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelProvider for ScriptedProvider {
    fn id(&self) -> &str {
        PROVIDERS[self.number]
    }

    fn manifest(&self) -> Result<ProviderManifest, Failure> {
        let model = ModelManifest {
            model: "model".to_owned(),
            abilities: vec![ABILITY.to_owned()],
            input_modalities: vec![Modality::Text],
            output_modalities: vec![Modality::Text],
            stream: true,
            tools: true,
            structured_output: false,
            asynchronous: false,
            cancel: true,
        };
        Ok(ProviderManifest {
            provider: PROVIDERS[self.number].to_owned(),
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
        let script = script(self.seed, request, self.number, self.large);
        let playing = Playing {
            key: (call.execution_id, self.number),
            request,
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
    key: (ExecutionId, usize),
    request: u32,
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
            let call = calls.made.entry(self.key).or_default();
            call.request = self.request;
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
                Line::Mark(mark) => {
                    self.noted(|call| call.marks.push(mark.clone()));
                    return Some(Ok(ProviderEvent::Mark(mark)));
                }
                Line::Fail(code, true) => {
                    self.noted(|call| call.transient = true);
                    return Some(Err(Failure::transient(code, TRANSIENT)));
                }
                Line::Fail(code, false) => return Some(Err(Failure::permanent(code, "Scripted failure"))),
                Line::End => return None,
                Line::Complete => return Some(Ok(self.complete())),
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
            self.noted(|call| call.sent.push(sent.1));
            return Some(Ok(sent.0));
        }
    }

    /// The completion, and before it sometimes why: without a draw, which would change every seed.
    fn complete(&mut self) -> ProviderEvent {
        let mut calls = lock(&self.calls);
        let call = calls.made.entry(self.key).or_default();
        if call.stopped.is_none() && call.sent.len() % 2 == 1 {
            call.stopped = Some(StopReason::Length);
            self.lines = vec![Line::Complete].into_iter();
            return ProviderEvent::Stopped(StopReason::Length);
        }
        call.completed = true;
        ProviderEvent::Completed
    }

    fn noted(&self, what: impl FnOnce(&mut Call)) {
        what(lock(&self.calls).made.entry(self.key).or_default());
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
