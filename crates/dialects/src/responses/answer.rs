//! The answer: numbered events of a stream, or one response.
//!
//! The number of an event counts the events that the durable ones before it gave, so that it is the same whenever the
//! stream is told again.

use sealog_events::{PortableCode, StopReason};
use serde_json::{Value, json};

use crate::answer::{Frame, Head};
use crate::blocks::{Block, Blocks, Kind, Step};
use crate::responses::response_id;
use crate::stop::Ending;
use crate::told::{Failed, What};
use crate::usage::Usage;

#[derive(Debug)]
pub(crate) struct Responses {
    head: Head,
    /// Of the next event.
    number: u64,
    state: State,
    blocks: Blocks,
    usage: Option<Usage>,
}

#[derive(Clone, Debug)]
enum State {
    Queued,
    Running,
    /// With what the provider said about it.
    Completed(Option<StopReason>),
    Failed(Failed),
}

impl Responses {
    pub fn new(head: Head) -> Responses {
        let (state, blocks) = (State::Queued, Blocks::default());
        Responses { head, number: 0, state, blocks, usage: None }
    }

    pub fn tell(&mut self, what: &What) -> Vec<Frame> {
        let (mut out, mut steps) = (Vec::new(), Vec::new());
        match what {
            What::Accepted => out.push(self.about("response.created")),
            What::Routed => {
                if matches!(self.state, State::Queued) {
                    self.state = State::Running;
                    out.push(self.about("response.in_progress"));
                }
            }
            What::Other => {}
            What::Text(delta) => self.blocks.text(delta, &mut steps),
            // Beside output that was shown already it would be the same once more.
            What::Result(text) if self.blocks.all().is_empty() => self.blocks.text(text, &mut steps),
            What::Result(_) => {}
            What::CallStarted { call_id, name } => self.blocks.start(call_id, name, &mut steps),
            What::CallArguments { call_id, delta } => self.blocks.arguments(call_id, delta, &mut steps),
            What::Usage(facts) => self.usage.get_or_insert_default().add(facts),
            What::Completed(said) => {
                self.blocks.end(&mut steps);
                self.show(&steps, &mut out);
                self.state = State::Completed(*said);
                let whole = self.incomplete().is_none();
                out.push(self.about(if whole { "response.completed" } else { "response.incomplete" }));
                return out;
            }
            What::Failed(failed) => {
                self.state = State::Failed(failed.clone());
                out.push(self.about("response.failed"));
                return out;
            }
        }
        self.show(&steps, &mut out);
        out
    }

    fn frame(&mut self, event: &'static str, mut data: Value) -> Frame {
        data["type"] = event.into();
        data["sequence_number"] = self.number.into();
        let frame = Frame { event: Some(event), data: data.to_string(), number: Some(self.number) };
        self.number += 1;
        frame
    }

    fn about(&mut self, event: &'static str) -> Frame {
        let response = self.object();
        self.frame(event, json!({ "response": response }))
    }

    fn show(&mut self, steps: &[Step], out: &mut Vec<Frame>) {
        for step in steps {
            match step {
                Step::Open(index) => self.open(*index, out),
                Step::Delta(index, delta) => {
                    let Some(block) = self.blocks.get(*index) else { continue };
                    let item_id = self.item_id(*index, block);
                    let frame = match block.kind {
                        Kind::Text => self.frame(
                            "response.output_text.delta",
                            json!({"item_id": item_id, "output_index": index, "content_index": 0, "delta": delta,
                                "logprobs": []}),
                        ),
                        Kind::Call { .. } => self.frame(
                            "response.function_call_arguments.delta",
                            json!({"item_id": item_id, "output_index": index, "delta": delta}),
                        ),
                    };
                    out.push(frame);
                }
                Step::Close(index) => self.close(*index, out),
            }
        }
    }

    fn open(&mut self, index: usize, out: &mut Vec<Frame>) {
        let Some(block) = self.blocks.get(index) else { return };
        let empty = Block { kind: block.kind.clone(), content: String::new() };
        let item_id = self.item_id(index, &empty);
        let mut item = self.item(index, &empty, "in_progress");
        if empty.kind == Kind::Text {
            item["content"] = json!([]);
        }
        out.push(self.frame("response.output_item.added", json!({"output_index": index, "item": item})));
        if empty.kind == Kind::Text {
            let data =
                json!({"item_id": item_id, "output_index": index, "content_index": 0, "part": part("")});
            out.push(self.frame("response.content_part.added", data));
        }
    }

    fn close(&mut self, index: usize, out: &mut Vec<Frame>) {
        let Some(block) = self.blocks.get(index).cloned() else { return };
        let item_id = self.item_id(index, &block);
        match &block.kind {
            Kind::Text => {
                let place = json!({"item_id": item_id, "output_index": index, "content_index": 0});
                let mut data = place.clone();
                data["text"] = block.content.clone().into();
                data["logprobs"] = json!([]);
                out.push(self.frame("response.output_text.done", data));
                let mut data = place;
                data["part"] = part(&block.content);
                out.push(self.frame("response.content_part.done", data));
            }
            Kind::Call { name, .. } => {
                let data = json!({"item_id": item_id, "output_index": index, "name": name,
                    "arguments": block.content});
                out.push(self.frame("response.function_call_arguments.done", data));
            }
        }
        let item = self.item(index, &block, "completed");
        out.push(self.frame("response.output_item.done", json!({"output_index": index, "item": item})));
    }

    fn item_id(&self, index: usize, block: &Block) -> String {
        let prefix = match block.kind {
            Kind::Text => "msg",
            Kind::Call { .. } => "fc",
        };
        format!("{prefix}_{}_{index}", self.head.hex())
    }

    fn item(&self, index: usize, block: &Block, status: &str) -> Value {
        let id = self.item_id(index, block);
        match &block.kind {
            Kind::Text => json!({"type": "message", "id": id, "status": status, "role": "assistant",
                "content": [part(&block.content)]}),
            Kind::Call { call_id, name } => json!({"type": "function_call", "id": id, "status": status,
                "call_id": call_id, "name": name, "arguments": block.content}),
        }
    }

    /// Why an answer that has ended is less than a whole one.
    fn incomplete(&self) -> Option<&'static str> {
        let State::Completed(said) = self.state else { return None };
        let at_limit = self.usage.as_ref().is_some_and(|usage| usage.reached(self.head.origin.max_tokens));
        Ending { said, at_limit, calls: self.blocks.has_calls() }.responses()
    }

    /// The response as far as it was told. What the request held is not kept and is answered empty.
    pub fn object(&self) -> Value {
        let incomplete = self.incomplete();
        let (status, done) = match &self.state {
            State::Queued if self.head.origin.background => ("queued", "in_progress"),
            State::Queued | State::Running => ("in_progress", "in_progress"),
            State::Completed(_) if incomplete.is_some() => ("incomplete", "completed"),
            State::Completed(_) => ("completed", "completed"),
            State::Failed(failed) if failed.cancelled => ("cancelled", "incomplete"),
            State::Failed(_) => ("failed", "incomplete"),
        };
        let incomplete = incomplete.map_or(Value::Null, |reason| json!({ "reason": reason }));
        let error = match &self.state {
            State::Failed(failed) if !failed.cancelled => error(failed),
            State::Queued | State::Running | State::Completed(_) | State::Failed(_) => Value::Null,
        };
        let items = self.blocks.all().iter().enumerate();
        let output: Vec<Value> = items.map(|(index, block)| self.item(index, block, done)).collect();
        json!({
            "id": response_id(self.head.id),
            "object": "response",
            "created_at": self.head.created_s(),
            "status": status,
            "background": self.head.origin.background,
            "error": error,
            "incomplete_details": incomplete,
            "instructions": null,
            "max_output_tokens": self.head.origin.max_tokens,
            "metadata": {},
            "model": self.head.origin.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "reasoning": {"effort": null, "summary": null},
            "store": true,
            "temperature": null,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "truncation": "disabled",
            "usage": self.usage.as_ref().map(Usage::responses),
        })
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// The dialect has few codes; ours stands before the sentence.
fn error(failed: &Failed) -> Value {
    let code = match failed.code {
        PortableCode::InvalidRequest | PortableCode::CapabilityUnavailable => "invalid_prompt",
        PortableCode::RateLimited => "rate_limit_exceeded",
        PortableCode::QueueFull
        | PortableCode::DeadlineExceeded
        | PortableCode::Cancelled
        | PortableCode::ProviderUnavailable
        | PortableCode::ProviderProtocolError
        | PortableCode::InternalError => "server_error",
    };
    json!({"code": code, "message": format!("{}: {}", failed.code, failed.message)})
}

#[cfg(test)]
mod tests;
