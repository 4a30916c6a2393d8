//! JSON text that is kept as it came.

use sealog_events::JsonText;
use serde_json::Value;

/// What is kept is unchanged; what is laid out anew on one line has the same value.
pub(super) fn json_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let kept = JsonText::new(text);
    if let Ok(kept) = &kept {
        assert_eq!(kept.as_str(), text);
        assert!(!text.contains(['\n', '\r']));
    }
    match JsonText::compacted(text) {
        Ok(compacted) => {
            assert_eq!(JsonText::new(compacted.as_str()).as_ref(), Ok(&compacted), "it could be kept");
            assert_eq!(JsonText::compacted(compacted.as_str()).as_ref(), Ok(&compacted), "it is its own");
            let value = |text: &str| serde_json::from_str::<Value>(text).expect("it was read before");
            assert_eq!(value(text), value(compacted.as_str()), "it has the same value");
        }
        Err(error) => assert!(kept.is_err(), "kept, and not to be compacted: {error}"),
    }
}
