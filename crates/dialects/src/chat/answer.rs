//! The answer: chunks of a stream, or one completion.

use sealog_events::{Dialect, StopReason};
use serde_json::{Value, json};

use crate::answer::{Frame, Head};
use crate::error::failed_object;
use crate::stop::Ending;
use crate::told::What;
use crate::usage::Usage;

#[derive(Debug)]
pub(crate) struct Chat {
    head: Head,
    include_usage: bool,
    begun: bool,
    text: Option<String>,
    calls: Vec<Call>,
    usage: Usage,
    /// By the provider.
    said: Option<StopReason>,
}

#[derive(Debug)]
struct Call {
    call_id: String,
    name: String,
    arguments: String,
}

impl Chat {
    pub fn new(head: Head, include_usage: bool) -> Chat {
        let (text, calls, usage) = (None, Vec::new(), Usage::default());
        Chat { head, include_usage, begun: false, text, calls, usage, said: None }
    }

    pub fn tell(&mut self, what: &What) -> Vec<Frame> {
        let mut out = Vec::new();
        match what {
            What::Accepted | What::Routed | What::Other => {}
            What::Text(delta) => self.say(delta, &mut out),
            // Beside text that was said already it would be the same once more.
            What::Result(text) if self.text.is_none() => self.say(text, &mut out),
            What::Result(_) => {}
            What::CallStarted { call_id, name } => {
                self.begin(&mut out);
                let index = self.calls.len();
                let function = json!({"name": name, "arguments": ""});
                let call = json!({"index": index, "id": call_id, "type": "function", "function": function});
                out.push(self.chunk(json!({"tool_calls": [call]}), Value::Null));
                let (call_id, name) = (call_id.clone(), name.clone());
                self.calls.push(Call { call_id, name, arguments: String::new() });
            }
            What::CallArguments { call_id, delta } => {
                if let Some(index) = self.calls.iter().rposition(|call| call.call_id == *call_id) {
                    self.calls[index].arguments.push_str(delta);
                    let call = json!({"index": index, "function": {"arguments": delta}});
                    out.push(self.chunk(json!({"tool_calls": [call]}), Value::Null));
                }
            }
            What::Usage(facts) => self.usage.add(facts),
            What::Completed(said) => {
                self.said = *said;
                self.begin(&mut out);
                out.push(self.chunk(json!({}), self.reason().into()));
                if self.include_usage {
                    let mut chunk = self.object_of("chat.completion.chunk", json!([]));
                    chunk["usage"] = self.usage.chat();
                    out.push(Frame::of(None, chunk.to_string()));
                }
                out.push(Frame::of(None, "[DONE]".to_owned()));
            }
            What::Failed(failed) => {
                let data = failed_object(Dialect::OpenAiChat, failed.code, &failed.message);
                out.push(Frame::of(None, data));
            }
        }
        out
    }

    fn begin(&mut self, out: &mut Vec<Frame>) {
        if !self.begun {
            self.begun = true;
            out.push(self.chunk(json!({"role": "assistant", "content": ""}), Value::Null));
        }
    }

    fn say(&mut self, delta: &str, out: &mut Vec<Frame>) {
        self.begin(out);
        self.text.get_or_insert_default().push_str(delta);
        if !delta.is_empty() {
            out.push(self.chunk(json!({"content": delta}), Value::Null));
        }
    }

    fn reason(&self) -> &'static str {
        let at_limit = self.usage.reached(self.head.origin.max_tokens);
        Ending { said: self.said, at_limit, calls: !self.calls.is_empty() }.chat()
    }

    fn object_of(&self, object: &str, choices: Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.head.hex()),
            "object": object,
            "created": self.head.created_s(),
            "model": self.head.origin.model,
            "choices": choices,
        })
    }

    fn chunk(&self, delta: Value, reason: Value) -> Frame {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
        let mut chunk = self.object_of("chat.completion.chunk", json!([choice]));
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        Frame::of(None, chunk.to_string())
    }

    pub fn object(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if !self.calls.is_empty() {
            let call = |Call { call_id, name, arguments }: &Call| json!({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}});
            message["tool_calls"] = self.calls.iter().map(call).collect();
        } else if self.text.is_none() {
            message["content"] = "".into();
        }
        let choice =
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": self.reason()});
        let mut object = self.object_of("chat.completion", json!([choice]));
        object["usage"] = self.usage.chat();
        object
    }
}

#[cfg(test)]
mod tests;
