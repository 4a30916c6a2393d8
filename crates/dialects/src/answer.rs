//! An execution's answer in its dialect: told event by event, shown as frames of a stream or as one object.

use sealog_events::{Dialect, ExecutionId, Origin, Timestamp};

use crate::chat::answer::Chat;
use crate::error::ErrorAnswer;
use crate::error::failed;
use crate::messages::answer::Messages;
use crate::responses::answer::Responses;
use crate::told::{Failed, Told, What};

/// One frame of an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub event: Option<&'static str>,
    /// One line.
    pub data: String,
    /// Its place in the stream, where the dialect has one.
    pub number: Option<u64>,
}

impl Frame {
    /// A frame without a place.
    pub(crate) fn of(event: Option<&'static str>, data: String) -> Frame {
        Frame { event, data, number: None }
    }

    /// The frame's bytes.
    pub fn to_sse(&self) -> String {
        match self.event {
            Some(event) => format!("event: {event}\ndata: {}\n\n", self.data),
            None => format!("data: {}\n\n", self.data),
        }
    }
}

/// What is the same in every frame and object.
#[derive(Clone, Debug)]
pub struct Head {
    pub id: ExecutionId,
    pub created_at: Timestamp,
    pub origin: Origin,
}

impl Head {
    /// The id as the dialects write it behind their own prefix.
    pub(crate) fn hex(&self) -> String {
        self.id.to_string().replace('-', "")
    }

    pub(crate) fn created_s(&self) -> u64 {
        self.created_at.0 / 1000
    }
}

/// An answer as far as it was told.
#[derive(Debug)]
pub struct Answer {
    dialect: Dialect,
    shape: Shape,
    output: bool,
    failed: Option<Failed>,
}

#[derive(Debug)]
enum Shape {
    Chat(Chat),
    Responses(Responses),
    Messages(Messages),
}

impl Answer {
    /// An answer of which nothing was told. `include_usage` counts in one dialect only.
    pub fn new(head: Head, include_usage: bool) -> Answer {
        let dialect = head.origin.dialect;
        let shape = match dialect {
            Dialect::OpenAiChat => Shape::Chat(Chat::new(head, include_usage)),
            Dialect::OpenAiResponses => Shape::Responses(Responses::new(head)),
            Dialect::AnthropicMessages => Shape::Messages(Messages::new(head)),
        };
        Answer { dialect, shape, output: false, failed: None }
    }

    /// Takes the next event and gives the frames that show it; the same events always give the same frames.
    pub fn tell(&mut self, told: &Told) -> Vec<Frame> {
        match &told.what {
            What::Text(_) | What::CallStarted { .. } | What::CallArguments { .. } | What::Result(_) => {
                self.output = true;
            }
            What::Completed(_) => self.output = true,
            What::Failed(failed) => self.failed = Some(failed.clone()),
            What::Accepted | What::Routed | What::Usage(_) | What::Other => {}
        }
        match &mut self.shape {
            Shape::Chat(chat) => chat.tell(&told.what),
            Shape::Responses(responses) => responses.tell(&told.what),
            Shape::Messages(messages) => messages.tell(&told.what),
        }
    }

    /// Whether output was shown, or the end of a whole answer.
    pub fn has_output(&self) -> bool {
        self.output
    }

    /// The failure, where it is not an answer of its own in this dialect.
    pub fn failure(&self) -> Option<ErrorAnswer> {
        let Failed { code, message, retryable, .. } = self.failed.as_ref()?;
        Some(failed(self.dialect, *code, message, *retryable))
    }

    /// The whole answer as one object.
    ///
    /// # Errors
    /// It cannot be shown as one.
    pub fn object(&self) -> Result<String, ErrorAnswer> {
        match &self.shape {
            Shape::Chat(chat) => Ok(chat.object().to_string()),
            Shape::Responses(responses) => Ok(responses.object().to_string()),
            Shape::Messages(messages) => messages.object().map(|object| object.to_string()),
        }
    }
}
