//! A passphrase from the terminal, without echo.
//!
//! The terminal is read byte by byte with its signals off, so that it never stays silent after an interrupt.

use std::io::{IsTerminal, Write, stderr, stdin};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use sealog_seal::Secret;
use zeroize::Zeroizing;

use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// Longest passphrase that can be typed, in bytes. The buffer never grows: that would leave copies behind.
const TYPED_BYTES_MAX: usize = 1024;

/// Whether somebody can be asked.
pub fn possible() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks once. With the secret, what was typed.
///
/// # Errors
/// There is no terminal, or nothing usable was typed.
pub fn passphrase() -> Result<(Secret, Zeroizing<Vec<u8>>)> {
    let typed = ask("passphrase: ", "--passphrase-file FILE")?;
    Ok((checked(&typed)?, typed))
}

/// Asks for what was typed again.
///
/// # Errors
/// As [`passphrase`], or the two are not the same.
pub fn once_more(first: &[u8], instead: &str) -> Result<()> {
    match *ask("once more: ", instead)? == first {
        true => Ok(()),
        false => Err(bad("the two passphrases are not the same")),
    }
}

/// Asks twice for a new one: a slip would lock everybody out.
///
/// # Errors
/// As [`passphrase`], or the two are not the same.
pub fn new_passphrase() -> Result<Secret> {
    let first = ask("new passphrase: ", "--new-passphrase-file FILE or --new-key-file FILE")?;
    once_more(&first, "--new-passphrase-file FILE")?;
    checked(&first)
}

/// Shows a secret once, on the terminal alone.
///
/// # Errors
/// There is no terminal.
pub fn show_once(label: &str, secret: &str) -> Result<()> {
    if !stderr().is_terminal() {
        return Err(no_terminal("there is no terminal to show it on", "--recovery-file FILE"));
    }
    let written = writeln!(stderr(), "{label}: {secret}");
    written.map_err(|error| no_terminal("the terminal took nothing", "--recovery-file FILE").because(error))
}

/// Whether something can be shown to somebody and to nobody else.
///
/// # Errors
/// There is no terminal.
pub fn can_show() -> Result<()> {
    match stderr().is_terminal() {
        true => Ok(()),
        false => {
            Err(no_terminal("there is no terminal to show the recovery secret on", "--recovery-file FILE"))
        }
    }
}

fn no_terminal(what: &str, instead: &str) -> Failure {
    Failure::usage("no_terminal", what).next(format!("run the same command with {instead}"))
}

fn checked(typed: &[u8]) -> Result<Secret> {
    Secret::passphrase(typed).map_err(|error| bad(error.to_string()))
}

fn bad(what: impl Into<String>) -> Failure {
    Failure::usage("bad_passphrase", what).next("run the same command again, and type the passphrase anew")
}

fn ask(label: &str, instead: &str) -> Result<Zeroizing<Vec<u8>>> {
    if !possible() {
        return Err(no_terminal("there is no terminal to ask for a passphrase", instead));
    }
    let typed = {
        // Before the prompt: what is typed at once must not be flushed away.
        let _silence = Silence::begin()?;
        let _ = write!(stderr(), "{label}");
        read_line(&mut read_byte)
    };
    let _ = writeln!(stderr());
    typed
}

/// Echo, line editing and signals off while it lives.
struct Silence {
    before: Termios,
}

impl Silence {
    fn begin() -> Result<Silence> {
        let failed = |errno: rustix::io::Errno| {
            Failure::new(Exit::Failed, "no_terminal", "the terminal cannot be silenced")
                .because(std::io::Error::from(errno))
        };
        let before = tcgetattr(stdin()).map_err(failed)?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(stdin(), OptionalActions::Flush, &silent).map_err(failed)?;
        Ok(Silence { before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // If this fails there is no terminal left to restore.
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.before);
    }
}

/// One byte; `None` at the end of input. Past every buffer of the standard library, which would keep a copy.
fn read_byte() -> Option<u8> {
    let mut byte = [0];
    loop {
        match rustix::io::read(stdin(), &mut byte) {
            Ok(0) => return None,
            Ok(_) => return Some(byte[0]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn read_line(next: &mut dyn FnMut() -> Option<u8>) -> Result<Zeroizing<Vec<u8>>> {
    const INTERRUPT: u8 = 0x03;
    const END: u8 = 0x04;
    const ERASE: [u8; 2] = [0x08, 0x7f];
    const KILL: u8 = 0x15;
    let aborted = || Failure::new(Exit::Failed, "aborted", "no passphrase was entered");
    let mut typed = Zeroizing::new(Vec::with_capacity(TYPED_BYTES_MAX));
    loop {
        match next() {
            None | Some(INTERRUPT | END) => return Err(aborted()),
            Some(b'\n' | b'\r') => return Ok(typed),
            Some(KILL) => typed.clear(),
            Some(byte) if ERASE.contains(&byte) => {
                // A character of several bytes goes as one.
                while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            Some(byte) if typed.len() < TYPED_BYTES_MAX => typed.push(byte),
            Some(_) => return Err(bad("the passphrase is too long")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &[u8], expected: Option<&[u8]>) {
        let mut keys = keys.iter().copied();
        let line = read_line(&mut || keys.next());
        assert_eq!(line.ok().as_deref().map(Vec::as_slice), expected);
    }

    #[test]
    fn a_line_is_edited_and_ended_like_on_a_terminal() {
        check(b"secret\n", Some(b"secret"));
        check(b"secret\r", Some(b"secret"));
        check("sé\x7f\x7fx\n".as_bytes(), Some(b"x"));
        check("aé\x08b\n".as_bytes(), Some(b"ab"));
        check(b"\x7f\x7fa\n", Some(b"a"));
        check(b"wrong\x15right\n", Some(b"right"));
        check(b"sec\x03", None);
        check(b"sec\x04", None);
        check(b"sec", None);
        check(&[&[b'x'; TYPED_BYTES_MAX][..], b"\n"].concat(), Some(&[b'x'; TYPED_BYTES_MAX]));
        check(&[b'x'; TYPED_BYTES_MAX + 1], None);
    }
}
