//! Kept JSON text: what is kept as given, what is refused, what compacting drops.
//! Must never let a text be changed unnoticed.

use proptest::prelude::*;

use super::{JsonText, JsonTextError};
use crate::arbitrary;
use crate::limits::{EVENT_JSON_BYTES_MAX, JSON_DEPTH_MAX};

#[track_caller]
fn check(text: &str, expected: Result<(), JsonTextError>) {
    let kept = JsonText::new(text);
    assert_eq!(kept.as_ref().map(|_| ()).map_err(|error| *error), expected, "{text}");
    if let Ok(kept) = kept {
        assert_eq!(kept.as_str(), text);
    }
}

#[test]
fn kept_as_given_or_refused() {
    for text in [
        "null",
        "{\"b\":1.0,\"a\":1e3}",
        " [1 , 2]\t",
        "{\"a\":1,\"a\":2}",
        "\"\\ud83d\\ude00\u{2028}\"",
        "-0",
    ] {
        check(text, Ok(()));
    }
    for text in [
        "",
        " ",
        "[1",
        "1 2",
        "[1]]",
        "nul",
        "'a'",
        "NaN",
        "1e999",
        "\"\\ud800\"",
        "{\"\\udc00\":1}",
        "\u{feff}1",
    ] {
        check(text, Err(JsonTextError::Invalid));
    }
    check("[1,\n2]", Err(JsonTextError::LineBreak));
    check("[1]\r", Err(JsonTextError::LineBreak));
    let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    check(&nested(JSON_DEPTH_MAX), Ok(()));
    check(&nested(JSON_DEPTH_MAX + 1), Err(JsonTextError::Invalid));
    check(&"[".repeat(EVENT_JSON_BYTES_MAX), Err(JsonTextError::Invalid));
    let string = |bytes: usize| format!("\"{}\"", "a".repeat(bytes - 2));
    check(&string(EVENT_JSON_BYTES_MAX), Ok(()));
    check(&string(EVENT_JSON_BYTES_MAX + 1), Err(JsonTextError::TooLong));
}

#[test]
fn compacting_drops_white_space_between_tokens_only() {
    let compacted = |text: &str| JsonText::compacted(text).map(JsonText::into_string);
    assert_eq!(
        compacted("{\r\n  \"a b\\\"\\\\\" : [ 1 ,\t2 ]\n}\n").as_deref(),
        Ok("{\"a b\\\"\\\\\":[1,2]}")
    );
    assert_eq!(compacted("1\n2"), Err(JsonTextError::Invalid));
    assert_eq!(compacted("\"a\nb\""), Err(JsonTextError::Invalid));
    assert_eq!(compacted(&format!("{}1", " ".repeat(EVENT_JSON_BYTES_MAX))).as_deref(), Ok("1"));
    assert_eq!(compacted(&" ".repeat(4 * EVENT_JSON_BYTES_MAX + 1)), Err(JsonTextError::TooLong));
    assert_eq!(compacted(&format!("\"{}\"", "a".repeat(EVENT_JSON_BYTES_MAX))), Err(JsonTextError::TooLong));
}

#[test]
fn debug_shows_no_content() {
    assert_eq!(format!("{:?}", JsonText::new("\"secret\"").expect("valid")), "JsonText(8 bytes)");
}

proptest! {
    #[test]
    fn compacting_a_laid_out_value_gives_its_short_text(value in arbitrary::json_value()) {
        let laid_out = serde_json::to_string_pretty(&value).expect("a tree has a text");
        prop_assert_eq!(JsonText::compacted(&laid_out).map(JsonText::into_string), Ok(value.to_string()));
    }
}
