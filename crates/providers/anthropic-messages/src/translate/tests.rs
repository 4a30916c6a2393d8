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
    let mut translator = Messages::new(tools);
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

fn begin() -> ServerEvent {
    event(
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 7, "output_tokens": 1}}}),
    )
}

fn start(index: u32, block: Value) -> ServerEvent {
    event(json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn text(index: u32) -> ServerEvent {
    start(index, json!({"type": "text", "text": ""}))
}

fn tool(index: u32, id: &str) -> ServerEvent {
    start(index, json!({"type": "tool_use", "id": id, "name": "f", "input": {}}))
}

fn delta(index: u32, delta: Value) -> ServerEvent {
    event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn words(index: u32, text: &str) -> ServerEvent {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn arguments(index: u32, json: &str) -> ServerEvent {
    delta(index, json!({"type": "input_json_delta", "partial_json": json}))
}

fn stop(index: u32) -> ServerEvent {
    event(json!({"type": "content_block_stop", "index": index}))
}

fn stopped(reason: &str) -> ServerEvent {
    event(
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
    )
}

fn end() -> ServerEvent {
    event(json!({"type": "message_stop"}))
}

const USAGE: &str = "usage input_token=7 output_token=9";

/// Statement 59.
#[test]
fn facts_59_a_tool_at_block_0_and_text_at_block_1_are_both_mapped() {
    check(
        &[
            begin(),
            tool(0, "toolu_1"),
            event(json!({"type": "ping"})),
            arguments(0, ""),
            arguments(0, "{\"a\""),
            arguments(0, ":1}"),
            stop(0),
            text(1),
            words(1, "he"),
            words(1, ""),
            words(1, "llo"),
            stop(1),
            stopped("tool_use"),
            end(),
        ],
        &[
            "call toolu_1 f",
            "arguments toolu_1 {\"a\"",
            "arguments toolu_1 :1}",
            "text 1 he",
            "text 1 llo",
            USAGE,
            "completed",
        ],
    );
}

#[test]
fn a_call_without_fragments_has_the_input_of_its_start() {
    let whole = start(1, json!({"type": "tool_use", "id": "b", "name": "f", "input": {"x": 1}}));
    let none = start(2, json!({"type": "tool_use", "id": "c", "name": "f"}));
    check(
        &[
            begin(),
            tool(0, "a"),
            arguments(0, ""),
            stop(0),
            whole,
            stop(1),
            none,
            stop(2),
            stopped("tool_use"),
            end(),
        ],
        &[
            "call a f",
            "arguments a {}",
            "call b f",
            "arguments b {\"x\":1}",
            "call c f",
            "arguments c {}",
            USAGE,
            "completed",
        ],
    );
}

#[test]
fn usage_is_the_last_of_each_count() {
    check(
        &[
            event(json!({"type": "message_start", "message": {"usage": {
                "input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4}}})),
            event(
                json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5, "input_tokens": null}}),
            ),
            event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 6, "thinking_tokens": 2, "cache_read_input_tokens": "many"}})),
            end(),
        ],
        &[
            "usage input_token=1 output_token=6 cache_write_token=3 cache_read_token=4 reasoning_token=2",
            "completed",
        ],
    );
    let bare = event(json!({"type": "message_start", "message": {}}));
    let stopped = event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
    check(&[bare, stopped, end()], &["completed"]);
}

/// RM-33.
#[test]
fn the_stop_reason_is_told_and_an_answer_without_one_is_truncated() {
    for (said, expected) in [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("stop_sequence", "stop_sequence"),
        ("tool_use", "tool_calls"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
        ("model_context_window_exceeded", "context_window"),
        ("canary", "other"),
    ] {
        check(&[begin(), stopped(said), end()], &[USAGE, "completed"]);
        assert_eq!(reason(&[begin(), stopped(said), end()]), expected, "{said}");
    }
    protocol_error(&[begin(), end()]);
}

#[test]
fn a_completion_needs_both_witnesses() {
    protocol_error(&[begin(), text(0), words(0, "x"), stop(0), end()]);
    protocol_error(&[begin(), tool(0, "a"), arguments(0, "{"), stopped("tool_use"), end()]);
    protocol_error(&[end()]);
    let (events, failure) = translate(true, &[begin(), text(0), words(0, "x"), stop(0), stopped("end_turn")]);
    assert_eq!(
        (events, failure),
        (vec!["text 0 x".to_owned()], None),
        "not completed without the end marker"
    );
}

#[test]
fn thoughts_and_what_is_not_known_are_passed_over() {
    check(
        &[
            begin(),
            start(0, json!({"type": "thinking", "thinking": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "canary"})),
            delta(0, json!({"type": "signature_delta", "signature": "x"})),
            stop(0),
            start(1, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
            arguments(1, "{}"),
            stop(1),
            start(2, json!({"type": "text", "text": "early "})),
            delta(2, json!({"type": "citations_delta", "citation": {}})),
            words(2, "late"),
            stop(2),
            event(json!({"type": "news", "index": "x".len()})),
            stopped("end_turn"),
            end(),
        ],
        &["text 2 early ", "text 2 late", USAGE, "completed"],
    );
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
            named("message_start", json!({})),
            named("message_delta", json!({"delta": {"stop_reason": "end_turn"}})),
            named("message_stop", json!({})),
        ],
        &["completed"],
    );
}

#[test]
fn an_error_of_the_upstream_keeps_only_its_type() {
    let unavailable = PortableCode::ProviderUnavailable;
    let error = |error: Value| event(json!({"type": "error", "error": error}));
    let overloaded = error(json!({"type": "overloaded_error", "message": "canary"}));
    fails(&[begin(), overloaded], unavailable, Some("overloaded_error"));
    fails(&[error(json!({"type": "a sentence", "message": "canary"}))], unavailable, None);
    fails(&[error(json!("canary"))], unavailable, None);
    let broken = ServerEvent { event: Some("error".to_owned()), id: None, data: "canary".to_owned() };
    fails(&[begin(), broken], unavailable, None);
}

#[test]
fn blocks_that_break_the_rules_are_protocol_errors() {
    protocol_error(&[text(0)]);
    protocol_error(&[begin(), begin()]);
    protocol_error(&[begin(), words(0, "x")]);
    protocol_error(&[begin(), arguments(0, "{}")]);
    protocol_error(&[begin(), text(0), arguments(0, "{}")]);
    protocol_error(&[begin(), tool(0, "a"), words(0, "x")]);
    protocol_error(&[begin(), text(0), text(0)]);
    protocol_error(&[begin(), text(0), stop(0), words(0, "x")]);
    protocol_error(&[begin(), text(0), stop(0), stop(0)]);
    protocol_error(&[begin(), stop(0)]);
    protocol_error(&[begin(), tool(0, "a"), tool(1, "a")]);
    protocol_error(&[begin(), tool(0, "")]);
    protocol_error(&[begin(), start(0, json!({"type": "tool_use", "id": "a"}))]);
    protocol_error(&[begin(), event(json!({"type": "content_block_start", "index": 0}))]);
    protocol_error(&[
        begin(),
        event(json!({"type": "content_block_delta", "delta": {"type": "text_delta"}})),
    ]);
    let many: Vec<_> = std::iter::once(begin()).chain((0..=BLOCKS_MAX as u32).map(text)).collect();
    protocol_error(&many);
    let undeclared = translate(false, &[begin(), tool(0, "a")]).1.map(|failure| failure.code);
    assert_eq!(undeclared, Some(PortableCode::ProviderProtocolError));
}

#[test]
fn malformed_data_is_a_protocol_error() {
    for data in ["", "{", "[]", "[\"ping\"]", "1", "{\"index\":-1}", "{\"delta\":1}", "{} {}"] {
        protocol_error(&[event(data)]);
    }
    protocol_error(&[begin(), text(0), delta(0, json!({"type": "text_delta", "text": ["x"]}))]);
}
