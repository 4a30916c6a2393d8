use serde_json::{Value, json};

use super::*;
use crate::ExecutionRequest;

fn everything() -> Value {
    json!({
        "messages": [
            {"role": "system", "parts": [{"type": "text", "text": "be brief"}]},
            {"role": "user", "parts": [
                {"type": "text", "text": "what is it"},
                {"type": "image", "uri": "https://example.com/a.png", "media_type": "image/png", "detail": "low"},
                {"type": "file", "uri": "https://example.com/a.pdf", "media_type": "application/pdf", "name": "a.pdf"},
            ]},
            {"role": "assistant", "parts": [
                {"type": "text", "text": "let me look"},
                {"type": "tool_call", "call_id": "c1", "name": "look", "arguments": "{\"at\":1}"},
            ]},
            {"role": "tool", "parts": [
                {"type": "tool_result", "call_id": "c1", "parts": [{"type": "text", "text": "a cat"}], "is_error": true},
            ]},
        ],
        "tools": [{"name": "look", "description": "looks", "parameters": {"type": "object"}, "strict": true}],
        "tool_choice": {"name": "look"},
        "parallel_tool_calls": false,
        "sampling": {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop": ["END"], "seed": -7,
            "presence_penalty": -1.5, "frequency_penalty": 1.5},
        "max_tokens": 99,
        "output_format": {"type": "json_schema", "name": "n", "description": "d", "schema": {"type": "object"},
            "strict": true},
    })
}

fn minimal() -> Value {
    json!({"messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]})
}

fn read(value: &Value) -> Option<Conversation> {
    Conversation::parse(&value.to_string()).ok()
}

#[test]
fn every_member_is_read_and_written_back() {
    for form in [everything(), minimal()] {
        let conversation = read(&form).unwrap();
        assert_eq!(serde_json::to_value(&conversation).unwrap(), form);
    }
    let conversation = read(&everything()).unwrap();
    assert_eq!(conversation.modalities(), [Modality::Text, Modality::Image, Modality::File]);
    assert!(conversation.needs_tools());
    assert_eq!(conversation.tool_of("c1"), Some("look"));
    assert_eq!(conversation.tool_of("look"), None);
    assert!(!read(&minimal()).unwrap().needs_tools());
    assert_eq!(format!("{conversation:?}"), "Conversation { messages: 4, .. }");
}

/// `everything` with the value at a place replaced, `null` meaning taken away.
fn changed(pointer: &str, value: Value) -> Value {
    let mut form = everything();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = if parent.is_empty() { &mut form } else { form.pointer_mut(parent).unwrap() };
    match parent {
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
        _ => {
            parent[name] = value;
        }
    }
    form
}

#[test]
fn unknown_members_nulls_and_wrong_types_are_refused_at_every_level() {
    for place in [
        "/x",
        "/messages/0/x",
        "/messages/1/parts/0/x",
        "/messages/1/parts/1/x",
        "/messages/2/parts/1/x",
        "/messages/3/parts/0/x",
        "/messages/3/parts/0/parts/0/x",
        "/tools/0/x",
        "/tool_choice/x",
        "/sampling/x",
        "/output_format/x",
    ] {
        assert!(read(&changed(place, json!(1))).is_none(), "{place}");
    }
    for place in
        ["/tools", "/tool_choice", "/parallel_tool_calls", "/sampling", "/max_tokens", "/output_format"]
    {
        assert!(read(&changed(place, json!(null))).is_none(), "{place}");
        assert!(read(&changed(place, json!(1.5))).is_none(), "{place}");
    }
}

#[track_caller]
fn refused(pointer: &str, value: Value) {
    assert!(read(&changed(pointer, value)).is_none(), "{pointer}");
}

#[test]
fn parts_stand_only_where_their_role_allows() {
    let part = |value: &str| everything().pointer(value).unwrap().clone();
    let (image, call, result) =
        (part("/messages/1/parts/1"), part("/messages/2/parts/1"), part("/messages/3/parts/0"));
    for (message, wrong) in [
        (0, vec![&image, &call, &result]),
        (1, vec![&call, &result]),
        (2, vec![&image, &result]),
        (3, vec![&image, &call]),
    ] {
        for part in wrong {
            refused(&format!("/messages/{message}/parts"), json!([part]));
        }
    }
    refused("/messages/3/parts/0/parts/0", call);
    refused("/messages/3/parts/0/parts/0", result);
    refused("/messages/3/parts", json!([{"type": "text", "text": "t"}]));
    refused("/messages/3/parts/0/call_id", json!("another"));
    refused("/messages/1/parts", json!([]));
    refused("/messages", json!([]));
    refused("/messages/1/role", json!("developer"));
}

#[test]
fn numbers_and_names_have_bounds() {
    for (place, wrong) in [
        ("/sampling/temperature", json!(2.1)),
        ("/sampling/temperature", json!(-0.1)),
        ("/sampling/top_p", json!(1.1)),
        ("/sampling/top_k", json!(0)),
        ("/sampling/seed", json!(0.5)),
        ("/sampling/seed", json!(9_007_199_254_740_992_u64)),
        ("/sampling/stop", json!("END")),
        ("/sampling/stop", json!([""])),
        ("/sampling/stop", json!(vec!["x"; 17])),
        ("/sampling/presence_penalty", json!(-2.5)),
        ("/sampling/frequency_penalty", json!(2.5)),
        ("/max_tokens", json!(0)),
        ("/tools/0/name", json!("")),
        ("/tools/0/name", json!("x".repeat(257))),
        ("/tools/0/parameters", json!([])),
        ("/tool_choice", json!({"name": "other"})),
        ("/tool_choice", json!("any")),
        ("/output_format/schema", json!(true)),
        ("/output_format/type", json!("xml")),
        ("/messages/1/parts/1/detail", json!("huge")),
        ("/messages/1/parts/1/uri", json!("")),
    ] {
        refused(place, wrong);
    }
    let two = json!([everything()["tools"][0], everything()["tools"][0]]);
    refused("/tools", two);
    let mut without = minimal();
    without["tool_choice"] = json!("required");
    assert!(read(&without).is_none());
    without["tool_choice"] = json!("none");
    assert!(read(&without).unwrap().needs_tools());
}

fn request(input: Value, conversation: Value) -> Option<ExecutionRequest> {
    let body = json!({"ability": "a", "input": input, "extensions": {"conversation": conversation, "x": 1}});
    Some(ExecutionRequest::parse(body.to_string().as_bytes()).ok()?.request)
}

#[test]
fn a_request_has_its_conversation_parsed_and_requires_what_it_holds() {
    let input = json!([
        {"type": "text", "text": "what is it"},
        {"type": "image", "uri": "https://example.com/a.png", "media_type": "image/png"},
        {"type": "file", "uri": "https://example.com/a.pdf", "media_type": "application/pdf"},
    ]);
    let request = request(input, everything()).unwrap();
    assert!(request.conversation.is_some());
    assert!(request.extension("conversation").is_none() && request.extension("x").is_some());
    assert!(request.requirements.tools);
    assert_eq!(request.requirements.input_modalities, [Modality::Text, Modality::Image, Modality::File]);
}

#[test]
fn input_is_the_last_message_of_the_user() {
    let hi = json!([{"type": "text", "text": "hi"}]);
    let request = |input: &Value, conversation: &Value| request(input.clone(), conversation.clone());
    assert!(!request(&hi, &minimal()).unwrap().requirements.tools);
    assert!(request(&json!([{"type": "text", "text": "ho"}]), &minimal()).is_none());
    assert!(request(&json!([{"type": "json", "value": "hi"}]), &minimal()).is_none());
    assert!(request(&json!([hi[0], hi[0]]), &minimal()).is_none());
    let silent = json!({"messages": [{"role": "system", "parts": hi}]});
    assert!(request(&hi, &silent).is_none());
    assert!(request(&json!([{"type": "text", "text": ""}]), &silent).is_some());
    assert!(request(&hi, &json!({"messages": 1})).is_none());
}
