//! From the upstream's events to provider events: a state machine without I/O.
//!
//! Only `response.completed`, or `response.incomplete` for a reason that we know, ends an answer; one that just stops
//! is truncated, however complete it looks.

mod tool_calls;

use std::collections::VecDeque;

use sealog_events::{PortableCode, StopReason, UsageSource};
use sealog_execution::{Failure, ProviderEvent, ReportedUsage};
use sealog_upstream::ServerEvent;
use sealog_upstream::model::Translator;
use serde_json::Value;

use crate::chunk::{Chunk, Response, Usage};
use tool_calls::ToolCalls;

/// One answer as far as it was read.
pub struct Responses {
    tool_calls: ToolCalls,
}

impl Responses {
    /// `tools`: whether the model was declared to call tools.
    pub fn new(tools: bool) -> Responses {
        Responses { tool_calls: ToolCalls::new(tools) }
    }

    fn understood(
        &mut self,
        kind: &str,
        chunk: Chunk,
        out: &mut VecDeque<ProviderEvent>,
    ) -> Result<(), Failure> {
        let Chunk { output_index, item_id, delta, arguments, input, item, response, .. } = chunk;
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let delta = text(delta)?;
                if !delta.is_empty() {
                    let output_index = output_index.unwrap_or(0);
                    out.push_back(ProviderEvent::OutputDelta { output_index, delta });
                }
                Ok(())
            }
            "response.output_item.added" => self.tool_calls.added(item, out),
            "response.output_item.done" => self.tool_calls.item_done(item, out),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.tool_calls.fragment(item_id, text(delta)?, out)
            }
            "response.function_call_arguments.done" => self.tool_calls.done(item_id, arguments, out),
            "response.custom_tool_call_input.done" => self.tool_calls.done(item_id, Some(text(input)?), out),
            "response.completed" => {
                // The protocol knows one way to be complete, with calls and without.
                let calls = self.tool_calls.any();
                let reason = if calls { StopReason::ToolCalls } else { StopReason::Stop };
                end(response, reason, out);
                Ok(())
            }
            "response.incomplete" => {
                let details = response.as_ref().and_then(|response| response.incomplete_details.as_ref());
                let reason = cut(details.and_then(|details| details.reason.as_deref()))?;
                end(response, reason, out);
                Ok(())
            }
            "response.failed" => {
                Err(upstream_error(&response.and_then(|response| response.error).unwrap_or_default()))
            }
            // What was announced, repeated or thought, and whatever is added one day.
            _ => Ok(()),
        }
    }
}

impl Translator for Responses {
    fn read(&mut self, event: &ServerEvent, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let named_error = event.event.as_deref() == Some("error");
        // An array in the place of an object would be read as its members in order.
        let object = event.data.trim_start().starts_with('{');
        let mut chunk: Chunk = match serde_json::from_str(&event.data) {
            Ok(chunk) if object => chunk,
            _ if named_error => return Err(upstream_error(&Value::Null)),
            _ => return Err(Failure::protocol("Provider event is not of its protocol")),
        };
        let kind = chunk.kind.take().or_else(|| event.event.clone()).unwrap_or_default();
        // Some upstreams give up with an error that has no type.
        let bare_error = kind.is_empty() && chunk.error.as_ref().is_some_and(|error| !error.is_null());
        if kind == "error" || named_error || bare_error {
            let beside = chunk.code.map(|code| serde_json::json!({ "code": code }));
            return Err(upstream_error(&chunk.error.or(beside).unwrap_or_default()));
        }
        self.understood(&kind, chunk, out)
    }
}

fn text(value: Option<Value>) -> Result<String, Failure> {
    match value {
        Some(Value::String(text)) => Ok(text),
        _ => Err(Failure::protocol("Provider event is not of its protocol")),
    }
}

fn end(response: Option<Response>, reason: StopReason, out: &mut VecDeque<ProviderEvent>) {
    out.push_back(ProviderEvent::Stopped(reason));
    let facts = response.and_then(|response| response.usage).map(facts).unwrap_or_default();
    if !facts.is_empty() {
        out.push_back(ProviderEvent::Usage(facts));
    }
    out.push_back(ProviderEvent::Completed);
}

/// Why the upstream says that its answer is less than a whole one.
///
/// # Errors
/// Any other reason, and none: it may be a failure in disguise, and what came of the answer is not a whole one.
fn cut(reason: Option<&str>) -> Result<StopReason, Failure> {
    match reason {
        Some("max_output_tokens") => Ok(StopReason::Length),
        Some("content_filter") => Ok(StopReason::ContentFilter),
        _ => Err(Failure::protocol("Provider ended for an unknown reason")),
    }
}

/// The upstream's sentence is thrown away; an identifier of it may help.
fn upstream_error(error: &Value) -> Failure {
    let failure = Failure::permanent(PortableCode::ProviderUnavailable, "Provider reported a failure");
    let code = ["code", "type"].into_iter().find_map(|name| match error.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    });
    match code {
        Some(code) => failure.with_provider_code(&code),
        None => failure,
    }
}

fn facts(usage: Usage) -> Vec<ReportedUsage> {
    let Usage { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = usage;
    let (written, cached) = input_tokens_details
        .map_or((None, None), |details| (details.cache_write_tokens, details.cached_tokens));
    let reasoning = output_tokens_details.and_then(|details| details.reasoning_tokens);
    let counts = [
        ("input_token", input_tokens),
        ("output_token", output_tokens),
        ("cache_write_token", written),
        ("cache_read_token", cached),
        ("reasoning_token", reasoning),
    ];
    let fact = |(unit, count): (&str, Option<Value>)| {
        Some(ReportedUsage {
            unit: unit.to_owned(),
            quantity: count.as_ref().and_then(Value::as_f64)?,
            source: UsageSource::Provider,
            complete: Some(true),
        })
    };
    counts.into_iter().filter_map(fact).collect()
}

#[cfg(test)]
mod tests;
