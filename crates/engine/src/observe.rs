//! What the engine tells whoever counts or traces: each fact behind its event's durability, without content.
//!
//! An observer is called on the engine's own tasks. It must never block, and nothing that the engine does depends on
//! it.

use std::fmt;

use sealog_events::{ErrorFact, Event, EventBody, ExecutionId, PortableCode, Target, UsageFact};

/// Told of every new execution.
pub trait Observer: fmt::Debug + Send + Sync {
    /// An execution's first event is durable. What is returned is told the rest, and dropped when the execution is
    /// over, also one that got no terminal event because the store failed.
    fn accepted(&self, id: ExecutionId, ability: &str) -> Box<dyn Following>;
}

/// Told of one execution.
pub trait Following: Send {
    /// One more event is durable.
    fn seen(&mut self, sequence: u64, fact: &Fact);
}

/// An event without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// An attempt begins.
    RouteSelected { target: Target, attempt: u32 },
    /// An attempt ended and another one follows.
    AttemptFailed { target: Target, error: Failing },
    /// Something came out.
    Output,
    /// A provider says where it is.
    Progress,
    /// What it cost.
    Usage(Vec<UsageFact>),
    /// The end, a success.
    Completed { target: Target },
    /// The end, none.
    Failed { error: Failing, cancelled: bool },
}

/// An error without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    pub code: PortableCode,
    pub retryable: bool,
}

impl From<&ErrorFact> for Failing {
    fn from(error: &ErrorFact) -> Failing {
        Failing { code: error.code, retryable: error.retryable }
    }
}

impl Fact {
    /// `None` for the first event, which was told already.
    pub(crate) fn of(event: &Event) -> Option<Fact> {
        Some(match &event.body {
            EventBody::Accepted => return None,
            EventBody::RouteSelected { target, attempt } => {
                Fact::RouteSelected { target: target.clone(), attempt: *attempt }
            }
            EventBody::RouteAttemptFailed { target, error, attempt: _ } => {
                Fact::AttemptFailed { target: target.clone(), error: error.into() }
            }
            EventBody::OutputDelta { .. }
            | EventBody::ToolCallStarted { .. }
            | EventBody::ToolCallArgumentsDelta { .. }
            | EventBody::OutputResult { .. } => Fact::Output,
            EventBody::Progress { .. } => Fact::Progress,
            EventBody::UsageReported { facts } => Fact::Usage(facts.clone()),
            EventBody::Completed { target, stop_reason: _ } => Fact::Completed { target: target.clone() },
            EventBody::Failed { error, cancelled } => {
                Fact::Failed { error: error.into(), cancelled: *cancelled }
            }
        })
    }
}
