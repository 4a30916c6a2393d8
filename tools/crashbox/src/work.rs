//! What is asked of the node: requests of every shape, and what may come of each.
//!
//! Owns the choice of a request and the ends it allows. It never looks at an answer; that is `judge`'s.

use serde_json::{Value, json};

use crate::random::Random;
use crate::upstream::{Ending, Script};

/// The ability served by the mock.
pub const MOCK_ABILITY: &str = "text-generation";
/// The ability served by the counting upstream.
pub const COUNTED_ABILITY: &str = "counted-text";
/// The identity of the counting upstream in the configuration.
pub const COUNTED_PROVIDER: &str = "counted";

/// One request, unchanging once it is made.
#[derive(Debug, Clone)]
pub struct Work {
    /// Unique in the campaign; part of every prompt.
    pub name: String,
    /// The idempotency key, if it has one.
    pub key: Option<String>,
    /// The JSON body.
    pub body: Vec<u8>,
    /// Whether it goes to the counting upstream.
    pub counted: bool,
    pub expected: Expected,
}

/// What may come of a request that nobody interrupts.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The output it has when it succeeds; `None` if it never does.
    pub success: Option<Output>,
    /// Codes that it may fail with.
    pub failures: Vec<&'static str>,
    /// Whether only a cancel, a deadline or a kill ends it.
    pub stalls: bool,
}

/// The output of a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Number of `output.delta` events, if it is known.
    pub deltas: Option<u64>,
    /// All text, joined.
    pub text: Text,
    /// Tool calls as `(call_id, name, arguments)`.
    pub tool_calls: Vec<(String, String, String)>,
}

/// What is known about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    Exactly(String),
    Bytes(u64),
}

impl Work {
    /// A request of a random shape. `name` must be new.
    pub fn random(name: String, random: &mut Random) -> Work {
        let (mut body, expected, counted) = match random.within(0..=99) {
            0..=39 => counted(&name, random),
            _ => mock(&name, random),
        };
        let mut expected = expected;
        // A deadline makes a stall end by itself, and now and then races with an ordinary end.
        if random.chance(if expected.stalls { 60 } else { 10 }) {
            body["deadline_ms"] = random.within(1..=400).into();
            expected.failures.push("deadline_exceeded");
        }
        let key = random.chance(80).then(|| format!("key {name}"));
        Work { name, key, body: body.to_string().into_bytes(), counted, expected }
    }

    /// Another request under the same key: a conflict.
    pub fn different(&self) -> Vec<u8> {
        let input = json!([{"type": "text", "text": format!("not {}", self.name)}]);
        json!({"ability": MOCK_ABILITY, "input": input}).to_string().into_bytes()
    }
}

type Made = (Value, Expected, bool);

fn counted(name: &str, random: &mut Random) -> Made {
    let ending = match random.within(0..=9) {
        0..=5 => Ending::Whole,
        6 => Ending::Cut,
        7 | 8 => Ending::Silent,
        _ => Ending::Status(*random.pick(&[400, 429, 500, 503])),
    };
    let script = Script {
        name: name.to_owned(),
        ending,
        deltas: random.within(1..=12),
        delay_ms: if random.chance(60) { 0 } else { random.within(1..=15) },
    };
    let body = json!({"ability": COUNTED_ABILITY, "input": [{"type": "text", "text": script.prompt()}]});
    let whole = Output {
        // An upstream's deltas may be joined or cut on their way, their text may not.
        deltas: None,
        text: Text::Exactly(script.text()),
        tool_calls: Vec::new(),
    };
    let expected = match ending {
        Ending::Whole => Expected { success: Some(whole), failures: Vec::new(), stalls: false },
        Ending::Cut => failing(&["provider_unavailable", "provider_protocol_error"]),
        Ending::Silent => Expected { success: None, failures: Vec::new(), stalls: true },
        Ending::Status(429) => failing(&["rate_limited"]),
        Ending::Status(_) => failing(&["provider_unavailable"]),
    };
    (body, expected, true)
}

fn failing(codes: &[&'static str]) -> Expected {
    Expected { success: None, failures: codes.to_vec(), stalls: false }
}

fn mock(name: &str, random: &mut Random) -> Made {
    let padding = if random.chance(4) { random.within(10_000..=200_000) } else { random.within(0..=200) };
    let prompt = format!("{name} {}", "p".repeat(padding as usize));
    let (script, expected) = script(random);
    let ability =
        if expected.failures.contains(&"capability_unavailable") { "unknown" } else { MOCK_ABILITY };
    let mut body = json!({"ability": ability, "input": [{"type": "text", "text": prompt}]});
    if !script.is_null() {
        body["extensions"] = json!({"mock": script});
    }
    (body, expected, false)
}

fn script(random: &mut Random) -> (Value, Expected) {
    let chunks = random.within(1..=8);
    let bytes = random.within(1..=64);
    match random.within(0..=12) {
        0 => (Value::Null, succeeding(3, Text::Exactly("hello from mock".to_owned()))),
        1..=3 => (json!({"chunks": chunks, "chunk_bytes": bytes}), text(chunks, bytes)),
        4 | 5 => {
            let chunks = random.within(5..=40);
            (
                json!({"chunks": chunks, "chunk_bytes": bytes, "delay_ms": random.within(1..=12)}),
                text(chunks, bytes),
            )
        }
        6 => {
            let (chunks, bytes) = (random.within(1..=3), random.within(16_384..=200_000));
            let output = Output { deltas: None, text: Text::Bytes(chunks * bytes), tool_calls: Vec::new() };
            // A delta of this size may become several events; its bytes may not change.
            let expected = Expected { success: Some(output), failures: Vec::new(), stalls: false };
            (json!({"chunks": chunks, "chunk_bytes": bytes}), expected)
        }
        7 => tools(random),
        8 => {
            let code = *random.pick(&["provider_unavailable", "rate_limited", "provider_protocol_error"]);
            let after = random.within(0..=chunks);
            let script = json!({"chunks": chunks, "chunk_bytes": bytes, "fail_after": after,
                "fail_code": code, "fail_retryable": random.chance(50)});
            (script, failing(&[code]))
        }
        9 => {
            let script = json!({"chunks": 9, "chunk_bytes": bytes, "stall_after": random.within(0..=4)});
            (script, Expected { success: None, failures: Vec::new(), stalls: true })
        }
        10 => (json!({"never_complete": true}), failing(&["provider_protocol_error"])),
        11 => {
            let script = json!({"chunks": 20, "chunk_bytes": bytes, "delay_ms": 5, "ignore_cancel": true});
            (script, text(20, bytes))
        }
        _ if random.chance(50) => (json!({"no_such_member": 1}), failing(&["invalid_request"])),
        _ => (Value::Null, failing(&["capability_unavailable"])),
    }
}

fn text(chunks: u64, bytes: u64) -> Expected {
    succeeding(chunks, Text::Bytes(chunks * bytes))
}

fn succeeding(deltas: u64, text: Text) -> Expected {
    let output = Output { deltas: Some(deltas), text, tool_calls: Vec::new() };
    Expected { success: Some(output), failures: Vec::new(), stalls: false }
}

fn tools(random: &mut Random) -> (Value, Expected) {
    let calls: Vec<(String, String, String)> = (0..random.within(1..=3))
        .map(|place| {
            (format!("call-{place}"), "look_up".to_owned(), format!("{{\"n\":{}}}", random.within(0..=999)))
        })
        .collect();
    let listed: Vec<Value> = calls
        .iter()
        .map(|(call_id, name, arguments)| json!({"call_id": call_id, "name": name, "arguments": arguments}))
        .collect();
    let usage = json!([{"unit": "tool_request", "quantity": calls.len(), "source": "provider"},
        {"unit": "crash_second", "quantity": 0.25, "complete": false}]);
    let output = Output { deltas: Some(1), text: Text::Bytes(5), tool_calls: calls };
    let script = json!({"chunks": 1, "chunk_bytes": 5, "tool_calls": listed, "usage": usage});
    (script, Expected { success: Some(output), failures: Vec::new(), stalls: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_can_end_and_says_how() {
        let mut random = Random::new(5);
        for number in 0..2_000 {
            let work = Work::random(format!("w{number}"), &mut random);
            let body: Value = serde_json::from_slice(&work.body).unwrap();
            assert!(body["input"][0]["text"].as_str().unwrap().contains(&work.name));
            let Expected { success, failures, stalls } = &work.expected;
            assert!(success.is_some() || !failures.is_empty() || *stalls, "{body}");
            assert_eq!(work.counted, body["ability"] == COUNTED_ABILITY);
            assert_eq!(failures.contains(&"deadline_exceeded"), body.get("deadline_ms").is_some());
        }
    }

    #[test]
    fn a_different_request_is_different_and_valid_json() {
        let work = Work::random("w".to_owned(), &mut Random::new(1));
        let different: Value = serde_json::from_slice(&work.different()).unwrap();
        assert_ne!(different, serde_json::from_slice::<Value>(&work.body).unwrap());
    }
}
