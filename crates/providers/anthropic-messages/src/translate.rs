//! From the upstream's events to provider events: a state machine without I/O.
//!
//! A completion needs two witnesses, a reason to stop and `message_stop`; an answer that just ends is
//! truncated, however complete it looks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sealog_events::{PortableCode, StopReason, UsageSource};
use sealog_execution::{Failure, ProviderEvent, ReportedUsage};
use sealog_upstream::ServerEvent;
use sealog_upstream::model::Translator;
use serde_json::Value;

use crate::chunk::{Chunk, ContentBlock, Delta, Usage};

/// Most content blocks of one answer.
const BLOCKS_MAX: usize = 4096;

/// The units of usage facts, in the order they are reported.
const UNITS: [&str; 5] =
    ["input_token", "output_token", "cache_write_token", "cache_read_token", "reasoning_token"];

enum Block {
    Text,
    Tool {
        call_id: String,
        /// What the call's start said its input was; counts only if no fragment comes.
        input: Option<String>,
    },
    /// Thoughts, tools that the upstream runs itself, and whatever else is added one day.
    Unshown,
    Closed,
}

/// One answer as far as it was read.
pub struct Messages {
    tools: bool,
    begun: bool,
    stopped: Option<StopReason>,
    blocks: BTreeMap<u32, Block>,
    call_ids: BTreeSet<String>,
    usage: [Option<f64>; UNITS.len()],
}

impl Messages {
    /// `tools`: whether the model was declared to call tools.
    pub fn new(tools: bool) -> Messages {
        Messages {
            tools,
            begun: false,
            stopped: None,
            blocks: BTreeMap::new(),
            call_ids: BTreeSet::new(),
            usage: [None; UNITS.len()],
        }
    }

    fn start(
        &mut self,
        index: u32,
        block: ContentBlock,
        out: &mut VecDeque<ProviderEvent>,
    ) -> Result<(), Failure> {
        if self.blocks.len() == BLOCKS_MAX {
            return Err(Failure::protocol("Provider sent too many content blocks"));
        }
        let ContentBlock { kind, text, id, name, input } = block;
        let block = match kind.as_str() {
            "text" => {
                out.extend(text_delta(index, text));
                Block::Text
            }
            "tool_use" => {
                let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
                let (Some(call_id), Some(name)) = (filled(id), filled(name)) else {
                    return Err(Failure::protocol("Provider sent an incomplete tool call"));
                };
                if !self.tools {
                    return Err(Failure::protocol("Provider sent a tool call that was not declared"));
                }
                if !self.call_ids.insert(call_id.clone()) {
                    return Err(Failure::protocol("Provider used the id of a tool call twice"));
                }
                out.push_back(ProviderEvent::ToolCallStarted { call_id: call_id.clone(), name });
                Block::Tool {
                    call_id,
                    input: Some(input.map_or("{}".to_owned(), |json| json.get().to_owned())),
                }
            }
            _ => Block::Unshown,
        };
        match self.blocks.insert(index, block) {
            None => Ok(()),
            Some(_) => Err(Failure::protocol("Provider used the number of a content block twice")),
        }
    }

    fn delta(&mut self, index: u32, delta: Delta, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        match (self.blocks.get_mut(&index), delta.kind.as_deref()) {
            (None | Some(Block::Closed), _) => {
                Err(Failure::protocol("Provider continued a content block that is not open"))
            }
            (Some(Block::Text), Some("text_delta")) => {
                out.extend(text_delta(index, delta.text));
                Ok(())
            }
            (Some(Block::Tool { call_id, input }), Some("input_json_delta")) => {
                if let Some(delta) = delta.partial_json.filter(|text| !text.is_empty()) {
                    *input = None;
                    out.push_back(ProviderEvent::ToolCallArgumentsDelta { call_id: call_id.clone(), delta });
                }
                Ok(())
            }
            (Some(Block::Unshown), _) => Ok(()),
            (Some(Block::Text | Block::Tool { .. }), Some("text_delta" | "input_json_delta") | None) => {
                Err(Failure::protocol("Provider continued a content block as another kind"))
            }
            // Citations, signatures and what is added one day.
            (Some(Block::Text | Block::Tool { .. }), Some(_)) => Ok(()),
        }
    }

    fn stop_block(&mut self, index: u32, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        match self.blocks.insert(index, Block::Closed) {
            None | Some(Block::Closed) => {
                Err(Failure::protocol("Provider ended a content block that is not open"))
            }
            Some(Block::Tool { call_id, input: Some(delta) }) => {
                out.push_back(ProviderEvent::ToolCallArgumentsDelta { call_id, delta });
                Ok(())
            }
            Some(Block::Tool { input: None, .. } | Block::Text | Block::Unshown) => Ok(()),
        }
    }

    fn end(&mut self, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        let open_call = self.blocks.values().any(|block| matches!(block, Block::Tool { .. }));
        let truncated = || Failure::protocol("Provider response was truncated");
        let reason = self.stopped.filter(|_| !open_call).ok_or_else(truncated)?;
        out.push_back(ProviderEvent::Stopped(reason));
        let facts: Vec<ReportedUsage> = UNITS.iter().zip(self.usage).filter_map(fact).collect();
        if !facts.is_empty() {
            out.push_back(ProviderEvent::Usage(facts));
        }
        out.push_back(ProviderEvent::Completed);
        Ok(())
    }

    /// Later counts replace earlier ones, they are running totals.
    fn count(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        let counts = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
            usage.thinking_tokens,
        ];
        for (total, count) in self.usage.iter_mut().zip(counts) {
            *total = count.as_ref().and_then(Value::as_f64).or(*total);
        }
    }
}

impl Translator for Messages {
    fn read(&mut self, event: &ServerEvent, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure> {
        let named_error = event.event.as_deref() == Some("error");
        // An array in the place of an object would be read as its members in order.
        let object = event.data.trim_start().starts_with('{');
        let chunk: Chunk = match serde_json::from_str(&event.data) {
            Ok(chunk) if object => chunk,
            _ if named_error => return Err(upstream_error(&Value::Null)),
            _ => return Err(Failure::protocol("Provider event is not of its protocol")),
        };
        let Chunk { kind, index, message, content_block, delta, usage, error } = chunk;
        let kind = kind.or_else(|| event.event.clone()).unwrap_or_default();
        if kind == "error" || named_error {
            return Err(upstream_error(&error.unwrap_or_default()));
        }
        let known = matches!(
            kind.as_str(),
            "content_block_start"
                | "content_block_delta"
                | "content_block_stop"
                | "message_delta"
                | "message_stop"
        );
        if (known && !self.begun) || (kind == "message_start" && self.begun) {
            return Err(Failure::protocol("Provider events are out of order"));
        }
        match (kind.as_str(), index, content_block, delta) {
            ("message_start", ..) => {
                self.begun = true;
                self.count(message.and_then(|message| message.usage));
                Ok(())
            }
            ("content_block_start", Some(index), Some(block), _) => self.start(index, block, out),
            ("content_block_delta", Some(index), _, Some(delta)) => self.delta(index, delta, out),
            ("content_block_stop", Some(index), ..) => self.stop_block(index, out),
            ("message_delta", .., delta) => {
                self.count(usage);
                if let Some(reason) = delta.and_then(|delta| delta.stop_reason) {
                    self.stopped = Some(stop_reason(&reason));
                }
                Ok(())
            }
            ("message_stop", ..) => self.end(out),
            _ if known => Err(Failure::protocol("Provider event is not of its protocol")),
            // `ping`, and whatever is added one day.
            _ => Ok(()),
        }
    }
}

fn text_delta(index: u32, text: Option<String>) -> Option<ProviderEvent> {
    text.filter(|text| !text.is_empty())
        .map(|delta| ProviderEvent::OutputDelta { output_index: index, delta })
}

/// Why the upstream says that its answer ended. Failures are events of their own there, so that one that was added since
/// ends an answer as well.
fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "end_turn" => StopReason::Stop,
        "max_tokens" => StopReason::Length,
        "stop_sequence" => StopReason::StopSequence,
        "tool_use" => StopReason::ToolCalls,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::PauseTurn,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        _ => StopReason::Other,
    }
}

/// The upstream's sentence is thrown away; its type may help.
fn upstream_error(error: &Value) -> Failure {
    let failure = Failure::permanent(PortableCode::ProviderUnavailable, "Provider reported a failure");
    match error.get("type") {
        Some(Value::String(kind)) => failure.with_provider_code(kind),
        _ => failure,
    }
}

fn fact((unit, count): (&&str, Option<f64>)) -> Option<ReportedUsage> {
    Some(ReportedUsage {
        unit: (*unit).to_owned(),
        quantity: count?,
        source: UsageSource::Provider,
        complete: Some(true),
    })
}

#[cfg(test)]
mod tests;
