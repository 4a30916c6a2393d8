//! The conformance runner: what every provider must do, checked by running it once to the end and once into its
//! abort signal. Provider crates call it from their own tests.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use sealog_events::{ExecutionId, PortableCode};

use crate::manifest::PROTOCOL_VERSION;
use crate::{
    AbortSignal, ExecutionRequest, Failure, Modality, ModelCall, ModelManifest, ModelProvider, ProviderEvent,
    ProviderManifest, ProviderStream,
};

/// More events than any provider needs for one short text; an endless stream fails instead of hanging.
const EVENTS_MAX: usize = 4096;

/// A provider that does not answer its abort signal in this time fails the check.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

/// What the runner saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub provider: String,
    /// All checks passed.
    pub passed: bool,
    pub checks: Vec<Check>,
}

/// One statement about the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub passed: bool,
    pub detail: Option<&'static str>,
}

impl Report {
    /// The names of the checks that did not pass.
    pub fn failed(&self) -> Vec<&'static str> {
        self.checks.iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    fn add(&mut self, name: &'static str, passed: bool, detail: &'static str) {
        self.passed &= passed;
        self.checks.push(Check { name, passed, detail: (!passed).then_some(detail) });
    }
}

/// Runs every check against the provider's first model and that model's first ability, with one text part.
pub async fn run(provider: Arc<dyn ModelProvider>) -> Report {
    let mut report = Report { provider: provider.id().to_owned(), passed: true, checks: Vec::new() };
    let manifest = match provider.manifest() {
        Ok(manifest) => manifest,
        Err(_) => {
            report.add("execution.lifecycle", false, "the manifest call failed");
            return report;
        }
    };
    declares(&mut report, provider.as_ref(), &manifest);
    let Some(model) = manifest.models.first() else {
        report.add("execution.lifecycle", false, "there is no model to run");
        return report;
    };
    let Some(request) = request(model) else {
        report.add("execution.lifecycle", false, "the first model has no ability or takes no text");
        return report;
    };
    completes(&mut report, provider.as_ref(), model, &request).await;
    if model.cancel {
        cancels(&mut report, provider.as_ref(), model, &request).await;
    }
    report
}

fn declares(report: &mut Report, provider: &dyn ModelProvider, manifest: &ProviderManifest) {
    let same = manifest.provider == provider.id();
    report.add("manifest.provider", same, "the manifest names another identity");
    let version = manifest.protocol_version == PROTOCOL_VERSION;
    report.add("manifest.protocol_version", version, "the manifest names another protocol version");
    report.add("manifest.models", !manifest.models.is_empty(), "the manifest lists no model");
}

fn request(model: &ModelManifest) -> Option<Arc<ExecutionRequest>> {
    let ability = model.abilities.first().filter(|_| model.input_modalities.contains(&Modality::Text))?;
    let body =
        serde_json::json!({ "ability": ability, "input": [{ "type": "text", "text": "conformance" }] });
    ExecutionRequest::parse(body.to_string().as_bytes()).ok().map(|parsed| Arc::new(parsed.request))
}

fn start(
    provider: &dyn ModelProvider,
    model: &ModelManifest,
    request: &Arc<ExecutionRequest>,
    abort: &AbortSignal,
) -> ProviderStream {
    provider.execute(ModelCall {
        execution_id: ExecutionId::from_random([0x5a; 16]),
        request: Arc::clone(request),
        model: model.model.clone(),
        abort: abort.clone(),
    })
}

async fn completes(
    report: &mut Report,
    provider: &dyn ModelProvider,
    model: &ModelManifest,
    request: &Arc<ExecutionRequest>,
) {
    let abort = AbortSignal::new();
    let pulled: Vec<Result<ProviderEvent, Failure>> =
        start(provider, model, request, &abort).take(EVENTS_MAX).collect().await;
    if pulled.iter().any(Result::is_err) {
        report.add("execution.lifecycle", false, "the execution failed");
        return;
    }
    let events: Vec<ProviderEvent> = pulled.into_iter().flatten().collect();
    let completions = events.iter().filter(|event| matches!(event, ProviderEvent::Completed)).count();
    report.add("execution.completes_once", completions == 1, "there is not exactly one completion signal");
    let last = matches!(events.last(), Some(ProviderEvent::Completed));
    report.add("execution.completion_is_last", last, "the completion signal is not the last event");
    let usage = events.iter().all(|event| match event {
        ProviderEvent::Usage(facts) => facts
            .iter()
            .all(|fact| !fact.unit.is_empty() && fact.quantity.is_finite() && fact.quantity >= 0.0),
        ProviderEvent::Mark(_)
        | ProviderEvent::OutputDelta { .. }
        | ProviderEvent::ToolCallStarted { .. }
        | ProviderEvent::ToolCallArgumentsDelta { .. }
        | ProviderEvent::Progress { .. }
        | ProviderEvent::Result { .. }
        | ProviderEvent::Stopped(_)
        | ProviderEvent::Completed => true,
    });
    report.add("usage.non_negative", usage, "a usage fact has no unit or is negative or not finite");
}

async fn cancels(
    report: &mut Report,
    provider: &dyn ModelProvider,
    model: &ModelManifest,
    request: &Arc<ExecutionRequest>,
) {
    let abort = AbortSignal::new();
    let mut stream = start(provider, model, request, &abort);
    let started = matches!(stream.next().await, Some(Ok(_)));
    abort.cancel();
    let next = tokio::time::timeout(CANCEL_WAIT, stream.next()).await;
    let cancelled = matches!(&next, Ok(Some(Err(failure))) if failure.code == PortableCode::Cancelled);
    report.add(
        "execution.cancellation",
        started && cancelled,
        "the pull after the abort did not fail as cancelled",
    );
}
