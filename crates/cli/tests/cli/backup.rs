//! Backups from outside: beside a running node, again into the same place, read as they are, and what is refused.

use crate::bench::{Bench, id_in};

const BODY: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}],"extensions":{"mock":{"chunks":20}}}"#;

pub fn backup(bench: &Bench) -> crate::bench::Ran {
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key", "--json"])
}

#[test]
fn a_backup_beside_a_running_node_reads_as_it_is() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let first = id_in(&node.http("POST /v1/executions", BODY));
    node.http(&format!("GET /v1/executions/{first}/events"), "");
    let taken = backup(&bench).expect(0).json();
    assert_eq!((&taken["live"], &taken["removed_files"]), (&true.into(), &0.into()));
    let second = id_in(&node.http("POST /v1/executions", BODY));
    node.http(&format!("GET /v1/executions/{second}/events"), "");
    let replay = |dir: &str, id: &str| {
        bench.run(&["journal", "replay", dir, id, "--format", "sse", "--key-file", "key"])
    };
    assert_eq!(replay("copy", &first).expect(0).stdout, replay("data", &first).expect(0).stdout);
    replay("copy", &second).expect(4);
    let again = backup(&bench).expect(0).json();
    assert!(again["last_sequence"].as_u64() > taken["last_sequence"].as_u64());
    assert_eq!(replay("copy", &second).expect(0).stdout, replay("data", &second).expect(0).stdout);
    assert_eq!(node.stop().0, Some(0));
    backup(&bench).expect(0);
    let before = bench.files("copy");
    let unchanged = backup(&bench).expect(0).json();
    assert_eq!((&unchanged["copied_files"], &unchanged["live"]), (&0.into(), &false.into()));
    let verify = bench.run(&["journal", "verify", "copy", "--key-file", "key", "--json"]).expect(0).json();
    let source = bench.run(&["journal", "verify", "data", "--key-file", "key", "--json"]).expect(0).json();
    assert_eq!((&verify["verdict"], &verify["records"]), (&"sound".into(), &source["records"]));
    bench.run(&["journal", "inspect", "copy", "--frames", "--key-file", "key", "--json"]).expect(0);
    let without_manifest = |files: Vec<(std::path::PathBuf, Vec<u8>)>| -> Vec<_> {
        files.into_iter().filter(|(path, _)| !path.ends_with("manifest")).collect()
    };
    assert!(without_manifest(before) == without_manifest(bench.files("copy")));
}

#[test]
fn a_backup_has_exit_codes_of_its_own() {
    let bench = Bench::new();
    bench.finished();
    assert_eq!(backup(&bench).expect(0).json()["tail"], serde_json::Value::Null);
    let ran = bench.run(&["journal", "backup", "absent", "copy", "--key-file", "key"]).expect(10);
    assert_eq!(ran.word(), "no_journal");
    bench.make_dir("full", 0o700);
    bench.write("full/file", b"", 0o600);
    let ran = bench.run(&["journal", "backup", "data", "full", "--key-file", "key"]).expect(10);
    assert_eq!(ran.word(), "not_empty");
    bench.write("other", &[7; 32], 0o600);
    let ran = bench.run(&["journal", "backup", "data", "copy", "--key-file", "other"]).expect(12);
    assert_eq!(ran.word(), "wrong_key");
    let ran = bench.run(&["journal", "verify", "copy", "--key-file", "other"]).expect(12);
    assert_eq!(ran.word(), "wrong_key");
    // A node never writes into a backup.
    let ran = bench.run(&["serve", "--data-dir", "copy", "--key-file", "key", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.expect(10).word(), "is_backup");
    bench.flip("copy/manifest", 1300);
    for verb in ["verify", "inspect"] {
        let ran = bench.run(&["journal", verb, "copy", "--key-file", "key", "--json"]).expect(13);
        assert_eq!(ran.error()["code"], "damaged");
    }
    assert_eq!(backup(&bench).expect(13).error()["code"], "damaged");
}

/// What cron runs must not fill the disk below a volume that is not mounted.
#[test]
fn only_an_earlier_backup_is_copied_into_where_that_is_asked() {
    let bench = Bench::new();
    bench.finished();
    let only_again = ["journal", "backup", "data", "copy", "--no-create", "--key-file", "key"];
    assert_eq!(bench.run(&only_again).expect(10).word(), "no_backup");
    assert!(!bench.path("copy").exists());
    bench.make_dir("copy", 0o700);
    assert_eq!(bench.run(&only_again).expect(10).word(), "no_backup");
    assert!(bench.files("copy").is_empty());
    backup(&bench).expect(0);
    bench.run(&["run", "more", "--data-dir", "data", "--key-file", "key"]).expect(0);
    bench.run(&only_again).expect(0);
    bench.flip("copy/manifest", 1300);
    assert_eq!(bench.run(&only_again).expect(13).word(), "damaged");
}

#[test]
fn a_backup_of_another_history_is_refused_and_changes_nothing() {
    let bench = Bench::new();
    bench.finished();
    for (path, bytes) in bench.files("data") {
        let text = path.to_str().unwrap().replace("/data/", "/older/");
        let name = text.strip_prefix(&bench.text("")).unwrap().to_owned();
        for folder in ["older", "older/segments", "older/quarantine"] {
            if !bench.path(folder).exists() {
                bench.make_dir(folder, 0o700);
            }
        }
        bench.write(&name, &bytes, 0o600);
    }
    let more = ["run", "more", "--data-dir", "data", "--key-file", "key"];
    bench.run(&more).expect(0);
    backup(&bench).expect(0);
    let before = bench.files("copy");
    let ran = bench.run(&["journal", "backup", "older", "copy", "--key-file", "key", "--json"]).expect(13);
    assert_eq!(ran.error()["code"], "diverged");
    assert!(bench.files("copy") == before);
}

/// JB-4: without its manifest a first backup is nothing yet, and it is completed by the same command.
#[test]
fn what_an_interrupted_first_backup_left_is_no_journal_and_no_place_for_one() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    id_in(&node.http("POST /v1/executions", BODY));
    for stopped in [false, true] {
        backup(&bench).expect(0);
        bench.remove("copy/manifest");
        let before = bench.files("copy");
        for words in [
            &["journal", "verify", "copy"][..],
            &["journal", "restore", "copy", "new"],
            &["journal", "repair", "copy", "new"],
            &["journal", "init", "copy"],
            &["serve", "--data-dir", "copy", "--listen", "127.0.0.1:0"],
            &["serve", "--read-only", "--data-dir", "copy", "--listen", "127.0.0.1:0"],
        ] {
            let ran = bench.run(&[words, &["--key-file", "key"]].concat()).expect(10);
            assert_eq!(ran.word(), "no_journal", "{words:?}");
            // What helps a backup, which a journal at its place would not.
            assert!(!ran.stderr.contains("journal init"), "{words:?}: {}", ran.stderr);
            let again = "take the backup again, which keeps what is whole of it: sealog journal backup JOURNAL copy --key-file key;";
            assert!(ran.stderr.contains(again), "{words:?}: {}", ran.stderr);
        }
        assert!(bench.files("copy") == before && !bench.path("new").exists());
        backup(&bench).expect(0);
        bench.run(&["journal", "verify", "copy", "--key-file", "key"]).expect(0);
        bench.remove_dir("copy");
        if !stopped {
            node.signal(rustix::process::Signal::TERM);
        }
    }
    assert_eq!(node.stop().0, Some(0));
}

/// No verb reads a backup whose manifest is damaged, so that none of those which read is what helps.
#[test]
fn a_damaged_manifest_leads_to_another_backup() {
    let bench = Bench::new();
    bench.finished();
    backup(&bench).expect(0);
    bench.flip("copy/manifest", 200);
    let before = bench.files("copy");
    for words in [
        &["journal", "verify", "copy"][..],
        &["journal", "inspect", "copy"],
        &["journal", "restore", "copy", "new"],
        &["journal", "repair", "copy", "new"],
        &["journal", "export", "copy"],
        &["journal", "backup", "copy", "other"],
        &["ps", "--data-dir", "copy"],
        &["serve", "--read-only", "--data-dir", "copy", "--listen", "127.0.0.1:0"],
    ] {
        let ran = bench.run(&[words, &["--key-file", "key"]].concat()).expect(13);
        let said = &ran.stderr;
        assert!(
            ran.word() == "damaged" && said.contains("take a new one in another directory"),
            "{words:?}: {said}"
        );
        assert!(!["verify copy", "repair copy"].iter().any(|verb| said.contains(verb)), "{words:?}: {said}");
    }
    // Where it stands in the way of the next backup it is not the journal that is damaged.
    let ran = bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(13);
    assert!(ran.stderr.contains("sealog journal backup data NEWDIR --key-file key"), "{}", ran.stderr);
    assert!(bench.files("copy") == before);
    bench.run(&["journal", "backup", "data", "NEWDIR", "--key-file", "key"]).expect(0);
}
