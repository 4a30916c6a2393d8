//! Canonical JSON: the public vectors, the number rule against ECMAScript's own printer, refusals, bounds.
//! Must never compare with text that the code under test made, except for idempotence.

use std::fmt::Write;

use proptest::prelude::*;

use super::{CanonicalError, canonical_json, fingerprint, key_hash};
use crate::arbitrary;
use crate::limits::{CANONICAL_BYTES_MAX, JSON_DEPTH_MAX};

#[track_caller]
fn check(text: &str, expected: Result<&str, CanonicalError>) {
    assert_eq!(canonical_json(text.as_bytes()).as_deref(), expected.as_ref().map(|text| *text), "{text}");
}

#[track_caller]
fn check_fingerprint(text: &str, expected: &str) {
    assert_eq!(fingerprint(text.as_bytes()).map(hex).as_deref(), Ok(expected), "{text}");
}

fn hex(bytes: [u8; 32]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

/// The vectors of the public model runtime, so that a request has the same fingerprint in both.
/// RM-21.
#[test]
fn known_fingerprints() {
    let plain = "6d2acc2a64d0a322216c6a07a49663579bf97d3f0e3b303ba57c5da100815de3";
    check_fingerprint(r#"{"ability":"text-generation","input":[{"type":"text","text":"fixture"}]}"#, plain);
    check_fingerprint(
        "{ \"input\" : [ {\"text\":\"fi\\u0078ture\",\r\n\"type\":\"text\"} ],\t\"ability\":\"text-generation\"}\n",
        plain,
    );
    check_fingerprint(
        r#"{"ability":"text-generation","input":[{"type":"text","text":"fixture"}],"routing":{}}"#,
        "c9848e54fd0eccc1d33363d084350fa43a6f6fb56fbb53af86ed9f70507ea966",
    );
    let numbers = "711cd811e7ec01be1798c3c4d87eb78ef1e3241524cc15d46fcb246df8a5cda1";
    check_fingerprint(
        "{\"ability\":\"a\",\"deadline_ms\":5000.0,\"input\":[{\"type\":\"json\",\"value\":{\"b\":1.0,\"a\":[1e3,-0,1e21,1e-7,0.1,\"\u{e9}\u{2028}\"]}}]}",
        numbers,
    );
    check_fingerprint(
        r#"{"ability":"a","deadline_ms":5E3,"input":[{"type":"json","value":{"a":[1000,0.0e9,1000000000000000000000,0.0000001,1e-1,"\u00e9\u2028"],"b":1}}]}"#,
        numbers,
    );
    let astral = "4ab012bb5e51517b6e55aaddee8cb731141ecfc8d1b32bf9931c957de1a30d34";
    check_fingerprint(
        "{\"ability\":\"a\",\"input\":[{\"type\":\"json\",\"value\":{\"\u{ff5e}\":1,\"\u{1f600}\":2}}]}",
        astral,
    );
    check_fingerprint(
        r#"{"ability":"a","input":[{"type":"json","value":{"\ud83d\uDE00":2,"\uff5E":1}}]}"#,
        astral,
    );
    assert_eq!(hex(key_hash("fixture")), "f16d05ec6b29248d2c61adb1e9263f78e4f7bace1b955014a2d17872cfe4064d");
}

#[test]
fn numbers() {
    let cases = [
        ("0", "0"),
        ("-0", "0"),
        ("0.000", "0"),
        ("-0e-999999999999999999999999999", "0"),
        ("0e999999999999999999999999999", "0"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1E+3", "1000"),
        ("100e-2", "1"),
        ("1.50", "1.5"),
        ("-12.5e-1", "-1.25"),
        ("1e21", "1e+21"),
        ("123456789012345680000", "123456789012345680000"),
        ("1e20", "100000000000000000000"),
        ("1e-6", "0.000001"),
        ("1e-7", "1e-7"),
        ("12e-8", "1.2e-7"),
        ("1e00000000000000000000000002", "100"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("5e-324", "5e-324"),
        // Beyond a double's digits or below its range: the literal's own digits.
        ("9007199254740992", "9007199254740992"),
        ("9007199254740993", "9007199254740993"),
        ("90071992547409930e-1", "9007199254740993"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("1180591620717411303424", "1.180591620717411303424e+21"),
        ("1e-400", "1e-400"),
        ("-12e-401", "-1.2e-400"),
        ("1e-1000000000", "1e-1000000000"),
    ];
    for (literal, expected) in cases {
        check(literal, Ok(expected));
    }
    for literal in ["1e309", "-1e309", "1.7976931348623159e308", "1e99999999999999999999", "1e-1000000001"] {
        check(literal, Err(CanonicalError::NumberRange));
    }
    for literal in
        ["01", "1.", ".5", "-", "+1", "1e", "1e+", "0x10", "1_000", "NaN", "Infinity", "--1", "1 2", "-a"]
    {
        check(literal, Err(CanonicalError::Syntax));
    }
}

/// The bound is one of values: no spelling of a number is accepted whose canonical text is not.
#[test]
fn the_exponent_bound_does_not_depend_on_the_spelling() {
    for literal in ["1e-1000000000", "0.1e-999999999", "10e-1000000001", "0.010E-999999998"] {
        check(literal, Ok("1e-1000000000"));
    }
    for literal in ["0.1e-1000000000", "1e-1000000001", "10e-1000000002", "1e-4000000001", "0.1e-4000000000"]
    {
        check(literal, Err(CanonicalError::NumberRange));
    }
    check("0e99999999999999999999", Ok("0"));
}

#[test]
fn strings() {
    check(r#""\u0041\/\b\f\n\r\t\u001F\u007f""#, Ok("\"A/\\b\\f\\n\\r\\t\\u001f\u{7f}\""));
    check(r#""\ud83d\ude00""#, Ok("\"\u{1f600}\""));
    check("\"\u{1f600}\u{2028}\"", Ok("\"\u{1f600}\u{2028}\""));
    for text in [
        r#""\ud83d""#,
        r#""\ude00""#,
        r#""\ud83d\u0041""#,
        r#""\ud83dA""#,
        r#""\ud83d\n""#,
        r#"{"\udfff":1}"#,
    ] {
        check(text, Err(CanonicalError::LoneSurrogate));
    }
    for text in
        ["\"", "\"\\\"", "\"a\nb\"", "\"a\u{0}\"", r#""\x""#, r#""\u12g4""#, r#""\u12"#, "'a'", "\"\\u00é\""]
    {
        check(text, Err(CanonicalError::Syntax));
    }
}

#[test]
fn structure() {
    check(" [ ] ", Ok("[]"));
    check("{ }", Ok("{}"));
    check("[true,false , null]", Ok("[true,false,null]"));
    check(r#"{"b":{"d":1,"c":[{}]},"a":2,"":3}"#, Ok(r#"{"":3,"a":2,"b":{"c":[{}],"d":1}}"#));
    // A longer name stands behind its prefix, capitals before small letters, digits as text.
    check(r#"{"aa":1,"a":2,"B":3,"10":4,"9":5}"#, Ok(r#"{"10":4,"9":5,"B":3,"a":2,"aa":1}"#));
    for text in [
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "[1 2]",
        "{}{}",
        "tru",
        "True",
        "nul",
        "[1]]",
        "\u{a0}1",
        "1\u{feff}",
        "é",
        "/**/1",
    ] {
        check(text, Err(CanonicalError::Syntax));
    }
    check(r#"{"a":1,"a":1}"#, Err(CanonicalError::DuplicateMember));
    check(r#"{"x":[{"a":1,"b":2,"\u0061":3}]}"#, Err(CanonicalError::DuplicateMember));
    check("\u{feff}{}", Err(CanonicalError::ByteOrderMark));
    assert_eq!(canonical_json(b"\"\xff\""), Err(CanonicalError::NotUtf8));
    assert_eq!(canonical_json(b"\"\xed\xa0\x80\""), Err(CanonicalError::NotUtf8));
}

#[test]
fn bounds() {
    let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    check(&nested(JSON_DEPTH_MAX), Ok(&nested(JSON_DEPTH_MAX)));
    check(&nested(JSON_DEPTH_MAX + 1), Err(CanonicalError::TooDeep));
    check(&"[".repeat(CANONICAL_BYTES_MAX), Err(CanonicalError::TooDeep));
    check(&"{\"a\":".repeat(JSON_DEPTH_MAX + 1), Err(CanonicalError::TooDeep));

    let string = |bytes: usize| format!("\"{}\"", "a".repeat(bytes - 2));
    check(&string(CANONICAL_BYTES_MAX), Ok(&string(CANONICAL_BYTES_MAX)));
    check(&string(CANONICAL_BYTES_MAX + 1), Err(CanonicalError::TooLong));
    // Short enough as given, too long in canonical form.
    check(&format!("[{}1]", "1e20,".repeat(100_000)), Err(CanonicalError::TooLong));
    // A literal as long as the whole text is read in one pass and keeps its digits.
    let digits = "7".repeat(500_000);
    check(&format!("0.{digits}"), Ok(&format!("0.{digits}")));
}

/// The rule as it is written down: ECMAScript's text where that denotes the literal's value, else the literal's digits.
fn reference_number(literal: &str) -> Option<String> {
    let nearest: f64 = literal.parse().ok().filter(|value: &f64| value.is_finite())?;
    let text = ryu_js::Buffer::new().format_finite(nearest).to_owned();
    (decimal(&text) == decimal(literal)).then_some(text)
}

/// Sign, significant digits without zeros at either end, and the exponent of the last one.
fn decimal(literal: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let negative = mantissa.starts_with('-');
    let (whole, fraction) =
        mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let dropped = digits.len() - kept.len();
    let significant = kept.trim_start_matches('0').to_owned();
    if significant.is_empty() {
        return (false, significant, 0);
    }
    let exponent: i64 = exponent.trim_start_matches('+').parse().expect("tests use short exponents");
    let last =
        exponent - i64::try_from(fraction.len()).expect("short") + i64::try_from(dropped).expect("short");
    (negative, significant, last)
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?",
        "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?",
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| value.to_string()),
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| format!("{value:e}")),
        any::<u64>().prop_map(|value| value.to_string()),
    ]
}

proptest! {
    #[test]
    fn numbers_keep_their_value_and_follow_the_rule(literal in literal()) {
        match canonical_json(literal.as_bytes()) {
            Ok(text) => {
                prop_assert_eq!(decimal(&text), decimal(&literal));
                prop_assert_eq!(canonical_json(text.as_bytes()), Ok(text.clone()));
                if let Some(expected) = reference_number(&literal) {
                    prop_assert_eq!(text, expected);
                }
            }
            Err(error) => {
                prop_assert_eq!(error, CanonicalError::NumberRange);
                prop_assert!(literal.parse::<f64>().is_ok_and(f64::is_infinite));
            }
        }
    }

    #[test]
    fn canonical_text_is_its_own_canonical_text(value in arbitrary::json_value()) {
        let text = canonical_json(value.to_string().as_bytes()).expect("a tree's text is unambiguous");
        prop_assert_eq!(canonical_json(text.as_bytes()), Ok(text.clone()));
        let laid_out = serde_json::to_string_pretty(&value).expect("a tree has a text");
        prop_assert_eq!(canonical_json(laid_out.as_bytes()), Ok(text.clone()));
        let read: serde_json::Value = serde_json::from_str(&text).expect("canonical text is JSON");
        prop_assert!(same(&read, &value), "{text}");
    }

    #[test]
    fn any_text_is_answered(text in "[\\[\\]{}\",:\\\\u0-9deE.+ -]{0,40}") {
        // Whatever we accept, an ordinary parser accepts as well.
        if canonical_json(text.as_bytes()).is_ok() {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(text) = canonical_json(&bytes) {
            prop_assert_eq!(canonical_json(text.as_bytes()), Ok(text.clone()));
        }
    }
}

/// Equality in which `1` and `1.0` are one number.
fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (a, b) {
        (Number(a), Number(b)) => a.as_f64() == b.as_f64(),
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Object(a), Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ka, a), (kb, b))| ka == kb && same(a, b))
        }
        (a, b) => a == b,
    }
}
