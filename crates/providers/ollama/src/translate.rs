//! From the upstream's lines to provider events: a state machine without I/O.
//!
//! Only a line that says `done`, and not for a reason without an answer, ends one; one that just stops is truncated, however
//! complete it looks.

use std::collections::{BTreeSet, VecDeque};

use sealog_events::{PortableCode, StopReason, UsageSource};
use sealog_execution::{Failure, ProviderEvent, ReportedUsage};
use sealog_upstream::ServerEvent;
use sealog_upstream::model::Translator;
use serde_json::Value;

use crate::chunk::{Chunk, ToolCall};

/// Most tool calls of one answer.
const CALLS_MAX: usize = 1024;

/// One answer as far as it was read.
pub struct Chat {
    tools: bool,
    call_ids: BTreeSet<String>,
}

impl Chat {
    /// `tools`: whether the model was declared to call tools.
    pub fn new(tools: bool) -> Chat {
        Chat { tools, call_ids: BTreeSet::new() }
    }

    /// Older upstreams give a call no id; its number makes one.
    fn call(&mut self, call: ToolCall, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        if !self.tools {
            return Err(Failure::protocol("Provider sent a tool call that was not declared"));
        }
        if self.call_ids.len() == CALLS_MAX {
            return Err(Failure::protocol("Provider sent too many tool calls"));
        }
        if call.function.name.is_empty() {
            return Err(Failure::protocol("Provider sent an incomplete tool call"));
        }
        let made = || format!("tool-call-{}", self.call_ids.len());
        let call_id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(made);
        if !self.call_ids.insert(call_id.clone()) {
            return Err(Failure::protocol("Provider used the id of a tool call twice"));
        }
        let delta = call.function.arguments.map_or("{}".to_owned(), |json| json.get().to_owned());
        let name = call.function.name;
        out.push_back(ProviderEvent::ToolCallStarted { call_id: call_id.clone(), name });
        out.push_back(ProviderEvent::ToolCallArgumentsDelta { call_id, delta });
        Ok(())
    }
}

impl Translator for Chat {
    fn read(&mut self, line: &ServerEvent, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        // An array in the place of an object would be read as its members in order.
        let object = line.data.starts_with('{');
        let chunk: Chunk = match serde_json::from_str(&line.data) {
            Ok(chunk) if object => chunk,
            _ => return Err(Failure::protocol("Provider line is not of its protocol")),
        };
        let Chunk { message, done, done_reason, prompt_eval_count, eval_count, error } = chunk;
        if error.is_some_and(|error| !error.is_null()) {
            // Its sentence is thrown away, and it has no code.
            let message = "Provider reported a failure";
            return Err(Failure::permanent(PortableCode::ProviderUnavailable, message));
        }
        if let Some(message) = message {
            // What it thought before is not part of the answer.
            if let Some(delta) = message.content.filter(|text| !text.is_empty()) {
                out.push_back(ProviderEvent::OutputDelta { output_index: 0, delta });
            }
            for call in message.tool_calls.into_iter().flatten() {
                self.call(call, out)?;
            }
        }
        if done {
            out.extend(stop_reason(done_reason.as_deref())?.map(ProviderEvent::Stopped));
            let counts = [("input_token", prompt_eval_count), ("output_token", eval_count)];
            let facts: Vec<ReportedUsage> = counts.into_iter().filter_map(fact).collect();
            if !facts.is_empty() {
                out.push_back(ProviderEvent::Usage(facts));
            }
            out.push_back(ProviderEvent::Completed);
        }
        Ok(())
    }
}

/// Why the upstream says that its answer ended. Older ones say nothing.
///
/// # Errors
/// A model was loaded or unloaded instead: that answers nothing.
fn stop_reason(reason: Option<&str>) -> Result<Option<StopReason>, Failure> {
    match reason {
        None => Ok(None),
        Some("stop") => Ok(Some(StopReason::Stop)),
        Some("length") => Ok(Some(StopReason::Length)),
        Some("load" | "unload") => Err(Failure::protocol("Provider ended without an answer")),
        Some(_) => Ok(Some(StopReason::Other)),
    }
}

fn fact((unit, count): (&str, Option<Value>)) -> Option<ReportedUsage> {
    Some(ReportedUsage {
        unit: unit.to_owned(),
        quantity: count.as_ref().and_then(Value::as_f64)?,
        source: UsageSource::Provider,
        complete: Some(true),
    })
}

#[cfg(test)]
mod tests;
