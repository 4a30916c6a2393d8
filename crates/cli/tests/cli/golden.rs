//! Golden cases: one file per case with its arguments, exit code and both output streams.
//!
//! A case begins with `setup:` (what stands before) and `$ sealog ...`; the rest is what came out, with ids, times,
//! ports and paths replaced. `SEALOG_UPDATE_GOLDEN=1` rewrites the files; the difference is then to be read.

use std::path::{Path, PathBuf};

use crate::bench::{Bench, FIRST_GROUP_BODY, Node, Ran, without_ground};

#[test]
fn every_case_comes_out_as_written() {
    let mut files = cases();
    files.sort();
    assert!(files.len() >= 7, "{files:?}");
    let update = std::env::var_os("SEALOG_UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for file in &files {
        let expected = read(file);
        let found = play(&expected);
        if found != expected {
            if update {
                write(file, &found);
            }
            wrong.push(format!("{}:\n{found}", file.display()));
        }
    }
    assert!(update || wrong.is_empty(), "{}", wrong.join("\n"));
}

#[expect(clippy::disallowed_methods, reason = "golden cases are files")]
fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[expect(clippy::disallowed_methods, reason = "golden cases are files")]
fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "golden cases are files")]
fn write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
}

/// Runs the case and writes down what came out.
fn play(case: &str) -> String {
    let mut lines = case.lines();
    let setup = lines.next().and_then(|line| line.strip_prefix("setup: ")).unwrap();
    let command = lines.next().and_then(|line| line.strip_prefix("$ sealog ")).unwrap();
    let bench = Bench::new();
    let prepared = prepare(&bench, setup);
    let arguments: Vec<String> =
        command.split(' ').map(|word| word.replace("EXECUTION", &prepared.execution)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = if arguments[0] == "serve" { serve(&bench, &arguments) } else { bench.run(&arguments) };
    // Times decide how long a group is, and when a child process is killed how much it wrote.
    let sized = ["inspect", "compact", "backup", "restore", "repair", "unfence"]
        .iter()
        .any(|verb| arguments.get(1) == Some(verb));
    let numbers = arguments[0] == "demo" || sized || setup == "a torn tail";
    let clean = |text: &str| clean(&bench, text, numbers);
    let code = ran.code.map_or("none".to_owned(), |code| code.to_string());
    format!(
        "setup: {setup}\n$ sealog {command}\nexit: {code}\n--- stdout\n{}--- stderr\n{}",
        clean(&ran.stdout),
        clean(&ran.stderr)
    )
}

/// A node until its first line, then SIGTERM; or what a refused one said.
fn serve(bench: &Bench, arguments: &[&str]) -> Ran {
    let mut command = bench.command(arguments);
    if arguments.contains(&"--no-create") {
        return command.output().unwrap().into();
    }
    let node = Node::start(command);
    let stdout = node.first_line.clone();
    let (code, stderr) = node.stop();
    Ran { code, stdout, stderr }
}

const CONFIGURATION: &[u8] = b"max_active_executions = 4\n\n[store]\nmax_events = 1_000\n\n[[providers]]\n\
type = \"openai-chat\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"NOT_SET_HERE\"\n";

struct Prepared {
    execution: String,
}

fn prepare(bench: &Bench, setup: &str) -> Prepared {
    const SEGMENT: &str = "data/segments/000000000001.seg";
    let mut execution = String::new();
    match setup {
        "nothing" => {}
        "an empty journal" => bench.init(),
        "one finished execution" => execution = bench.finished(),
        "a torn tail" => {
            execution = bench.finished();
            let mut bytes = bench.read(SEGMENT);
            bytes.extend_from_slice(&[0xa5; 512]);
            bench.write(SEGMENT, &bytes, 0o600);
        }
        "a damaged group" => {
            execution = bench.finished();
            bench.flip(SEGMENT, FIRST_GROUP_BODY);
        }
        "a configuration" => bench.write("sealog.toml", CONFIGURATION, 0o600),
        "a wrong configuration" => bench.write("sealog.toml", b"[store]\nmax_event = 5\n", 0o600),
        "two key files" => two_keys(bench),
        "an export" => {
            execution = bench.finished();
            bench.run(&["journal", "export", "data", "--output", "out.jsonl", "--key-file", "key"]).expect(0);
        }
        "a destroyed keyring beside its export" => {
            execution = bench.finished();
            bench.run(&["journal", "rekey", "data", "export-keyring", "ring", "--key-file", "key"]).expect(0);
            bench.remove("data/keyring.0");
            bench.write("data/keyring.1", b"no keyring", 0o600);
        }
        "a backup" => {
            execution = bench.finished();
            bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
        }
        "a restored copy" => {
            execution = bench.finished();
            bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
            bench.run(&["journal", "restore", "copy", "back", "--key-file", "key"]).expect(0);
        }
        "a damaged backup" => {
            execution = bench.finished();
            bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
            bench.flip("copy/manifest", 1300);
        }
        other => panic!("no such setup: {other}"),
    }
    Prepared { execution }
}

/// A finished execution, and a second slot for the key file `second`.
fn two_keys(bench: &Bench) {
    bench.finished();
    let add =
        ["journal", "rekey", "data", "add-slot", "second", "--new-key-file", "second", "--key-file", "key"];
    bench.run(&add).expect(0);
}

/// The text without what differs from run to run.
fn clean(bench: &Bench, text: &str, numbers: bool) -> String {
    let folder = bench.text("");
    let text = without_ground(&text.replace(folder.trim_end_matches('/'), "FOLDER"));
    let text = without_space(&without_times(&text));
    let mut out = String::new();
    for word in text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
        let (body, end) = match word.char_indices().next_back() {
            Some((at, last)) if !(last.is_ascii_alphanumeric() || last == '-') => word.split_at(at),
            _ => (word, ""),
        };
        let hex = body.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let digits = !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_digit());
        match body.len() {
            36 if hex => out.push_str("EXECUTION"),
            32 if hex => out.push_str("HEX"),
            64 if hex => out.push_str("SHA256"),
            13 if digits => out.push_str("MS"),
            _ if digits && out.ends_with("127.0.0.1:") => out.push_str("PORT"),
            _ if numbers && digits => out.push('N'),
            _ if body.starts_with("sealog-demo-") => out.push_str("sealog-demo"),
            _ => out.push_str(body),
        }
        out.push_str(end);
    }
    out
}

/// What a node may take depends on the disk.
fn without_space(text: &str) -> String {
    const MARK: &str = "the journal may take ";
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        match line.split_once(MARK) {
            Some((before, _)) => {
                let end = if line.ends_with("\"}\n") { "\"}\n" } else { "\n" };
                out += &[before, MARK, "SPACE", end].concat();
            }
            None => out += line,
        }
    }
    out
}

/// Replaces `2026-01-01T00:00:00.000Z` wherever it stands.
fn without_times(text: &str) -> String {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00.000Z";
    let fits = |at: usize| {
        let found = text.as_bytes().get(at..at + SHAPE.len());
        found.is_some_and(|found| {
            found.iter().zip(SHAPE).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                shape => byte == shape,
            })
        })
    };
    let mut out = String::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if fits(at) {
            out.push_str("TIME");
            at += SHAPE.len();
        } else {
            out.push(c);
            at += c.len_utf8();
        }
    }
    out
}
