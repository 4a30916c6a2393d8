use serde_json::json;

use super::*;

fn artifacts(value: Value) -> Vec<(String, Option<String>)> {
    let (_, found) = result(value.to_string().into_bytes()).unwrap();
    found.into_iter().map(|artifact| (artifact.uri, artifact.media_type)).collect()
}

#[test]
fn artifacts_are_found_named_once_and_not_too_deep() {
    let file = |name: &str| json!({"url": format!("https://h/{name}"), "content_type": "image/png"});
    let png = |name: &str| (format!("https://h/{name}"), Some("image/png".to_owned()));
    assert_eq!(
        artifacts(json!({"images": [file("1"), file("2"), file("1")], "seed": 7})),
        [png("1"), png("2")]
    );
    assert_eq!(artifacts(json!({"video": {"uri": "http://h/v"}})), [("http://h/v".to_owned(), None)]);
    assert_eq!(artifacts(json!({"a": {"url": "data:x"}, "b": {"url": 1}, "url": "file:///x"})), []);
    let deep = |depth: usize| (0..depth).fold(file("d"), |inner, _| json!({ "in": inner }));
    assert_eq!(artifacts(deep(6)), [png("d")]);
    assert_eq!(artifacts(deep(7)), []);
    let many: Vec<Value> = (0..=1024).map(|at| json!({"url": format!("https://h/{at}")})).collect();
    assert!(result(json!(many).to_string().into_bytes()).is_err());
}

#[test]
fn a_result_keeps_its_text() {
    let text = r#"{"x": 1.50, "n": 12345678901234567890123}"#;
    assert_eq!(result(text.into()).unwrap().0, text);
    for broken in [&b"{"[..], b"", b"{\"a\":\"\xff\"}"] {
        let failure = result(broken.to_vec()).unwrap_err();
        assert_eq!((failure.code, failure.retryable()), (PortableCode::ProviderProtocolError, false));
    }
}

#[test]
fn a_completed_task_may_have_failed() {
    let failure = |status: Value| {
        let status: Status = read(status.to_string().as_bytes()).unwrap();
        completed(&status).err().map(|failure| (failure.code, failure.retryable(), failure.provider_code))
    };
    let unavailable =
        |code: Option<&str>| Some((PortableCode::ProviderUnavailable, false, code.map(str::to_owned)));
    assert_eq!(failure(json!({"status": "COMPLETED", "error": null})), None);
    let timeout = json!({"status": "COMPLETED", "error": "canary", "error_type": "request_timeout"});
    assert_eq!(failure(timeout), unavailable(Some("request_timeout")));
    assert_eq!(failure(json!({"status": "COMPLETED", "error": {}, "error_type": "a b"})), unavailable(None));
    for wrong in ["[]", "[\"COMPLETED\",null,null]", "{}", "{\"status\":1}", ""] {
        assert!(read::<Status>(wrong.as_bytes()).is_err(), "{wrong}");
    }
}
