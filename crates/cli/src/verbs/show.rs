//! `sealog show ID`: what is known of one execution, in words.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::args::asking::Show;
use crate::asked::{Asked, read_snapshot};
use crate::exit::Exit;
use crate::failure::{Result, one_line};
use crate::render::Render;
use crate::runtime::runtime;

/// Longest piece of a result that is shown, in characters.
const RESULT_CHARS_MAX: usize = 2000;

#[derive(Debug, Deserialize)]
struct Snapshot {
    execution_id: String,
    status: String,
    created_at: String,
    updated_at: String,
    last_sequence: u64,
    usage: Vec<Usage>,
    #[serde(default)]
    attempts: Vec<Attempt>,
    target: Option<Target>,
    stop_reason: Option<String>,
    error: Option<Error>,
    result: Option<Box<RawValue>>,
    artifacts: Option<Vec<Artifact>>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    unit: String,
    quantity: Value,
    source: String,
}

#[derive(Debug, Deserialize)]
struct Target {
    provider: String,
    model: String,
}

#[derive(Debug, Deserialize)]
struct Attempt {
    attempt: u32,
    target: Target,
    reached: String,
    request_id: Option<String>,
    error: Option<Error>,
}

#[derive(Debug, Deserialize)]
struct Error {
    code: String,
    message: String,
    retryable: bool,
    provider_code: Option<String>,
    outcome: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Artifact {
    uri: String,
}

/// What the deltas give together.
#[derive(Debug, Deserialize)]
struct Joined {
    outputs: Vec<Output>,
    tool_calls: Vec<Call>,
}

#[derive(Debug, Deserialize)]
struct Output {
    text: String,
}

#[derive(Debug, Deserialize)]
struct Call {
    name: String,
    arguments: String,
}

pub fn run(args: &Show, render: Render) -> Result<Exit> {
    let json = runtime()?.block_on(async {
        let asked = Asked::open(&args.from, render)?;
        asked.snapshot(&args.execution).await
    })?;
    if render.json {
        render.data(&(json + "\n"))?;
        return Ok(Exit::Success);
    }
    render.foreign(&page(&read_snapshot(&json)?))?;
    Ok(Exit::Success)
}

fn page(snapshot: &Snapshot) -> String {
    let mut page = String::new();
    let mut row = |name: &str, text: &str| {
        // What was said by a provider or a caller makes no row of its own. Writing into a string cannot fail.
        let _ = writeln!(page, "{name:<10} {}", one_line(text));
    };
    row("execution", &snapshot.execution_id);
    row("status", &snapshot.status);
    row("created", &snapshot.created_at);
    row("updated", &snapshot.updated_at);
    row("events", &snapshot.last_sequence.to_string());
    if let Some(Target { provider, model }) = &snapshot.target {
        row("target", &format!("{provider}/{model}"));
    }
    if let Some(reason) = &snapshot.stop_reason {
        row("ended", &format!("for the reason {reason}, says the provider"));
    }
    if let Some(error) = &snapshot.error {
        row("error", &error.words());
    }
    for attempt in &snapshot.attempts {
        row("attempt", &attempt.words());
    }
    for Usage { unit, quantity, source } in &snapshot.usage {
        row("usage", &format!("{unit} {quantity} (counted by the {source})"));
    }
    for artifact in snapshot.artifacts.iter().flatten() {
        row("artifact", &artifact.uri);
    }
    if let Some(result) = &snapshot.result {
        for line in result_lines(result.get()) {
            row("result", &line);
        }
    }
    page
}

impl Attempt {
    fn words(&self) -> String {
        let Attempt { attempt, target: Target { provider, model }, reached, .. } = self;
        let came = match reached.as_str() {
            "selected" => "no proof that anything was sent",
            "request_sent" => "the request was sent",
            "response_headers" => "the provider began to answer",
            "first_output" => "there was output",
            // A later release may prove more steps.
            other => other,
        };
        let mut words = format!("{attempt}: {provider}/{model}, {came}");
        if let Some(id) = &self.request_id {
            words += &format!(", the provider's request id {id}");
        }
        if let Some(error) = &self.error {
            words += &format!("; {}", error.words());
        }
        words
    }
}

impl Error {
    fn words(&self) -> String {
        // The outcome counts before the code, which is there for clients that know no other.
        let kind = match self.outcome.as_deref() {
            Some("unknown") => "outcome unknown",
            Some("not_dispatched") => "not dispatched",
            Some(_) | None => &self.code,
        };
        let mut words = format!("{kind}: {}", self.message);
        if let Some(code) = &self.provider_code {
            words += &format!(" (the provider says {code})");
        }
        if self.retryable {
            words += "; the same request may succeed later";
        }
        words
    }
}

/// Joined text as its lines, anything else as its JSON.
fn result_lines(json: &str) -> Vec<String> {
    let mut lines = Vec::new();
    match serde_json::from_str::<Joined>(json) {
        Ok(Joined { outputs, tool_calls }) => {
            for output in &outputs {
                lines.extend(shortened(&output.text).lines().map(str::to_owned));
            }
            for Call { name, arguments } in &tool_calls {
                let call = format!("calls {name} with {}", shortened(arguments));
                lines.extend(call.lines().map(str::to_owned));
            }
        }
        Err(_) => lines.push(shortened(json)),
    }
    lines
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(RESULT_CHARS_MAX).collect();
    if short.len() < text.len() {
        short += " [...]";
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(more: &str, expected: &str) {
        let json = format!(
            r#"{{"execution_id":"e","status":"failed","created_at":"c","updated_at":"u","last_sequence":3,"usage":[]{more}}}"#
        );
        let page = page(&serde_json::from_str(&json).unwrap());
        let head = "execution  e\nstatus     failed\ncreated    c\nupdated    u\nevents     3\n";
        assert_eq!(page, format!("{head}{expected}"));
    }

    #[test]
    fn what_is_known_stands_in_words() {
        check("", "");
        check(
            r#","target":{"provider":"p","model":"m"},"error":{"code":"rate_limited","message":"M","retryable":true,"provider_code":"429"}"#,
            "target     p/m\nerror      rate_limited: M (the provider says 429); the same request may succeed later\n",
        );
        check(
            r#","error":{"code":"internal_error","message":"M","retryable":false,"outcome":"unknown"}"#,
            "error      outcome unknown: M\n",
        );
        check(
            r#","attempts":[{"attempt":1,"target":{"provider":"p","model":"m"},"reached":"response_headers","request_id":"r","error":{"code":"rate_limited","message":"M","retryable":true}},{"attempt":2,"target":{"provider":"q","model":"n"},"reached":"selected"}]"#,
            "attempt    1: p/m, the provider began to answer, the provider's request id r; rate_limited: M; the same request may succeed later\n\
             attempt    2: q/n, no proof that anything was sent\n",
        );
        check(
            r#","result":{"outputs":[{"index":0,"type":"text","text":"a\nb"}],"tool_calls":[{"call_id":"c","name":"f","arguments":"{}"}]}"#,
            "result     a\nresult     b\nresult     calls f with {}\n",
        );
        check(
            r#","target":{"provider":"p","model":"m"},"stop_reason":"length""#,
            "target     p/m\nended      for the reason length, says the provider\n",
        );
        check(
            r#","artifacts":[{"uri":"u\nstatus     succeeded"}],"result":{"outputs":[],"tool_calls":[{"name":"f\nstatus     succeeded","arguments":"{\n}"}]}"#,
            "artifact   u\u{fffd}status     succeeded\n\
             result     calls f\nresult     status     succeeded with {\nresult     }\n",
        );
        check(r#","result":[1],"artifacts":[{"uri":"u"}]"#, "artifact   u\nresult     [1]\n");
    }
}
