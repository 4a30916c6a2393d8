//! Strategies for property tests: any event that can be produced, any stream of them, any JSON text.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{
    Artifact, Created, ErrorFact, Event, EventBody, ExecutionId, Identity, JsonText, Outcome, Phase,
    PortableCode, ProgressNumber, Quantity, StopReason, Target, Timestamp, UsageFact, UsageSource,
};

pub(crate) const ID: ExecutionId = ExecutionId::from_bytes([
    0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x43, 0x33, 0x84, 0x44, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55,
]);

/// Text that favours what needs care: quotes, control characters, astral characters, separators.
pub(crate) fn text(chars_max: usize) -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => proptest::char::range(' ', '~'),
        1 => proptest::char::range('\0', '\u{1f}'),
        1 => prop::sample::select(vec!['"', '\\', '/', '\u{7f}', 'é', '\u{2028}', '\u{feff}', '\u{ff5e}', '\u{1f600}']),
        1 => any::<char>(),
    ];
    vec(character, 0..=chars_max).prop_map(String::from_iter)
}

fn name() -> impl Strategy<Value = String> {
    text(12).prop_map(|text| format!("n{text}"))
}

/// From a small set, so that events of one stream meet.
fn call_id() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "call-1", "call-2", "call-3"]).prop_map(str::to_owned)
}

fn target() -> impl Strategy<Value = Target> {
    (name(), name()).prop_map(|(provider, model)| Target { provider, model })
}

fn error() -> impl Strategy<Value = ErrorFact> {
    let code = prop::sample::select(PortableCode::ALL);
    let outcome = option::of(prop::sample::select(Outcome::ALL));
    (code, text(40), any::<bool>(), option::of(name()), outcome).prop_map(
        |(code, message, retryable, provider_code, outcome)| ErrorFact {
            code,
            message,
            retryable,
            provider_code,
            outcome,
        },
    )
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |value| value.is_finite()),
        (-20_000_i32..20_000).prop_map(f64::from),
        Just(-0.0),
    ]
}

fn usage_fact() -> impl Strategy<Value = UsageFact> {
    let source = prop::sample::select(UsageSource::ALL);
    (name(), number(), source, option::of(any::<bool>())).prop_map(|(unit, quantity, source, complete)| {
        UsageFact {
            unit,
            quantity: Quantity::new(quantity.abs()).expect("a finite number of at least zero"),
            source,
            complete,
        }
    })
}

fn artifact() -> impl Strategy<Value = Artifact> {
    (name(), option::of(text(8)), option::of(text(8)), option::of(text(8)))
        .prop_map(|(uri, media_type, name, expires_at)| Artifact { uri, media_type, name, expires_at })
}

/// A JSON value of some depth.
pub(crate) fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        number().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        text(8).prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(serde_json::Value::Array),
            vec((text(3), inner), 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

fn json_text() -> impl Strategy<Value = JsonText> {
    json_value().prop_map(|value| JsonText::new(value.to_string()).expect("serde_json writes valid text"))
}

/// Any event body that is not terminal, and now and then one that is.
pub(crate) fn body() -> impl Strategy<Value = EventBody> {
    prop_oneof![9 => running_body(), 1 => terminal_body()]
}

pub(crate) fn running_body() -> impl Strategy<Value = EventBody> {
    prop_oneof![
        Just(EventBody::Accepted),
        (target(), 1_u32..).prop_map(|(target, attempt)| EventBody::RouteSelected { target, attempt }),
        (target(), 1_u32.., error()).prop_map(|(target, attempt, error)| EventBody::RouteAttemptFailed {
            target,
            attempt,
            error
        }),
        (prop_oneof![0..3_u32, any::<u32>()], text(20))
            .prop_map(|(output_index, delta)| EventBody::OutputDelta { output_index, delta }),
        (call_id(), name()).prop_map(|(call_id, name)| EventBody::ToolCallStarted { call_id, name }),
        (call_id(), text(20))
            .prop_map(|(call_id, delta)| EventBody::ToolCallArgumentsDelta { call_id, delta }),
        (
            prop::sample::select(Phase::ALL),
            option::of(number().prop_map(|value| { ProgressNumber::new(value).expect("a finite number") }))
        )
            .prop_map(|(phase, progress)| EventBody::Progress { phase, progress }),
        (json_text(), option::of(vec(artifact(), 0..3)))
            .prop_map(|(result, artifacts)| EventBody::OutputResult { result, artifacts }),
        vec(usage_fact(), 0..4).prop_map(|facts| EventBody::UsageReported { facts }),
    ]
}

pub(crate) fn terminal_body() -> impl Strategy<Value = EventBody> {
    prop_oneof![
        (target(), option::of(prop::sample::select(StopReason::ALL)))
            .prop_map(|(target, stop_reason)| EventBody::Completed { target, stop_reason }),
        (error(), any::<bool>()).prop_map(|(error, cancelled)| {
            let code = if cancelled { PortableCode::Cancelled } else { error.code };
            EventBody::Failed { error: ErrorFact { code, ..error }, cancelled }
        }),
    ]
}

/// A stream as a store would hold it: numbered from 1, perhaps with a terminal event at its end.
pub(crate) fn stream() -> impl Strategy<Value = Vec<Event>> {
    (vec(running_body(), 0..40), option::of(terminal_body())).prop_map(|(mut bodies, terminal)| {
        bodies.extend(terminal);
        let numbered = (1..).zip(bodies);
        numbered.map(|(sequence, body)| Event { sequence, time: Timestamp(1000 + sequence), body }).collect()
    })
}

pub(crate) fn created() -> impl Strategy<Value = Created> {
    let identity =
        any::<([u8; 32], [u8; 32])>().prop_map(|(key_hash, fingerprint)| Identity { key_hash, fingerprint });
    (any::<u64>(), option::of(identity))
        .prop_map(|(created_at, identity)| Created { created_at: Timestamp(created_at), identity })
}
