//! Why an answer ended, in the words of each dialect.
//!
//! What the provider said counts. Where it said nothing, or something that no dialect has a word for, an answer that is as
//! long as the request allowed was cut, one with calls waits for their results, and any other one was at its end.

use sealog_events::StopReason;

/// What is known of the end of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// By the provider.
    pub said: Option<StopReason>,
    /// Whether it is as long as it was allowed to be.
    pub at_limit: bool,
    /// Whether it calls tools.
    pub calls: bool,
}

impl Ending {
    fn reason(self) -> StopReason {
        let at_its_end = if self.calls { StopReason::ToolCalls } else { StopReason::Stop };
        match self.said {
            None | Some(StopReason::Other) if self.at_limit => StopReason::Length,
            // Several providers say of an answer with calls that it was at its end.
            None | Some(StopReason::Other | StopReason::Stop | StopReason::ToolCalls) => at_its_end,
            Some(
                said @ (StopReason::Length
                | StopReason::ContentFilter
                | StopReason::Refusal
                | StopReason::StopSequence
                | StopReason::PauseTurn
                | StopReason::ContextWindow),
            ) => said,
        }
    }

    /// `finish_reason` of a choice.
    pub fn chat(self) -> &'static str {
        match self.reason() {
            StopReason::Length | StopReason::ContextWindow => "length",
            StopReason::ContentFilter | StopReason::Refusal => "content_filter",
            StopReason::ToolCalls => "tool_calls",
            StopReason::Stop | StopReason::StopSequence | StopReason::PauseTurn | StopReason::Other => {
                if self.calls { "tool_calls" } else { "stop" }
            }
        }
    }

    /// `incomplete_details.reason` of a response; `None` for one that is complete.
    pub fn responses(self) -> Option<&'static str> {
        match self.reason() {
            StopReason::Length | StopReason::ContextWindow => Some("max_output_tokens"),
            StopReason::ContentFilter | StopReason::Refusal => Some("content_filter"),
            StopReason::Stop
            | StopReason::ToolCalls
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other => None,
        }
    }

    /// `stop_reason` of a message.
    pub fn messages(self) -> &'static str {
        match self.reason() {
            StopReason::Stop | StopReason::Other => "end_turn",
            StopReason::Length => "max_tokens",
            StopReason::ToolCalls => "tool_use",
            StopReason::ContentFilter | StopReason::Refusal => "refusal",
            StopReason::StopSequence => "stop_sequence",
            StopReason::PauseTurn => "pause_turn",
            StopReason::ContextWindow => "model_context_window_exceeded",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: Option<StopReason>, at_limit: bool, calls: bool, expected: [&str; 3]) {
        let ending = Ending { said, at_limit, calls };
        let found = [ending.chat(), ending.responses().unwrap_or("completed"), ending.messages()];
        assert_eq!(found, expected, "{ending:?}");
    }

    /// RM-33.
    #[test]
    fn what_the_provider_said_counts() {
        use StopReason as Said;
        for at_limit in [false, true] {
            let said = |reason, expected| check(Some(reason), at_limit, false, expected);
            said(Said::Stop, ["stop", "completed", "end_turn"]);
            said(Said::Length, ["length", "max_output_tokens", "max_tokens"]);
            said(Said::ContentFilter, ["content_filter", "content_filter", "refusal"]);
            said(Said::Refusal, ["content_filter", "content_filter", "refusal"]);
            said(Said::StopSequence, ["stop", "completed", "stop_sequence"]);
            said(Said::PauseTurn, ["stop", "completed", "pause_turn"]);
            said(Said::ContextWindow, ["length", "max_output_tokens", "model_context_window_exceeded"]);
            let called = |reason, expected| check(Some(reason), at_limit, true, expected);
            called(Said::Stop, ["tool_calls", "completed", "tool_use"]);
            called(Said::ToolCalls, ["tool_calls", "completed", "tool_use"]);
            called(Said::Length, ["length", "max_output_tokens", "max_tokens"]);
            called(Said::StopSequence, ["tool_calls", "completed", "stop_sequence"]);
        }
    }

    #[test]
    fn calls_that_nobody_sees_are_not_announced() {
        check(Some(StopReason::ToolCalls), false, false, ["stop", "completed", "end_turn"]);
    }

    #[test]
    fn where_it_said_nothing_length_and_calls_tell() {
        for said in [None, Some(StopReason::Other)] {
            check(said, false, false, ["stop", "completed", "end_turn"]);
            check(said, true, false, ["length", "max_output_tokens", "max_tokens"]);
            check(said, true, true, ["length", "max_output_tokens", "max_tokens"]);
            check(said, false, true, ["tool_calls", "completed", "tool_use"]);
        }
    }
}
