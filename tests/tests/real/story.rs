//! `docs/story.md`, pasted into a shell from its first command to its last: every command must print what stands below it.
//!
//! The page is the test. Only two things are exchanged: the ports, and its first block, which builds.
#![expect(clippy::disallowed_methods, reason = "reads the page and what its commands print")]

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use sealog_tests::binary;

/// The longest that the page may take, in seconds; its own waits add up to a few.
const SECONDS_MAX: &str = "300";
/// What a line of expected output may have in the place of anything else.
const ANYTHING: &str = "[..]";

/// Commands, and what stands below them.
struct Block {
    commands: String,
    expected: String,
}

#[test]
fn every_command_of_the_story_prints_what_stands_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/story.md")).unwrap();
    let [first, second] = free_ports();
    let page = page.replace("4320", &first).replace("4331", &second);
    let blocks = blocks(&page);
    assert!(blocks.len() > 15, "the page has lost its commands");
    let dir = tempfile::tempdir().unwrap();

    let mut script = String::new();
    for (number, block) in blocks.iter().enumerate() {
        writeln!(script, "{{\n{}}} > out.{number} 2>> errors", block.commands).unwrap();
    }
    fs::write(dir.path().join("story.sh"), script).unwrap();
    let programs = [binary("sealog").parent().unwrap().to_owned(), root.join("tools/flaky-model")];
    let path = std::env::join_paths(
        programs.into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=1", SECONDS_MAX, "bash", "story.sh"]);
    let status = shell.current_dir(dir.path()).env("PATH", path.unwrap()).process_group(0).status().unwrap();

    let errors = fs::read_to_string(dir.path().join("errors")).unwrap_or_default();
    for (number, block) in blocks.iter().enumerate() {
        let printed = fs::read_to_string(dir.path().join(format!("out.{number}"))).unwrap_or_default();
        assert!(
            matches(&block.expected, &printed),
            "after\n{}expected\n{}but\n{printed}\nshell: {status}, errors:\n{errors}",
            block.commands,
            block.expected
        );
    }
    assert!(status.success(), "{status}\n{errors}");
}

#[test]
fn expected_lines_match_exactly_but_for_their_gaps() {
    assert!(matches("a[..]c\n\nd\n", "a b c\n\nd\n"));
    assert!(matches("[..]\n", "x\n"));
    assert!(!matches("a[..]c\n", "a b d\n"));
    assert!(!matches("a\n", "a\nb\n"));
    assert!(!matches("a\nb\n", "a\n"));
    assert!(!matches("a\n", "xa\n"));
    assert!(!matches("ab[..]bc\n", "abc\n"));
}

/// Two ports that nothing listens on.
fn free_ports() -> [String; 2] {
    let taken = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    taken.map(|port| port.local_addr().unwrap().port().to_string())
}

/// The blocks of commands in order; the one that builds is left out.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in page.lines() {
        match (fence, line.strip_prefix("```")) {
            (None, Some(language)) => {
                if language == "sh" {
                    blocks.push(Block { commands: String::new(), expected: String::new() });
                }
                fence = Some(language);
            }
            (Some(_), Some(_)) => fence = None,
            (Some("sh"), None) => writeln!(blocks.last_mut().unwrap().commands, "{line}").unwrap(),
            (Some("text"), None) => writeln!(blocks.last_mut().unwrap().expected, "{line}").unwrap(),
            (Some(_) | None, None) => {}
        }
    }
    blocks
}

fn matches(expected: &str, printed: &str) -> bool {
    expected.lines().count() == printed.lines().count()
        && expected.lines().zip(printed.lines()).all(|(expected, printed)| line_matches(expected, printed))
}

fn line_matches(expected: &str, printed: &str) -> bool {
    let mut parts = expected.split(ANYTHING);
    let Some(mut rest) = parts.next().and_then(|first| printed.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
