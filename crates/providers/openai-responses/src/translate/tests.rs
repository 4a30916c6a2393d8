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

fn translate(tools: bool, events: &[ServerEvent]) -> (Vec<String>, Option<Failure>) {
    let mut translator = Responses::new(tools);
    let mut out = VecDeque::new();
    let failure = events.iter().find_map(|event| translator.read(event, &mut out).err());
    (out.iter().map(shown).collect(), failure)
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
    assert!(!failure.retryable() && !failure.message.contains("canary"));
}

#[track_caller]
fn protocol_error(events: &[ServerEvent]) {
    fails(events, PortableCode::ProviderProtocolError, None);
}

fn words(index: u32, delta: &str) -> ServerEvent {
    event(
        json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": delta}),
    )
}

fn call(id: &str, call_id: &str) -> ServerEvent {
    event(json!({"type": "response.output_item.added", "output_index": 0,
        "item": {"type": "function_call", "id": id, "call_id": call_id, "name": "f", "arguments": ""}}))
}

fn arguments(item_id: &str, delta: &str) -> ServerEvent {
    event(json!({"type": "response.function_call_arguments.delta", "item_id": item_id, "delta": delta}))
}

fn completed(usage: Value) -> ServerEvent {
    event(json!({"type": "response.completed", "response": {"status": "completed", "usage": usage}}))
}

/// Statement 58.
#[test]
fn facts_58_a_function_call_arguments_text_and_usage() {
    check(
        &[
            event(json!({"type": "response.created", "response": {"usage": null, "error": null}})),
            call("item-1", "call-1"),
            arguments("item-1", "{\"a\""),
            arguments("item-1", ":1}"),
            event(
                json!({"type": "response.function_call_arguments.done", "item_id": "item-1", "arguments": "{\"a\":1}"}),
            ),
            event(json!({"type": "response.output_item.done", "item":
                {"type": "function_call", "id": "item-1", "call_id": "call-1", "name": "f", "arguments": "{\"a\":1}"}})),
            event(json!({"type": "response.output_item.added", "item": {"type": "message", "id": "m"}})),
            event(json!({"type": "response.output_text.delta", "delta": "he"})),
            words(1, ""),
            words(1, "llo"),
            completed(json!({
                "input_tokens": 7, "output_tokens": 5, "total_tokens": 12,
                "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
                "output_tokens_details": {"reasoning_tokens": 1},
            })),
        ],
        &[
            "call call-1 f",
            "arguments call-1 {\"a\"",
            "arguments call-1 :1}",
            "text 0 he",
            "text 1 llo",
            "usage input_token=7 output_token=5 cache_write_token=2 cache_read_token=3 reasoning_token=1",
            "completed",
        ],
    );
}

#[test]
fn arguments_that_come_whole_are_kept_whole() {
    let done = |name: &str| {
        event(json!({"type": "response.output_item.done", "item":
            {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"}}))
    };
    let arguments_done = event(
        json!({"type": "response.function_call_arguments.done", "item_id": "i", "arguments": "{\"x\":1}"}),
    );
    check(
        &[call("i", "a"), arguments_done, done("a"), done("b"), completed(json!({}))],
        &["call a f", "arguments a {\"x\":1}", "call b f", "arguments b {}", "completed"],
    );
}

#[test]
fn an_item_without_an_id_is_named_by_its_call() {
    let added = event(json!({"type": "response.output_item.added",
        "item": {"type": "function_call", "call_id": "fc_1", "name": "f", "arguments": ""}}));
    check(
        &[added, arguments("fc_1", "{}"), completed(Value::Null)],
        &["call fc_1 f", "arguments fc_1 {}", "completed"],
    );
}

#[test]
fn a_custom_tool_takes_text() {
    check(
        &[
            event(json!({"type": "response.output_item.added",
                "item": {"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "sql", "input": ""}})),
            event(
                json!({"type": "response.custom_tool_call_input.delta", "item_id": "i", "delta": "select"}),
            ),
            event(json!({"type": "response.custom_tool_call_input.done", "item_id": "i", "input": "select"})),
            completed(json!(null)),
        ],
        &["call c sql", "arguments c select", "completed"],
    );
}

#[test]
fn a_refusal_is_what_the_model_says() {
    let refusal = event(json!({"type": "response.refusal.delta", "output_index": 2, "delta": "no"}));
    check(&[refusal, completed(json!({}))], &["text 2 no", "completed"]);
}

/// RM-33.
#[test]
fn an_answer_that_is_complete_waits_for_tools_or_is_at_its_end() {
    assert_eq!(reason(&[words(0, "x"), completed(json!({}))]), "stop");
    assert_eq!(reason(&[words(0, "x"), call("i", "c"), completed(json!({}))]), "tool_calls");
}

/// RM-33.
#[test]
fn an_incomplete_answer_ends_in_order_for_a_known_reason() {
    let incomplete = |reason: Value| {
        event(json!({"type": "response.incomplete", "response":
            {"incomplete_details": {"reason": reason}, "usage": {"output_tokens": 2}}}))
    };
    for (said, expected) in [("max_output_tokens", "length"), ("content_filter", "content_filter")] {
        check(&[words(0, "x"), incomplete(json!(said))], &["text 0 x", "usage output_token=2", "completed"]);
        assert_eq!(reason(&[call("i", "c"), incomplete(json!(said))]), expected);
    }
    protocol_error(&[words(0, "x"), incomplete(json!("canary"))]);
    protocol_error(&[words(0, "x"), incomplete(json!(null))]);
    protocol_error(&[event(json!({"type": "response.incomplete"}))]);
}

#[test]
fn an_error_of_the_upstream_keeps_only_an_identifier() {
    let unavailable = PortableCode::ProviderUnavailable;
    let failed = |error: Value| event(json!({"type": "response.failed", "response": {"error": error}}));
    fails(
        &[words(0, "x"), failed(json!({"code": "server_error", "message": "canary"}))],
        unavailable,
        Some("server_error"),
    );
    fails(&[failed(json!(null))], unavailable, None);
    fails(&[event(json!({"type": "response.failed"}))], unavailable, None);
    let error = json!({"type": "error", "code": "rate_limit_exceeded", "message": "canary", "param": null});
    fails(&[event(error)], unavailable, Some("rate_limit_exceeded"));
    let inner =
        json!({"type": "error", "error": {"type": "server_error", "code": null, "message": "canary"}});
    fails(&[event(inner)], unavailable, Some("server_error"));
    fails(&[event(json!({"error": {"code": 500, "message": "canary"}}))], unavailable, Some("500"));
    fails(&[event(json!({"type": "error", "code": "a sentence"}))], unavailable, None);
    let broken = ServerEvent { event: Some("error".to_owned()), id: None, data: "canary".to_owned() };
    fails(&[broken], unavailable, None);
}

#[test]
fn the_events_name_stands_in_for_a_missing_type() {
    let named = |name: &str, data: Value| ServerEvent {
        event: Some(name.to_owned()),
        id: None,
        data: data.to_string(),
    };
    check(
        &[
            named("response.output_text.delta", json!({"delta": "x"})),
            event("[DONE]"),
            named("response.news", json!({"delta": {"any": 1}})),
            named("response.completed", json!({"response": {"usage": {"input_tokens": "many"}}})),
        ],
        &["text 0 x", "completed"],
    );
}

#[test]
fn tool_calls_that_break_the_rules_are_protocol_errors() {
    protocol_error(&[arguments("i", "{}")]);
    protocol_error(&[event(json!({"type": "response.function_call_arguments.delta", "delta": "{}"}))]);
    protocol_error(&[call("i", "")]);
    protocol_error(&[call("i", "c"), call("j", "c")]);
    protocol_error(&[call("i", "c"), call("i", "d")]);
    let many: Vec<_> = (0..=1024).map(|at| call(&format!("i{at}"), &format!("c{at}"))).collect();
    protocol_error(&many);
    let undeclared = translate(false, &[call("i", "c")]).1.map(|failure| failure.code);
    assert_eq!(undeclared, Some(PortableCode::ProviderProtocolError));
}

#[test]
fn malformed_data_is_a_protocol_error() {
    for data in ["", "{", "[]", "[\"response.completed\"]", "1", "{\"output_index\":-1}", "{} {}", "[DONE"] {
        protocol_error(&[event(data)]);
    }
    protocol_error(&[event(json!({"type": "response.output_text.delta", "delta": ["x"]}))]);
    protocol_error(&[event(json!({"type": "response.output_text.delta"}))]);
}
