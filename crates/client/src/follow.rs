//! Following an execution's events to the end, across broken connections.
//!
//! Every event comes out once and in order. An end before the terminal event is truncation: the stream is
//! opened again behind the last event that came out, with growing waits and not for ever.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};

use crate::client::execution_path;
use crate::sse::{Frame, Parser};
use crate::transport::Call;
use crate::{Client, ClientError};

/// One durable event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// From 1, without gaps.
    pub sequence: u64,
    /// For instance `output.delta`.
    pub type_name: String,
    /// The event's JSON text as the node sent it.
    pub data: String,
}

impl Event {
    /// Whether nothing follows.
    pub fn is_terminal(&self) -> bool {
        matches!(self.type_name.as_str(), "execution.completed" | "execution.failed")
    }
}

#[derive(Debug)]
struct Open {
    body: Incoming,
    parser: Parser,
}

/// The events of one execution. Dropping it closes the stream and nothing else.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    id: String,
    last_sequence: u64,
    /// An event came out: from then on an end without a terminal event is truncation.
    started: bool,
    ended: bool,
    open: Option<Open>,
    /// Attempts since the last new event.
    attempts: u32,
    /// Streams that were opened.
    opened: u32,
}

/// What a step on an open stream brought.
enum Step {
    Frame(Frame),
    CleanEnd,
    Broken,
}

impl Client {
    /// Follows the events above sequence `after` (0: all). Nothing is sent before the first
    /// [`Follow::next`].
    pub fn follow(&self, id: &str, after: u64) -> Follow {
        Follow {
            client: self.clone(),
            id: id.to_owned(),
            last_sequence: after,
            started: false,
            ended: false,
            open: None,
            attempts: 0,
            opened: 0,
        }
    }
}

impl Follow {
    pub fn execution_id(&self) -> &str {
        &self.id
    }

    /// How often the stream broke and was opened again, behind the last event that had come out.
    pub fn resumed(&self) -> u32 {
        self.opened.saturating_sub(1)
    }

    /// The last sequence that came out, or the one the caller started behind.
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// The next event; `None` after the terminal one, or when there was nothing behind the cursor any more.
    /// A dropped call loses nothing.
    ///
    /// # Errors
    /// [`ClientError::Api`] when the node refuses (404: it does not know the execution),
    /// [`ClientError::Truncated`] when the stream kept breaking, [`ClientError::Protocol`] or
    /// [`ClientError::TooLarge`] for a stream that is not the protocol's. [`Follow::next`] may be called again.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        while !self.ended {
            if self.open.is_none() && !self.open_stream().await? {
                continue;
            }
            let step = self.step().await.inspect_err(|_| self.open = None)?;
            match step {
                Step::Frame(frame) => {
                    if let Some(event) = self.accept(frame).inspect_err(|_| self.open = None)? {
                        return Ok(Some(event));
                    }
                }
                Step::CleanEnd if !self.started => self.ended = true,
                Step::CleanEnd | Step::Broken => {
                    self.open = None;
                    self.wait().await?;
                }
            }
        }
        Ok(None)
    }

    /// `false`: not now, and the wait before the next attempt is over.
    async fn open_stream(&mut self) -> Result<bool, ClientError> {
        let path = execution_path(&self.id, &format!("/events?after={}", self.last_sequence));
        match self.client.open(Call::get(path)).await {
            Ok(response) if response.status().as_u16() == 200 => {
                self.open = Some(Open { body: response.into_body(), parser: Parser::default() });
                self.opened = self.opened.saturating_add(1);
                Ok(true)
            }
            Ok(response) => {
                let failure = self.client.whole(response).await?.failure();
                if !matches!(&failure, ClientError::Api(api) if api.status >= 500) {
                    return Err(failure);
                }
                self.wait_after(failure).await
            }
            Err(error @ (ClientError::Connect(_) | ClientError::Transport(_) | ClientError::TimedOut)) => {
                self.wait_after(error).await
            }
            Err(error) => Err(error),
        }
    }

    /// What stopped the last attempt says more than `Truncated` does.
    async fn wait_after(&mut self, error: ClientError) -> Result<bool, ClientError> {
        match self.wait().await {
            Ok(()) => Ok(false),
            Err(_) => Err(error),
        }
    }

    async fn wait(&mut self) -> Result<(), ClientError> {
        let options = &self.client.options;
        if self.attempts >= options.resume_attempts_max {
            let (last_sequence, attempts) = (self.last_sequence, self.attempts);
            self.attempts = 0;
            return Err(ClientError::Truncated { last_sequence, attempts });
        }
        let doubled = options.resume_wait.saturating_mul(2u32.saturating_pow(self.attempts));
        let wait: Duration = doubled.min(options.resume_wait_max);
        self.attempts += 1;
        sleep(wait).await;
        Ok(())
    }

    async fn step(&mut self) -> Result<Step, ClientError> {
        let Some(Open { body, parser }) = &mut self.open else { return Ok(Step::Broken) };
        loop {
            if let Some(frame) = parser.next_frame() {
                return Ok(Step::Frame(frame));
            }
            match timeout(self.client.options.stream_silence, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        parser.feed(data)?;
                    }
                }
                Ok(None) => return Ok(Step::CleanEnd),
                Ok(Some(Err(_))) | Err(_) => return Ok(Step::Broken),
            }
        }
    }

    /// `None` for an event that came out before: a node may deliver it again.
    fn accept(&mut self, frame: Frame) -> Result<Option<Event>, ClientError> {
        let sequence: u64 =
            frame.id.parse().map_err(|_| ClientError::Protocol("an event has no sequence"))?;
        if sequence <= self.last_sequence {
            return Ok(None);
        }
        if sequence != self.last_sequence + 1 {
            return Err(ClientError::Protocol("events are missing between two sequences"));
        }
        let event = Event { sequence, type_name: frame.event, data: frame.data };
        self.last_sequence = sequence;
        self.started = true;
        self.attempts = 0;
        self.ended = event.is_terminal();
        if self.ended {
            self.open = None;
        }
        Ok(Some(event))
    }
}

#[cfg(test)]
mod tests;
