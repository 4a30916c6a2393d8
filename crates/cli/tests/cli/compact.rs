//! `sealog journal compact` from outside: its exit codes, what `--json` says, and that a killed one costs nothing.

use std::process::{Command, Stdio};

use crate::bench::{Bench, FIRST_GROUP_BODY, Ran};

const COMPACT: [&str; 6] = ["journal", "compact", "data", "--key-file", "key", "--json"];

fn verify(bench: &Bench) -> serde_json::Value {
    bench.run(&["journal", "verify", "data", "--key-file", "key", "--json"]).expect(0).json()
}

fn replayed(bench: &Bench, ids: &[String]) -> Vec<String> {
    let replay =
        |id: &String| bench.run(&["journal", "replay", "data", id, "--key-file", "key"]).expect(0).stdout;
    ids.iter().map(replay).collect()
}

/// Executions in as many segments.
fn several(bench: &Bench, count: usize) -> Vec<String> {
    let mut ids = vec![bench.finished()];
    for number in 1..count {
        let text = format!("text {number}");
        let mock = r#"{"mock":{"chunks":30,"chunk_bytes":200}}"#;
        let run = ["run", &text, "--data-dir", "data", "--key-file", "key", "--extensions", mock];
        ids.push(crate::bench::id_in(&bench.run(&run).expect(0).stderr));
    }
    ids
}

#[test]
fn it_exits_with_0_whether_there_was_anything_to_do_or_not() {
    let bench = Bench::new();
    let ids = several(&bench, 4);
    let before = (replayed(&bench, &ids), bench.files("data"));
    let dry = [&COMPACT[..], &["--dry-run"]].concat();
    let plan = bench.run(&dry).expect(0).json();
    assert_eq!((&plan["dry_run"], &plan["publishes_segment"]), (&true.into(), &true.into()));
    assert!(plan["segments"].as_array().unwrap().iter().all(|one| one["rewritten"] == true), "{plan}");
    assert!(bench.files("data") == before.1, "a dry run changes nothing");
    let done = bench.run(&COMPACT).expect(0).json();
    assert!(
        done["rewrites"].as_u64() > Some(0) && done["bytes_after"].as_u64() < done["bytes_before"].as_u64()
    );
    assert_eq!(replayed(&bench, &ids), before.0);
    let again = bench.run(&COMPACT).expect(0).json();
    assert_eq!((&again["rewrites"], &again["records_dropped"]), (&0.into(), &0.into()));
    let plan = bench.run(&dry).expect(0).json();
    assert!(plan["segments"].as_array().unwrap().iter().all(|one| one["rewritten"] == false), "{plan}");
    assert_eq!(verify(&bench)["verdict"], "sound");
}

#[test]
fn what_it_refuses_has_an_exit_code_of_its_own_and_changes_nothing() {
    let bench = Bench::new();
    assert_eq!(bench.run(&COMPACT).expect(10).error()["code"], "no_journal");
    several(&bench, 2);
    let node = bench.node(&[]);
    let locked = bench.run(&COMPACT).expect(11).error();
    assert_eq!(locked["code"], "locked");
    let next = locked["next"].as_str().unwrap();
    assert!(next.contains("--url") && next.contains("--token-file FILE"), "{next}");
    bench.run(&[&COMPACT[..], &["--dry-run"]].concat()).expect(0).json();
    assert_eq!(node.stop().0, Some(0));
    bench.write("wrong", &[7; 32], 0o600);
    let refused = |code: i32, arguments: &[&str]| {
        let files = |bench: &Bench| {
            let mut files = bench.files("data");
            files.retain(|(path, _)| !path.ends_with("LOCK"));
            files
        };
        let before = files(&bench);
        let ran = bench.run(arguments).expect(code);
        assert!(files(&bench) == before && ran.stdout.is_empty(), "{ran:?}");
        assert!(ran.error()["exit_code"] == code, "{ran:?}");
    };
    refused(12, &["journal", "compact", "data", "--key-file", "wrong", "--json"]);
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
    let copy = ["journal", "compact", "copy", "--key-file", "key", "--json"];
    assert_eq!(bench.run(&copy).expect(10).error()["code"], "is_backup");
    bench.flip("data/segments/000000000001.seg", FIRST_GROUP_BODY);
    refused(13, &COMPACT);
}

/// Killed at many moments: what was there is there, and the same command completes it.
#[test]
fn a_killed_one_costs_nothing() {
    let bench = Bench::new();
    let ids = several(&bench, 6);
    let before = replayed(&bench, &ids);
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
    let segments = bench.path("data/segments");
    let names = || {
        let entries = segments.read_dir().unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let mut cut = 0;
    for round in 0..12 {
        let mut child = bench.command(&COMPACT).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Not a time but a place: when the listing has changed so many times.
        let (mut seen, mut changes) = (names(), 0);
        while child.try_wait().unwrap().is_none() && changes <= round / 2 {
            let now = names();
            changes += usize::from(now != seen);
            seen = now;
        }
        child.kill().unwrap_or_default();
        cut += usize::from(child.wait().unwrap().code().is_none());
        assert_eq!(verify(&bench)["verdict"], "sound", "round {round}");
        assert_eq!(replayed(&bench, &ids), before, "round {round}");
        bench.run(&COMPACT).expect(0);
        assert_eq!(replayed(&bench, &ids), before, "round {round}");
        assert!(!names().iter().any(|name| name.to_string_lossy().ends_with("tmp")), "{:?}", names());
        // Begun anew.
        rustix::fs::rename(bench.path("data"), bench.path(&format!("old{round}"))).unwrap();
        bench.run(&["journal", "restore", "copy", "data", "--key-file", "key"]).expect(0);
    }
    assert!(cut > 0, "every one of them ended before it was killed");
}

/// JD-8: what finds no room is 75, costs nothing and says how much it takes; what has not enough for all at once goes in parts.
#[test]
fn without_room_it_says_how_much_it_takes_and_loses_nothing() {
    let bench = Bench::new();
    let ids = several(&bench, 6);
    let before = replayed(&bench, &ids);
    // A limit on the length of files, in 512 bytes, counts as a full disk.
    let limited = |blocks: u32| {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -f {blocks}; exec \"$0\" \"$@\""));
        shell.arg(bench.command(&[]).get_program()).args(COMPACT);
        Ran::from(shell.stdin(Stdio::null()).current_dir(bench.path(".")).output().unwrap())
    };
    let error = limited(1).expect(75).error();
    assert!(error["next"].as_str().unwrap().contains("make room for 2 MiB"), "{error}");
    assert_eq!(verify(&bench)["verdict"], "sound");
    assert_eq!(replayed(&bench, &ids), before);
    // Room for what a folded file takes, and not for all of them in one. The newest is longer than that, and is trimmed.
    let files = bench.files("data/segments");
    let segments = files.iter().filter(|(path, _)| path.extension().is_some_and(|of| of == "seg"));
    let longest = segments.map(|(_, bytes)| bytes.len()).max().unwrap();
    let done = limited((longest as u32 - 1) / 512).expect(0).json();
    assert!(done["rewrites"].as_u64() > Some(1), "{done}");
    assert_eq!(verify(&bench)["verdict"], "sound");
    assert_eq!(replayed(&bench, &ids), before);
}
