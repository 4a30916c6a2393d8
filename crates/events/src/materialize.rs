//! The fold from events to a snapshot.
//!
//! Owns the rules by which text, tool calls, results and usage of an execution become one state, and the version of
//! those rules. Takes events one at a time and keeps only what the snapshot needs. Must never judge an event: order
//! and bounds were checked before it was stored.

use std::collections::BTreeMap;

use crate::attempt;
use crate::json::{self, Sink};
use crate::{
    Artifact, Attempt, AttemptEvidence, ErrorFact, Event, EventBody, ExecutionId, JsonText, Status,
    StopReason, Target, Timestamp, UsageFact,
};

/// Version of the rules below, stored beside every materialized result. Changes whenever equal events give another
/// result text.
pub const RESULT_RULE_VERSION: u16 = 1;

/// The state of an execution after some prefix of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub execution_id: ExecutionId,
    /// Status of the last event; `accepted` before the first.
    pub status: Status,
    pub created_at: Timestamp,
    /// Time of the last event; `created_at` before the first.
    pub updated_at: Timestamp,
    /// 0 before the first event.
    pub last_sequence: u64,
    /// Every fact of every attempt in order, not summed.
    pub usage: Vec<UsageFact>,
    /// How far each attempt provably came.
    pub attempts: Vec<Attempt>,
    /// The latest target selected or completed; kept after failure.
    pub target: Option<Target>,
    /// Why the answer ended, if its provider said so.
    pub stop_reason: Option<StopReason>,
    /// The terminal failure's error.
    pub error: Option<ErrorFact>,
    /// The last `output.result`, else the joined text and tool calls if there are any; also of a failed execution.
    pub result: Option<JsonText>,
    /// Those of the last `output.result`.
    pub artifacts: Option<Vec<Artifact>>,
}

/// Folds events into a snapshot, one at a time.
#[derive(Debug, Clone)]
pub struct Materializer {
    /// The snapshot so far; its `result` is that of the last `output.result` only.
    state: Snapshot,
    outputs: BTreeMap<u32, String>,
    tool_calls: Vec<ToolCall>,
    tool_call_places: BTreeMap<String, usize>,
}

#[derive(Debug, Clone)]
struct ToolCall {
    call_id: String,
    name: String,
    arguments: String,
}

impl Materializer {
    /// The state of an execution that has no event yet.
    #[must_use]
    pub fn new(execution_id: ExecutionId, created_at: Timestamp) -> Self {
        Self {
            state: Snapshot {
                execution_id,
                status: Status::Accepted,
                created_at,
                updated_at: created_at,
                last_sequence: 0,
                usage: Vec::new(),
                attempts: Vec::new(),
                target: None,
                stop_reason: None,
                error: None,
                result: None,
                artifacts: None,
            },
            outputs: BTreeMap::new(),
            tool_calls: Vec::new(),
            tool_call_places: BTreeMap::new(),
        }
    }

    /// Takes the next event. Costs its text plus a look-up, whatever came before.
    pub fn push(&mut self, event: &Event) {
        self.state.status = event.body.status();
        self.state.updated_at = event.time;
        self.state.last_sequence = event.sequence;
        attempt::push_event(&mut self.state.attempts, &event.body);
        match &event.body {
            EventBody::Accepted | EventBody::RouteAttemptFailed { .. } | EventBody::Progress { .. } => {}
            EventBody::RouteSelected { target, attempt: _ } => self.state.target = Some(target.clone()),
            EventBody::Completed { target, stop_reason } => {
                self.state.target = Some(target.clone());
                self.state.stop_reason = *stop_reason;
            }
            EventBody::OutputDelta { output_index, delta } => {
                self.outputs.entry(*output_index).or_default().push_str(delta);
            }
            EventBody::ToolCallStarted { call_id, name } => self.start_tool_call(call_id, name),
            EventBody::ToolCallArgumentsDelta { call_id, delta } => {
                // A fragment of a call that never started has no name to stand under: it is dropped.
                if let Some(call) =
                    self.tool_call_places.get(call_id).and_then(|&place| self.tool_calls.get_mut(place))
                {
                    call.arguments.push_str(delta);
                }
            }
            EventBody::OutputResult { result, artifacts } => {
                self.state.result = Some(result.clone());
                self.state.artifacts.clone_from(artifacts);
            }
            EventBody::UsageReported { facts } => self.state.usage.extend_from_slice(facts),
            EventBody::Failed { error, cancelled: _ } => self.state.error = Some(error.clone()),
        }
    }

    /// Takes what is recorded beside the events. Changes nothing but [`Snapshot::attempts`].
    pub fn push_evidence(&mut self, evidence: &AttemptEvidence) {
        attempt::push_evidence(&mut self.state.attempts, evidence);
    }

    /// How far each attempt provably came.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.state.attempts
    }

    /// The state after the events taken so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.state.clone();
        if snapshot.result.is_none() {
            snapshot.result = self.joined_result();
        }
        snapshot
    }

    /// Like [`Self::snapshot`], for the last time.
    #[must_use]
    pub fn into_snapshot(mut self) -> Snapshot {
        if self.state.result.is_none() {
            self.state.result = self.joined_result();
        }
        self.state
    }

    /// Status of the last event taken.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.state.status
    }

    /// Sequence of the last event taken; 0 before the first.
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.state.last_sequence
    }

    fn start_tool_call(&mut self, call_id: &str, name: &str) {
        // A repeated start empties the call and keeps its place.
        if let Some(call) =
            self.tool_call_places.get(call_id).and_then(|&place| self.tool_calls.get_mut(place))
        {
            name.clone_into(&mut call.name);
            call.arguments.clear();
            return;
        }
        self.tool_call_places.insert(call_id.to_owned(), self.tool_calls.len());
        self.tool_calls.push(ToolCall {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
        });
    }

    /// `{"outputs":[{"index","type","text"}..],"tool_calls":[{"call_id","name","arguments"}..]}`, both lists always;
    /// `None` when both would be empty.
    fn joined_result(&self) -> Option<JsonText> {
        if self.outputs.is_empty() && self.tool_calls.is_empty() {
            return None;
        }
        let text_bytes: usize = self.outputs.values().map(String::len).sum();
        let mut out = String::with_capacity(text_bytes + text_bytes / 8 + 128);
        out.put("{\"outputs\":[");
        for (place, (index, text)) in self.outputs.iter().enumerate() {
            out.put(if place > 0 { ",{\"index\":" } else { "{\"index\":" });
            out.put(&index.to_string());
            json::put_string_member(&mut out, ",\"type\":\"text\",\"text\":", text);
            out.put("}");
        }
        out.put("],\"tool_calls\":");
        json::put_list(&mut out, &self.tool_calls, |out: &mut String, call| {
            json::put_string_member(out, "{\"call_id\":", &call.call_id);
            json::put_string_member(out, ",\"name\":", &call.name);
            json::put_string_member(out, ",\"arguments\":", &call.arguments);
            out.put("}");
        });
        out.put("}");
        Some(JsonText::assembled(out))
    }
}

/// The snapshot after all of these events.
#[must_use]
pub fn materialize<'a>(
    execution_id: ExecutionId,
    created_at: Timestamp,
    events: impl IntoIterator<Item = &'a Event>,
) -> Snapshot {
    let mut materializer = Materializer::new(execution_id, created_at);
    for event in events {
        materializer.push(event);
    }
    materializer.into_snapshot()
}

#[cfg(test)]
mod tests;
