//! Events to a snapshot, once more and on purpose not with the product's own code.
//!
//! Two implementations of one rule that agree on every history are worth more than one that agrees with itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The snapshot that these events make, as `GET /v1/executions/{id}` shows it, without `created_at`.
pub fn snapshot(events: &[Value]) -> Value {
    let mut fold = Fold::default();
    for event in events {
        fold.push(event);
    }
    fold.finish(events)
}

/// What `GET /v1/executions/{id}/result` shows for such a snapshot: the answer's status and body.
pub fn result(snapshot: &Value) -> (u16, Value) {
    let mut body = Map::new();
    let mut take = |name: &str| {
        if let Some(value) = snapshot.get(name) {
            body.insert(name.to_owned(), value.clone());
        }
    };
    if snapshot["status"] == "succeeded" {
        for name in ["execution_id", "target", "result", "usage"] {
            take(name);
        }
        body.insert("artifacts".to_owned(), snapshot.get("artifacts").cloned().unwrap_or(json!([])));
        return (200, Value::Object(body));
    }
    take("status");
    take("error");
    (409, Value::Object(body))
}

/// How far an attempt may have come, in order.
const REACHED: [&str; 4] = ["selected", "request_sent", "response_headers", "first_output"];

/// Whether the `attempts` of a snapshot are those that the events tell of. How far one came is evidence beside the
/// events; only an output proves more than the events leave open.
pub fn attempts_agree(events: &[Value], attempts: Option<&Value>) -> bool {
    let mut selected: Vec<(&Value, &Value, bool)> = Vec::new();
    for event in events {
        match event["type"].as_str().unwrap_or_default() {
            "route.selected" => selected.push((&event["attempt"], &event["target"], false)),
            "output.delta" | "output.result" | "tool.call.started" | "tool.call.arguments.delta" => {
                if let Some(last) = selected.last_mut() {
                    last.2 = true;
                }
            }
            _ => {}
        }
    }
    let attempts: Vec<&Value> = attempts.and_then(Value::as_array).into_iter().flatten().collect();
    attempts.len() == selected.len()
        && attempts.iter().zip(selected).all(|(attempt, (number, target, output))| {
            let reached = attempt["reached"].as_str().unwrap_or_default();
            attempt["attempt"] == *number
                && attempt["target"] == *target
                && REACHED.contains(&reached)
                && (reached == "first_output") == output
        })
}

#[derive(Default)]
struct Fold {
    usage: Vec<Value>,
    target: Option<Value>,
    stop_reason: Option<Value>,
    error: Option<Value>,
    whole: Option<(Value, Option<Value>)>,
    texts: BTreeMap<u64, String>,
    calls: Vec<(String, Value, String)>,
}

impl Fold {
    fn push(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "route.selected" => self.target = Some(event["target"].clone()),
            "execution.completed" => {
                self.target = Some(event["target"].clone());
                self.stop_reason = event.get("stop_reason").cloned();
            }
            "output.delta" => {
                let index = event["output_index"].as_u64().unwrap_or_default();
                self.texts.entry(index).or_default().push_str(&text("delta"));
            }
            "tool.call.started" => {
                let call = (text("call_id"), event["name"].clone(), String::new());
                match self.calls.iter_mut().find(|(id, ..)| *id == call.0) {
                    Some(known) => *known = call,
                    None => self.calls.push(call),
                }
            }
            "tool.call.arguments.delta" => {
                if let Some(call) = self.calls.iter_mut().find(|(id, ..)| *id == text("call_id")) {
                    call.2.push_str(&text("delta"));
                }
            }
            "output.result" => self.whole = Some((event["result"].clone(), event.get("artifacts").cloned())),
            "usage.reported" => self.usage.extend(event["facts"].as_array().into_iter().flatten().cloned()),
            "execution.failed" => self.error = Some(event["error"].clone()),
            _ => {}
        }
    }

    fn finish(self, events: &[Value]) -> Value {
        let last = events.last().unwrap_or(&Value::Null);
        let mut snapshot = json!({
            "execution_id": last["execution_id"],
            "status": last["status"],
            "updated_at": last["time"],
            "last_sequence": last["sequence"],
            "usage": self.usage,
        });
        let (result, artifacts) = match self.whole {
            Some((result, artifacts)) => (Some(result), artifacts),
            None if self.texts.is_empty() && self.calls.is_empty() => (None, None),
            None => (Some(joined(self.texts, self.calls)), None),
        };
        let members = [
            ("target", self.target),
            ("stop_reason", self.stop_reason),
            ("error", self.error),
            ("result", result),
            ("artifacts", artifacts),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                snapshot[name] = value;
            }
        }
        snapshot
    }
}

fn joined(texts: BTreeMap<u64, String>, calls: Vec<(String, Value, String)>) -> Value {
    let outputs: Vec<Value> = texts
        .into_iter()
        .map(|(index, text)| json!({"index": index, "type": "text", "text": text}))
        .collect();
    let calls: Vec<Value> = calls
        .into_iter()
        .map(|(call_id, name, arguments)| json!({"call_id": call_id, "name": name, "arguments": arguments}))
        .collect();
    json!({"outputs": outputs, "tool_calls": calls})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_those_of_the_events() {
        let target = json!({"provider": "p", "model": "m"});
        let selected = json!({"type": "route.selected", "attempt": 1, "target": target});
        let delta = json!({"type": "output.delta", "output_index": 0, "delta": "x"});
        let reached = |word: &str| json!([{"attempt": 1, "target": target, "reached": word}]);
        let (quiet, spoken) = ([selected.clone()], [selected.clone(), delta]);
        assert!(attempts_agree(&quiet, Some(&reached("request_sent"))));
        assert!(attempts_agree(&spoken, Some(&reached("first_output"))));
        assert!(!attempts_agree(&quiet, Some(&reached("first_output"))), "nothing was said");
        assert!(!attempts_agree(&spoken, Some(&reached("selected"))), "something was said");
        assert!(!attempts_agree(&quiet, Some(&reached("somewhere"))));
        assert!(!attempts_agree(&quiet, None));
        assert!(attempts_agree(&[], None));
    }

    #[test]
    fn text_calls_usage_and_error_become_one_state() {
        let target = json!({"provider": "p", "model": "m"});
        let events = [
            json!({"type": "execution.accepted", "status": "accepted", "execution_id": "x", "sequence": 1, "time": "t1"}),
            json!({"type": "route.selected", "target": target, "status": "routing"}),
            json!({"type": "output.delta", "output_index": 1, "delta": "b"}),
            json!({"type": "output.delta", "output_index": 0, "delta": "a"}),
            json!({"type": "tool.call.started", "call_id": "c", "name": "n"}),
            json!({"type": "tool.call.arguments.delta", "call_id": "c", "delta": "{}"}),
            json!({"type": "tool.call.arguments.delta", "call_id": "unknown", "delta": "{}"}),
            json!({"type": "usage.reported", "facts": [{"unit": "u"}]}),
            json!({"type": "execution.failed", "status": "failed", "error": {"code": "c"}, "execution_id": "x",
                "sequence": 9, "time": "t9"}),
        ];
        let snapshot = snapshot(&events);
        assert_eq!(
            snapshot,
            json!({"execution_id": "x", "status": "failed", "updated_at": "t9", "last_sequence": 9,
                "usage": [{"unit": "u"}], "target": target, "error": {"code": "c"},
                "result": {"outputs": [{"index": 0, "type": "text", "text": "a"}, {"index": 1, "type": "text", "text": "b"}],
                    "tool_calls": [{"call_id": "c", "name": "n", "arguments": "{}"}]}})
        );
        assert_eq!(result(&snapshot), (409, json!({"status": "failed", "error": {"code": "c"}})));
    }

    #[test]
    fn a_whole_result_wins_and_a_success_shows_it() {
        let events = [
            json!({"type": "output.delta", "output_index": 0, "delta": "a"}),
            json!({"type": "output.result", "result": null}),
            json!({"type": "execution.completed", "status": "succeeded", "target": "t", "execution_id": "x",
                "sequence": 3, "time": "t"}),
        ];
        let snapshot = snapshot(&events);
        assert!(snapshot.as_object().unwrap().contains_key("result") && snapshot["result"].is_null());
        let body = json!({"execution_id": "x", "target": "t", "result": null, "usage": [], "artifacts": []});
        assert_eq!(result(&snapshot), (200, body));
    }
}
