//! The answer: events of a stream, or one message.

use sealog_events::{Dialect, PortableCode, StopReason};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::answer::{Frame, Head};
use crate::blocks::{Blocks, Kind, Step};
use crate::error::{ErrorAnswer, failed, failed_object};
use crate::stop::Ending;
use crate::told::What;
use crate::usage::Usage;

#[derive(Debug)]
pub(crate) struct Messages {
    head: Head,
    begun: bool,
    blocks: Blocks,
    usage: Usage,
    /// By the provider.
    said: Option<StopReason>,
}

fn frame(event: &'static str, mut data: Value) -> Frame {
    data["type"] = event.into();
    Frame::of(Some(event), data.to_string())
}

impl Messages {
    pub fn new(head: Head) -> Messages {
        Messages { head, begun: false, blocks: Blocks::default(), usage: Usage::default(), said: None }
    }

    pub fn tell(&mut self, what: &What) -> Vec<Frame> {
        let (mut out, mut steps) = (Vec::new(), Vec::new());
        match what {
            What::Accepted | What::Routed | What::Other => {}
            What::Text(delta) => self.blocks.text(delta, &mut steps),
            // Beside output that was shown already it would be the same once more.
            What::Result(text) if self.blocks.all().is_empty() => self.blocks.text(text, &mut steps),
            What::Result(_) => {}
            What::CallStarted { call_id, name } => self.blocks.start(call_id, name, &mut steps),
            What::CallArguments { call_id, delta } => self.blocks.arguments(call_id, delta, &mut steps),
            What::Usage(facts) => self.usage.add(facts),
            What::Completed(said) => {
                self.said = *said;
                self.blocks.end(&mut steps);
                self.show(&steps, &mut out);
                let delta = json!({"stop_reason": self.reason(), "stop_sequence": null});
                out.push(frame("message_delta", json!({"delta": delta, "usage": self.usage.messages()})));
                out.push(frame("message_stop", json!({})));
                return out;
            }
            What::Failed(failed) => {
                let data = failed_object(Dialect::AnthropicMessages, failed.code, &failed.message);
                out.push(Frame::of(Some("error"), data));
                return out;
            }
        }
        if !steps.is_empty() {
            self.show(&steps, &mut out);
        }
        out
    }

    fn show(&mut self, steps: &[Step], out: &mut Vec<Frame>) {
        if !self.begun {
            self.begun = true;
            let mut message = self.message(json!([]), Value::Null);
            message["usage"] = Usage::default().messages();
            out.push(frame("message_start", json!({ "message": message })));
        }
        for step in steps {
            out.push(match step {
                Step::Open(index) => {
                    let block = match self.blocks.get(*index).map(|block| &block.kind) {
                        Some(Kind::Call { call_id, name }) => {
                            json!({"type": "tool_use", "id": call_id, "name": name, "input": {}})
                        }
                        Some(Kind::Text) | None => json!({"type": "text", "text": ""}),
                    };
                    frame("content_block_start", json!({"index": index, "content_block": block}))
                }
                Step::Delta(index, text) => {
                    let delta = match self.blocks.get(*index).map(|block| &block.kind) {
                        Some(Kind::Call { .. }) => json!({"type": "input_json_delta", "partial_json": text}),
                        Some(Kind::Text) | None => json!({"type": "text_delta", "text": text}),
                    };
                    frame("content_block_delta", json!({"index": index, "delta": delta}))
                }
                Step::Close(index) => frame("content_block_stop", json!({ "index": index })),
            });
        }
    }

    fn reason(&self) -> &'static str {
        let at_limit = self.usage.reached(self.head.origin.max_tokens);
        Ending { said: self.said, at_limit, calls: self.blocks.has_calls() }.messages()
    }

    fn message(&self, content: Value, reason: Value) -> Value {
        json!({
            "id": format!("msg_{}", self.head.hex()),
            "type": "message",
            "role": "assistant",
            "model": self.head.origin.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": null,
            "usage": self.usage.messages(),
        })
    }

    /// # Errors
    /// Arguments of a call that are no JSON object cannot stand in a message.
    pub fn object(&self) -> Result<Value, ErrorAnswer> {
        let mut content = Vec::new();
        for block in self.blocks.all() {
            content.push(match &block.kind {
                Kind::Text => json!({"type": "text", "text": block.content}),
                Kind::Call { call_id, name } => {
                    let input = input(&block.content).ok_or_else(|| {
                        let message = "Provider sent arguments of a tool that are no JSON object";
                        failed(
                            Dialect::AnthropicMessages,
                            PortableCode::ProviderProtocolError,
                            message,
                            false,
                        )
                    })?;
                    json!({"type": "tool_use", "id": call_id, "name": name, "input": input})
                }
            });
        }
        Ok(self.message(content.into(), self.reason().into()))
    }
}

/// No text at all is an object without members.
fn input(arguments: &str) -> Option<Value> {
    if arguments.trim().is_empty() {
        return Some(json!({}));
    }
    // Read as text first: what nests too deeply is refused without being built.
    let raw: &RawValue = serde_json::from_str(arguments).ok()?;
    serde_json::from_str(raw.get()).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests;
