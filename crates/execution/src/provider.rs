//! The service provider interface of the model machine: what a provider is given, what it may emit, declare and
//! refuse.
//!
//! Providers never supply execution ids, sequence numbers, times or statuses; the runtime owns that envelope.

use std::fmt;
use std::sync::Arc;

use futures_core::stream::BoxStream;
use sealog_events::{Artifact, ExecutionId, Mark, Phase, StopReason, UsageSource};

use crate::{ExecutionRequest, Failure, ProviderManifest};

/// Set once, by cancellation, deadline or shutdown. A provider that sees it stops and fails as `cancelled`.
pub type AbortSignal = tokio_util::sync::CancellationToken;

/// What a provider emits, in order, pulled one at a time.
pub type ProviderStream = BoxStream<'static, Result<ProviderEvent, Failure>>;

/// One attempt, as the provider is given it.
#[derive(Clone)]
pub struct ModelCall {
    pub execution_id: ExecutionId,
    pub request: Arc<ExecutionRequest>,
    /// The model of the provider's manifest that was selected.
    pub model: String,
    pub abort: AbortSignal,
}

impl fmt::Debug for ModelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCall").field("model", &self.model).finish_non_exhaustive()
    }
}

/// A provider of model executions.
pub trait ModelProvider: Send + Sync {
    /// The identity the provider is registered under; constant.
    fn id(&self) -> &str;

    /// What the provider declares now.
    ///
    /// # Errors
    /// A failure here fails the execution that asked, not only this provider.
    fn manifest(&self) -> Result<ProviderManifest, Failure>;

    /// Starts one attempt. Sends nothing and allocates no remote resource before the stream's first poll: the
    /// record that announces the attempt is durable only then. The stream ends after [`ProviderEvent::Completed`]
    /// or after its first error; ending without either is a protocol error.
    fn execute(&self, call: ModelCall) -> ProviderStream;

    /// Whether lookups may hand the provider out.
    fn available(&self) -> bool {
        true
    }
}

/// One thing a provider reports. The runtime checks all of it before it becomes an event.
#[derive(Clone, PartialEq)]
pub enum ProviderEvent {
    /// How far the attempt came: evidence for whoever asks after an interruption. Becomes no event.
    Mark(Mark),
    OutputDelta {
        output_index: u32,
        delta: String,
    },
    ToolCallStarted {
        call_id: String,
        name: String,
    },
    ToolCallArgumentsDelta {
        call_id: String,
        delta: String,
    },
    /// `progress` is finite; kept as given.
    Progress {
        phase: Phase,
        progress: Option<f64>,
    },
    /// `result` is JSON text.
    Result {
        result: String,
        artifacts: Option<Vec<Artifact>>,
    },
    Usage(Vec<ReportedUsage>),
    /// Why the answer ends, as the provider's own words say it; nothing where they say nothing. The last one before the
    /// completion signal is kept with it.
    Stopped(StopReason),
    /// The completion signal. Nothing is read after it.
    Completed,
}

impl ProviderEvent {
    /// The event's name, for diagnostics that must not hold content.
    pub fn name(&self) -> &'static str {
        match self {
            ProviderEvent::Mark(_) => "mark",
            ProviderEvent::OutputDelta { .. } => "output_delta",
            ProviderEvent::ToolCallStarted { .. } => "tool_call_started",
            ProviderEvent::ToolCallArgumentsDelta { .. } => "tool_call_arguments_delta",
            ProviderEvent::Progress { .. } => "progress",
            ProviderEvent::Result { .. } => "result",
            ProviderEvent::Usage(_) => "usage",
            ProviderEvent::Stopped(_) => "stopped",
            ProviderEvent::Completed => "completed",
        }
    }
}

// Output text stays out of logs and panics.
impl fmt::Debug for ProviderEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A usage fact as the provider reports it, not yet checked: the runtime refuses an empty unit and a quantity
/// that is negative or not finite.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedUsage {
    pub unit: String,
    pub quantity: f64,
    pub source: UsageSource,
    pub complete: Option<bool>,
}
