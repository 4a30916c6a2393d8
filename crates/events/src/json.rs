//! The JSON text of events, snapshots and results: the one place that renders them.
//!
//! Live streams, replays and logical size accounting share these functions, so that they cannot disagree by a byte.
//! Members stand in a fixed order, the text has no insignificant white space and no line break. Must never skip an
//! escape and never render a number in another way than ECMAScript does.

use crate::{
    Artifact, Attempt, ErrorFact, Event, EventBody, ExecutionId, Snapshot, Status, StopReason, Target,
    Timestamp, UsageFact,
};

/// Where text goes: a string, or a counter that only measures it.
pub(crate) trait Sink {
    fn put(&mut self, text: &str);
}

impl Sink for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// Measures text without keeping it, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Length(pub(crate) usize);

impl Sink for Length {
    fn put(&mut self, text: &str) {
        self.0 += text.len();
    }
}

/// An event as one line of JSON: `type`, `status`, `execution_id`, `sequence`, `time`, then the type's own members.
#[must_use]
pub fn event_json(execution_id: ExecutionId, event: &Event) -> String {
    let mut out = String::with_capacity(256);
    put_event(&mut out, execution_id, event.sequence, event.time, &event.body);
    out
}

/// Length of [`event_json`]'s text, which is not made for it.
pub(crate) fn event_json_bytes(execution_id: ExecutionId, event: &Event) -> usize {
    let mut out = Length::default();
    put_event(&mut out, execution_id, event.sequence, event.time, &event.body);
    out.0
}

/// A snapshot: `execution_id`, `status`, `created_at`, `updated_at`, `last_sequence`, `usage`, `attempts`, and where
/// known `target`, `stop_reason`, `error`, `result`, `artifacts`.
#[must_use]
pub fn snapshot_json(snapshot: &Snapshot) -> String {
    let mut out =
        String::with_capacity(512 + snapshot.result.as_ref().map_or(0, |result| result.as_str().len()));
    put_text_member(&mut out, "{\"execution_id\":\"", &snapshot.execution_id.to_string());
    put_text_member(&mut out, ",\"status\":\"", snapshot.status.as_str());
    put_text_member(&mut out, ",\"created_at\":\"", &snapshot.created_at.to_string());
    put_text_member(&mut out, ",\"updated_at\":\"", &snapshot.updated_at.to_string());
    out.put(",\"last_sequence\":");
    out.put(&snapshot.last_sequence.to_string());
    out.put(",\"usage\":");
    put_list(&mut out, &snapshot.usage, put_usage_fact);
    out.put(",\"attempts\":");
    put_list(&mut out, &snapshot.attempts, put_attempt);
    if let Some(target) = &snapshot.target {
        out.put(",\"target\":");
        put_target(&mut out, target);
    }
    put_stop_reason(&mut out, snapshot.stop_reason);
    if let Some(error) = &snapshot.error {
        out.put(",\"error\":");
        put_error(&mut out, error);
    }
    if let Some(result) = &snapshot.result {
        out.put(",\"result\":");
        out.put(result.as_str());
    }
    if let Some(artifacts) = &snapshot.artifacts {
        out.put(",\"artifacts\":");
        put_list(&mut out, artifacts, put_artifact);
    }
    out.put("}");
    out
}

/// What `/result` answers for a succeeded execution: `execution_id`, `target`, `result`, `artifacts`, `usage`;
/// `target` and `result` are absent where unknown, the two lists always stand.
#[must_use]
pub fn result_json(snapshot: &Snapshot) -> String {
    let mut out =
        String::with_capacity(256 + snapshot.result.as_ref().map_or(0, |result| result.as_str().len()));
    put_text_member(&mut out, "{\"execution_id\":\"", &snapshot.execution_id.to_string());
    if let Some(target) = &snapshot.target {
        out.put(",\"target\":");
        put_target(&mut out, target);
    }
    if let Some(result) = &snapshot.result {
        out.put(",\"result\":");
        out.put(result.as_str());
    }
    out.put(",\"artifacts\":");
    put_list(&mut out, snapshot.artifacts.as_deref().unwrap_or_default(), put_artifact);
    out.put(",\"usage\":");
    put_list(&mut out, &snapshot.usage, put_usage_fact);
    out.put("}");
    out
}

/// An error object: `code`, `message`, `retryable`, and where present `provider_code`, `outcome`.
#[must_use]
pub fn error_json(error: &ErrorFact) -> String {
    let mut out = String::new();
    put_error(&mut out, error);
    out
}

/// A JSON string with its quotes.
#[must_use]
pub fn string_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    put_string(&mut out, text);
    out
}

pub(crate) fn put_event(
    out: &mut impl Sink,
    execution_id: ExecutionId,
    sequence: u64,
    time: Timestamp,
    body: &EventBody,
) {
    put_text_member(out, "{\"type\":\"", body.type_name());
    put_text_member(out, ",\"status\":\"", body.status().as_str());
    put_text_member(out, ",\"execution_id\":\"", &execution_id.to_string());
    out.put(",\"sequence\":");
    out.put(&sequence.to_string());
    put_text_member(out, ",\"time\":\"", &time.to_string());
    put_own_members(out, body);
    out.put("}");
}

fn put_own_members(out: &mut impl Sink, body: &EventBody) {
    match body {
        EventBody::Accepted => {}
        EventBody::RouteSelected { target, attempt } => put_route(out, target, *attempt),
        EventBody::RouteAttemptFailed { target, attempt, error } => {
            put_route(out, target, *attempt);
            out.put(",\"error\":");
            put_error(out, error);
        }
        EventBody::OutputDelta { output_index, delta } => {
            out.put(",\"output_index\":");
            out.put(&output_index.to_string());
            put_string_member(out, ",\"delta\":", delta);
        }
        EventBody::ToolCallStarted { call_id, name } => {
            put_string_member(out, ",\"call_id\":", call_id);
            put_string_member(out, ",\"name\":", name);
        }
        EventBody::ToolCallArgumentsDelta { call_id, delta } => {
            put_string_member(out, ",\"call_id\":", call_id);
            put_string_member(out, ",\"delta\":", delta);
        }
        EventBody::Progress { phase, progress } => {
            put_text_member(out, ",\"phase\":\"", phase.as_str());
            if let Some(progress) = progress {
                out.put(",\"progress\":");
                put_number(out, progress.get());
            }
        }
        EventBody::OutputResult { result, artifacts } => {
            out.put(",\"result\":");
            out.put(result.as_str());
            if let Some(artifacts) = artifacts {
                out.put(",\"artifacts\":");
                put_list(out, artifacts, put_artifact);
            }
        }
        EventBody::UsageReported { facts } => {
            out.put(",\"facts\":");
            put_list(out, facts, put_usage_fact);
        }
        EventBody::Completed { target, stop_reason } => {
            out.put(",\"target\":");
            put_target(out, target);
            put_stop_reason(out, *stop_reason);
        }
        EventBody::Failed { error, cancelled: _ } => {
            out.put(",\"error\":");
            put_error(out, error);
        }
    }
}

fn put_stop_reason(out: &mut impl Sink, reason: Option<StopReason>) {
    if let Some(reason) = reason {
        put_text_member(out, ",\"stop_reason\":\"", reason.as_str());
    }
}

fn put_route(out: &mut impl Sink, target: &Target, attempt: u32) {
    out.put(",\"target\":");
    put_target(out, target);
    out.put(",\"attempt\":");
    out.put(&attempt.to_string());
}

fn put_target(out: &mut impl Sink, target: &Target) {
    put_string_member(out, "{\"provider\":", &target.provider);
    put_string_member(out, ",\"model\":", &target.model);
    out.put("}");
}

fn put_error(out: &mut impl Sink, error: &ErrorFact) {
    put_text_member(out, "{\"code\":\"", error.code.as_str());
    put_string_member(out, ",\"message\":", &error.message);
    out.put(if error.retryable { ",\"retryable\":true" } else { ",\"retryable\":false" });
    if let Some(code) = &error.provider_code {
        put_string_member(out, ",\"provider_code\":", code);
    }
    if let Some(outcome) = error.outcome {
        put_text_member(out, ",\"outcome\":\"", outcome.as_str());
    }
    out.put("}");
}

fn put_artifact<S: Sink>(out: &mut S, artifact: &Artifact) {
    put_string_member(out, "{\"uri\":", &artifact.uri);
    let members = [
        (",\"media_type\":", &artifact.media_type),
        (",\"name\":", &artifact.name),
        (",\"expires_at\":", &artifact.expires_at),
    ];
    for (opening, value) in members {
        if let Some(value) = value {
            put_string_member(out, opening, value);
        }
    }
    out.put("}");
}

fn put_usage_fact<S: Sink>(out: &mut S, fact: &UsageFact) {
    put_string_member(out, "{\"unit\":", &fact.unit);
    out.put(",\"quantity\":");
    put_number(out, fact.quantity.get());
    put_text_member(out, ",\"source\":\"", fact.source.as_str());
    match fact.complete {
        None => out.put("}"),
        Some(true) => out.put(",\"complete\":true}"),
        Some(false) => out.put(",\"complete\":false}"),
    }
}

fn put_attempt<S: Sink>(out: &mut S, attempt: &Attempt) {
    out.put("{\"attempt\":");
    out.put(&attempt.number.to_string());
    out.put(",\"target\":");
    put_target(out, &attempt.target);
    put_text_member(out, ",\"reached\":\"", attempt.reached.as_str());
    if let Some(request_id) = &attempt.request_id {
        put_string_member(out, ",\"request_id\":", request_id.as_str());
    }
    if let Some(error) = &attempt.error {
        out.put(",\"error\":");
        put_error(out, error);
    }
    out.put("}");
}

pub(crate) fn put_list<S: Sink, T>(out: &mut S, items: &[T], put_item: impl Fn(&mut S, &T)) {
    out.put("[");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.put(",");
        }
        put_item(out, item);
    }
    out.put("]");
}

/// A member whose text needs no escape: `opening` ends with the value's opening quote.
fn put_text_member(out: &mut impl Sink, opening: &str, text: &str) {
    out.put(opening);
    out.put(text);
    out.put("\"");
}

pub(crate) fn put_string_member(out: &mut impl Sink, opening: &str, text: &str) {
    out.put(opening);
    put_string(out, text);
}

/// The shortest text that reads back as this double, laid out as ECMAScript does: `1`, `0.1`, `1e+21`.
fn put_number(out: &mut impl Sink, value: f64) {
    out.put(ryu_js::Buffer::new().format_finite(value));
}

/// A string with its quotes. Only the quotation mark, the backslash and U+0000 to U+001F are escaped, each in its
/// shortest form, so that the text of a string is the same wherever it is rendered.
pub(crate) fn put_string(out: &mut impl Sink, text: &str) {
    out.put("\"");
    let mut rest = text;
    while let Some((at, escape)) = first_escape(rest) {
        out.put(&rest[..at]);
        out.put(escape);
        rest = &rest[at + 1..];
    }
    out.put(rest);
    out.put("\"");
}

/// The first byte that does not stand for itself, and what stands for it. Looks at many bytes at once: nearly all text
/// is plain, and a byte at a time was a tenth of a whole check.
fn first_escape(text: &str) -> Option<(usize, &'static str)> {
    const AT_ONCE: usize = 32;
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    let all_plain = |bytes: &&[u8]| bytes.iter().fold(true, |all, byte| all & is_plain(byte));
    let plain = text.as_bytes().chunks_exact(AT_ONCE).take_while(all_plain).count() * AT_ONCE;
    let mut rest = text.bytes().enumerate().skip(plain);
    rest.find_map(|(at, byte)| escape_of(byte).map(|escape| (at, escape)))
}

/// Bytes that a character takes inside a JSON string: at most 6.
pub(crate) fn escaped_char_bytes(character: char) -> usize {
    u8::try_from(character).ok().and_then(escape_of).map_or(character.len_utf8(), str::len)
}

const fn escape_of(byte: u8) -> Option<&'static str> {
    const CONTROL: [&str; 32] = [
        "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007", "\\b", "\\t",
        "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011", "\\u0012", "\\u0013",
        "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c",
        "\\u001d", "\\u001e", "\\u001f",
    ];
    match byte {
        0..=0x1f => Some(CONTROL[byte as usize]),
        b'"' => Some("\\\""),
        b'\\' => Some("\\\\"),
        _ => None,
    }
}

/// The status text of a flat answer, for instance the 409 of `/result`: `{"status":"failed","error":{..}}`.
#[must_use]
pub fn status_json(status: Status, error: Option<&ErrorFact>) -> String {
    let mut out = String::new();
    put_text_member(&mut out, "{\"status\":\"", status.as_str());
    if let Some(error) = error {
        out.put(",\"error\":");
        put_error(&mut out, error);
    }
    out.put("}");
    out
}

#[cfg(test)]
mod tests;
