//! Bytes of an event stream to frames.
//!
//! A frame exists only once its blank line has arrived; what stands unfinished at the end of the bytes is
//! never handed out. No frame may grow past a bound, whether its bytes come at once or one by one.

use std::collections::VecDeque;

use crate::ClientError;

/// The largest frame, in bytes of its lines.
pub const FRAME_BYTES_MAX: usize = 1_048_576;

/// One dispatched frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub id: String,
    pub event: String,
    pub data: String,
}

#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    /// The line before ended with CR: a LF now belongs to it.
    after_cr: bool,
    first_line_seen: bool,
    /// Bytes of this frame's lines, the one under way left out.
    frame_bytes: usize,
    id: String,
    event: String,
    data: Option<String>,
    ready: VecDeque<Frame>,
}

impl Parser {
    /// Takes bytes as they come, cut anywhere.
    ///
    /// # Errors
    /// [`ClientError::TooLarge`] for a frame past [`FRAME_BYTES_MAX`], [`ClientError::Protocol`] for a line that
    /// is no UTF-8. The parser is of no use then.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), ClientError> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            if let [b'\n', rest @ ..] = bytes {
                bytes = rest;
            }
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend(&bytes[..end])?;
            let cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            match bytes {
                [b'\n', rest @ ..] if cr => bytes = rest,
                [] if cr => self.after_cr = true,
                _ => {}
            }
            self.end_line()?;
        }
        self.extend(bytes)
    }

    /// The next frame that is complete.
    pub fn next_frame(&mut self) -> Option<Frame> {
        self.ready.pop_front()
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), ClientError> {
        if self.frame_bytes + self.line.len() + part.len() > FRAME_BYTES_MAX {
            return Err(ClientError::TooLarge { bytes_max: FRAME_BYTES_MAX });
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), ClientError> {
        let bytes = std::mem::take(&mut self.line);
        let mut line = std::str::from_utf8(&bytes).map_err(|_| ClientError::Protocol("it is not UTF-8"))?;
        if !std::mem::replace(&mut self.first_line_seen, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch();
            return Ok(());
        }
        self.frame_bytes += line.len();
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "event" => value.clone_into(&mut self.event),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // A comment has an empty name; other fields are for other clients.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) {
        self.frame_bytes = 0;
        let (id, event) = (std::mem::take(&mut self.id), std::mem::take(&mut self.event));
        if let Some(data) = self.data.take() {
            self.ready.push_back(Frame { id, event, data });
        }
    }
}

#[cfg(test)]
mod tests;
