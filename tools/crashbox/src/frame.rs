//! Event-stream frames as raw bytes: cut, checked for shape, and never rewritten.
//!
//! The rules here are the checker's own. They are stricter than a client's, since the node promises one exact form.

use std::io::{self, BufReader};
use std::net::TcpStream;

use serde_json::Value;

use crate::http::Body;

/// One event as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub sequence: u64,
    /// From `id:` to the blank line.
    pub bytes: Vec<u8>,
}

impl Frame {
    /// Reads one block; `None` for a comment.
    ///
    /// # Errors
    /// What is wrong with a block that is neither a comment nor exactly `id`, `event`, `data`.
    pub fn read(block: &[u8]) -> Result<Option<Frame>, String> {
        if block.starts_with(b":") {
            return Ok(None);
        }
        let shown = || String::from_utf8_lossy(&block[..block.len().min(300)]).into_owned();
        let text = std::str::from_utf8(block).map_err(|_| format!("a frame is not UTF-8: {}", shown()))?;
        let frame = Frame::parts(text).ok_or_else(|| format!("not a frame: {}", shown()))?;
        Ok(Some(frame))
    }

    fn parts(text: &str) -> Option<Frame> {
        let (id, rest) = text.strip_prefix("id: ")?.split_once('\n')?;
        let (kind, rest) = rest.strip_prefix("event: ")?.split_once('\n')?;
        let data = rest.strip_prefix("data: ")?.strip_suffix("\n\n")?;
        let event: Value = serde_json::from_str(data).ok()?;
        let sequence: u64 = id.parse().ok()?;
        let agrees = id == sequence.to_string()
            && event.get("sequence")?.as_u64() == Some(sequence)
            && event.get("type")?.as_str() == Some(kind)
            && !data.contains(['\n', '\r']);
        agrees.then(|| Frame { sequence, bytes: text.as_bytes().to_vec() })
    }

    /// The event's JSON.
    pub fn event(&self) -> Value {
        let text = String::from_utf8_lossy(&self.bytes);
        let data = text.lines().find_map(|line| line.strip_prefix("data: "));
        data.and_then(|data| serde_json::from_str(data).ok()).unwrap_or(Value::Null)
    }
}

/// Whether this is the last event of its execution.
pub fn is_terminal(event: &Value) -> bool {
    matches!(event["type"].as_str(), Some("execution.completed" | "execution.failed"))
}

/// Cuts the frames from whole bytes, such as an offline replay.
///
/// # Errors
/// A block of the wrong shape, or bytes behind the last blank line.
pub fn cut(mut bytes: &[u8]) -> Result<Vec<Frame>, String> {
    let mut frames = Vec::new();
    while let Some(length) = block_length(bytes) {
        frames.extend(Frame::read(&bytes[..length])?);
        bytes = &bytes[length..];
    }
    if bytes.is_empty() { Ok(frames) } else { Err(format!("{} bytes behind the last frame", bytes.len())) }
}

fn block_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair == b"\n\n").map(|at| at + 2)
}

/// What comes next on a live stream.
#[derive(Debug)]
pub enum Next {
    Frame(Frame),
    /// The transfer ended properly, behind a whole frame.
    End,
}

/// Frames from an open stream.
#[derive(Debug)]
pub struct Frames {
    body: Body<BufReader<TcpStream>>,
    pending: Vec<u8>,
}

impl Frames {
    pub fn new(body: Body<BufReader<TcpStream>>) -> Frames {
        Frames { body, pending: Vec::new() }
    }

    /// Waits for the next frame; comments are passed over.
    ///
    /// # Errors
    /// The outer one for a broken transfer; the inner one says what is wrong with the bytes.
    pub fn read_next(&mut self) -> io::Result<Result<Next, String>> {
        loop {
            if let Some(length) = block_length(&self.pending) {
                let block: Vec<u8> = self.pending.drain(..length).collect();
                match Frame::read(&block) {
                    Ok(None) => continue,
                    Ok(Some(frame)) => return Ok(Ok(Next::Frame(frame))),
                    Err(wrong) => return Ok(Err(wrong)),
                }
            }
            if !self.body.read_some(&mut self.pending)? {
                let whole = self.pending.is_empty();
                return Ok(if whole { Ok(Next::End) } else { Err("ended inside a frame".to_owned()) });
            }
        }
    }

    /// The body, to use its connection again.
    pub fn into_body(self) -> Body<BufReader<TcpStream>> {
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "id: 2\nevent: output.delta\ndata: {\"type\":\"output.delta\",\"sequence\":2}\n\n";

    #[test]
    fn a_frame_keeps_its_bytes() {
        let frame = Frame::read(GOOD.as_bytes()).unwrap().unwrap();
        assert_eq!((frame.sequence, frame.bytes.as_slice()), (2, GOOD.as_bytes()));
        assert_eq!(frame.event()["type"], "output.delta");
        assert_eq!(Frame::read(b": heartbeat\n\n"), Ok(None));
    }

    #[test]
    fn every_other_form_is_refused() {
        for (from, to) in [
            ("id: 2", "id: 3"),
            ("id: 2", "id: 02"),
            ("event: output.delta", "event: other"),
            ("id: 2\nevent: output.delta", "event: output.delta\nid: 2"),
            ("}\n\n", "\n\n"),
            ("data: ", "data:"),
        ] {
            let bad = GOOD.replacen(from, to, 1);
            assert!(Frame::read(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_replay_is_cut_at_blank_lines_and_nothing_may_be_left() {
        let twice = format!("{GOOD}: heartbeat\n\n{GOOD}");
        assert_eq!(cut(twice.as_bytes()).unwrap().len(), 2);
        assert!(cut(format!("{GOOD}id: 3").as_bytes()).is_err());
        assert!(cut(b"").unwrap().is_empty());
    }
}
