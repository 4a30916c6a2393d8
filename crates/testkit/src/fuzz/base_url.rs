//! Base URLs of upstreams: nothing a configuration or an upstream writes leads to another origin or in the clear.

use sealog_upstream::base_url::BASE_URL_BYTES_MAX;
use sealog_upstream::{BaseUrl, EnvironmentName};

/// Up to the first line feed a base URL, behind it what an upstream answers.
pub(super) fn base_url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (base, answer) = text.split_once('\n').unwrap_or((text, "chat"));
    if let Some(name) = EnvironmentName::parse(answer) {
        assert!(answer.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'));
        assert_eq!(name.as_str(), answer);
    }
    let Ok(parsed) = BaseUrl::parse(base) else { return };
    assert!(base.len() <= BASE_URL_BYTES_MAX && !base.contains(['?', '#', ' ']));
    let shown = format!("{parsed:?}");
    let origin = shown.strip_prefix("BaseUrl(").and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let at_host =
        |host: &&str| origin.strip_prefix(*host).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    assert_eq!(parsed.is_https(), origin.starts_with("https://"), "{origin}");
    assert!(parsed.is_https() || local.iter().any(at_host), "{origin}");
    if let Ok(endpoint) = parsed.endpoint(&["chat", answer]) {
        assert_eq!(format!("{endpoint:?}"), format!("Endpoint({origin})"), "an endpoint stays at its origin");
        assert!(!endpoint.path().contains(['?', '#', ' ']) && !endpoint.path().contains("/../"));
        assert_eq!(
            endpoint.path().rsplit('/').nth(1),
            Some("chat"),
            "a segment stays one segment: {}",
            endpoint.path()
        );
    }
    if let Ok(endpoint) = parsed.endpoint_from_upstream(answer) {
        assert_eq!(format!("{endpoint:?}"), format!("Endpoint({origin})"), "an answer stays at its origin");
    }
}
