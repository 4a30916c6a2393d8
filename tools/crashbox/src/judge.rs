//! The rules that the events of one ended execution must meet, and how it ended.
//!
//! Pure: events and what was asked go in, a verdict comes out.

use serde_json::Value;

use crate::finding::{Class, Wrong};
use crate::frame::{Frame, is_terminal};
use crate::history::State;
use crate::work::{Output, Text, Work};

const INTERRUPTED: &str = "Execution was interrupted by a runtime restart; remote outcome is unknown";
const NOTHING_SENT: &str = "Execution was interrupted by a runtime restart; nothing was sent";

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    Succeeded,
    Failed,
    Cancelled,
    /// A kill cut it; nobody knows what its provider did.
    Interrupted,
    /// A kill cut it before anything was sent.
    NotDispatched,
}

/// Judges all frames of an execution. `calls` is how often the counting upstream received its prompt.
///
/// # Errors
/// The first rule that is broken.
pub fn judge(work: &Work, state: &State, frames: &[Frame], calls: u64) -> Result<Ending, Wrong> {
    let events: Vec<Value> = frames.iter().map(Frame::event).collect();
    let id = state.id.as_deref().unwrap_or("?");
    let wrong = |class, what: &str| {
        let last = events.last().map(Value::to_string).unwrap_or_default();
        let body = String::from_utf8_lossy(&work.body[..work.body.len().min(600)]);
        Wrong::new(class, format!("{id}: {what}; {} events, last {last}; asked {body}", events.len()))
    };
    order(&events).map_err(|(class, what)| wrong(class, &what))?;
    let routed = events.iter().filter(|event| event["type"] == "route.selected").count();
    if calls > 1 {
        return Err(wrong(Class::Phantom, &format!("the provider was called {calls} times")));
    }
    if calls == 1 && routed == 0 {
        return Err(wrong(Class::Phantom, "the provider was called before its route was durable"));
    }
    if routed > 1 {
        return Err(wrong(Class::Phantom, "more than one attempt"));
    }
    let Some(last) = events.last() else { return Err(wrong(Class::Lost, "no events")) };
    if last["type"] == "execution.completed" {
        success(work, &events).map_err(|what| wrong(Class::Disagrees, &what))?;
        return Ok(Ending::Succeeded);
    }
    failure(work, state, last, routed).map_err(|what| wrong(Class::Disagrees, what))
}

/// Contiguous from 1, the accepting event first, a status per type, one terminal event and it is the last.
fn order(events: &[Value]) -> Result<(), (Class, String)> {
    for (event, expected) in events.iter().zip(1_u64..) {
        if event["sequence"].as_u64() != Some(expected) {
            return Err((Class::Lost, format!("sequence {expected} is missing")));
        }
        let first = event["type"] == "execution.accepted";
        if first != (expected == 1) {
            return Err((Class::Disagrees, format!("event {expected} is {}", event["type"])));
        }
        let allowed: &[&str] = match event["type"].as_str().unwrap_or_default() {
            "execution.accepted" => &["accepted"],
            "route.selected" => &["routing"],
            "execution.completed" => &["succeeded"],
            "execution.failed" => &["failed", "cancelled"],
            _ => &["running"],
        };
        if !allowed.iter().any(|status| event["status"] == *status) {
            return Err((Class::Disagrees, format!("event {expected} has status {}", event["status"])));
        }
    }
    match events.iter().filter(|event| is_terminal(event)).count() {
        0 => Err((Class::Stuck, "no terminal event".to_owned())),
        1 if events.last().is_some_and(is_terminal) => Ok(()),
        1 => Err((Class::Phantom, "events behind the terminal one".to_owned())),
        count => Err((Class::Phantom, format!("{count} terminal events"))),
    }
}

fn success(work: &Work, events: &[Value]) -> Result<(), String> {
    let Some(Output { deltas, text, tool_calls }) = &work.expected.success else {
        return Err("such a request never succeeds".to_owned());
    };
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let joined: String = of("output.delta").filter_map(|event| event["delta"].as_str()).collect();
    let count = of("output.delta").count() as u64;
    if deltas.is_some_and(|deltas| deltas != count) {
        return Err(format!("{count} deltas, expected {deltas:?}"));
    }
    let fits = match text {
        Text::Exactly(text) => *text == joined,
        Text::Bytes(bytes) => *bytes == joined.len() as u64,
    };
    if !fits {
        return Err(format!("{} bytes of text, not what was asked for", joined.len()));
    }
    for (call_id, name, arguments) in tool_calls {
        let started =
            of("tool.call.started").any(|event| event["call_id"] == **call_id && event["name"] == **name);
        let fragments = of("tool.call.arguments.delta").filter(|event| event["call_id"] == **call_id);
        let given: String = fragments.filter_map(|event| event["delta"].as_str()).collect();
        if !started || given != *arguments {
            return Err(format!("tool call {call_id} has arguments {given}"));
        }
    }
    Ok(())
}

fn failure(work: &Work, state: &State, last: &Value, routed: usize) -> Result<Ending, &'static str> {
    let error = &last["error"];
    let code = error["code"].as_str().unwrap_or_default();
    let cancelled = last["status"] == "cancelled";
    if cancelled != (code == "cancelled") {
        return Err("status and code disagree about a cancellation");
    }
    if code == "internal_error" {
        if state.stopped_in_order {
            return Err("interrupted though the node stopped in order");
        }
        return interruption(last, routed);
    }
    if error.get("outcome").is_some() {
        return Err("an outcome without an interruption");
    }
    if cancelled {
        let asked = state.cancel_asked || state.stop_asked || state.stopped_in_order;
        return if asked { Ok(Ending::Cancelled) } else { Err("cancelled though nobody asked") };
    }
    let allowed = work.expected.failures.contains(&code);
    if allowed { Ok(Ending::Failed) } else { Err("a failure that its request does not explain") }
}

fn interruption(last: &Value, routed: usize) -> Result<Ending, &'static str> {
    let error = &last["error"];
    if error["retryable"] != Value::Bool(false) {
        return Err("an interruption must not be retryable");
    }
    match (error["outcome"].as_str(), error["message"].as_str()) {
        (Some("unknown"), Some(INTERRUPTED)) => Ok(Ending::Interrupted),
        (Some("not_dispatched"), Some(NOTHING_SENT)) if routed == 0 => Ok(Ending::NotDispatched),
        (Some("not_dispatched"), _) => Err("not_dispatched though a route was selected"),
        _ => Err("an internal error that is no interruption"),
    }
}

#[cfg(test)]
mod tests;
