//! The token file: one line per token with its name, its scopes and the SHA-256 of its text.
//!
//! Owns the file's form, making a token, and reading the file. The token itself is printed once and stands nowhere.

use std::fmt::Write as _;
use std::path::Path;

use sealog_disk::real::{RealEntropy, read_regular, replace_secret_file, take_turn};
use sealog_disk::{DiskError, Entropy, ErrorKind};
use sealog_http::{DIGEST_BYTES, Scope, Scopes, TokenSet, digest};
use zeroize::Zeroizing;

use crate::exit::{self, Exit};
use crate::failure::{Failure, Result, shown};
use crate::opening::no_randomness;

const FILE_BYTES_MAX: usize = 256 * 1024;
const TOKENS_MAX: usize = 1024;
const NAME_LENGTH_MAX: usize = 64;
const PREFIX: &str = "sealog_";
const HEADER: &str =
    "# Tokens of a Sealog node: name, scopes, SHA-256 of the token. Take a line away to revoke one.\n";

/// One line of the file.
#[derive(Debug)]
struct Line<'a> {
    name: &'a str,
    scopes: Scopes,
    digest: [u8; DIGEST_BYTES],
}

/// The tokens of `path`.
///
/// # Errors
/// Exit 2: the file cannot be read, others may write to it, or a line is not one.
pub fn read(path: &Path) -> Result<TokenSet> {
    let text = text_of(path)?.ok_or_else(|| bad(path, "there is no such file"))?;
    let mut set = TokenSet::default();
    for line in parse(path, &text)? {
        set.add(line.digest, line.scopes);
    }
    Ok(set)
}

/// Makes a token and adds it to the file, which is made if it is not there.
///
/// # Errors
/// Exit 2: the name is none or taken, or the file is not a token file. Exit 1 or 75: it cannot be written.
pub fn add(path: &Path, name: &str, scopes: &[Scope]) -> Result<Zeroizing<String>> {
    // Until the new file has its name: who adds one at the same time must see this one.
    let _turn = take_turn(path).map_err(|error| not_written(path, error))?;
    let text = text_of(path)?;
    let named = !name.is_empty()
        && name.len() <= NAME_LENGTH_MAX
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !named {
        return Err(Failure::usage(
            "bad_token_name",
            "a token's name has 1 to 64 letters, digits, `-`, `_` or `.`",
        )
        .next("give it such a name: --name NAME"));
    }
    let lines = parse(path, text.as_deref().unwrap_or_default())?;
    if lines.iter().any(|line| line.name == name) {
        return Err(Failure::usage(
            "bad_token_name",
            format!("{}: there is a token of that name", shown(path)),
        )
        .next("give the new one another name: --name NAME"));
    }
    if lines.len() == TOKENS_MAX {
        return Err(bad(path, "it has as many tokens as it may"));
    }
    let mut random = Zeroizing::new([0; DIGEST_BYTES]);
    RealEntropy.fill(random.as_mut_slice()).map_err(|_| no_randomness())?;
    // Its whole length at once: growing would leave a copy behind.
    let mut token = Zeroizing::new(String::with_capacity(PREFIX.len() + 2 * DIGEST_BYTES));
    token.push_str(PREFIX);
    hex(random.as_slice(), &mut token);
    let mut whole = text.unwrap_or_else(|| HEADER.to_owned());
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    let words: Vec<&str> =
        Scope::ALL.into_iter().filter(|scope| scopes.contains(scope)).map(Scope::as_str).collect();
    whole += &format!("{name} {} ", words.join(","));
    hex(&digest(token.as_bytes()), &mut whole);
    whole.push('\n');
    replace_secret_file(path, whole.as_bytes()).map_err(|error| not_written(path, error))?;
    Ok(token)
}

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        // Writing to a text does not fail.
        let _ = write!(out, "{byte:02x}");
    }
}

fn not_written(path: &Path, error: DiskError) -> Failure {
    let (exit, code) = exit::of_outside(&error, "file_not_written");
    let next = match exit {
        Exit::TryAgain => {
            "free space or descriptors, then run the same command again, with another --name if this \
                           one stands in the file by now"
        }
        _ => "name a file that can be written: --file FILE",
    };
    Failure::new(exit, code, format!("{}: the file cannot be written", shown(path)))
        .safe("every token that was there before counts as it did")
        .next(next)
        .because(error)
}

fn bad(path: &Path, why: &str) -> Failure {
    Failure::usage("bad_token_file", format!("{}: {why}", shown(path)))
        .next("make one: sealog token new --scope read --file FILE")
}

/// `None`: there is no such file.
fn text_of(path: &Path) -> Result<Option<String>> {
    const OTHERS_WRITE: u32 = 0o022;
    let content = match read_regular(path, FILE_BYTES_MAX) {
        Ok(content) => content,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(bad(path, "it cannot be read, or is too long").unread(error)),
    };
    if !content.regular {
        return Err(bad(path, "not a regular file"));
    }
    if content.mode & OTHERS_WRITE != 0 {
        return Err(bad(path, "its group or others may write to it")
            .next(format!("close it to others: chmod 600 {}", shown(path))));
    }
    String::from_utf8(content.bytes).map(Some).map_err(|_| bad(path, "it is not UTF-8 text"))
}

/// Empty lines and those that begin with `#` are passed over. What a bad line holds is never said: somebody may have
/// put the token itself there.
fn parse<'a>(path: &Path, text: &'a str) -> Result<Vec<Line<'a>>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let line = line(text).filter(|line| lines.iter().all(|other| other.name != line.name));
        let at = index + 1;
        let what = format!("line {at} is not `NAME SCOPES SHA256`, or its name stands twice");
        let failure = || bad(path, &what).next("take that line away, or correct it: one line is one token");
        lines.push(line.ok_or_else(failure)?);
    }
    if lines.len() > TOKENS_MAX {
        return Err(bad(path, &format!("it has more than {TOKENS_MAX} tokens")));
    }
    Ok(lines)
}

fn line(text: &str) -> Option<Line<'_>> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [name, scopes, digits] = words.as_slice() else { return None };
    let scopes = scopes.split(',').try_fold(Scopes::default(), |all, word| {
        Some(all.with(Scope::ALL.into_iter().find(|scope| scope.as_str() == word)?))
    })?;
    let mut digest = [0; DIGEST_BYTES];
    if digits.len() != 2 * DIGEST_BYTES || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(Line { name, scopes, digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<usize>) {
        let found = parse(Path::new("tokens"), text).map(|lines| lines.len());
        match (&found, expected) {
            (Ok(count), Some(expected)) => assert_eq!(*count, expected, "{text}"),
            (Err(failure), None) => assert_eq!(failure.code, "bad_token_file", "{text}"),
            (Ok(_), None) | (Err(_), Some(_)) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_line_is_a_name_scopes_and_a_digest() {
        let digest = "0123456789abcdef".repeat(4);
        check("", Some(0));
        check("# only words\n\n   \n", Some(0));
        check(&format!("a read {digest}\nb write,admin  {digest}"), Some(2));
        check(&format!("a read {digest}\na read {digest}"), None);
        check(&format!("a read {}", &digest[1..]), None);
        check(&format!("a read {digest}0"), None);
        check(&format!("a read {}", digest.replace('0', "+")), None);
        check(&format!("a all {digest}"), None);
        check(&format!("a read, {digest}"), None);
        check(&format!("a {digest}"), None);
        check(&format!("a read {digest} x"), None);
        check("sealog_0123", None);
    }

    #[test]
    fn a_bad_line_is_named_by_its_number_alone() {
        let failure = parse(Path::new("tokens"), "# x\nsealog_hunter2\n").unwrap_err();
        assert_eq!(failure.what, "tokens: line 2 is not `NAME SCOPES SHA256`, or its name stands twice");
        assert!(failure.next.contains("that line"), "{}", failure.next);
    }
}
