use serde_json::json;

use super::*;

fn line(data: impl ToString) -> ServerEvent {
    ServerEvent { event: None, id: None, data: data.to_string() }
}

fn shown(event: &ProviderEvent) -> String {
    match event {
        ProviderEvent::OutputDelta { output_index, delta } => format!("text {output_index} {delta}"),
        ProviderEvent::ToolCallStarted { call_id, name } => format!("call {call_id} {name}"),
        ProviderEvent::ToolCallArgumentsDelta { call_id, delta } => format!("arguments {call_id} {delta}"),
        ProviderEvent::Usage(facts) => {
            assert!(facts.iter().all(|f| f.source == UsageSource::Provider && f.complete == Some(true)));
            facts
                .iter()
                .fold("usage".to_owned(), |text, fact| format!("{text} {}={}", fact.unit, fact.quantity))
        }
        ProviderEvent::Completed => "completed".to_owned(),
        ProviderEvent::Stopped(reason) => format!("stopped {reason}"),
        ProviderEvent::Mark(_) | ProviderEvent::Progress { .. } | ProviderEvent::Result { .. } => {
            unreachable!("never sent")
        }
    }
}

fn translate(tools: bool, lines: &[ServerEvent]) -> (Vec<String>, Option<Failure>) {
    let mut translator = Chat::new(tools);
    let mut out = VecDeque::new();
    let failure = lines.iter().find_map(|line| translator.read(line, &mut out).err());
    (out.iter().map(shown).collect(), failure)
}

/// Why the answer is said to have ended, by the one event in front of usage and completion.
#[track_caller]
fn reason(lines: &[ServerEvent]) -> String {
    let (shown, failure) = translate(true, lines);
    assert_eq!((failure, shown.last().map(String::as_str)), (None, Some("completed")));
    let said: Vec<&str> = shown.iter().filter_map(|line| line.strip_prefix("stopped ")).collect();
    assert!(said.len() <= 1, "{shown:?}");
    said.first().copied().unwrap_or("unsaid").to_owned()
}

/// What comes of it but for the reason to stop, which [`reason`] looks at.
#[track_caller]
fn check(lines: &[ServerEvent], expected: &[&str]) {
    let (mut shown, failure) = translate(true, lines);
    shown.retain(|line| !line.starts_with("stopped "));
    assert_eq!((shown, failure), (expected.iter().map(|&line| line.to_owned()).collect(), None));
}

#[track_caller]
fn fails(lines: &[ServerEvent], code: PortableCode) {
    let failure = translate(true, lines).1.expect("a failure");
    assert_eq!((failure.code, failure.provider_code.as_deref()), (code, None));
    assert!(!failure.retryable() && !failure.message.contains("canary"));
}

fn words(text: &str) -> ServerEvent {
    line(json!({"model": "m", "message": {"role": "assistant", "content": text}, "done": false}))
}

fn done(reason: &str) -> ServerEvent {
    line(json!({"message": {"content": ""}, "done": true, "done_reason": reason,
        "prompt_eval_count": 7, "eval_count": 2, "eval_duration": 5}))
}

const USAGE: &str = "usage input_token=7 output_token=2";

#[test]
fn text_usage_and_completion() {
    check(
        &[
            line(json!({"message": {"content": "", "thinking": "unshown"}, "done": false})),
            words("he"),
            words("llo"),
            done("stop"),
        ],
        &["text 0 he", "text 0 llo", USAGE, "completed"],
    );
    check(&[words("x"), done("length")], &["text 0 x", USAGE, "completed"]);
    check(&[line(json!({"done": true, "eval_count": "many"}))], &["completed"]);
}

/// RM-33.
#[test]
fn the_reason_to_be_done_is_told_where_there_is_one() {
    for (said, expected) in [("stop", "stop"), ("length", "length"), ("canary", "other")] {
        assert_eq!(reason(&[done(said)]), expected);
    }
    assert_eq!(reason(&[line(json!({"done": true}))]), "unsaid");
    for nothing in ["load", "unload"] {
        fails(&[done(nothing)], PortableCode::ProviderProtocolError);
    }
}

#[test]
fn tool_calls_come_whole_and_get_an_id() {
    let calls = line(
        r#"{"message":{"content":"","tool_calls":[
            {"function":{"name":"f","arguments":{"a": 1.50}}},{"id":"mine","function":{"name":"g"}}]}}"#,
    );
    let third = line(json!({"message": {"tool_calls": [{"function": {"name": "h", "arguments": {}}}]}}));
    check(
        &[calls, third, done("stop")],
        &[
            "call tool-call-0 f",
            "arguments tool-call-0 {\"a\": 1.50}",
            "call mine g",
            "arguments mine {}",
            "call tool-call-2 h",
            "arguments tool-call-2 {}",
            USAGE,
            "completed",
        ],
    );
}

#[test]
fn tool_calls_that_break_the_rules_are_protocol_errors() {
    let call = |id: &str, name: &str| {
        line(json!({"message": {"tool_calls": [{"id": id, "function": {"name": name, "arguments": {}}}]}}))
    };
    let protocol = PortableCode::ProviderProtocolError;
    fails(&[call("a", "")], protocol);
    fails(&[call("a", "f"), call("a", "f")], protocol);
    fails(&(0..=1024).map(|at| call(&format!("c{at}"), "f")).collect::<Vec<_>>(), protocol);
    assert_eq!(translate(false, &[call("a", "f")]).1.map(|failure| failure.code), Some(protocol));
}

#[test]
fn an_error_of_the_upstream_is_not_retried_and_not_repeated() {
    fails(
        &[words("x"), line(json!({"error": "canary: your prompt was"}))],
        PortableCode::ProviderUnavailable,
    );
    check(&[line(json!({"error": null})), done("stop")], &[USAGE, "completed"]);
}

#[test]
fn malformed_lines_are_protocol_errors() {
    for data in ["{", "[]", "[null,true]", "1", "{\"done\":1}", "{\"message\":{\"content\":[]}}", "{} {}"] {
        fails(&[line(data)], PortableCode::ProviderProtocolError);
    }
}
