//! Exit codes of refused journals, by every verb that opens one, and that nothing on disk changes.

use std::process::{Command, Stdio};

use crate::bench::{Bench, FIRST_GROUP_BODY, Ran};

const VERBS: [&[&str]; 5] = [
    &["journal", "verify", "data"],
    &["journal", "inspect", "data"],
    &["journal", "replay", "data", "11111111-2222-4333-8444-555555555555"],
    &["serve", "--data-dir", "data", "--listen", "127.0.0.1:0"],
    &["run", "hi", "--data-dir", "data"],
];

/// Every verb ends with `code` and `word`, also as JSON, and leaves everything but the note in `LOCK` as it is.
#[track_caller]
fn every_verb(bench: &Bench, key: &str, code: i32, word: &str) {
    for verb in VERBS {
        check(bench, verb, key, code, word);
    }
}

#[track_caller]
fn check(bench: &Bench, verb: &[&str], key: &str, code: i32, word: &str) {
    let before = frozen(bench);
    let mut arguments = verb.to_vec();
    arguments.extend(["--key-file", key]);
    let ran = bench.run(&arguments).expect(code);
    assert_eq!(ran.word(), word, "{verb:?}: {}", ran.stderr);
    assert!(ran.stderr.contains("\n  safe: ") && ran.stderr.contains("\n  next: "), "{}", ran.stderr);
    assert!(!ran.stdout.contains("listening"), "{}", ran.stdout);
    arguments.push("--json");
    let error = bench.run(&arguments).expect(code).error();
    assert_eq!(error["code"], word, "{verb:?}");
    assert_eq!(error["exit_code"], code);
    assert!(error["message"].is_string() && error["safe"].is_string() && error["next"].is_string());
    assert!(frozen(bench) == before, "{verb:?} changed something on disk");
}

fn frozen(bench: &Bench) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = bench.files("data");
    files.retain(|(path, _)| !path.ends_with("LOCK"));
    files
}

#[test]
fn a_wrong_key_is_12() {
    let bench = Bench::new();
    bench.finished();
    bench.write("other", &[1; 32], 0o600);
    every_verb(&bench, "other", 12, "wrong_key");
}

#[test]
fn an_absent_directory_is_10_and_stays_absent() {
    let bench = Bench::new();
    bench.write("raw", &[1; 32], 0o600);
    for verb in &VERBS[..3] {
        let mut arguments = verb.to_vec();
        arguments.extend(["--key-file", "raw"]);
        assert_eq!(bench.run(&arguments).expect(10).word(), "no_journal");
    }
    for verb in &VERBS[3..] {
        let mut arguments = verb.to_vec();
        arguments.extend(["--key-file", "raw", "--no-create"]);
        assert_eq!(bench.run(&arguments).expect(10).word(), "no_journal");
    }
    assert!(!bench.path("data").exists());
}

#[test]
fn an_empty_directory_beside_a_key_of_another_journal_is_10() {
    let bench = Bench::new();
    bench.finished();
    // The volume is not mounted: the key is there, its journal is not.
    let key = bench.read("key");
    let bench = Bench::new();
    bench.write("key", &key, 0o600);
    bench.make_dir("data", 0o700);
    every_verb(&bench, "key", 10, "journal_elsewhere");
    let init = bench.run(&["journal", "init", "data", "--key-file", "key"]).expect(10);
    assert_eq!(init.word(), "journal_elsewhere");
    assert!(init.stderr.contains("next: name a key file that does not exist yet"), "{}", init.stderr);
    assert!(bench.files("data").is_empty());
}

#[test]
fn a_named_store_id_is_never_created() {
    let bench = Bench::new();
    bench.finished();
    let id = bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]).json()["store_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let other = "0".repeat(32);
    let at = |dir: &str, id: &str| {
        bench.run(&["run", "x", "--data-dir", dir, "--key-file", "key", "--store-id", id])
    };
    at("data", &id).expect(0);
    let another = at("data", &other).expect(10);
    assert_eq!(another.word(), "journal_elsewhere");
    // It is the flag that is another journal's, and there is one here.
    assert!(another.stderr.contains(&format!("this is journal {id}, and --store-id ")), "{}", another.stderr);
    let fresh = bench.run(&["run", "x", "--data-dir", "new", "--key-file", "new.key", "--store-id", &other]);
    assert_eq!(fresh.expect(10).word(), "journal_elsewhere");
    assert!(!bench.path("new").exists() && !bench.path("new.key").exists());
}

#[test]
fn a_second_writer_is_11_and_readers_go_on() {
    let bench = Bench::new();
    let id = bench.finished();
    let node = bench.node(&[]);
    for verb in &VERBS[3..] {
        let mut arguments = verb.to_vec();
        arguments.extend(["--key-file", "key"]);
        let ran = bench.run(&arguments).expect(11);
        assert_eq!(ran.word(), "locked");
        assert!(ran.stderr.contains("pid "), "the holder is named: {}", ran.stderr);
    }
    for verb in [&["journal", "verify", "data"][..], &["journal", "inspect", "data"]] {
        bench.run(&[verb, &["--key-file", "key"]].concat()).expect(0);
    }
    let replay = bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(0);
    assert!(replay.stdout.contains("event: execution.completed"));
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn damage_is_13_and_names_its_place() {
    let bench = Bench::new();
    let id = bench.finished();
    bench.flip("data/segments/000000000001.seg", FIRST_GROUP_BODY);
    for verb in [VERBS[0], VERBS[1], VERBS[3], VERBS[4]] {
        check(&bench, verb, "key", 13, "damaged");
        let error = bench.run(&[verb, &["--key-file", "key", "--json"]].concat()).error();
        assert_eq!(error["place"]["segment"], 1, "{verb:?}");
        assert_eq!(error["place"]["offset"], 8352, "{verb:?}");
        assert_eq!(error["place"]["sequence"], 1, "{verb:?}");
    }
    let verify = bench.run(&["journal", "verify", "data", "--key-file", "key", "--json"]).expect(13).json();
    assert_eq!(verify["verdict"], "damaged");
    assert_eq!(verify["gaps"][0]["first_sequence"], 1);
    assert_eq!(verify["gaps"][0]["last_sequence"], 3);
    // The rest exports, with the hole named.
    let replay = bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(13);
    assert!(replay.stdout.starts_with("id: 2\nevent: route.selected\n"), "{}", replay.stdout);
    assert!(replay.stdout.contains("event: execution.completed"));
    assert!(replay.stderr.contains("gap: corrupt: events 1 to 1"), "{}", replay.stderr);
    assert!(replay.stderr.contains("gap: corrupt: sequences 1 to 3"), "{}", replay.stderr);
}

#[test]
fn a_deleted_segment_is_13() {
    let bench = Bench::new();
    bench.finished();
    bench.run(&["run", "hi", "--data-dir", "data", "--key-file", "key"]).expect(0);
    bench.remove("data/segments/000000000001.seg");
    every_verb(&bench, "key", 13, "damaged");
}

#[test]
fn missing_keyrings_are_13_beside_segments_and_10_without() {
    let bench = Bench::new();
    bench.finished();
    bench.remove("data/keyring.0");
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
    bench.remove("data/keyring.1");
    every_verb(&bench, "key", 13, "file_missing");
    let bench = Bench::new();
    bench.init();
    bench.remove("data/keyring.0");
    bench.remove("data/keyring.1");
    every_verb(&bench, "key", 10, "no_journal");
}

#[test]
fn damaged_keyrings_are_13_and_one_copy_is_repaired_by_a_start() {
    let bench = Bench::new();
    bench.finished();
    bench.flip("data/keyring.0", 100);
    let verify = bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
    assert!(verify.stderr.contains("keyring.0 is damaged"), "{}", verify.stderr);
    let run = bench.run(&["run", "hi", "--data-dir", "data", "--key-file", "key"]).expect(0);
    assert!(run.stderr.contains("copy of the keyring was rewritten"), "{}", run.stderr);
    assert_eq!(bench.read("data/keyring.0"), bench.read("data/keyring.1"));
    bench.flip("data/keyring.0", 100);
    bench.flip("data/keyring.1", 100);
    every_verb(&bench, "key", 13, "keyring_damaged");
}

#[test]
fn a_missing_store_or_head_is_13_beside_segments() {
    for file in ["data/store", "data/head"] {
        let bench = Bench::new();
        bench.finished();
        bench.remove(file);
        for verb in VERBS {
            let ran = bench.run(&[verb, &["--key-file", "key"]].concat()).expect(13);
            assert!(ran.stderr.contains("missing"), "{verb:?}: {}", ran.stderr);
            assert!(["file_missing", "damaged"].contains(&ran.word()), "{verb:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_newer_format_is_14_whichever_file_says_so() {
    // Where the version stands, and where the checksum that covers it.
    for (file, crc) in [("data/store", 92), ("data/keyring.0", 60), ("data/segments/000000000001.seg", 60)] {
        let bench = Bench::new();
        bench.finished();
        let mut bytes = bench.read(file);
        bytes[8..10].copy_from_slice(&2u16.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..crc]).to_le_bytes();
        bytes[crc..crc + 4].copy_from_slice(&sum);
        if file.ends_with(".seg") {
            let (first, rest) = bytes.split_at_mut(4096);
            rest[..4096].copy_from_slice(first);
        }
        bench.write(file, &bytes, 0o600);
        every_verb(&bench, "key", 14, "newer_format");
    }
}

#[test]
fn an_unknown_execution_is_4() {
    let bench = Bench::new();
    bench.finished();
    for id in ["11111111-2222-4333-8444-555555555555", "no-id"] {
        let replay = bench.run(&["journal", "replay", "data", id, "--key-file", "key"]).expect(4);
        assert_eq!((replay.word(), replay.stdout.as_str()), ("not_found", ""));
        let inspect = bench.run(&["journal", "inspect", "data", "--execution", id, "--key-file", "key"]);
        assert_eq!(inspect.expect(4).word(), "not_found");
    }
}

#[test]
fn a_mistake_on_the_command_line_is_2() {
    let bench = Bench::new();
    for arguments in [
        &["nonsense"][..],
        &["journal", "verify"],
        &["journal", "verify", "data", "--key", "secret"],
        &["serve", "--listen", "nowhere"],
        &["serve", "--grace-ms", "0"],
        &["run", "x", "--url", "http://h", "--data-dir", "d"],
        &[],
    ] {
        bench.run(arguments).expect(2);
    }
    let error = bench.run(&["journal", "verify", "--json"]).expect(2).error();
    assert_eq!(error["code"], "usage");
    bench.run(&["--help"]).expect(0);
    assert!(bench.run(&["--version"]).expect(0).stdout.starts_with("sealog "));
}

/// The shell that starts a verb with at most so many descriptors.
fn with_descriptors(bench: &Bench, most: u32, arguments: &[&str]) -> Ran {
    let binary = bench.command(&[]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("ulimit -n {most}; exec \"$0\" \"$@\"")).arg(binary).args(arguments);
    shell.stdin(Stdio::null()).current_dir(bench.path("."));
    shell.output().unwrap().into()
}

/// No verb is ended by a signal where its files may not become as long as they should: it says so, and what it began to make
/// is not there.
#[test]
fn where_files_may_not_grow_every_verb_says_try_again() {
    let bench = Bench::new();
    bench.finished();
    let key = ["--key-file", "key"];
    bench.run(&[&["journal", "export", "data", "--output", "all"][..], &key].concat()).expect(0);
    let binary = bench.command(&[]).get_program().to_owned();
    for (verb, made) in [
        (&["journal", "restore", "data", "restored"][..], "restored/store"),
        (&["journal", "repair", "data", "repaired"], "repaired/store"),
        (&["journal", "backup", "data", "copy"], "copy/manifest"),
        (&["journal", "export", "data", "--output", "again"], "again"),
        (&["run", "--data-dir", "data", "a text"], ""),
    ] {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("ulimit -f 1; exec \"$0\" \"$@\"").arg(&binary).args(verb).args(key);
        shell.stdin(Stdio::null()).current_dir(bench.path("."));
        let ran: Ran = shell.output().unwrap().into();
        assert_eq!(ran.code, Some(75), "{verb:?}: {ran:?}");
        assert!(made.is_empty() || !bench.path(made).exists(), "{verb:?}: {ran:?}");
    }
}

#[test]
fn without_descriptors_every_verb_says_try_again() {
    let bench = Bench::new();
    let id = bench.finished();
    let journal = ["--data-dir", "data", "--key-file", "key"];
    for most in 4..20 {
        for verb in [&["ps"][..], &["show", &id], &["tail", &id]] {
            let ran = with_descriptors(&bench, most, &[verb, &journal].concat());
            assert!(matches!(ran.code, Some(0 | 75)), "{most} {verb:?}: {ran:?}");
        }
    }
    // A node that cannot listen, and what it would have made anew.
    for most in 8..18 {
        let fresh = format!("fresh{most}");
        let serve =
            ["serve", "--read-only", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"];
        if most < 12 {
            let ran = with_descriptors(&bench, most, &serve);
            assert_eq!(ran.code, Some(75), "{most}: {ran:?}");
        }
        let init = ["journal", "init", &fresh, "--key-file", &format!("{fresh}.key")];
        let ran = with_descriptors(&bench, most, &init);
        assert!(matches!(ran.code, Some(0 | 75)), "{most}: {ran:?}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a device that takes nothing")]
fn help_that_cannot_be_written_is_a_failure() {
    let bench = Bench::new();
    for words in [&["--help"][..], &["--version"], &["help", "tail"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = Ran::from(bench.command(words).stdout(full).output().unwrap()).expect(1);
        assert_eq!(ran.word(), "output_failed", "{words:?}");
    }
}
