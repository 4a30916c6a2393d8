//! Numbers: as first given out. Must never be edited to follow the code.

use std::collections::BTreeSet;

use super::{
    Dialect, JOURNAL_KIND_LAST, Outcome, Phase, PortableCode, Reached, RecordKind, Status, StopReason,
    UsageSource,
};

/// The numbers as first given out. A line here is never edited; a new member is a new line.
#[test]
fn numbers_stay() {
    let kinds: Vec<(u16, &str)> = RecordKind::ALL.iter().map(|kind| (kind.number(), kind.as_str())).collect();
    assert_eq!(
        kinds,
        [
            (64, "created"),
            (65, "materialized_result"),
            (66, "attempt_evidence"),
            (67, "origin"),
            (68, "labels"),
            (80, "execution.accepted"),
            (81, "route.selected"),
            (82, "route.attempt_failed"),
            (83, "output.delta"),
            (84, "tool.call.started"),
            (85, "tool.call.arguments.delta"),
            (86, "execution.progress"),
            (87, "output.result"),
            (88, "usage.reported"),
            (89, "execution.completed"),
            (90, "execution.failed"),
            (91, "execution.completed.for"),
        ]
    );
    let statuses = ["accepted", "routing", "running", "succeeded", "failed", "cancelled"];
    check_numbers(Status::from_number, Status::as_str, &statuses);
    let codes = [
        "invalid_request",
        "capability_unavailable",
        "queue_full",
        "rate_limited",
        "deadline_exceeded",
        "cancelled",
        "provider_unavailable",
        "provider_protocol_error",
        "internal_error",
    ];
    check_numbers(PortableCode::from_number, PortableCode::as_str, &codes);
    check_numbers(Outcome::from_number, Outcome::as_str, &["unknown", "not_dispatched"]);
    let dialects = ["openai_chat", "openai_responses", "anthropic_messages"];
    check_numbers(Dialect::from_number, Dialect::as_str, &dialects);
    let steps = ["selected", "request_sent", "response_headers", "first_output"];
    check_numbers(Reached::from_number, Reached::as_str, &steps);
    let reasons = [
        "stop",
        "length",
        "tool_calls",
        "content_filter",
        "refusal",
        "stop_sequence",
        "pause_turn",
        "context_window",
        "other",
    ];
    check_numbers(StopReason::from_number, StopReason::as_str, &reasons);
    check_numbers(Phase::from_number, Phase::as_str, &["queued", "processing"]);
    check_numbers(UsageSource::from_number, UsageSource::as_str, &["provider", "runtime"]);
}

/// The set's members are numbered from 1 in this order, and no other number has a member.
#[track_caller]
fn check_numbers<T>(from_number: fn(u8) -> Option<T>, as_str: fn(T) -> &'static str, expected: &[&str]) {
    let found: Vec<(u8, &str)> = (0..=u8::MAX)
        .filter_map(|number| from_number(number).map(|member| (number, as_str(member))))
        .collect();
    let expected: Vec<(u8, &str)> = (1..).zip(expected.iter().copied()).collect();
    assert_eq!(found, expected);
}

#[test]
fn kinds_are_distinct_and_ours() {
    let numbers: BTreeSet<u16> = RecordKind::ALL.iter().map(|kind| kind.number()).collect();
    assert_eq!(numbers.len(), RecordKind::ALL.len());
    assert!(numbers.iter().all(|number| *number > JOURNAL_KIND_LAST));
    for kind in RecordKind::ALL {
        assert_eq!(RecordKind::from_number(kind.number()), Some(*kind));
        assert_eq!(RecordKind::from_name(kind.as_str()), Some(*kind));
        assert_eq!(kind.is_event(), kind.as_str().contains('.'));
    }
    assert_eq!(RecordKind::from_number(1), None);
    assert_eq!(RecordKind::from_number(79), None);
    assert_eq!(RecordKind::from_number(92), None);
    assert_eq!(RecordKind::from_name("execution.cancelled"), None);
    assert_eq!(RecordKind::CompletedFor.event_type(), Some("execution.completed"));
    assert_eq!(RecordKind::OutputDelta.event_type(), Some("output.delta"));
    assert_eq!(RecordKind::Labels.event_type(), None);
}
