//! One execution's events as `run`, `tail` and `demo` follow them, wherever they come from.
//!
//! Owns what an event's JSON text means for the exit code. Reads only the members it needs.

mod printing;

use std::path::Path;

use sealog_client::{ClientError, Follow};
use sealog_engine::store::{StoreError, Watch};
use sealog_events::Status;
use serde::Deserialize;

use crate::again::same_asked;
use crate::asked::not_answered;
use crate::asking;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};

pub use printing::Printer;

/// Where events come from.
pub enum Source {
    Node(Box<Follow>),
    Journal(Box<dyn Watch>),
}

impl Source {
    /// The next event's JSON text; `None` behind the terminal one.
    ///
    /// # Errors
    /// Exit 75: the events cannot be followed any further now.
    pub async fn next(&mut self) -> Result<Option<String>> {
        match self {
            Source::Node(follow) => {
                let event = follow.next().await.map_err(|error| follow_failed(error, &tail_on(follow)))?;
                Ok(event.map(|event| event.data))
            }
            Source::Journal(watch) => match watch.next().await {
                None => Ok(None),
                Some(Ok(event)) => Ok(Some(event.data.clone())),
                Some(Err(error)) => Err(watch_failed(error)),
            },
        }
    }
}

impl Source {
    /// How often the connection was lost and taken up again.
    pub fn resumed(&self) -> u32 {
        match self {
            Source::Node(follow) => follow.resumed(),
            Source::Journal(_) => 0,
        }
    }
}

fn follow_failed(error: ClientError, again: &str) -> Failure {
    const SAFE: &str = "what was shown is durable; if the node still runs, so does the execution";
    if let ClientError::NotTrusted(_) | ClientError::NoTls(_) | ClientError::NeedsTls(_) = &error
        && let Some(failure) = asking::not_reached(&error)
    {
        return failure.safe(SAFE).because(error);
    }
    // What the node refuses now it refuses again: another journal in its place, a token that no longer counts.
    if matches!(&error, ClientError::Api(api) if api.status < 500) {
        return not_answered(error, Exit::TryAgain).safe("what was shown is durable");
    }
    Failure::new(Exit::TryAgain, "stream_broken", error.to_string())
        .safe(SAFE)
        .next(format!("follow it again: {again}"))
        .because(error)
}

/// What shows the rest.
fn tail_on(follow: &Follow) -> String {
    let (id, after) = (shown(Path::new(follow.execution_id())), follow.last_sequence());
    format!("sealog tail -f {id} --after {after}{}", same_asked())
}

fn watch_failed(error: StoreError) -> Failure {
    Failure::new(Exit::TryAgain, "writer_stopped", error.to_string())
        .safe("everything acknowledged before is durable")
        .next("check the disk, then run the same command again")
}

/// The members of an event that a follower looks at.
#[derive(Debug, Deserialize)]
pub struct Event {
    #[serde(rename = "type")]
    pub type_name: String,
    pub status: String,
    pub delta: Option<String>,
    pub result: Option<Box<serde_json::value::RawValue>>,
    pub error: Option<EventError>,
    pub target: Option<Target>,
}

/// Who an attempt went to.
#[derive(Debug, Deserialize)]
pub struct Target {
    pub provider: String,
    pub model: String,
}

#[derive(Debug, Deserialize)]
pub struct EventError {
    pub code: String,
    pub message: String,
    pub retryable: bool,
    pub outcome: Option<String>,
}

impl Event {
    /// # Errors
    /// Exit 1: this is no event.
    pub fn parse(json: &str) -> Result<Event> {
        serde_json::from_str(json)
            .map_err(|_| Failure::new(Exit::Failed, "protocol", "the node sent something that is no event"))
    }

    /// The text that an `output.delta` adds. (Arguments of tool calls come in deltas too.)
    pub fn text(&self) -> Option<&str> {
        self.delta.as_deref().filter(|_| self.type_name == "output.delta")
    }

    /// [`Event::outcome`], which says of a failure whose it was: `asked` is where the newest attempt went.
    pub fn outcome_of(&self, asked: Option<&Target>) -> Option<Result<Exit>> {
        let outcome = self.outcome()?;
        Some(outcome.map_err(|mut failure| {
            if let Some(Target { provider, model }) = asked {
                failure.what += &format!(" (provider {provider}, model {model})");
            }
            failure
        }))
    }

    /// How a terminal event ends the verb; `None` for any other event.
    pub fn outcome(&self) -> Option<Result<Exit>> {
        match (self.type_name.as_str(), &self.error) {
            ("execution.completed", _) => Some(Ok(Exit::Success)),
            ("execution.failed", Some(error)) => Some(Err(error.failure(&self.status))),
            ("execution.failed", None) => {
                Some(Err(Failure::new(Exit::ExecutionFailed, "execution_failed", "the execution failed")))
            }
            _ => None,
        }
    }
}

/// How an execution with this snapshot ended; `None`: it has not.
pub fn outcome(status: String, error: Option<EventError>, target: Option<&Target>) -> Option<Result<Exit>> {
    let type_name = match Status::from_name(&status)? {
        Status::Succeeded => "execution.completed",
        Status::Failed | Status::Cancelled => "execution.failed",
        Status::Accepted | Status::Routing | Status::Running => return None,
    };
    let (delta, result) = (None, None);
    let end = Event { type_name: type_name.to_owned(), status, delta, result, error, target: None };
    end.outcome_of(target)
}

impl EventError {
    fn failure(&self, status: &str) -> Failure {
        let what = format!("{}: {}", self.code, self.message);
        if status == "cancelled" {
            return Failure::new(Exit::Cancelled, "execution_cancelled", what)
                .safe("the journal holds everything up to the cancellation")
                .next("run it again under another idempotency key");
        }
        // The code beside an outcome is there for clients that know no other: what counts is the outcome.
        if self.outcome.as_deref() == Some("not_dispatched") {
            return Failure::new(Exit::ExecutionFailed, "execution_failed", self.message.clone())
                .safe("no provider was asked")
                .next("run it again under another idempotency key");
        }
        if self.outcome.as_deref() == Some("unknown") {
            return Failure::new(Exit::OutcomeUnknown, "outcome_unknown", self.message.clone())
                .safe("nothing was sent again; the provider may have done the work")
                .next("look at the provider's side, then decide whether to run it again under another key");
        }
        let next = match self.retryable {
            true => "the same request may succeed later",
            false if self.code == "queue_full" => {
                "make room, or ask for less: the [store] limits of the node's configuration, and its disk"
            }
            false => "change the request, the configuration or the provider; the same request fails again",
        };
        Failure::new(Exit::ExecutionFailed, "execution_failed", what)
            .safe("the failure is in the journal; nothing is retried on its own")
            .next(next)
    }
}

#[cfg(test)]
mod tests {
    use sealog_client::ApiFailure;

    use super::*;

    #[track_caller]
    fn check(json: &str, exit: u8, code: &str) {
        let outcome = Event::parse(json).unwrap().outcome().unwrap();
        match outcome {
            Ok(found) => assert_eq!((found.code(), ""), (exit, code)),
            Err(failure) => assert_eq!((failure.exit.code(), failure.code), (exit, code)),
        }
    }

    #[test]
    fn terminal_events_have_their_exit_codes() {
        check(r#"{"type":"execution.completed","status":"succeeded","sequence":7}"#, 0, "");
        let failed = |status: &str, rest: &str| {
            format!(
                r#"{{"type":"execution.failed","status":"{status}","sequence":2,
                "error":{{"code":"internal_error","message":"m","retryable":false{rest}}}}}"#
            )
        };
        check(&failed("failed", ""), 20, "execution_failed");
        check(&failed("failed", r#","outcome":"not_dispatched""#), 20, "execution_failed");
        check(&failed("failed", r#","outcome":"unknown""#), 21, "outcome_unknown");
        check(&failed("cancelled", ""), 22, "execution_cancelled");
        let full = failed("failed", "").replace("internal_error", "queue_full");
        let failure = Event::parse(&full).unwrap().outcome().unwrap().unwrap_err();
        assert!(failure.next.contains("make room"), "{}", failure.next);
        // The outcome says more than the code beside it.
        for outcome in ["unknown", "not_dispatched"] {
            let json = failed("failed", &format!(r#","outcome":"{outcome}""#));
            let failure = Event::parse(&json).unwrap().outcome().unwrap().unwrap_err();
            assert_eq!(failure.what, "m");
        }
    }

    #[test]
    fn a_snapshot_tells_the_outcome_that_its_last_event_tells() {
        let error = || EventError {
            code: "rate_limited".into(),
            message: "m".into(),
            retryable: false,
            outcome: None,
        };
        let asked = Target { provider: "p".into(), model: "q".into() };
        for (status, exit) in [("succeeded", 0), ("failed", 20), ("cancelled", 22)] {
            let found = match outcome(status.into(), Some(error()), Some(&asked)).unwrap() {
                Ok(exit) => exit,
                Err(failure) => {
                    assert_eq!(failure.what, "rate_limited: m (provider p, model q)");
                    failure.exit
                }
            };
            assert_eq!(found.code(), exit, "{status}");
        }
        for status in ["accepted", "routing", "running", "later"] {
            assert!(outcome(status.into(), None, None).is_none());
        }
    }

    #[test]
    fn what_a_node_refuses_is_not_asked_again() {
        let refused = |status| {
            let (code, message) = ("c".to_owned(), "m".to_owned());
            let failure =
                follow_failed(ClientError::Api(ApiFailure { status, code, message, retryable: false }), "");
            (failure.exit.code(), failure.code)
        };
        assert_eq!(refused(404), (4, "not_found"));
        assert_eq!(refused(401), (2, "not_allowed"));
        assert_eq!(refused(400), (2, "invalid_request"));
        assert_eq!(refused(503), (75, "stream_broken"));
    }

    #[test]
    fn a_failure_names_who_was_asked() {
        let json = r#"{"type":"execution.failed","status":"failed","error":{"code":"rate_limited","message":"m","retryable":true}}"#;
        let event = Event::parse(json).unwrap();
        let asked = Target { provider: "openai".into(), model: "small".into() };
        let failure = event.outcome_of(Some(&asked)).unwrap().unwrap_err();
        assert_eq!(failure.what, "rate_limited: m (provider openai, model small)");
        assert_eq!(event.outcome_of(None).unwrap().unwrap_err().what, "rate_limited: m");
        let routed = r#"{"type":"route.selected","status":"routing","target":{"provider":"a","model":"b"},"attempt":1}"#;
        assert_eq!(Event::parse(routed).unwrap().target.unwrap().provider, "a");
    }

    #[test]
    fn only_text_deltas_are_text() {
        let text = r#"{"type":"output.delta","status":"running","sequence":3,"output_index":0,"delta":"a"}"#;
        assert_eq!(Event::parse(text).unwrap().text(), Some("a"));
        assert!(Event::parse(text).unwrap().outcome().is_none());
        let call = text.replace("output.delta", "tool.call.arguments.delta");
        assert_eq!(Event::parse(&call).unwrap().text(), None);
    }
}
