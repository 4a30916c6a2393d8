use super::*;

fn parsed(json: &str) -> Option<ParsedRequest> {
    ExecutionRequest::parse(json.as_bytes()).ok()
}

#[track_caller]
fn accepts(json: &str) -> ExecutionRequest {
    parsed(json).unwrap_or_else(|| panic!("refused: {json}")).request
}

#[track_caller]
fn refuses(json: &str) {
    assert!(parsed(json).is_none(), "accepted: {json}");
}

/// A valid request with one more member.
fn with(member: &str) -> String {
    format!(r#"{{"ability":"a","input":[{{"type":"text","text":""}}],{member}}}"#)
}

/// A valid request with this input array's content.
fn input(parts: &str) -> String {
    format!(r#"{{"ability":"a","input":[{parts}]}}"#)
}

#[test]
fn the_smallest_request() {
    let request = accepts(&input(r#"{"type":"text","text":""}"#));
    assert_eq!(request.ability, "a");
    assert_eq!(request.input.len(), 1);
    assert_eq!(request.requirements, Requirements::default());
    assert_eq!(request.routing, Routing::default());
    assert_eq!(request.deadline_ms, None);
}

/// PA-9, PA-13.
#[test]
fn every_member_is_read() {
    let request = accepts(
        r#"{"ability":"a","input":[{"type":"text","text":"t"},{"type":"json","value": {"b" : 1} },
        {"type":"image","uri":"u","media_type":"image/png"},{"type":"audio","uri":"u"},{"type":"video","uri":"u"},
        {"type":"file","uri":"u"}],
        "requirements":{"input_modalities":["text","image"],"output_modalities":["json"],"stream":true,"tools":true,
        "structured_output":true,"async":true,"cancel":true},
        "routing":{"strategy":"ordered","provider_order":["p","q"],"allow_fallback":true,"max_attempts":2.0,
        "retry_budget_ms":5e3},"deadline_ms":5.0,"metadata":{"k":"v","n":1,"b":false},"extensions":{"x":null}}"#,
    );
    assert!(matches!(&request.input[1], Part::Json { value } if value.get() == r#"{"b" : 1}"#));
    assert_eq!(
        request.input.iter().map(Part::modality).collect::<Vec<_>>(),
        [Modality::Text, Modality::Json, Modality::Image, Modality::Audio, Modality::Video, Modality::File]
    );
    let requirements = &request.requirements;
    assert_eq!(requirements.input_modalities, [Modality::Text, Modality::Image]);
    assert!(requirements.stream && requirements.tools && requirements.structured_output);
    assert!(requirements.asynchronous && requirements.cancel);
    assert_eq!(request.routing.strategy, Some(Strategy::Ordered));
    assert_eq!(request.routing.provider_order, ["p", "q"]);
    assert_eq!(request.routing.allow_fallback, Some(true));
    assert_eq!((request.routing.max_attempts, request.routing.retry_budget_ms), (Some(2), Some(5000)));
    assert_eq!(request.deadline_ms, Some(5));
    assert_eq!(request.metadata.len(), 3);
    assert_eq!(request.extension("x"), Some("null"));
    assert_eq!(request.extension("y"), None);
}

/// PA-8.
#[test]
fn unknown_members_are_refused_at_every_level() {
    refuses(&with(r#""x":1"#));
    refuses(&with(r#""requirements":{"x":true}"#));
    refuses(&with(r#""routing":{"x":true}"#));
    refuses(&input(r#"{"type":"text","text":"","uri":"u"}"#));
    refuses(&input(r#"{"type":"json","value":1,"media_type":"m"}"#));
    refuses(&input(r#"{"type":"image","uri":"u","text":""}"#));
    refuses(&input(r#"{"type":"hologram","uri":"u"}"#));
}

/// PA-8.
#[test]
fn null_is_not_absence() {
    for member in ["requirements", "routing", "deadline_ms", "metadata", "extensions"] {
        refuses(&with(&format!(r#""{member}":null"#)));
    }
    for member in
        ["input_modalities", "output_modalities", "stream", "tools", "structured_output", "async", "cancel"]
    {
        refuses(&with(&format!(r#""requirements":{{"{member}":null}}"#)));
    }
    for member in ["strategy", "provider_order", "allow_fallback", "max_attempts", "retry_budget_ms"] {
        refuses(&with(&format!(r#""routing":{{"{member}":null}}"#)));
    }
    refuses(&input(r#"{"type":"file","uri":"u","media_type":null}"#));
    accepts(&input(r#"{"type":"json","value":null}"#));
}

#[test]
fn required_members_must_be_there() {
    refuses(r#"{"input":[{"type":"text","text":""}]}"#);
    refuses(r#"{"ability":"a"}"#);
    refuses(&input(""));
    refuses(&input(r#"{"type":"json"}"#));
    refuses(&input(r#"{"type":"text"}"#));
    refuses(&input(r#"{"type":"image"}"#));
    refuses(&input(r#"{"text":"t"}"#));
    refuses("[]");
    refuses("");
}

/// PA-10.
#[test]
fn lengths_and_counts() {
    let ability = |length| {
        format!(r#"{{"ability":"{}","input":[{{"type":"text","text":""}}]}}"#, "\u{1F600}".repeat(length))
    };
    accepts(&ability(256));
    refuses(&ability(257));
    refuses(&ability(0));
    let uri = |length| input(&format!(r#"{{"type":"file","uri":"{}"}}"#, "u".repeat(length)));
    accepts(&uri(8192));
    refuses(&uri(8193));
    refuses(&uri(0));
    let media_type =
        |length| input(&format!(r#"{{"type":"file","uri":"u","media_type":"{}"}}"#, "m".repeat(length)));
    accepts(&media_type(256));
    refuses(&media_type(257));
    let parts = |count| input(&vec![r#"{"type":"text","text":""}"#; count].join(","));
    accepts(&parts(1024));
    refuses(&parts(1025));
    let entries = |member: &str, count: usize| {
        let list: Vec<String> = (0..count).map(|index| format!(r#""{index}":1"#)).collect();
        with(&format!(r#""{member}":{{{}}}"#, list.join(",")))
    };
    accepts(&entries("metadata", 64));
    refuses(&entries("metadata", 65));
    accepts(&entries("extensions", 64));
    refuses(&entries("extensions", 65));
}

/// PA-10.
#[test]
fn values_of_metadata_are_scalars() {
    for value in ["null", "[]", "{}"] {
        refuses(&with(&format!(r#""metadata":{{"k":{value}}}"#)));
        accepts(&with(&format!(r#""extensions":{{"k":{value}}}"#)));
    }
}

/// PA-9.
#[test]
fn numbers_out_of_range() {
    for value in ["0", "86400001", "1.5", "-1", "\"5\"", "true", "1e999"] {
        refuses(&with(&format!(r#""deadline_ms":{value}"#)));
        refuses(&with(&format!(r#""routing":{{"retry_budget_ms":{value}}}"#)));
    }
    accepts(&with(r#""deadline_ms":86400000"#));
    for value in ["0", "33", "1.5"] {
        refuses(&with(&format!(r#""routing":{{"max_attempts":{value}}}"#)));
    }
    accepts(&with(r#""routing":{"max_attempts":3.2e1}"#));
}

#[test]
fn lists_are_unique_and_closed() {
    refuses(&with(r#""requirements":{"input_modalities":["text","text"]}"#));
    refuses(&with(r#""requirements":{"input_modalities":["smell"]}"#));
    refuses(&with(r#""routing":{"provider_order":["p","p"]}"#));
    refuses(&with(r#""routing":{"provider_order":[""]}"#));
    refuses(&with(r#""routing":{"strategy":"random"}"#));
    accepts(&with(r#""requirements":{"input_modalities":[]}"#));
}

/// PA-11.
#[test]
fn bytes_that_are_not_strict_json() {
    refuses(r#"{"ability":"a","ability":"a","input":[{"type":"text","text":""}]}"#);
    refuses("\u{feff}{\"ability\":\"a\",\"input\":[{\"type\":\"text\",\"text\":\"\"}]}");
    refuses(&input(r#"{"type":"text","text":"\ud800"}"#));
    refuses(&format!("{} x", input(r#"{"type":"text","text":""}"#)));
    let sentence = ExecutionRequest::parse(b"{\"ability\":\"\xff\"}").unwrap_err().sentence();
    assert_eq!(sentence, "Execution request is not UTF-8");
}

#[track_caller]
fn says(json: &str, words: &str) {
    let invalid = ExecutionRequest::parse(json.as_bytes()).expect_err(json);
    assert_eq!(invalid.to_string(), format!("Execution request {words}"), "{json}");
}

/// PA-33: what is at fault is named by the schema's words; the caller's are canaries here.
#[test]
fn a_refusal_names_the_member_that_is_at_fault() {
    let wrong = |path: &str| format!("has a `{path}` that is not as the schema says");
    says("{\"canary", "is not JSON");
    says(r#"["canary"]"#, "is not an object");
    says(r#"{"canary":1,"canary":2}"#, "has an object with a member twice");
    says(&format!("{}{}", "[".repeat(200), "]".repeat(200)), "nests arrays and objects too deep");
    says(r#"{"ability":"canary"}"#, "lacks `input`");
    says(r#"{"input":["canary"]}"#, "lacks `ability`");
    says(&input(r#"{"text":"canary"}"#), "lacks `input[].type`");
    says(&input(r#"{"type":"text"}"#), "lacks `input[].text`");
    says(&input(r#"{"type":"json"}"#), "lacks `input[].value`");
    says(&input(r#"{"type":"video"}"#), "lacks `input[].uri`");
    says(&input(r#"{"type":"canary"}"#), &wrong("input[].type"));
    says(&input(r#"{"type":"text","text":["canary"]}"#), &wrong("input[].text"));
    says(&input(r#"{"type":"image","uri":""}"#), &wrong("input[].uri"));
    says(&input(r#"{"type":"image","uri":"canary","media_type":7}"#), &wrong("input[].media_type"));
    says(&input(r#""canary""#), &wrong("input"));
    says(&input(""), &wrong("input"));
    says(r#"{"ability":["canary"],"input":[]}"#, &wrong("ability"));
    says(&with(r#""canary":1"#), "has an unknown member");
    says(&input(r#"{"type":"text","text":"","canary":1}"#), "has an unknown member in a part of `input`");
    for object in ["requirements", "routing"] {
        let unknown = format!("has an unknown member in `{object}`");
        says(&with(&format!(r#""{object}":{{"canary":1}}"#)), &unknown);
        says(&with(&format!(r#""{object}":"canary""#)), &wrong(object));
    }
    for member in ["deadline_ms", "metadata", "extensions", "extensions.conversation"] {
        let text = match member.split_once('.') {
            Some((outer, inner)) => format!(r#""{outer}":{{"{inner}":"canary"}}"#),
            None => format!(r#""{member}":["canary"]"#),
        };
        says(&with(&text), &wrong(member));
    }
    for (object, members) in [
        ("requirements", "input_modalities output_modalities stream tools structured_output async cancel"),
        ("routing", "strategy provider_order allow_fallback max_attempts retry_budget_ms"),
    ] {
        for member in members.split(' ') {
            let text = with(&format!(r#""{object}":{{"{member}":{{"canary":1}}}}"#));
            says(&text, &wrong(&format!("{object}.{member}")));
        }
    }
    let conversation = r#""extensions":{"conversation":{"messages":[{"role":"user","parts":[{"type":"text","text":"canary"}]}]}}"#;
    let other = "has an `input` that is not the last user message of `extensions.conversation`";
    says(&with(conversation), other);
}

#[test]
fn facts_44_a_body_over_one_mebibyte_is_refused() {
    let body =
        |text_bytes: usize| input(&format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(text_bytes)));
    let overhead = body(0).len();
    accepts(&body(BODY_BYTES_MAX - overhead));
    refuses(&body(BODY_BYTES_MAX - overhead + 1));
}

#[test]
fn the_fingerprint_follows_the_meaning() {
    let fingerprint = |json: &str| parsed(json).unwrap().fingerprint;
    let vector = r#"{"ability":"text-generation","input":[{"type":"text","text":"fixture"}]}"#;
    let other_order = r#"{ "input":[{"text":"fixture","type":"text"}], "ability":"text-generation" }"#;
    assert_eq!(fingerprint(vector), fingerprint(other_order));
    assert_eq!(fingerprint(vector)[..4], [0x6d, 0x2a, 0xcc, 0x2a]);
    assert_ne!(fingerprint(&with(r#""routing":{}"#)), fingerprint(&with(r#""metadata":{}"#)));
    assert_eq!(fingerprint(&with(r#""deadline_ms":5"#)), fingerprint(&with(r#""deadline_ms":5.0"#)));
}

#[test]
fn debug_shows_no_content() {
    let request = accepts(&input(r#"{"type":"text","text":"canary"}"#));
    assert!(!format!("{request:?} {:?}", request.input).contains("canary"));
}
