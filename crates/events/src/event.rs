//! The event: its envelope, its eleven bodies, and what each body says about the execution.
//!
//! Owns the mapping from body to kind, status and terminal. Must never render or encode.

use crate::{
    Artifact, ErrorFact, JsonText, Phase, ProgressNumber, RecordKind, Status, StopReason, Target, Timestamp,
    UsageFact,
};

/// One event of an execution, as stored and as streamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Place in the execution's stream: 1, 2, 3 and so on without gaps.
    pub sequence: u64,
    /// When the runtime accepted it.
    pub time: Timestamp,
    pub body: EventBody,
}

/// What happened. Sequence, time, execution id and status never come from a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventBody {
    /// `execution.accepted`: the first event of every execution.
    Accepted,
    /// `route.selected`: announces an attempt before anything is sent for it; attempts count from 1.
    RouteSelected { target: Target, attempt: u32 },
    /// `route.attempt_failed`: an attempt ended and another one follows.
    RouteAttemptFailed { target: Target, attempt: u32, error: ErrorFact },
    /// `output.delta`: further text of one output.
    OutputDelta { output_index: u32, delta: String },
    /// `tool.call.started`: a named call begins; a repeated start begins it anew.
    ToolCallStarted { call_id: String, name: String },
    /// `tool.call.arguments.delta`: further argument text of a call.
    ToolCallArgumentsDelta { call_id: String, delta: String },
    /// `execution.progress`: an asynchronous provider reports where it is.
    Progress { phase: Phase, progress: Option<ProgressNumber> },
    /// `output.result`: a whole result; the last one counts.
    OutputResult { result: JsonText, artifacts: Option<Vec<Artifact>> },
    /// `usage.reported`: facts to be added to those reported before.
    UsageReported { facts: Vec<UsageFact> },
    /// `execution.completed`: terminal, success. `stop_reason` is what the provider said, if it said one.
    Completed { target: Target, stop_reason: Option<StopReason> },
    /// `execution.failed`: terminal; `cancelled` makes its status `cancelled` instead of `failed`.
    Failed { error: ErrorFact, cancelled: bool },
}

impl EventBody {
    /// The record kind that stores this event.
    #[must_use]
    pub const fn record_kind(&self) -> RecordKind {
        match self {
            Self::Accepted => RecordKind::Accepted,
            Self::RouteSelected { .. } => RecordKind::RouteSelected,
            Self::RouteAttemptFailed { .. } => RecordKind::RouteAttemptFailed,
            Self::OutputDelta { .. } => RecordKind::OutputDelta,
            Self::ToolCallStarted { .. } => RecordKind::ToolCallStarted,
            Self::ToolCallArgumentsDelta { .. } => RecordKind::ToolCallArgumentsDelta,
            Self::Progress { .. } => RecordKind::Progress,
            Self::OutputResult { .. } => RecordKind::OutputResult,
            Self::UsageReported { .. } => RecordKind::UsageReported,
            Self::Completed { stop_reason: None, .. } => RecordKind::Completed,
            Self::Completed { stop_reason: Some(_), .. } => RecordKind::CompletedFor,
            Self::Failed { .. } => RecordKind::Failed,
        }
    }

    /// The number of [`Self::record_kind`].
    #[must_use]
    pub const fn kind(&self) -> u16 {
        self.record_kind().number()
    }

    /// The event's `type` on the wire, for instance `output.delta`.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self.record_kind().event_type() {
            Some(name) => name,
            // Every body is an event's.
            None => self.record_kind().as_str(),
        }
    }

    /// The status that this event gives its execution.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Accepted => Status::Accepted,
            Self::RouteSelected { .. } | Self::RouteAttemptFailed { .. } => Status::Routing,
            Self::OutputDelta { .. }
            | Self::ToolCallStarted { .. }
            | Self::ToolCallArgumentsDelta { .. }
            | Self::Progress { .. }
            | Self::OutputResult { .. }
            | Self::UsageReported { .. } => Status::Running,
            Self::Completed { .. } => Status::Succeeded,
            Self::Failed { cancelled: false, .. } => Status::Failed,
            Self::Failed { cancelled: true, .. } => Status::Cancelled,
        }
    }

    /// Whether no event can follow this one.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        self.status().is_terminal()
    }

    /// Whether this event exposes output of an attempt, after which no other attempt may replace it.
    #[must_use]
    pub const fn is_output(&self) -> bool {
        match self {
            Self::OutputDelta { .. }
            | Self::ToolCallStarted { .. }
            | Self::ToolCallArgumentsDelta { .. }
            | Self::OutputResult { .. } => true,
            Self::Accepted
            | Self::RouteSelected { .. }
            | Self::RouteAttemptFailed { .. }
            | Self::Progress { .. }
            | Self::UsageReported { .. }
            | Self::Completed { .. }
            | Self::Failed { .. } => false,
        }
    }
}
