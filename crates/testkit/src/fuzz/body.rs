//! Record bodies: decoded, encoded, rendered, folded.

use sealog_events::json::{event_json, snapshot_json};
use sealog_events::limits::{self, TERMINAL_JSON_BYTES_MAX, event_json_bytes_max};
use sealog_events::{
    Event, EventBody, ExecutionId, Holds, MaterializedResult, Materializer, RecordKind, Timestamp, body,
};
use serde_json::Value;

use super::allocation::within;

const ID: ExecutionId = ExecutionId::from_bytes([0x11; 16]);

/// The first byte chooses the kind, the rest is the body.
pub(super) fn record_body(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let kinds = RecordKind::ALL;
    let kind = kinds[usize::from(*choice) % kinds.len()];
    // A claimed length is bounded before the bytes behind it are seen; what is read takes a multiple of itself.
    let memory = limits::BODY_BYTES_MAX + 256 * bytes.len() + (16 << 10);
    match kind.holds() {
        Holds::Creation => {
            if let Ok(created) = within(memory, || body::decode_created(bytes)) {
                assert_eq!(body::encode_created(&created), bytes, "a body has one spelling");
            }
        }
        Holds::Origin => {
            if let Ok(origin) = within(memory, || body::decode_origin(bytes)) {
                assert_eq!(body::encode_origin(&origin).as_deref(), Ok(bytes), "a body has one spelling");
            }
        }
        Holds::Labels => {
            if let Ok(labels) = within(memory, || body::decode_labels(bytes)) {
                assert_eq!(body::encode_labels(&labels).as_deref(), Ok(bytes), "a body has one spelling");
            }
        }
        Holds::Result => {
            if let Ok(result) = within(memory, || body::decode_result(bytes)) {
                assert_eq!(body::encode_result(&result).as_deref(), Ok(bytes), "a body has one spelling");
            }
        }
        Holds::Evidence => {
            if let Ok(evidence) = within(memory, || body::decode_evidence(bytes)) {
                assert_eq!(body::encode_evidence(&evidence).as_deref(), Ok(bytes), "a body has one spelling");
            }
        }
        Holds::Event => {
            if let Ok(decoded) = within(memory, || body::decode(kind.number(), bytes)) {
                assert_eq!(decoded.kind(), kind.number());
                assert_eq!(body::encode(&decoded).as_deref(), Ok(bytes), "a body has one spelling");
                rendered(decoded);
            }
        }
    }
}

/// What decodes is one line of JSON within its bound, and folds.
fn rendered(body: EventBody) {
    assert_eq!(limits::check(&body), Ok(()));
    let bound = event_json_bytes_max(&body);
    let event = Event { sequence: u64::MAX, time: Timestamp(u64::MAX), body };
    let text = event_json(ID, &event);
    assert!(text.len() <= bound && bound <= limits::EVENT_JSON_BYTES_MAX);
    assert!(!event.body.is_terminal() || text.len() <= TERMINAL_JSON_BYTES_MAX);
    assert!(!text.contains(['\n', '\r']), "an event is one line");
    let value: Value = serde_json::from_str(&text).expect("an event is JSON");
    assert_eq!(value["type"], event.body.type_name());
    assert_eq!(value["status"], event.body.status().as_str());
    let mut fold = Materializer::new(ID, Timestamp(0));
    fold.push(&event);
    let snapshot = fold.snapshot();
    assert_eq!(snapshot.status, event.body.status());
    let shown: Value = serde_json::from_str(&snapshot_json(&snapshot)).expect("a snapshot is JSON");
    assert_eq!(shown["status"], event.body.status().as_str());
    let result = MaterializedResult::of(&snapshot, usize::MAX);
    assert_eq!(result.is_some(), event.body.is_terminal());
    if let Some(result) = result {
        assert_eq!(result.agrees_with(&snapshot), Some(true));
    }
}
