//! Limits: each bound at its edge and one beyond, and the codec's agreement with every verdict.
//! Must never judge a bound from one side only.

use proptest::prelude::*;

use super::*;
use crate::json::event_json;
use crate::{Event, JsonText, Quantity, UsageSource, arbitrary, body};

fn delta(bytes: usize) -> EventBody {
    EventBody::OutputDelta { output_index: u32::MAX, delta: "a".repeat(bytes) }
}

#[track_caller]
fn check_body(body: &EventBody, expected: Result<(), Unproducible>) {
    assert_eq!(check(body), expected);
    // The codec must agree, or something could be produced that cannot be stored.
    match (body::encode(body), expected) {
        (Ok(bytes), Ok(())) => assert_eq!(body::decode(body.kind(), &bytes).as_ref(), Ok(body)),
        (encoded, expected) => {
            assert_eq!(encoded.map(|_| ()), expected.map_err(body::BodyError::Unproducible))
        }
    }
}

/// PA-31.
#[test]
fn longest_event_fits_a_frame() {
    let room = EVENT_JSON_BYTES_MAX - event_json_bytes_max(&delta(0));
    check_body(&delta(room), Ok(()));
    check_body(&delta(room + 1), Err(Unproducible::EventTooLong));
    let event = Event { sequence: u64::MAX, time: Timestamp(u64::MAX), body: delta(room) };
    let data = event_json(arbitrary::ID, &event);
    assert_eq!(data.len(), EVENT_JSON_BYTES_MAX);
    let frame = format!("id: {}\nevent: {}\ndata: {data}\n\n", event.sequence, event.body.type_name());
    assert!(frame.len() <= 1_048_576, "{}", frame.len());
}

#[test]
fn text_is_measured_as_it_is_written() {
    // Six bytes each inside a string: more than a frame holds, though the text itself is short.
    let escaped = EventBody::OutputDelta { output_index: 0, delta: "\u{1}".repeat(EVENT_JSON_BYTES_MAX / 6) };
    check_body(&escaped, Err(Unproducible::EventTooLong));
    let shorter =
        EventBody::OutputDelta { output_index: 0, delta: "\u{1}".repeat(EVENT_JSON_BYTES_MAX / 6 - 60) };
    check_body(&shorter, Ok(()));
}

#[test]
fn terminal_events_fit_their_reserve() {
    let failed = |message: usize, provider_code: usize| EventBody::Failed {
        error: ErrorFact::new(PortableCode::InternalError, "m".repeat(message), false)
            .with_provider_code("p".repeat(provider_code)),
        cancelled: false,
    };
    let spare = TERMINAL_JSON_BYTES_MAX - event_json_bytes_max(&failed(1024, 1));
    check_body(&failed(1024, 1 + spare), Ok(()));
    check_body(&failed(1024, 2 + spare), Err(Unproducible::TerminalTooLong));
    // The longest names that are common elsewhere, 256 characters of one byte, leave room to spare.
    let name = "n".repeat(256);
    check_body(
        &EventBody::Completed { target: Target { provider: name.clone(), model: name }, stop_reason: None },
        Ok(()),
    );
}

#[test]
fn fields_are_bounded() {
    let target =
        |provider: &str, model: &str| Target { provider: provider.to_owned(), model: model.to_owned() };
    let selected = |target, attempt| EventBody::RouteSelected { target, attempt };
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    check_body(&selected(target("p", "m"), 1), Ok(()));
    check_body(&selected(target("p", "m"), 0), Err(Unproducible::AttemptZero));
    check_body(&selected(target("", "m"), 1), Err(Unproducible::FieldEmpty));
    check_body(&selected(target("p", ""), 1), Err(Unproducible::FieldEmpty));
    check_body(&selected(target(&long, "m"), 1), Err(Unproducible::FieldTooLong));
    check_body(&selected(target("p", &long[1..]), 1), Ok(()));
    let started = |call_id: &str, name: &str| EventBody::ToolCallStarted {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
    };
    check_body(&started("", ""), Ok(()));
    check_body(&started(&long, ""), Err(Unproducible::FieldTooLong));
    check_body(&started("", &long), Err(Unproducible::FieldTooLong));
    check_body(
        &EventBody::ToolCallArgumentsDelta { call_id: long.clone(), delta: String::new() },
        Err(Unproducible::FieldTooLong),
    );
    let cancelled = |code| EventBody::Failed { error: ErrorFact::new(code, "m", false), cancelled: true };
    check_body(&cancelled(PortableCode::Cancelled), Ok(()));
    check_body(&cancelled(PortableCode::InternalError), Err(Unproducible::CancelledCode));
    let mut error = ErrorFact::new(PortableCode::InternalError, "m".repeat(MESSAGE_BYTES_MAX + 1), false);
    let attempt_failed = |error: &ErrorFact| EventBody::RouteAttemptFailed {
        target: target("p", "m"),
        attempt: 1,
        error: error.clone(),
    };
    check_body(&attempt_failed(&error), Err(Unproducible::FieldTooLong));
    error.message.pop();
    check_body(&attempt_failed(&error), Ok(()));
    error.provider_code = Some(String::new());
    check_body(&attempt_failed(&error), Err(Unproducible::FieldEmpty));
}

#[test]
fn lists_are_bounded() {
    let artifact = |uri: &str, name: Option<&str>| Artifact {
        uri: uri.to_owned(),
        media_type: None,
        name: name.map(str::to_owned),
        expires_at: None,
    };
    let result = |artifacts| EventBody::OutputResult {
        result: JsonText::new("null").expect("valid"),
        artifacts: Some(artifacts),
    };
    let long = "n".repeat(URI_BYTES_MAX + 1);
    check_body(&result(vec![artifact("u", Some("")); LIST_ITEMS_MAX]), Ok(()));
    check_body(&result(vec![artifact("u", None); LIST_ITEMS_MAX + 1]), Err(Unproducible::TooManyItems));
    check_body(&result(vec![artifact("", None)]), Err(Unproducible::FieldEmpty));
    check_body(&result(vec![artifact(&long, None)]), Err(Unproducible::FieldTooLong));
    check_body(&result(vec![artifact("u", Some(&long[..=NAME_BYTES_MAX]))]), Err(Unproducible::FieldTooLong));
    check_body(&result(vec![artifact(&long[1..], None); 32]), Err(Unproducible::EventTooLong));
    let fact = |unit: &str| UsageFact {
        unit: unit.to_owned(),
        quantity: Quantity::from(1),
        source: UsageSource::Provider,
        complete: None,
    };
    let reported = |facts| EventBody::UsageReported { facts };
    check_body(&reported(vec![fact("u"); LIST_ITEMS_MAX]), Ok(()));
    check_body(&reported(vec![fact("u"); LIST_ITEMS_MAX + 1]), Err(Unproducible::TooManyItems));
    check_body(&reported(vec![fact("")]), Err(Unproducible::FieldEmpty));
}

#[test]
fn provider_codes_that_cannot_be_stored_are_left_out() {
    let with = |code: &str| {
        ErrorFact::new(PortableCode::RateLimited, "m", true).with_provider_code(code).provider_code
    };
    assert_eq!(with("429").as_deref(), Some("429"));
    assert_eq!(with(""), None);
    assert_eq!(with(&"c".repeat(NAME_BYTES_MAX + 1)), None);
}

#[test]
fn long_text_is_cut_between_characters() {
    let pieces = |text| split_text(text, 6).collect::<Vec<_>>();
    assert_eq!(pieces(""), [""]);
    assert_eq!(pieces("abcdef"), ["abcdef"]);
    assert_eq!(pieces("abcdefg"), ["abcdef", "g"]);
    assert_eq!(pieces("\u{1f600}\u{1f600}"), ["\u{1f600}", "\u{1f600}"]);
    assert_eq!(pieces("\u{1}a\"\"\"\""), ["\u{1}", "a\"\"", "\"\""]);
    let long = "x".repeat(3 * DELTA_JSON_BYTES_MAX - 1);
    assert_eq!(split_delta(&long).map(str::len).collect::<Vec<_>>(), [131_072, 131_072, 131_071]);
}

proptest! {
    #[test]
    fn pieces_join_and_fit(text in arbitrary::text(60), bound in 6_usize..20) {
        let pieces: Vec<&str> = split_text(&text, bound).collect();
        prop_assert_eq!(pieces.concat(), text.clone());
        prop_assert!(pieces.iter().all(|piece| json::string_json(piece).len() - 2 <= bound));
        prop_assert!(text.is_empty() || pieces.iter().all(|piece| !piece.is_empty()));
    }

    /// PA-31.
    #[test]
    fn the_bound_holds_for_every_event(body in arbitrary::body(), sequence: u64, time: u64) {
        let bound = event_json_bytes_max(&body);
        let text = event_json(arbitrary::ID, &Event { sequence, time: Timestamp(time), body });
        prop_assert!(text.len() <= bound && bound - text.len() < 40, "{} {bound}", text.len());
    }
}
