//! Pieces of the way from an execution request to an upstream's body: the adapter's extension, limits, and the
//! failures that end a request before anything is sent.

use std::collections::BTreeMap;

use sealog_events::PortableCode;
use sealog_execution::conversation::{MessagePart, Sampling};
use sealog_execution::strict::{self, Members, Refused};
use sealog_execution::{ExecutionRequest, Failure};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Members for an upstream, each as JSON text.
pub type JsonMembers = BTreeMap<String, Box<RawValue>>;

/// Most members that one extension may add.
const MEMBERS_MAX: usize = 64;

/// Largest token limit that is understood.
const TOKENS_MAX: u64 = 1 << 32;

/// The members of `extensions.<name>.<member>`; nothing else may stand beside that member.
///
/// # Errors
/// `invalid_request` for any other shape.
pub fn extension(request: &ExecutionRequest, name: &str, member: &str) -> Result<JsonMembers, Failure> {
    let Some(json) = request.extension(name) else { return Ok(JsonMembers::new()) };
    let read = || {
        let mut members = Members::of(json)?;
        let given = members.optional(member, Members::of)?;
        members.finish()?;
        given.map_or(Ok(BTreeMap::new()), |given| given.rest(MEMBERS_MAX))
    };
    let given = read().map_err(|_: Refused| invalid())?;
    Ok(given.into_iter().map(|(name, value)| (name, value.to_owned())).collect())
}

/// The configured limit is a ceiling for each of `names` that the request holds: it may lower it. Without any of
/// them the first name gets the ceiling.
///
/// # Errors
/// `invalid_request` for a limit that is no whole number from 1.
pub fn ceiling(ceiling: Option<u32>, members: &mut JsonMembers, names: &[&str]) -> Result<(), Failure> {
    let mut asked = false;
    for name in names {
        if let Some(value) = members.get(*name) {
            let tokens = integer(value.get(), 1, TOKENS_MAX)?;
            set(members, name, &ceiling.map_or(tokens, |ceiling| tokens.min(u64::from(ceiling))))?;
            asked = true;
        }
    }
    match (names.first(), ceiling) {
        (Some(name), Some(ceiling)) if !asked => set(members, name, &ceiling),
        _ => Ok(()),
    }
}

/// A whole number of the request's extension.
///
/// # Errors
/// `invalid_request`.
pub fn integer(json: &str, min: u64, max: u64) -> Result<u64, Failure> {
    strict::integer(json, min, max).map_err(|_| invalid())
}

/// # Errors
/// `internal_error` if `value` cannot be written as JSON.
pub fn set<T: Serialize + ?Sized>(members: &mut JsonMembers, name: &str, value: &T) -> Result<(), Failure> {
    members.insert(name.to_owned(), to_raw_value(value).map_err(|_| unserialisable())?);
    Ok(())
}

/// The settings of sampling that go by these names with several vendors; `top_k` is none of them.
///
/// # Errors
/// As [`set`].
pub fn add_sampling(members: &mut JsonMembers, sampling: &Sampling) -> Result<(), Failure> {
    let numbers = [
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
        ("presence_penalty", sampling.presence_penalty),
        ("frequency_penalty", sampling.frequency_penalty),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            set(members, name, &value)?;
        }
    }
    if let Some(seed) = sampling.seed {
        set(members, "seed", &seed)?;
    }
    if !sampling.stop.is_empty() {
        set(members, "stop", &sampling.stop)?;
    }
    Ok(())
}

/// The members as one JSON object.
///
/// # Errors
/// As [`set`].
pub fn to_body(members: &JsonMembers) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(members).map_err(|_| unserialisable())
}

/// Media type and base64 text of a `data:` URI that has both.
pub fn data_uri(uri: &str) -> Option<(&str, &str)> {
    let (media_type, data) = uri.strip_prefix("data:")?.split_once(";base64,")?;
    (!media_type.is_empty() && !media_type.contains([';', ','])).then_some((media_type, data))
}

/// The result of a tool for a protocol whose results are texts and know no failures: its texts are lines, and one that
/// failed begins with `Error: `.
///
/// # Errors
/// `capability_unavailable` for a result that is not text.
pub fn tool_result_text(parts: &[MessagePart], is_error: bool) -> Result<String, Failure> {
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            MessagePart::Text { text } => texts.push(text.as_str()),
            MessagePart::Image { .. }
            | MessagePart::File { .. }
            | MessagePart::ToolCall { .. }
            | MessagePart::ToolResult { .. } => return Err(unavailable()),
        }
    }
    let text = texts.join("\n");
    Ok(if is_error { format!("Error: {text}") } else { text })
}

fn unserialisable() -> Failure {
    Failure::permanent(PortableCode::InternalError, "Provider request could not be written")
}

/// The model was not declared to do it, or the protocol has no way to say it.
pub fn unavailable() -> Failure {
    Failure::permanent(PortableCode::CapabilityUnavailable, "Provider does not support this request")
}

pub fn invalid() -> Failure {
    Failure::permanent(PortableCode::InvalidRequest, "Provider extension is invalid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(extension_of: Value) -> Result<Value, PortableCode> {
        let body = json!({"ability": "a", "input": [{"type": "text", "text": "x"}],
            "extensions": {"mine": extension_of, "other": 1}});
        let request = ExecutionRequest::parse(body.to_string().as_bytes()).unwrap().request;
        let members = extension(&request, "mine", "request").map_err(|failure| failure.code)?;
        Ok(serde_json::to_value(members).unwrap())
    }

    #[test]
    fn an_extension_has_one_member_of_members() {
        assert_eq!(read(json!({"request": {"a": 1.50, "b": null}})), Ok(json!({"a": 1.50, "b": null})));
        assert_eq!(read(json!({})), Ok(json!({})));
        for wrong in [
            json!(1),
            json!([]),
            json!(null),
            json!({"requests": {}}),
            json!({"request": []}),
            json!({"request": null}),
        ] {
            assert_eq!(read(wrong), Err(PortableCode::InvalidRequest));
        }
        let many: serde_json::Map<_, _> = (0..65).map(|at| (format!("m{at}"), json!(at))).collect();
        assert_eq!(read(json!({ "request": many })), Err(PortableCode::InvalidRequest));
    }

    #[test]
    fn data_uris_are_taken_apart() {
        assert_eq!(data_uri("data:image/png;base64,AAAA"), Some(("image/png", "AAAA")));
        for other in
            ["https://h/a.png", "data:,x", "data:;base64,AA", "data:a/b;c=d;base64,AA", "data:a/b,AA"]
        {
            assert_eq!(data_uri(other), None, "{other}");
        }
    }

    #[track_caller]
    fn limited(configured: Option<u32>, asked: Value, expected: Result<Value, PortableCode>) {
        let mut members = JsonMembers::new();
        for (name, value) in asked.as_object().unwrap() {
            set(&mut members, name, value).unwrap();
        }
        let result = ceiling(configured, &mut members, &["limit", "other_limit"]).map_err(|f| f.code);
        assert_eq!(result.map(|()| serde_json::to_value(members).unwrap()), expected);
    }

    #[test]
    fn the_configured_limit_is_a_ceiling() {
        limited(Some(50), json!({}), Ok(json!({"limit": 50})));
        limited(Some(50), json!({"limit": 9.0}), Ok(json!({"limit": 9})));
        limited(Some(50), json!({"limit": 51}), Ok(json!({"limit": 50})));
        limited(Some(50), json!({"other_limit": 900}), Ok(json!({"other_limit": 50})));
        limited(None, json!({"limit": 900}), Ok(json!({"limit": 900})));
        limited(None, json!({}), Ok(json!({})));
        for wrong in [json!(-1), json!(0), json!("9"), json!(null), json!(1.5)] {
            limited(Some(50), json!({ "limit": wrong }), Err(PortableCode::InvalidRequest));
            limited(None, json!({ "limit": wrong }), Err(PortableCode::InvalidRequest));
        }
    }
}
