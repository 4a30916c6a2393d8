//! The provider that crashbox plays itself: an OpenAI-compatible server on loopback that counts.
//!
//! It outlives every node of a campaign, so "the provider was never called again" is a number and not a belief.
//! What it answers is said by the prompt, and it never answers anything that the prompt does not say.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::http::{line, read_headers};

/// What every prompt to this server begins with.
pub const PROMPT: &str = "counted ";
/// Longest wait for a request that was begun.
const READ_PATIENCE: Duration = Duration::from_secs(30);
/// Largest request body that is read.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How a prompt wants to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Names the prompt; counted under this.
    pub name: String,
    pub ending: Ending,
    /// Text deltas.
    pub deltas: u64,
    /// The wait before each of them.
    pub delay_ms: u64,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A finish reason, usage, and `[DONE]`.
    Whole,
    /// The connection breaks behind the deltas.
    Cut,
    /// Silence behind the deltas, until the caller goes.
    Silent,
    /// This status instead of an answer.
    Status(u16),
}

impl Script {
    /// The text to be sent as the only prompt.
    pub fn prompt(&self) -> String {
        let Script { name, ending, deltas, delay_ms } = self;
        let ending = match ending {
            Ending::Whole => "whole".to_owned(),
            Ending::Cut => "cut".to_owned(),
            Ending::Silent => "silent".to_owned(),
            Ending::Status(status) => status.to_string(),
        };
        format!("{PROMPT}{name} {ending} {deltas} {delay_ms}")
    }

    /// Reads a prompt back.
    pub fn parse(prompt: &str) -> Option<Script> {
        let mut words = prompt.strip_prefix(PROMPT)?.split(' ');
        let mut next = || words.next();
        let name = next()?.to_owned();
        let ending = match next()? {
            "whole" => Ending::Whole,
            "cut" => Ending::Cut,
            "silent" => Ending::Silent,
            status => Ending::Status(status.parse().ok()?),
        };
        Some(Script { name, ending, deltas: next()?.parse().ok()?, delay_ms: next()?.parse().ok()? })
    }

    /// The text of a delta, by its place.
    pub fn delta(&self, place: u64) -> String {
        format!("{}:{place} ", self.name)
    }

    /// The text of a whole answer.
    pub fn text(&self) -> String {
        (0..self.deltas).map(|place| self.delta(place)).collect()
    }
}

/// The running server. Its threads end with the process, or with their connections.
#[derive(Debug, Clone)]
pub struct Upstream {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: HashMap<String, u64>,
    /// Requests that no prompt explains, as evidence.
    strange: Vec<String>,
    authorization: Option<String>,
}

impl Upstream {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// No port is to be had.
    pub fn start() -> Result<Upstream> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("the counting upstream cannot listen")?;
        let upstream = Upstream { address: listener.local_addr()?, seen: Arc::default() };
        let server = upstream.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                // A connection that breaks is the caller's affair: it was killed, or it gave up.
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        Ok(upstream)
    }

    /// What the configuration names as `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often this prompt was received.
    pub fn count(&self, name: &str) -> u64 {
        self.lock().requests.get(name).copied().unwrap_or(0)
    }

    /// All requests received.
    pub fn total(&self) -> u64 {
        self.lock().requests.values().sum()
    }

    /// Requests that are not a prompt of [`Script::prompt`].
    pub fn strange(&self) -> Vec<String> {
        self.lock().strange.clone()
    }

    /// The last `Authorization` received.
    pub fn authorization(&self) -> Option<String> {
        self.lock().authorization.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(READ_PATIENCE))?;
        let mut source = BufReader::new(stream);
        let first = line(&mut source)?;
        let headers = read_headers(&mut source)?;
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; BODY_BYTES_MAX.min(length)];
        source.read_exact(&mut body)?;
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let script = prompt(&request["messages"][0]["content"]).and_then(Script::parse);
        {
            // Counted before the first byte of an answer.
            let mut seen = self.lock();
            seen.authorization = headers.get("authorization").map(str::to_owned);
            match &script {
                Some(script) => *seen.requests.entry(script.name.clone()).or_default() += 1,
                None => seen.strange.push(first.clone()),
            }
        }
        match script {
            Some(script) => answer(stream, &script),
            None => status(stream, 404),
        }
    }
}

fn prompt(content: &Value) -> Option<&str> {
    content.as_str().or_else(|| content[0]["text"].as_str())
}

fn status(mut stream: &TcpStream, status: u16) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status} Scripted\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
    stream.write_all(head.as_bytes())
}

fn answer(mut stream: &TcpStream, script: &Script) -> std::io::Result<()> {
    if let Ending::Status(code) = script.ending {
        return status(stream, code);
    }
    stream.set_nodelay(true)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")?;
    stream.write_all(b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n")?;
    for place in 0..script.deltas {
        std::thread::sleep(Duration::from_millis(script.delay_ms));
        chunk(stream, &json!({"choices": [{"index": 0, "delta": {"content": script.delta(place)}}]}))?;
    }
    match script.ending {
        Ending::Whole => {
            chunk(stream, &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))?;
            let usage = json!({"prompt_tokens": 1, "completion_tokens": script.deltas});
            chunk(stream, &json!({"choices": [], "usage": usage}))?;
            stream.write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        }
        Ending::Cut | Ending::Status(_) => Ok(()),
        Ending::Silent => {
            // The caller sends nothing more: the read returns when it goes.
            stream.set_read_timeout(None)?;
            stream.read(&mut [0]).map(|_| ())
        }
    }
}

fn chunk(mut stream: &TcpStream, data: &Value) -> std::io::Result<()> {
    let data = format!("data: {data}\n\n");
    stream.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Client, Request};

    fn script(name: &str, ending: Ending) -> Script {
        Script { name: name.to_owned(), ending, deltas: 2, delay_ms: 0 }
    }

    fn ask(upstream: &Upstream, content: &str) -> std::io::Result<(u16, String)> {
        let mut client = Client::new(upstream.address(), READ_PATIENCE);
        let body = json!({"messages": [{"role": "user", "content": content}]}).to_string();
        let reply = client.ask(&Request::post("/v1/chat/completions", &[], body.as_bytes()))?;
        Ok((reply.status, String::from_utf8(reply.body).unwrap()))
    }

    #[test]
    fn prompts_survive_their_text() {
        for ending in [Ending::Whole, Ending::Cut, Ending::Silent, Ending::Status(429)] {
            let script = script("a-1", ending);
            assert_eq!(Script::parse(&script.prompt()), Some(script));
        }
        assert_eq!(Script::parse("counted a whole"), None);
    }

    #[test]
    fn requests_are_counted_by_prompt_and_answered_as_it_says() {
        let upstream = Upstream::start().unwrap();
        let (status, text) = ask(&upstream, &script("a", Ending::Whole).prompt()).unwrap();
        assert_eq!(status, 200);
        assert!(text.contains("a:1 ") && text.ends_with("data: [DONE]\n\n"), "{text}");
        assert_eq!(ask(&upstream, &script("b", Ending::Status(500)).prompt()).unwrap().0, 500);
        assert!(ask(&upstream, &script("b", Ending::Cut).prompt()).is_err());
        assert_eq!(ask(&upstream, "something else").unwrap().0, 404);
        assert_eq!((upstream.count("a"), upstream.count("b"), upstream.count("c")), (1, 2, 0));
        assert_eq!((upstream.total(), upstream.strange().len()), (3, 1));
    }
}
