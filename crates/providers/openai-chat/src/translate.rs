//! From the upstream's chunks to provider events: a state machine without I/O.
//!
//! A completion needs two witnesses, a finish reason of every choice that began and the upstream's own `[DONE]`;
//! an answer that just stops is truncated, however complete it looks.

mod tool_calls;

use std::collections::{BTreeMap, VecDeque};

use sealog_events::{PortableCode, StopReason, UsageSource};
use sealog_execution::{Failure, ProviderEvent, ReportedUsage};
use sealog_upstream::ServerEvent;
use serde_json::Value;

use crate::chunk::{Choice, Chunk, Delta, Usage};
use tool_calls::ToolCalls;

/// Most choices of one answer.
const CHOICES_MAX: usize = 128;

/// One answer as far as it was read.
pub struct Translator {
    /// Why each choice that began has ended, once it has.
    finished: BTreeMap<u32, Option<StopReason>>,
    tool_calls: ToolCalls,
    usage: Vec<ReportedUsage>,
}

impl Translator {
    /// `tools`: whether the model was declared to call tools.
    pub fn new(tools: bool) -> Translator {
        Translator { finished: BTreeMap::new(), tool_calls: ToolCalls::new(tools), usage: Vec::new() }
    }

    /// Reads one event and appends what it means. After [`ProviderEvent::Completed`] nothing is to be read.
    ///
    /// # Errors
    /// `provider_unavailable` when the upstream reports an error of its own, `provider_protocol_error` for
    /// anything that is not its protocol.
    pub fn read(&mut self, event: &ServerEvent, out: &mut impl Extend<ProviderEvent>) -> Result<(), Failure> {
        if event.data.trim() == "[DONE]" {
            return self.end(out);
        }
        let named_error = event.event.as_deref() == Some("error");
        // An array in the place of an object would be read as its members in order.
        let object = event.data.trim_start().starts_with('{');
        let chunk: Chunk = match serde_json::from_str(&event.data) {
            Ok(chunk) if object => chunk,
            _ if named_error => return Err(upstream_error(&Value::Null)),
            _ => return Err(Failure::protocol("Provider event is not a JSON object")),
        };
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(upstream_error(&error));
        }
        if named_error {
            return Err(upstream_error(&Value::Null));
        }
        for choice in chunk.choices {
            self.choice(choice, out)?;
        }
        if let Some(usage) = chunk.usage {
            // Some upstreams repeat the running total; the last one counts.
            self.usage = facts(&usage);
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, out: &mut impl Extend<ProviderEvent>) -> Result<(), Failure> {
        let Choice { index, delta, finish_reason } = choice;
        if !self.finished.contains_key(&index) && self.finished.len() == CHOICES_MAX {
            return Err(Failure::protocol("Provider sent too many choices"));
        }
        self.finished.entry(index).or_default();
        if let Some(Delta { content, refusal, tool_calls, function_call }) = delta {
            for delta in [content, refusal].into_iter().flatten().filter(|text| !text.is_empty()) {
                out.extend([ProviderEvent::OutputDelta { output_index: index, delta }]);
            }
            for call in tool_calls.into_iter().flatten() {
                self.tool_calls.fragment(index, call, out)?;
            }
            if let Some(function) = function_call {
                self.tool_calls.function(index, function, out)?;
            }
        }
        if let Some(reason) = finish_reason {
            let reason = finish(&reason)?;
            self.tool_calls.finish(index)?;
            self.finished.insert(index, Some(reason));
        }
        Ok(())
    }

    fn end(&mut self, out: &mut impl Extend<ProviderEvent>) -> Result<(), Failure> {
        let mut reasons = self.finished.values();
        let truncated = || Failure::protocol("Provider response was truncated");
        let first = reasons.next().copied().flatten().ok_or_else(truncated)?;
        let mut same = true;
        for reason in reasons {
            same &= reason.ok_or_else(truncated)? == first;
        }
        // Choices that ended differently have no reason in common.
        out.extend([ProviderEvent::Stopped(if same { first } else { StopReason::Other })]);
        if !self.usage.is_empty() {
            out.extend([ProviderEvent::Usage(std::mem::take(&mut self.usage))]);
        }
        out.extend([ProviderEvent::Completed]);
        Ok(())
    }
}

/// Why the upstream says that a choice ended. One that compatible servers added ends it as well.
///
/// # Errors
/// A failure in disguise: `error` and `abort` are what servers say of work that they did not do.
fn finish(reason: &str) -> Result<StopReason, Failure> {
    match reason {
        "stop" => Ok(StopReason::Stop),
        "length" => Ok(StopReason::Length),
        "tool_calls" | "function_call" => Ok(StopReason::ToolCalls),
        "content_filter" => Ok(StopReason::ContentFilter),
        "error" | "abort" | "aborted" | "cancelled" => {
            Err(Failure::protocol("Provider ended the answer for a failure"))
        }
        _ => Ok(StopReason::Other),
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

fn facts(usage: &Usage) -> Vec<ReportedUsage> {
    let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens.as_ref());
    let reasoning =
        usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens.as_ref());
    let counts = [
        ("input_token", usage.prompt_tokens.as_ref()),
        ("output_token", usage.completion_tokens.as_ref()),
        ("cache_read_token", cached),
        ("reasoning_token", reasoning),
    ];
    let fact = |(unit, count): (&str, Option<&Value>)| {
        let quantity = count.and_then(Value::as_f64)?;
        Some(ReportedUsage {
            unit: unit.to_owned(),
            quantity,
            source: UsageSource::Provider,
            complete: Some(true),
        })
    };
    counts.into_iter().filter_map(fact).collect()
}

impl sealog_upstream::model::Translator for Translator {
    fn read(&mut self, event: &ServerEvent, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        Translator::read(self, event, out)
    }
}

#[cfg(test)]
mod tests;
