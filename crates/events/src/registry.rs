//! The numbers of the journal's vocabulary: record kinds and closed sets, each with its wire name.
//!
//! Owns every number that reaches a record. A number is never reused and never given another meaning, also after its
//! variant is gone; a number that is not listed here is an error wherever it is read. Must never hold a default.

/// Defines a closed set: variants, numbers and wire names in one place, so that none of the three can drift.
macro_rules! closed_set {
    ($(#[$doc:meta])* $name:ident: $number:ty { $($(#[$variant_doc:meta])* $value:literal $variant:ident $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every member, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The number in records.
            #[must_use]
            pub const fn number(self) -> $number {
                match self { $(Self::$variant => $value,)+ }
            }

            /// The member with this number; `None` for a number never given out.
            #[must_use]
            pub const fn from_number(number: $number) -> Option<Self> {
                match number { $($value => Some(Self::$variant),)+ _ => None }
            }

            /// The member with this exact wire name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// Kinds 1 to this one belong to the journal itself (forget, restored, unfenced); their bodies are not ours.
pub const JOURNAL_KIND_LAST: u16 = 63;

closed_set! {
    /// What the body of a record of this crate is. 68 to 79 are kept for further records that are not events.
    RecordKind: u16 {
        /// An execution exists; opens its stream.
        64 Created "created",
        /// The outcome of the fold, written in the terminal event's commit unit.
        65 MaterializedResult "materialized_result",
        /// A step of an attempt that no event tells.
        66 AttemptEvidence "attempt_evidence",
        /// In which dialect the execution was asked for; in the unit that creates it.
        67 Origin "origin",
        /// What the execution is found by; in the unit that creates it.
        68 Labels "labels",
        80 Accepted "execution.accepted",
        81 RouteSelected "route.selected",
        82 RouteAttemptFailed "route.attempt_failed",
        83 OutputDelta "output.delta",
        84 ToolCallStarted "tool.call.started",
        85 ToolCallArgumentsDelta "tool.call.arguments.delta",
        86 Progress "execution.progress",
        87 OutputResult "output.result",
        88 UsageReported "usage.reported",
        89 Completed "execution.completed",
        90 Failed "execution.failed",
        /// `execution.completed` with a reason to stop, which the layout of 89 has no place for.
        91 CompletedFor "execution.completed.for",
    }
}

/// What a record holds, for whoever treats all events alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Creation,
    Origin,
    Labels,
    Result,
    Evidence,
    Event,
}

impl RecordKind {
    /// What records of this kind hold. The one list of events: a kind that is added says here what it is.
    #[must_use]
    pub const fn holds(self) -> Holds {
        match self {
            Self::Created => Holds::Creation,
            Self::Origin => Holds::Origin,
            Self::Labels => Holds::Labels,
            Self::MaterializedResult => Holds::Result,
            Self::AttemptEvidence => Holds::Evidence,
            Self::Accepted
            | Self::RouteSelected
            | Self::RouteAttemptFailed
            | Self::OutputDelta
            | Self::ToolCallStarted
            | Self::ToolCallArgumentsDelta
            | Self::Progress
            | Self::OutputResult
            | Self::UsageReported
            | Self::Completed
            | Self::CompletedFor
            | Self::Failed => Holds::Event,
        }
    }

    /// Whether records of this kind are events, which carry an event number and are streamed to subscribers.
    #[must_use]
    pub const fn is_event(self) -> bool {
        matches!(self.holds(), Holds::Event)
    }

    /// The `type` of the event on the wire, where several layouts of a body are one type; `None` for what is no event.
    #[must_use]
    pub const fn event_type(self) -> Option<&'static str> {
        if !self.is_event() {
            return None;
        }
        Some(if let Self::CompletedFor = self { Self::Completed.as_str() } else { self.as_str() })
    }

    /// Every type of event on the wire, once.
    pub fn event_types() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter(|kind| kind.event_type() == Some(kind.as_str())).map(|kind| kind.as_str())
    }
}

closed_set! {
    /// Where an execution stands, as its latest event says.
    Status: u8 {
        1 Accepted "accepted",
        2 Routing "routing",
        3 Running "running",
        4 Succeeded "succeeded",
        5 Failed "failed",
        6 Cancelled "cancelled",
    }
}

impl Status {
    /// Whether no further event can follow.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Accepted | Self::Routing | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }
}

closed_set! {
    /// The error codes that mean the same for every provider and every client.
    PortableCode: u8 {
        1 InvalidRequest "invalid_request",
        2 CapabilityUnavailable "capability_unavailable",
        3 QueueFull "queue_full",
        4 RateLimited "rate_limited",
        5 DeadlineExceeded "deadline_exceeded",
        6 Cancelled "cancelled",
        7 ProviderUnavailable "provider_unavailable",
        8 ProviderProtocolError "provider_protocol_error",
        9 InternalError "internal_error",
    }
}

closed_set! {
    /// The model API of others that an execution was asked for in, and is shown in.
    Dialect: u8 {
        1 OpenAiChat "openai_chat",
        2 OpenAiResponses "openai_responses",
        3 AnthropicMessages "anthropic_messages",
    }
}

closed_set! {
    /// What is known about the effect of interrupted work outside this process.
    Outcome: u8 {
        /// Something may have been sent; whether it took effect is not known.
        1 Unknown "unknown",
        /// Nothing was sent.
        2 NotDispatched "not_dispatched",
    }
}

closed_set! {
    /// How far an attempt provably came, in the order of the steps.
    Reached: u8 {
        /// It was announced.
        1 Selected "selected",
        /// The request was handed to an open connection; from here on it may have been acted on.
        2 RequestSent "request_sent",
        /// The head of the answer was there.
        3 ResponseHeaders "response_headers",
        /// Output of it was recorded.
        4 FirstOutput "first_output",
    }
}

impl Reached {
    /// What is known of the attempt, in words that claim no more.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Selected => "nothing shows that a request was sent",
            Self::RequestSent => "request was sent, no reply seen",
            Self::ResponseHeaders => "reply began, no output seen",
            Self::FirstOutput => "output was seen",
        }
    }
}

closed_set! {
    /// Why a provider says that its answer ended.
    StopReason: u8 {
        /// It had said what it had to say.
        1 Stop "stop",
        /// It was as long as it was allowed to be.
        2 Length "length",
        /// It waits for the results of tools.
        3 ToolCalls "tool_calls",
        /// A filter of the provider held it back or cut it off.
        4 ContentFilter "content_filter",
        /// The model declined.
        5 Refusal "refusal",
        /// A text that the caller named came up.
        6 StopSequence "stop_sequence",
        /// It pauses in a long turn and can be asked to go on.
        7 PauseTurn "pause_turn",
        /// The model's context was full.
        8 ContextWindow "context_window",
        /// A reason that this list has no word for.
        9 Other "other",
    }
}

closed_set! {
    /// How far an asynchronous provider says it is.
    Phase: u8 {
        1 Queued "queued",
        2 Processing "processing",
    }
}

closed_set! {
    /// Who counted a usage fact.
    UsageSource: u8 {
        1 Provider "provider",
        2 Runtime "runtime",
    }
}

#[cfg(test)]
mod tests;
