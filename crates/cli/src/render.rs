//! The two output streams: standard output is data, standard error is talk.
//!
//! Owns every byte that leaves through them but the log lines. Must never end the process or panic because a reader
//! went away.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stderr};

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, READER_LEFT, Result};
use crate::output::{is_terminal, output};

/// How this invocation talks.
#[derive(Clone, Copy, Debug)]
pub struct Render {
    pub json: bool,
}

impl Render {
    /// Data, as it is, at once. On a terminal the control characters that JSON leaves as they are stand escaped, as JSON
    /// may say them too.
    ///
    /// # Errors
    /// Nobody reads standard output any more, or it cannot be written.
    pub fn data(self, text: &str) -> Result<()> {
        let mut out = output().map_err(output_failed)?;
        let text = if is_terminal() { escaped(text) } else { Cow::Borrowed(text) };
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_failed)
    }

    /// One JSON object on one line of standard output.
    ///
    /// # Errors
    /// As [`Render::data`].
    pub fn object(self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(value).map_err(|error| {
            Failure::new(Exit::Failed, "internal", "the answer has no JSON form").because(error)
        })?;
        line.push('\n');
        self.data(&line)
    }

    /// Data that a model or a provider wrote: on a terminal, control characters lose their effect.
    ///
    /// # Errors
    /// As [`Render::data`].
    pub fn foreign(self, text: &str) -> Result<()> {
        if is_terminal() { self.data(&defused(text)) } else { self.data(text) }
    }

    /// A sentence for a person. Lost if nobody reads it.
    pub fn note(self, text: &str) {
        #[derive(Serialize)]
        struct Note<'a> {
            note: &'a str,
        }
        let line = match self.json {
            true => serde_json::to_string(&Note { note: text }).unwrap_or_default() + "\n",
            false => format!("sealog: {text}\n"),
        };
        talk(&line);
    }

    /// One line of a terminal that the next one takes the place of; nothing without a terminal. Empty: clears it.
    pub fn progress(self, text: &str) {
        if !self.json && stderr().is_terminal() {
            say(&format!("\r\x1b[K{text}"));
        }
    }

    /// One JSON object on one line of standard error.
    pub fn talk_object(self, value: &impl Serialize) {
        if let Ok(line) = serde_json::to_string(value) {
            talk(&(line + "\n"));
        }
    }

    pub fn failure(self, failure: &Failure) {
        if self.json {
            talk(&(failure.json() + "\n"));
        } else {
            talk(&failure.text());
        }
    }
}

/// What a node or a file said may be part of it: on a terminal that has no effect.
fn talk(text: &str) {
    if stderr().is_terminal() { say(&defused(text)) } else { say(text) }
}

fn say(text: &str) {
    // Standard error is the last resort; nobody is left to tell when it fails.
    let _ = stderr().lock().write_all(text.as_bytes());
}

pub fn output_failed(error: std::io::Error) -> Failure {
    let (what, next) = match error.kind() {
        ErrorKind::BrokenPipe => {
            ("standard output was not read to its end; what the command did stands", READER_LEFT)
        }
        _ => (
            "standard output cannot be written",
            "look what it did before running it again; what only reads can be run again as it is",
        ),
    };
    Failure::new(Exit::Failed, "output_failed", what)
        .safe("what the command did stands; only its output is lost")
        .next(next)
        .because(error)
}

/// In JSON such a character stands within a string, and nowhere in what else is data.
fn escaped(text: &str) -> Cow<'_, str> {
    let acts = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if acts(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

fn defused(text: &str) -> String {
    let keep = |c: char| !c.is_control() || c == '\n' || c == '\t';
    text.chars().map(|c| if keep(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `head` and its like: one line for people, and JSON whole for programs.
    #[test]
    fn a_reader_that_left_is_told_in_one_line() {
        let left = |kind| output_failed(std::io::Error::from(kind));
        let gone = left(std::io::ErrorKind::BrokenPipe);
        assert_eq!(gone.text().lines().count(), 1, "{}", gone.text());
        assert!(gone.json().contains(READER_LEFT) && gone.exit == Exit::Failed);
        assert!(left(std::io::ErrorKind::StorageFull).text().lines().count() > 3);
        let more = gone.next("see it again: sealog tail -f x");
        assert!(more.text().contains("next: see it again"), "{}", more.text());
    }

    #[test]
    fn what_json_does_not_escape_is_escaped_and_means_the_same() {
        let json = serde_json::to_string("a\u{9b}31m\u{7f}\u{1b}\u{e9}").unwrap();
        let shown = escaped(&json);
        assert_eq!(shown, "\"a\\u009b31m\\u007f\\u001b\u{e9}\"");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "a\u{9b}31m\u{7f}\u{1b}\u{e9}");
        assert!(matches!(escaped("plain\n"), Cow::Borrowed("plain\n")));
    }

    #[test]
    fn control_characters_lose_their_effect() {
        assert_eq!(defused("a\tb\nc"), "a\tb\nc");
        assert_eq!(defused("\x1b]0;x\x07\r\u{9b}2J"), "\u{fffd}]0;x\u{fffd}\u{fffd}\u{fffd}2J");
    }
}
