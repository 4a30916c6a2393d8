//! `sealog journal export` and `import`: a journal moves as a whole or not at all.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use crate::bench::{Bench, id_in};

const EXPORT: [&str; 7] = ["journal", "export", "data", "--key-file", "key", "--output", "out.jsonl"];
const IMPORT: [&str; 6] = ["journal", "import", "out.jsonl", "new", "--key-file", "new.key"];

/// Three executions; their ids.
fn three(bench: &Bench) -> Vec<String> {
    let mut ids = vec![bench.finished()];
    for (text, extensions) in
        [("two", r#"{"mock":{"chunks":40}}"#), ("three", r#"{"mock":{"fail_after":2}}"#)]
    {
        let arguments = [
            "run",
            text,
            "--data-dir",
            "data",
            "--key-file",
            "key",
            "--idempotency-key",
            text,
            "--extensions",
            extensions,
        ];
        ids.push(id_in(&bench.run(&arguments).stderr));
    }
    ids
}

fn replay(bench: &Bench, dir: &str, key: &str, id: &str, format: &str) -> String {
    bench.run(&["journal", "replay", dir, id, "--key-file", key, "--format", format]).expect(0).stdout
}

/// What an interrupted import leaves beside its place. (A key file that was being written when the process was killed has
/// a temporary name of its own, which nothing looks at.)
fn hidden(bench: &Bench) -> usize {
    let entries = bench.path("").read_dir().unwrap();
    entries
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".building"))
        .count()
}

#[test]
fn every_execution_moves_byte_for_byte() {
    let bench = Bench::new();
    let ids = three(&bench);
    let before = bench.files("data");
    let done = bench.run(&[&EXPORT[..], &["--json"]].concat()).expect(0).json();
    assert!(bench.files("data") == before, "an export changes nothing");
    assert_eq!((&done["executions"], &done["verdict"]), (&3.into(), &"sound".into()));
    let mode = bench.path("out.jsonl").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    // Standard output carries the same bytes.
    let printed = bench.run(&EXPORT[..5]).expect(0);
    assert!(printed.stdout.as_bytes() == bench.read("out.jsonl"));
    let made = bench.run(&[&IMPORT[..], &["--json"]].concat()).expect(0).json();
    assert_eq!((&made["executions"], &made["from_store_id"]), (&3.into(), &before_id(&bench)));
    assert_ne!(made["store_id"], made["from_store_id"]);
    assert_eq!(hidden(&bench), 0);
    bench.run(&["journal", "verify", "new", "--key-file", "new.key"]).expect(0);
    for id in &ids {
        for format in ["sse", "jsonl", "text", "snapshot"] {
            let (old, new) =
                (replay(&bench, "data", "key", id, format), replay(&bench, "new", "new.key", id, format));
            assert_eq!(old, new, "{id} as {format}");
        }
    }
    // Keys go on replaying and conflicting.
    let run = |text: &str| {
        bench.run(&["run", text, "--data-dir", "new", "--key-file", "new.key", "--idempotency-key", "k"])
    };
    let again = run("hi").expect(0);
    assert_eq!(id_in(&again.stderr), ids[0]);
    let conflict = run("something else");
    assert_ne!(conflict.code, Some(0), "{conflict:?}");
    assert!(bench.run(&EXPORT).expect(1).word() == "file_exists");
}

fn before_id(bench: &Bench) -> serde_json::Value {
    bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]).json()["store_id"].clone()
}

#[test]
fn a_broken_export_makes_nothing() {
    let bench = Bench::new();
    three(&bench);
    bench.run(&EXPORT).expect(0);
    let whole = bench.read("out.jsonl");
    let middle = whole.len() / 2;
    let mut flipped = whole.clone();
    flipped[middle] ^= 1;
    for (bytes, what) in [
        (&whole[..middle], "cut"),
        (&flipped, "changed"),
        (&whole[..whole.len() - 1], "last byte"),
        (b"", "empty"),
    ] {
        bench.write("out.jsonl", bytes, 0o600);
        let ran = bench.run(&IMPORT).expect(2);
        assert_eq!(ran.word(), "bad_export", "{what}");
        assert!(!bench.path("new").exists() && !bench.path("new.key").exists(), "{what}");
        assert_eq!(hidden(&bench), 0, "{what}");
    }
    let newer = String::from_utf8(whole.clone()).unwrap().replacen("\"version\":1", "\"version\":2", 1);
    bench.write("out.jsonl", newer.as_bytes(), 0o600);
    assert_eq!(bench.run(&IMPORT).expect(14).word(), "newer_format");
    assert_eq!(
        bench.run(&["journal", "import", "data", "new", "--key-file", "new.key"]).expect(2).word(),
        "bad_export"
    );
    // Into a place that is taken.
    bench.write("out.jsonl", &whole, 0o600);
    let taken = bench.run(&["journal", "import", "out.jsonl", "data", "--key-file", "new.key"]);
    assert_eq!(taken.expect(1).word(), "already_exists");
    bench.make_dir("full", 0o700);
    bench.write("full/letter", b"dear", 0o600);
    let full = bench.run(&["journal", "import", "out.jsonl", "full", "--key-file", "new.key"]);
    assert_eq!(full.expect(10).word(), "not_empty");
    let other = bench.run(&["journal", "import", "out.jsonl", "new", "--key-file", "key"]);
    assert_eq!(other.expect(10).word(), "journal_elsewhere", "the key of another journal");
    assert!(!bench.path("new").exists() && !bench.path("new.key").exists());
    bench.make_dir("new", 0o700);
    bench.run(&IMPORT).expect(0);
}

/// Killed at many moments: there is no journal, or all of it, and the same command completes it.
#[test]
fn a_killed_import_leaves_nothing_or_everything() {
    let bench = Bench::new();
    let ids = three(&bench);
    bench.run(&EXPORT).expect(0);
    let (mut nothing, mut everything) = (0, 0);
    for round in 0..12 {
        let mut child = bench
            .command(&IMPORT)
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Not a time but a place: when so many entries stand beside it.
        let made = bench.path(".new.building");
        let wanted = round / 2;
        while child.try_wait().unwrap().is_none() {
            let count = made.read_dir().map_or(0, std::iter::Iterator::count);
            if count > wanted {
                break;
            }
            std::thread::yield_now();
        }
        // It may have ended by itself.
        child.kill().unwrap_or_default();
        child.wait().unwrap();
        match bench.path("new").exists() {
            true => everything += 1,
            false => {
                nothing += 1;
                assert_eq!(
                    bench.run(&["journal", "verify", "new", "--key-file", "key"]).expect(10).word(),
                    "no_journal"
                );
                bench.run(&IMPORT).expect(0);
            }
        }
        bench.run(&["journal", "verify", "new", "--key-file", "new.key"]).expect(0);
        assert_eq!(
            replay(&bench, "new", "new.key", &ids[1], "sse"),
            replay(&bench, "data", "key", &ids[1], "sse")
        );
        assert_eq!(hidden(&bench), 0);
        rustix::fs::rename(bench.path("new"), bench.path(&format!("old{round}"))).unwrap();
        bench.remove("new.key");
    }
    assert!(nothing > 0 && nothing + everything == 12, "{nothing} {everything}");
}

/// Killed while it writes: there is no file of that name or all of it, and the next one clears away what is left.
#[test]
fn a_killed_export_leaves_nothing_or_everything() {
    let bench = Bench::new();
    bench.init();
    let mock = r#"{"mock":{"chunks":400,"chunk_bytes":4000}}"#;
    bench.run(&["run", "much", "--data-dir", "data", "--key-file", "key", "--extensions", mock]).expect(0);
    let whole = bench.run(&EXPORT[..5]).expect(0).stdout;
    let unnamed = || {
        let entries = bench.path("").read_dir().unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(".sealog-")).count()
    };
    let mut cut = 0;
    for _ in 0..6 {
        let mut child = bench
            .command(&EXPORT)
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() && unnamed() == 0 {
            std::thread::yield_now();
        }
        child.kill().unwrap_or_default();
        cut += usize::from(child.wait().unwrap().code().is_none());
        if !bench.path("out.jsonl").exists() {
            bench.run(&EXPORT).expect(0);
        }
        assert!(bench.read("out.jsonl") == whole.as_bytes());
        assert_eq!(unnamed(), 0);
        bench.remove("out.jsonl");
    }
    assert!(cut > 0, "every one of them ended before it was killed");
}

#[test]
fn a_damaged_journal_is_exported_as_far_as_it_reads() {
    let bench = Bench::new();
    let ids = three(&bench);
    bench.flip("data/segments/000000000002.seg", crate::bench::FIRST_GROUP_BODY);
    let ran = bench.run(&[&EXPORT[..], &["--json"]].concat()).expect(13);
    assert_eq!((&ran.json()["verdict"], &ran.error()["code"]), (&"damaged".into(), &"damaged".into()));
    let text = String::from_utf8(bench.read("out.jsonl")).unwrap();
    assert!(text.contains("\n{\"gap\":") && text.contains("{\"missing\":"), "{text}");
    let refused = bench.run(&IMPORT).expect(13);
    assert_eq!(refused.word(), "incomplete_export");
    let made = bench.run(&[&IMPORT[..], &["--skip-incomplete", "--json"]].concat()).expect(0).json();
    assert_eq!((&made["executions"], &made["skipped"]), (&2.into(), &serde_json::json!([ids[1]])));
    assert_eq!(made["fenced"], true, "the key of what was left out is not there");
    assert_eq!(refused_by_the_fence(&bench, "two", "two").word(), "refused");
    for id in [&ids[0], &ids[2]] {
        assert_eq!(replay(&bench, "new", "new.key", id, "sse"), {
            let ran = bench.run(&["journal", "replay", "data", id, "--key-file", "key", "--format", "sse"]);
            ran.stdout
        });
    }
    bench.run(&["journal", "replay", "new", &ids[1], "--key-file", "new.key"]).expect(4);
}

#[test]
fn a_pipe_is_no_export() {
    let bench = Bench::new();
    for input in ["/dev/stdin", "/dev/null"] {
        let ran = bench.run(&["journal", "import", input, "new", "--key-file", "new.key"]).expect(2);
        assert_eq!(ran.word(), "bad_export");
        assert!(
            ran.stderr.contains("next: write what comes from a pipe into a file first"),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("file system"), "{}", ran.stderr);
    }
}

/// Of an execution that lies in the hole as a whole the export knows nothing: it is not among those that lack events.
#[test]
fn an_export_with_a_hole_is_imported_only_on_purpose() {
    let bench = Bench::new();
    three(&bench);
    bench.remove("data/segments/000000000002.seg");
    bench.run(&EXPORT).expect(13);
    let refused = bench.run(&IMPORT).expect(13);
    assert_eq!(refused.word(), "incomplete_export");
    assert!(refused.stderr.contains("executions may be missing"), "{}", refused.stderr);
    assert!(!bench.path("new").exists() && !bench.path("new.key").exists());
    let made = bench.run(&[&IMPORT[..], &["--skip-incomplete", "--json"]].concat()).expect(0).json();
    assert_eq!((&made["executions"], &made["fenced"]), (&2.into(), &true.into()));
}

fn refused_by_the_fence(bench: &Bench, text: &str, key: &str) -> crate::bench::Ran {
    let flags = ["--data-dir", "new", "--key-file", "new.key", "--idempotency-key", key];
    let ran = bench.run(&[&["run", text][..], &flags].concat()).expect(75);
    assert!(
        ran.stderr.contains("next: once the original is gone for good: sealog journal unfence new"),
        "{ran:?}"
    );
    ran
}

/// A copy that does not know what the original did is imported as one: it replays what it knows and takes nothing else.
#[test]
fn a_fence_moves_with_its_journal() {
    let bench = Bench::new();
    let ids = three(&bench);
    bench.run(&["journal", "restore", "data", "back", "--key-file", "key"]).expect(0);
    let export = ["journal", "export", "back", "--key-file", "key", "--output", "out.jsonl", "--json"];
    assert_eq!(bench.run(&export).expect(0).json()["partial"], false);
    let made = bench.run(&IMPORT).expect(0);
    assert!(made.stderr.contains("fenced") && made.stderr.contains("journal unfence new"), "{made:?}");
    assert_eq!(refused_by_the_fence(&bench, "anything", "new").word(), "refused");
    let known = ["run", "hi", "--data-dir", "new", "--key-file", "new.key", "--idempotency-key", "k"];
    assert_eq!(id_in(&bench.run(&known).expect(0).stderr), ids[0]);
    let unfence = ["journal", "unfence", "new", "--key-file", "new.key", "--json"];
    assert_eq!(bench.run(&unfence).expect(0).json()["was_fenced"], true);
    let new = ["run", "anything", "--data-dir", "new", "--key-file", "new.key", "--idempotency-key", "new"];
    bench.run(&new).expect(0);
    // Of a running node, and of one execution alone: others may be missing.
    let node = bench.node(&[]);
    for (number, only) in [&[][..], &["--execution", &ids[0]]].into_iter().enumerate() {
        let (file, dir, key) =
            (format!("{number}.jsonl"), format!("new{number}"), format!("new{number}.key"));
        let export = ["journal", "export", "data", "--key-file", "key", "--json", "--output", &file];
        let done = bench.run(&[&export[..], only].concat()).expect(0);
        assert_eq!(done.json()["partial"], true);
        assert!(done.stderr.contains("an import of it is fenced"), "{done:?}");
        let import = ["journal", "import", &file, &dir, "--key-file", &key, "--json"];
        assert_eq!(bench.run(&import).expect(0).json()["fenced"], true);
    }
    node.kill();
}

#[test]
fn one_execution_alone_and_beside_a_running_node() {
    let bench = Bench::new();
    let ids = three(&bench);
    let node = bench.node(&[]);
    let one =
        bench.run(&["journal", "export", "data", "--key-file", "key", "--execution", &ids[2]]).expect(0);
    assert!(one.stdout.contains(&ids[2]) && !one.stdout.contains(&ids[0]));
    assert_eq!(
        one.stdout.lines().count() as u64,
        4 + one.stdout.matches("\"sequence\"").count() as u64 / 2 + 1
    );
    let absent =
        ["journal", "export", "data", "--key-file", "key", "--execution", "none", "--output", "none.jsonl"];
    assert_eq!(bench.run(&absent).expect(4).word(), "not_found");
    let unknown = ids[0].replace(|c: char| c.is_ascii_digit(), "0");
    let absent =
        ["journal", "export", "data", "--key-file", "key", "--execution", &unknown, "--output", "none.jsonl"];
    assert_eq!(bench.run(&absent).expect(4).word(), "not_found");
    assert!(!bench.path("none.jsonl").exists());
    node.kill();
    // A reader that goes away is no crash.
    let mut child = bench.command(&["journal", "export", "data", "--key-file", "key"]);
    let mut child =
        child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    std::io::stderr().flush().unwrap();
}

/// Folded or not, an execution has the same lines.
#[test]
fn a_compacted_journal_exports_the_same_lines() {
    let bench = Bench::new();
    let ids = three(&bench);
    bench.run(&EXPORT).expect(0);
    bench.run(&["journal", "compact", "data", "--key-file", "key"]).expect(0);
    let after = bench.run(&EXPORT[..5]).expect(0).stdout;
    let before = String::from_utf8(bench.read("out.jsonl")).unwrap();
    for id in &ids {
        let of = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.contains(id.as_str())).map(ToOwned::to_owned).collect()
        };
        assert!(of(&before).len() > 5);
        assert_eq!(of(&before), of(&after), "{id}");
    }
    bench.write("out.jsonl", after.as_bytes(), 0o600);
    bench.run(&IMPORT).expect(0);
    for id in &ids {
        assert_eq!(replay(&bench, "new", "new.key", id, "sse"), replay(&bench, "data", "key", id, "sse"));
    }
}

#[test]
fn what_is_missing_above_what_a_verb_makes_is_made_too_and_private() {
    let bench = Bench::new();
    bench.finished();
    let key = ["--key-file", "key"];
    for (verb, made) in [
        (&["journal", "export", "data", "--output", "a/export/all"][..], "a/export/all"),
        (&["journal", "rekey", "data", "export-keyring", "a/keyring/copy"], "a/keyring/copy"),
        (&["journal", "rekey", "data", "add-slot", "b", "--new-key-file", "a/slot/key"], "a/slot/key"),
        (&["journal", "backup", "data", "a/backup/copy"], "a/backup/copy"),
        (&["journal", "restore", "data", "a/restored/data"], "a/restored/data"),
        (&["token", "new", "--scope", "read", "--file", "a/token/tokens"], "a/token/tokens"),
    ] {
        let key = if verb[0] == "token" { &[][..] } else { &key };
        bench.run(&[verb, key].concat()).expect(0);
        assert!(bench.path(made).exists(), "{verb:?}");
        let above = bench.path(made).parent().unwrap().metadata().unwrap();
        assert_eq!(above.permissions().mode() & 0o777, 0o700, "{verb:?}");
    }
}
