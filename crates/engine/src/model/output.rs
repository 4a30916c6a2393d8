//! Turning what a provider reports into events that can exist: checked, bounded, text that no event can hold split.

use sealog_events::limits::{self, DELTA_JSON_BYTES_MAX};
use sealog_events::{EventBody, JsonText, Mark, ProgressNumber, Quantity, StopReason, UsageFact};
use sealog_execution::{Failure, ProviderEvent, ReportedUsage};

/// A byte of text takes at most this many bytes in a JSON string.
const ESCAPE_BYTES_MAX: usize = 6;

/// What one report becomes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// These events, in order; may be none.
    Events(Vec<EventBody>),
    /// Evidence beside the events.
    Mark(Mark),
    /// Why the answer ends; kept until it has.
    Stopped(StopReason),
    /// The provider is done.
    Completed,
}

/// The events of one report.
///
/// # Errors
/// `provider_protocol_error` for a report that no event can represent.
pub(crate) fn report(event: ProviderEvent) -> Result<Report, Failure> {
    let bodies = match event {
        ProviderEvent::Mark(mark) => return Ok(Report::Mark(mark)),
        ProviderEvent::OutputDelta { output_index, delta } => {
            split(delta, |delta| EventBody::OutputDelta { output_index, delta })
        }
        ProviderEvent::ToolCallStarted { call_id, name } => {
            vec![EventBody::ToolCallStarted { call_id, name }]
        }
        ProviderEvent::ToolCallArgumentsDelta { call_id, delta } => {
            split(delta, |delta| EventBody::ToolCallArgumentsDelta { call_id: call_id.clone(), delta })
        }
        ProviderEvent::Progress { phase, progress } => {
            let progress =
                progress.map(|value| ProgressNumber::new(value).ok_or_else(unproducible)).transpose()?;
            vec![EventBody::Progress { phase, progress }]
        }
        ProviderEvent::Result { result, artifacts } => {
            let result = JsonText::compacted(&result).map_err(|_| unproducible())?;
            vec![EventBody::OutputResult { result, artifacts }]
        }
        ProviderEvent::Usage(reported) if reported.is_empty() => Vec::new(),
        ProviderEvent::Usage(reported) => vec![EventBody::UsageReported { facts: usage(reported)? }],
        ProviderEvent::Stopped(reason) => return Ok(Report::Stopped(reason)),
        ProviderEvent::Completed => return Ok(Report::Completed),
    };
    for body in &bodies {
        limits::check(body).map_err(|_| unproducible())?;
    }
    Ok(Report::Events(bodies))
}

/// One event for one report wherever an event can hold it: how a provider cuts its text is its own business.
fn split(text: String, body: impl Fn(String) -> EventBody) -> Vec<EventBody> {
    if text.len() <= DELTA_JSON_BYTES_MAX / ESCAPE_BYTES_MAX {
        return vec![body(text)];
    }
    let whole = body(text.clone());
    if limits::check(&whole).is_ok() {
        return vec![whole];
    }
    limits::split_delta(&text).map(|piece| body(piece.to_owned())).collect()
}

fn usage(reported: Vec<ReportedUsage>) -> Result<Vec<UsageFact>, Failure> {
    let fact = |usage: ReportedUsage| {
        let quantity = Quantity::new(usage.quantity).filter(|_| !usage.unit.is_empty());
        let quantity =
            quantity.ok_or_else(|| Failure::protocol("Provider reported an invalid usage fact"))?;
        Ok(UsageFact { unit: usage.unit, quantity, source: usage.source, complete: usage.complete })
    };
    reported.into_iter().map(fact).collect()
}

fn unproducible() -> Failure {
    Failure::protocol("Provider reported an event that cannot be represented")
}

#[cfg(test)]
mod tests {
    use sealog_events::{PortableCode, UsageSource};

    use super::*;

    #[track_caller]
    fn bodies(event: ProviderEvent) -> Vec<EventBody> {
        match report(event) {
            Ok(Report::Events(bodies)) => bodies,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn refused(event: ProviderEvent) {
        assert_eq!(report(event).unwrap_err().code, PortableCode::ProviderProtocolError);
    }

    fn usage_of(unit: &str, quantity: f64) -> ProviderEvent {
        let unit = unit.to_owned();
        let source = UsageSource::Provider;
        ProviderEvent::Usage(vec![ReportedUsage { unit, quantity, source, complete: None }])
    }

    #[test]
    fn long_text_is_split_and_joins_to_the_same() {
        let text = "\u{0}\u{e9}\u{1F600}x".repeat(100_000);
        let pieces = bodies(ProviderEvent::OutputDelta { output_index: 3, delta: text.clone() });
        assert!(pieces.len() > 1);
        let joined: String = pieces
            .iter()
            .map(|body| match body {
                EventBody::OutputDelta { output_index: 3, delta } => delta.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(joined == text);
        // 1 MiB of stream frame less what surrounds the text: as long as that, a report stays one event.
        for (bytes, count) in [(131_072, 1), (262_144, 1), (1_047_000, 1), (1_048_576, 8)] {
            let reported = bodies(ProviderEvent::OutputDelta { output_index: 0, delta: "x".repeat(bytes) });
            assert_eq!(reported.len(), count, "{bytes}");
        }
        let empty = bodies(ProviderEvent::OutputDelta { output_index: 0, delta: String::new() });
        assert_eq!(empty.len(), 1);
    }

    #[test]
    fn facts_35_usage_is_non_empty_finite_and_not_negative() {
        for (unit, quantity) in [("t", -1.0), ("t", f64::NAN), ("t", f64::INFINITY), ("", 1.0)] {
            refused(usage_of(unit, quantity));
        }
        refused(usage_of(&"u".repeat(2000), 1.0));
        assert_eq!(bodies(usage_of("t", 0.5)).len(), 1);
        assert_eq!(bodies(ProviderEvent::Usage(Vec::new())).len(), 0);
    }

    /// PA-31.
    #[test]
    fn what_no_event_can_hold_is_a_protocol_error() {
        let phase = sealog_events::Phase::Processing;
        refused(ProviderEvent::Progress { phase, progress: Some(f64::NAN) });
        refused(ProviderEvent::Result { result: "{".to_owned(), artifacts: None });
        refused(ProviderEvent::Result { result: format!("\"{}\"", "x".repeat(1 << 20)), artifacts: None });
        refused(ProviderEvent::ToolCallStarted { call_id: "c".repeat(2000), name: "n".to_owned() });
        refused(ProviderEvent::ToolCallArgumentsDelta { call_id: "c".repeat(2000), delta: String::new() });
        assert_eq!(bodies(ProviderEvent::Result { result: "null".to_owned(), artifacts: None }).len(), 1);
        assert_eq!(report(ProviderEvent::Completed), Ok(Report::Completed));
        let reason = StopReason::Length;
        assert_eq!(report(ProviderEvent::Stopped(reason)), Ok(Report::Stopped(reason)));
    }
}
