//! How far each attempt of an execution provably came: the evidence beside the events, and the list that a snapshot shows.
//!
//! Owns the rules by which events and evidence become one list. Must never claim more than what was recorded: a step
//! without a record is a step that is not proven, and a later step proves the earlier ones.

use core::fmt;

use crate::{ErrorFact, EventBody, Reached, Target};

/// The identifier that a provider gave its answer. Diagnostic evidence; never sent anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Longest identifier, in bytes.
    pub const BYTES_MAX: usize = 128;

    /// 1 to 128 printable ASCII characters without spaces; anything else is no identifier.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=Self::BYTES_MAX).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A step of an attempt that no event tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The request was handed to an open connection.
    RequestSent,
    /// The head of an answer came, whatever its status.
    ResponseHeaders { request_id: Option<RequestId> },
}

impl Mark {
    #[must_use]
    pub const fn reached(&self) -> Reached {
        match self {
            Self::RequestSent => Reached::RequestSent,
            Self::ResponseHeaders { .. } => Reached::ResponseHeaders,
        }
    }
}

/// The record of a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEvidence {
    /// From 1, as in `route.selected`.
    pub attempt: u32,
    pub mark: Mark,
}

/// One attempt, as far as records prove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    pub target: Target,
    pub reached: Reached,
    /// Of the answer, if its provider gave one.
    pub request_id: Option<RequestId>,
    /// Why it failed, if another attempt followed; the last one's failure is the execution's.
    pub error: Option<ErrorFact>,
}

/// What an event says about attempts.
pub(crate) fn push_event(attempts: &mut Vec<Attempt>, event: &EventBody) {
    match event {
        EventBody::RouteSelected { target, attempt } => attempts.push(Attempt {
            number: *attempt,
            target: target.clone(),
            reached: Reached::Selected,
            request_id: None,
            error: None,
        }),
        EventBody::RouteAttemptFailed { target: _, attempt, error } => {
            if let Some(failed) = find(attempts, *attempt) {
                failed.error = Some(error.clone());
            }
        }
        // Output belongs to the newest attempt: none follows it.
        EventBody::OutputDelta { .. }
        | EventBody::ToolCallStarted { .. }
        | EventBody::ToolCallArgumentsDelta { .. }
        | EventBody::OutputResult { .. } => {
            if let Some(newest) = attempts.last_mut() {
                newest.reached = Reached::FirstOutput;
            }
        }
        EventBody::Accepted
        | EventBody::Progress { .. }
        | EventBody::UsageReported { .. }
        | EventBody::Completed { .. }
        | EventBody::Failed { .. } => {}
    }
}

/// What evidence adds. That of an attempt nobody announced adds nothing.
pub(crate) fn push_evidence(attempts: &mut [Attempt], evidence: &AttemptEvidence) {
    let Some(attempt) = find(attempts, evidence.attempt) else { return };
    attempt.reached = attempt.reached.max(evidence.mark.reached());
    if let Mark::ResponseHeaders { request_id: Some(request_id) } = &evidence.mark {
        attempt.request_id.get_or_insert_with(|| request_id.clone());
    }
}

fn find(attempts: &mut [Attempt], number: u32) -> Option<&mut Attempt> {
    attempts.iter_mut().rev().find(|attempt| attempt.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PortableCode;

    fn target(provider: &str) -> Target {
        Target { provider: provider.to_owned(), model: "m".to_owned() }
    }

    fn selected(provider: &str, attempt: u32) -> EventBody {
        EventBody::RouteSelected { target: target(provider), attempt }
    }

    fn headers(request_id: Option<&str>) -> Mark {
        Mark::ResponseHeaders { request_id: request_id.and_then(RequestId::new) }
    }

    #[test]
    fn a_request_id_is_an_identifier() {
        for (text, fits) in
            [("req_011CS", true), ("", false), ("a b", false), ("\u{e9}", false), ("a\n", false)]
        {
            assert_eq!(RequestId::new(text).is_some(), fits, "{text}");
        }
        assert!(RequestId::new(&"x".repeat(128)).is_some());
        assert!(RequestId::new(&"x".repeat(129)).is_none());
    }

    #[test]
    fn events_and_evidence_become_one_list() {
        let error = ErrorFact::new(PortableCode::ProviderUnavailable, "m", true);
        let mut attempts = Vec::new();
        push_event(&mut attempts, &selected("a", 1));
        push_evidence(&mut attempts, &AttemptEvidence { attempt: 1, mark: Mark::RequestSent });
        push_evidence(&mut attempts, &AttemptEvidence { attempt: 1, mark: headers(Some("r-1")) });
        let failed = EventBody::RouteAttemptFailed { target: target("a"), attempt: 1, error: error.clone() };
        push_event(&mut attempts, &failed);
        push_event(&mut attempts, &selected("b", 2));
        let told: Vec<_> = attempts.iter().map(|a| (a.number, a.reached, a.error.is_some())).collect();
        assert_eq!(told, [(1, Reached::ResponseHeaders, true), (2, Reached::Selected, false)]);
        assert_eq!(attempts[0].request_id.as_ref().map(RequestId::as_str), Some("r-1"));
        let delta = EventBody::OutputDelta { output_index: 0, delta: String::new() };
        push_event(&mut attempts, &delta);
        assert_eq!(attempts[1].reached, Reached::FirstOutput);
        // A step behind the others takes nothing back, and says what it knows.
        push_evidence(&mut attempts, &AttemptEvidence { attempt: 2, mark: headers(Some("r-2")) });
        push_evidence(&mut attempts, &AttemptEvidence { attempt: 2, mark: headers(Some("r-3")) });
        assert_eq!(attempts[1].reached, Reached::FirstOutput);
        assert_eq!(attempts[1].request_id.as_ref().map(RequestId::as_str), Some("r-2"));
        push_evidence(&mut attempts, &AttemptEvidence { attempt: 3, mark: Mark::RequestSent });
        assert_eq!(attempts.len(), 2);
    }

    #[test]
    fn words_claim_what_is_recorded() {
        let words: Vec<&str> = Reached::ALL.iter().map(|reached| reached.words()).collect();
        let expected = [
            "nothing shows that a request was sent",
            "request was sent, no reply seen",
            "reply began, no output seen",
            "output was seen",
        ];
        assert_eq!(words, expected);
        assert!(Reached::ALL.is_sorted());
    }
}
