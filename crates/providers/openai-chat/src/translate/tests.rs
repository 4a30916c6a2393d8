use sealog_execution::FailureClass;
use serde_json::json;

use super::*;

fn event(data: impl ToString) -> ServerEvent {
    ServerEvent { event: None, id: None, data: data.to_string() }
}

fn shown(event: &ProviderEvent) -> String {
    match event {
        ProviderEvent::OutputDelta { output_index, delta } => format!("text {output_index} {delta}"),
        ProviderEvent::ToolCallStarted { call_id, name } => format!("call {call_id} {name}"),
        ProviderEvent::ToolCallArgumentsDelta { call_id, delta } => format!("arguments {call_id} {delta}"),
        ProviderEvent::Usage(facts) => {
            assert!(
                facts.iter().all(|fact| fact.source == UsageSource::Provider && fact.complete == Some(true))
            );
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

fn translate(tools: bool, events: &[ServerEvent]) -> (Vec<String>, Option<Failure>) {
    let mut translator = Translator::new(tools);
    let mut out = Vec::new();
    let mut failure = None;
    for event in events {
        failure = translator.read(event, &mut out).err();
        if failure.is_some() || out.last() == Some(&ProviderEvent::Completed) {
            break;
        }
    }
    (out.iter().map(shown).collect(), failure)
}

fn delta(delta: Value) -> ServerEvent {
    event(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

fn finish(reason: &str) -> ServerEvent {
    event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

fn done() -> ServerEvent {
    event("[DONE]")
}

/// Why the answer is said to have ended, by the one event in front of usage and completion.
#[track_caller]
fn reason(events: &[ServerEvent]) -> String {
    let (shown, failure) = translate(true, events);
    assert_eq!((failure, shown.last().map(String::as_str)), (None, Some("completed")));
    let said: Vec<&str> = shown.iter().filter_map(|line| line.strip_prefix("stopped ")).collect();
    assert!(said.len() <= 1, "{shown:?}");
    said.first().copied().unwrap_or("unsaid").to_owned()
}

/// What comes of it but for the reason to stop, which [`reason`] looks at.
#[track_caller]
fn check(events: &[ServerEvent], expected: &[&str]) {
    let (mut shown, failure) = translate(true, events);
    shown.retain(|line| !line.starts_with("stopped "));
    assert_eq!((shown, failure), (expected.iter().map(|&line| line.to_owned()).collect(), None));
}

#[track_caller]
fn fails(events: &[ServerEvent], code: PortableCode, provider_code: Option<&str>) {
    let failure = translate(true, events).1.expect("a failure");
    assert_eq!((failure.code, failure.provider_code.as_deref()), (code, provider_code));
    assert!(!failure.retryable());
}

#[test]
fn text_usage_and_completion() {
    check(
        &[
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"content": "he"})),
            delta(json!({"content": "llo", "reasoning_content": "unshown"})),
            finish("stop"),
            event(json!({"choices": [], "usage": {
                "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 3},
                "completion_tokens_details": {"reasoning_tokens": 1},
            }})),
            done(),
        ],
        &[
            "text 0 he",
            "text 0 llo",
            "usage input_token=7 output_token=2 cache_read_token=3 reasoning_token=1",
            "completed",
        ],
    );
}

/// RM-33.
#[test]
fn the_finish_reason_is_told_and_failures_are_none() {
    for (said, expected) in [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("eos_token", "other"),
    ] {
        check(&[delta(json!({"content": "x"})), finish(said), done()], &["text 0 x", "completed"]);
        assert_eq!(reason(&[finish(said), done()]), expected, "{said}");
    }
    for failure in ["error", "abort", "aborted", "cancelled"] {
        fails(&[finish(failure), done()], PortableCode::ProviderProtocolError, None);
    }
    let both = |first: &str, second: &str| {
        let choice = |index: u32, reason: &str| json!({"index": index, "finish_reason": reason});
        reason(&[event(json!({"choices": [choice(0, first), choice(1, second)]})), done()])
    };
    assert_eq!([both("length", "length"), both("length", "stop")], ["length", "other"]);
}

#[test]
fn a_completion_needs_both_witnesses() {
    let truncated = PortableCode::ProviderProtocolError;
    fails(&[delta(json!({"content": "x"})), done()], truncated, None);
    fails(&[done()], truncated, None);
    let other_choice = event(json!({"choices": [{"index": 1, "delta": {"content": "y"}}]}));
    fails(&[other_choice, finish("stop"), done()], truncated, None);
    // Without the end marker there is no completion, and the provider reports the end of the body.
    let (events, failure) = translate(true, &[delta(json!({"content": "x"})), finish("stop")]);
    assert_eq!((events, failure), (vec!["text 0 x".to_owned()], None));
}

#[test]
fn choices_are_outputs() {
    check(
        &[
            event(
                json!({"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]}),
            ),
            event(
                json!({"choices": [{"index": 1, "finish_reason": "stop"}, {"index": 0, "finish_reason": "length"}]}),
            ),
            done(),
        ],
        &["text 0 a", "text 1 b", "completed"],
    );
    let many = (0..=CHOICES_MAX as u32).map(|index| json!({"index": index, "delta": {}})).collect::<Vec<_>>();
    fails(&[event(json!({ "choices": many }))], PortableCode::ProviderProtocolError, None);
}

#[test]
fn a_refusal_is_what_the_model_says() {
    check(
        &[delta(json!({"content": null, "refusal": "no"})), finish("stop"), done()],
        &["text 0 no", "completed"],
    );
}

#[test]
fn tool_calls_start_once_and_then_grow() {
    check(
        &[
            delta(
                json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
            ),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\""}}]})),
            delta(
                json!({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "g", "arguments": "{}"}}]}),
            ),
            delta(
                json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": ":1}"}}]}),
            ),
            finish("tool_calls"),
            done(),
        ],
        &[
            "call c1 f",
            "arguments c1 {\"a\"",
            "call c2 g",
            "arguments c2 {}",
            "arguments c1 :1}",
            "completed",
        ],
    );
}

#[test]
fn arguments_wait_for_id_and_name() {
    check(
        &[
            delta(json!({"tool_calls": [{"function": {"arguments": "{"}}]})),
            delta(json!({"tool_calls": [{"id": "c1", "function": {"arguments": "\"a\":"}}]})),
            delta(json!({"tool_calls": [{"id": "", "function": {"name": "f", "arguments": "1}"}}]})),
            finish("tool_calls"),
            done(),
        ],
        &["call c1 f", "arguments c1 {\"a\":1}", "completed"],
    );
}

#[test]
fn the_older_function_call_gets_an_id() {
    check(
        &[
            delta(json!({"function_call": {"name": "f", "arguments": ""}})),
            delta(json!({"function_call": {"arguments": "{}"}})),
            finish("function_call"),
            done(),
        ],
        &["call function-call-0 f", "arguments function-call-0 {}", "completed"],
    );
}

#[test]
fn tool_calls_that_break_the_rules_are_protocol_errors() {
    let protocol = PortableCode::ProviderProtocolError;
    let call = |index: u32, id: &str, arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "function": {"name": "f", "arguments": arguments}}]}),
        )
    };
    fails(&[call(0, "", "{}"), finish("tool_calls"), done()], protocol, None);
    fails(&[call(0, "c", "{}"), call(1, "c", "{}")], protocol, None);
    let kept: Vec<_> = (0..3).map(|_| call(0, "", &"x".repeat(512 * 1024))).collect();
    fails(&kept, protocol, None);
    let many: Vec<_> = (0..1025).map(|index| call(index, &format!("c{index}"), "")).collect();
    fails(&many, protocol, None);
    let undeclared = translate(false, &[call(0, "c", "{}")]).1.map(|failure| failure.code);
    assert_eq!(undeclared, Some(protocol));
}

#[test]
fn an_error_of_the_upstream_is_not_retried_and_keeps_only_an_identifier() {
    let unavailable = PortableCode::ProviderUnavailable;
    fails(&[event(json!({"error": {"message": "your prompt was", "code": 503}}))], unavailable, Some("503"));
    fails(
        &[event(json!({"error": {"code": null, "type": "server_error"}}))],
        unavailable,
        Some("server_error"),
    );
    fails(&[event(json!({"error": {"code": "a sentence with words"}}))], unavailable, None);
    fails(&[event(json!({"error": "overloaded"}))], unavailable, None);
    fails(&[event(json!({"choices": [], "error": {"code": "x"}}))], unavailable, Some("x"));
    for data in ["overloaded", "{\"message\":\"m\"}"] {
        let named = ServerEvent { event: Some("error".to_owned()), id: None, data: data.to_owned() };
        fails(&[named], unavailable, None);
    }
    check(&[event(json!({"choices": [], "error": null})), finish("stop"), done()], &["completed"]);
    let class = translate(true, &[event(json!({"error": {}}))]).1.map(|failure| failure.class);
    assert_eq!(class, Some(FailureClass::Permanent));
}

#[test]
fn malformed_data_is_a_protocol_error() {
    for data in [
        "",
        "{",
        "[]",
        "[[],null,null]",
        "1",
        "{\"choices\":1}",
        "{\"choices\":[{\"index\":-1}]}",
        "[DONE",
        "{} {}",
    ] {
        fails(&[event(data)], PortableCode::ProviderProtocolError, None);
    }
    let content = delta(json!({"content": ["list"]}));
    fails(&[content], PortableCode::ProviderProtocolError, None);
}

#[test]
fn unknown_members_and_empty_usage_are_passed_over() {
    check(
        &[
            event(json!({"id": "x", "object": "chat.completion.chunk", "timings": {"a": 1}, "usage": null})),
            event(json!({"usage": {"prompt_tokens": 1}})),
            event(
                json!({"usage": {"prompt_tokens": "many", "completion_tokens": 2.0, "prompt_tokens_details": null}}),
            ),
            finish("stop"),
            event(" [DONE] "),
        ],
        &["usage output_token=2", "completed"],
    );
    check(&[event(json!({"usage": {}})), finish("stop"), done()], &["completed"]);
}
