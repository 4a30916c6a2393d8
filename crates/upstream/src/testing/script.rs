//! What a scripted upstream does on one connection, step by step.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Opened by the test, once and for all; a script waits at it.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Gate {
        Gate(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    pub fn new() -> Gate {
        Gate::default()
    }

    pub fn open(&self) {
        self.0.close();
    }

    pub(super) async fn passed(&self) {
        // No permit is ever added: this returns when the gate closes its semaphore.
        let refused = self.0.acquire().await;
        debug_assert!(refused.is_err());
    }
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Send(Vec<u8>),
    Wait(Gate),
    /// Says nothing more; ends when the client closes.
    Stall,
    /// RST instead of FIN.
    Reset,
}

/// The answer to one request. After the last step the connection is closed in order.
#[derive(Clone, Debug, Default)]
pub struct Script(pub(super) Vec<Step>);

impl Script {
    pub fn new() -> Script {
        Script::default()
    }

    /// Whether it says nothing more at some point: only a timeout ends that.
    pub fn stalls(&self) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Stall))
    }

    /// Bytes as they are.
    #[must_use]
    pub fn send(mut self, bytes: impl Into<Vec<u8>>) -> Script {
        self.0.push(Step::Send(bytes.into()));
        self
    }

    /// A head with these header lines (without line ends) and no length: the body ends with the connection.
    #[must_use]
    pub fn head(self, status: u16, headers: &[&str]) -> Script {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n");
        for header in headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        self.send(head)
    }

    /// The head of an event stream whose body ends with the connection.
    #[must_use]
    pub fn event_stream(self) -> Script {
        self.head(200, &["content-type: text/event-stream; charset=utf-8"])
    }

    /// The head of an event stream in chunked coding: only [`Script::last_chunk`] ends it in order.
    #[must_use]
    pub fn chunked_event_stream(self) -> Script {
        self.head(200, &["content-type: text/event-stream", "transfer-encoding: chunked"])
    }

    /// One piece of a chunked body.
    #[must_use]
    pub fn chunk(self, bytes: impl AsRef<[u8]>) -> Script {
        let bytes = bytes.as_ref();
        let mut piece = format!("{:x}\r\n", bytes.len()).into_bytes();
        piece.extend_from_slice(bytes);
        piece.extend_from_slice(b"\r\n");
        self.send(piece)
    }

    #[must_use]
    pub fn last_chunk(self) -> Script {
        self.send("0\r\n\r\n")
    }

    /// One event with this data, which holds no line end.
    #[must_use]
    pub fn data(self, data: &str) -> Script {
        self.send(format!("data: {data}\n\n"))
    }

    /// A whole response with a length.
    #[must_use]
    pub fn respond(self, status: u16, content_type: &str, body: &str) -> Script {
        let length = format!("content-length: {}", body.len());
        self.head(status, &[&format!("content-type: {content_type}"), &length]).send(body)
    }

    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Script {
        self.0.push(Step::Wait(gate.clone()));
        self
    }

    #[must_use]
    pub fn stall(mut self) -> Script {
        self.0.push(Step::Stall);
        self
    }

    #[must_use]
    pub fn reset(mut self) -> Script {
        self.0.push(Step::Reset);
        self
    }
}
