//! A Rust source as the rules see it: code apart from strings and comments, production lines apart from tests.
//!
//! This is a scanner, not a parser: it knows where literals and comments end and which braces belong together, and
//! it never needs more than that. It must keep every line on its line.

use std::ops::Range;

use crate::workspace::TextFile;

/// One source file. `code` has the length and the lines of the text, with the insides of strings, characters and
/// comments replaced by spaces.
pub struct Source<'a> {
    pub file: &'a TextFile,
    pub code: String,
    /// Byte ranges of items that are compiled for tests only.
    tests: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    pub fn new(file: &'a TextFile) -> Self {
        let code = blank(&file.text);
        let tests = test_items(&code);
        Self { file, code, tests }
    }

    /// The line (from 1) that holds this byte.
    pub fn line_at(&self, offset: usize) -> usize {
        1 + self.code.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
    }

    /// Whether the whole file is test code: a test target, a test module's file, or a suite shipped for tests.
    pub fn is_test_file(&self) -> bool {
        let path = &self.file.path;
        let folder = |name: &str| path.contains(&format!("/{name}/"));
        folder("tests")
            || path.starts_with("tests/")
            || path.starts_with("crates/testkit/")
            || matches!(self.file.name(), "tests.rs" | "contract.rs" | "conformance.rs")
            || folder("contract")
            || folder("conformance")
    }

    /// Number and code of every line outside `#[cfg(test)]` items.
    pub fn production_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut next = 0;
        self.code.split_inclusive('\n').enumerate().filter_map(move |(index, line)| {
            let start = next;
            next += line.len();
            let is_test = self.tests.iter().any(|range| range.contains(&start));
            (!is_test).then(|| (index + 1, line.trim_end()))
        })
    }

    /// The original text of everything that is test code, comments and strings included.
    pub fn test_text(&self) -> Vec<&str> {
        if self.is_test_file() {
            return vec![&self.file.text];
        }
        self.tests.iter().filter_map(|range| self.file.text.get(range.clone())).collect()
    }

    /// The `//!` lines at the top.
    pub fn header(&self) -> Vec<&str> {
        self.file.text.lines().take_while(|line| line.starts_with("//!")).collect()
    }
}

/// Replaces the inside of strings, characters and comments by spaces.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_or_comment(bytes, at);
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Where the literal or comment that begins here ends; `at` itself when none begins.
fn literal_or_comment(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return block_comment(bytes, at);
    }
    match rest[0] {
        b'"' => quoted(bytes, at),
        b'\'' => character(bytes, at),
        b'r' if !continues_word(bytes, at) => raw_string(bytes, at),
        _ => at,
    }
}

fn block_comment(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn quoted(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A quote begins a character when one character and a quote follow, or an escape; otherwise it is a lifetime.
fn character(bytes: &[u8], start: usize) -> usize {
    match &bytes[start + 1..] {
        [b'\\', _, rest @ ..] => match rest.iter().position(|byte| *byte == b'\'') {
            Some(more) => start + 3 + more + 1,
            None => start,
        },
        [first, rest @ ..] => {
            let more = match first {
                0xf0.. => 3,
                0xe0.. => 2,
                0xc0.. => 1,
                _ => 0,
            };
            if rest.get(more) == Some(&b'\'') { start + 1 + 1 + more + 1 } else { start }
        }
        [] => start,
    }
}

/// `r"..."` and `r#"..."#`; anything else that begins with an `r` is a word.
fn raw_string(bytes: &[u8], start: usize) -> usize {
    let hashes = bytes[start + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = start + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return start;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let inside = &bytes[open + 1..];
    let length = inside.windows(close.len()).position(|window| window == close);
    length.map_or(bytes.len(), |length| open + 1 + length + close.len())
}

/// Whether the byte before belongs to the same word. `br` and `cr` begin raw strings, so those two do not count.
fn continues_word(bytes: &[u8], at: usize) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match at.checked_sub(1).map(|before| bytes[before]) {
        Some(b'b' | b'c') => at >= 2 && is_word(bytes[at - 2]),
        Some(before) => is_word(before),
        None => false,
    }
}

/// The ranges of items behind `#[cfg(test)]` or `#[cfg(all(test, ..))]`, and of functions behind a test attribute.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for marker in ["#[cfg(test)]", "#[cfg(all(test,"] {
        for (start, _) in code.match_indices(marker) {
            items.push(start..item_end(code, start));
        }
    }
    items
}

/// The end of the item that begins here: its closing brace, or a semicolon that comes before any brace.
fn item_end(code: &str, start: usize) -> usize {
    body(code, start).map_or_else(|semicolon| semicolon + 1, |braces| braces.end)
}

/// The braces of the item that begins at `start`, ends included; or, as the error, where a semicolon ends it first.
pub fn body(code: &str, start: usize) -> Result<Range<usize>, usize> {
    let bytes = code.as_bytes();
    let mut nested = 0_i32;
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested -= 1,
            b';' if nested == 0 => return Err(at),
            b'{' if nested == 0 => return Ok(at..closing(bytes, at)),
            _ => {}
        }
    }
    Err(bytes.len().saturating_sub(1))
}

/// Just behind the bracket that closes the one at `open`; the end of the text when nothing closes it.
pub fn closing(code: &[u8], open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(blank(text), expected);
    }

    #[test]
    fn literals_and_comments_become_spaces_of_the_same_length() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("x\"{") + 1"#, "f(      ) + 1");
        check(r##"f(r#"a"{"#) + 1"##, "f(        ) + 1");
        check("f(br\"{\")", "f(b    )");
        check("m('{', '\\'', '\\u{7b}', 'x)", "m(   ,     ,         , 'x)");
        check("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)");
        check("for r in bar {}", "for r in bar {}");
        check("\"ä\"", "    ");
    }

    #[test]
    fn test_items_are_told_from_production() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod more;\nfn c() {}\n";
        let file = TextFile { path: "crates/x/src/a.rs".into(), text: text.into() };
        let source = Source::new(&file);
        let lines: Vec<_> = source.production_lines().collect();
        assert_eq!(lines, [(1, "fn a() {}"), (8, "fn c() {}")]);
        assert_eq!(source.test_text().len(), 2);
    }

    #[test]
    fn suites_and_test_targets_are_test_files() {
        for (path, expected) in [
            ("crates/disk/src/contract.rs", true),
            ("crates/disk/src/contract/files.rs", true),
            ("crates/cli/tests/golden.rs", true),
            ("tests/tests/http.rs", true),
            ("crates/journal/src/recovery/tests.rs", true),
            ("crates/journal/src/recovery/table.rs", false),
        ] {
            let file = TextFile { path: path.into(), text: String::new() };
            assert_eq!(Source::new(&file).is_test_file(), expected, "{path}");
        }
    }
}
