//! Execution requests.

use sealog_events::canonical;
use sealog_execution::request::{
    ATTEMPTS_MAX, BODY_BYTES_MAX, DURATION_MS_MAX, ENTRIES_MAX, ExecutionRequest, NAME_LENGTH_MAX, PARTS_MAX,
    Part, URI_LENGTH_MAX,
};

/// A request that is read keeps its bounds, its texts and its fingerprint, however it is spelled.
pub(super) fn request(data: &[u8]) {
    let Ok(parsed) = ExecutionRequest::parse(data) else { return };
    let text = std::str::from_utf8(data).expect("a request is UTF-8");
    bounded(&parsed.request);
    assert_eq!(canonical::fingerprint(data), Ok(parsed.fingerprint));
    for value in parsed.request.extensions.values().chain(parsed.request.metadata.values()) {
        assert!(text.contains(value.get()), "a value keeps the text it was sent as");
    }
    assert!(!format!("{:?}", parsed.request).contains("ability"), "a request is not for logs");
    let canonical = canonical::canonical_json(data).expect("it has a fingerprint");
    let again = ExecutionRequest::parse(canonical.as_bytes()).expect("another spelling of a request is one");
    assert_eq!(again.fingerprint, parsed.fingerprint);
    alike(&parsed.request, &again.request);
}

fn bounded(request: &ExecutionRequest) {
    let length = |text: &str| text.chars().count();
    assert!((1..=NAME_LENGTH_MAX).contains(&length(&request.ability)));
    assert!((1..=PARTS_MAX).contains(&request.input.len()));
    assert!(request.metadata.len() <= ENTRIES_MAX && request.extensions.len() <= ENTRIES_MAX);
    let duration = |ms: Option<u64>| ms.is_none_or(|ms| (1..=DURATION_MS_MAX).contains(&ms));
    assert!(duration(request.deadline_ms) && duration(request.routing.retry_budget_ms));
    assert!(request.routing.max_attempts.is_none_or(|count| (1..=ATTEMPTS_MAX).contains(&u64::from(count))));
    for part in &request.input {
        match part {
            Part::Text { text } => assert!(text.len() <= BODY_BYTES_MAX),
            Part::Json { value } => assert!(!value.get().is_empty()),
            Part::Media { kind, uri, media_type } => {
                assert_eq!(part.modality(), kind.modality());
                assert!((1..=URI_LENGTH_MAX).contains(&length(uri)));
                assert!(media_type.as_deref().is_none_or(|name| length(name) <= NAME_LENGTH_MAX));
            }
        }
    }
    for value in request.metadata.values() {
        assert!(!value.get().starts_with(['{', '[', 'n']), "metadata holds scalars");
    }
}

/// Two spellings of one request say the same.
fn alike(a: &ExecutionRequest, b: &ExecutionRequest) {
    assert_eq!(a.ability, b.ability);
    assert_eq!((a.deadline_ms, &a.requirements, &a.routing), (b.deadline_ms, &b.requirements, &b.routing));
    assert!(a.metadata.keys().eq(b.metadata.keys()) && a.extensions.keys().eq(b.extensions.keys()));
    assert_eq!(a.input.len(), b.input.len());
    for (one, other) in a.input.iter().zip(&b.input) {
        assert_eq!(one.modality(), other.modality());
        if let (Part::Text { text: one }, Part::Text { text: other }) = (one, other) {
            assert_eq!(one, other);
        }
    }
}
