//! Repair from outside: the report, the exit codes, and that the result serves and ends what it cannot complete.

use crate::bench::{Bench, FIRST_GROUP_BODY, Node};

const SEGMENT: &str = "data/segments/000000000001.seg";

#[test]
fn a_repaired_journal_serves_what_reads_and_names_what_does_not() {
    let bench = Bench::new();
    let id = bench.finished();
    bench.run(&["run", "more", "--data-dir", "data", "--key-file", "key"]).expect(0);
    // A group in the middle of the first execution: what stands before it still has its place.
    let places = ["journal", "inspect", "data", "--execution", &id, "--key-file", "key", "--json"];
    let places = bench.run(&places).expect(0).json();
    let events = places["execution"]["events"].as_array().unwrap().clone();
    let offset = events[3]["offset"].as_u64().unwrap();
    bench.flip(SEGMENT, offset as usize + 100);
    let before = bench.files("data");
    let repair = ["journal", "repair", "data", "new", "--key-file", "key", "--json"];
    let done = bench.run(&repair).expect(0).json();
    assert!(bench.files("data") == before);
    assert_eq!((&done["fenced"], &done["executions"]), (&true.into(), &2.into()));
    assert_eq!(done["interrupted"][0], id.as_str());
    assert_eq!(
        (&done["losses"][0]["kind"], &done["losses"][0]["execution_id"]),
        (&"events".into(), &id.as_str().into())
    );
    assert!(done["gaps"].as_array().unwrap().len() == 1 && done["problems"][0]["row"].is_u64());
    assert_eq!(bench.run(&repair).expect(10).error()["code"], "not_empty");
    let verify = bench.run(&["journal", "verify", "new", "--key-file", "key", "--json"]).expect(0).json();
    assert_eq!(verify["verdict"], "sound");
    let node = Node::start(bench.command(&[
        "serve",
        "--data-dir",
        "new",
        "--key-file",
        "key",
        "--listen",
        "127.0.0.1:0",
    ]));
    let answer = node.http(&format!("GET /v1/executions/{id}"), "");
    assert!(answer.contains(r#""outcome":"unknown""#), "{answer}");
    assert!(node.http("GET /v1/runtime", "").starts_with("HTTP/1.1 503"));
    // Why, in words that are true of a repair.
    let refused = node.http("GET /v1/executions/11111111-2222-4333-8444-555555555555", "");
    assert!(
        refused.contains("its journal was made from another one") && !refused.contains("restored"),
        "{refused}"
    );
    assert_eq!(node.stop().0, Some(0));
    bench.run(&["journal", "verify", "new", "--key-file", "key"]).expect(0);
}

#[test]
fn a_sound_journal_is_not_called_damaged_by_its_repair() {
    let bench = Bench::new();
    bench.finished();
    let ran = bench.run(&["journal", "repair", "data", "new", "--key-file", "key"]).expect(0);
    assert!(ran.stderr.contains("every record of it reads") && !ran.stderr.contains("the damaged journal"));
    assert!(ran.stderr.contains("only one of the two may go on"), "{}", ran.stderr);
    // So is one of which only a copy of a header is lost, which stops a start.
    bench.flip("data/segments/000000000001.seg", 100);
    let ran = bench.run(&["journal", "repair", "data", "third", "--key-file", "key"]).expect(0);
    assert!(ran.stdout.contains("damaged: ") && ran.stderr.contains("every record of it reads"), "{ran:?}");
    bench.flip("data/segments/000000000001.seg", 100);
    // One that lost a file beside the segments is damaged, though every record reads: it may have lost others.
    for (file, dest) in [("data/store", "again"), ("data/head", "last")] {
        let bytes = bench.read(file);
        bench.remove(file);
        let ran = bench.run(&["journal", "repair", "data", dest, "--key-file", "key"]).expect(0);
        assert!(ran.stdout.contains("damaged: ") && !ran.stdout.contains("lost: "), "{file}: {ran:?}");
        assert!(ran.stderr.contains("what it does not know may have been lost"), "{file}: {ran:?}");
        assert!(ran.stderr.contains("the damaged journal was not touched"), "{file}: {ran:?}");
        bench.run(&["journal", "unfence", dest, "--key-file", "key", "--json"]).expect(0);
        bench.write(file, &bytes, 0o600);
    }
}

/// The journal that a copy is of may go on, by whichever verb another one is made of the copy.
#[test]
fn whatever_is_made_of_a_backup_is_fenced() {
    let bench = Bench::new();
    bench.finished();
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
    let flags = ["--key-file", "key", "--json"];
    let restored = bench.run(&[&["journal", "restore", "copy", "restored"], &flags[..]].concat()).expect(0);
    let repaired = bench.run(&[&["journal", "repair", "copy", "repaired"], &flags[..]].concat()).expect(0);
    assert!(repaired.stderr.contains("every record of the backup reads"), "{}", repaired.stderr);
    assert!(repaired.stderr.contains("the backup is of may have done"), "{}", repaired.stderr);
    let export = ["journal", "export", "copy", "--output", "out.jsonl"];
    assert_eq!(bench.run(&[&export[..], &flags[..]].concat()).expect(0).json()["partial"], true);
    let import = ["journal", "import", "out.jsonl", "imported", "--key-file", "new.key", "--json"];
    let imported = bench.run(&import).expect(0);
    for (ran, dir, key) in
        [(restored, "restored", "key"), (repaired, "repaired", "key"), (imported, "imported", "new.key")]
    {
        assert_eq!(ran.json()["fenced"], true, "{dir}");
        // What is made of a fenced one is fenced, and says so.
        let next = format!("{dir}.next");
        let again = bench.run(&["journal", "repair", dir, &next, "--key-file", key, "--json"]).expect(0);
        assert_eq!(again.json()["fenced"], true, "{dir}");
        assert!(again.stderr.contains("so was the one that it was made from"), "{dir}: {}", again.stderr);
        let unfence = ["journal", "unfence", &next, "--key-file", key, "--json"];
        assert_eq!(bench.run(&unfence).expect(0).json()["was_fenced"], true, "{dir}");
    }
    // Of a stopped journal itself an export tells all, and sets no fence.
    let export = ["journal", "export", "data", "--output", "all.jsonl"];
    assert_eq!(bench.run(&[&export[..], &flags[..]].concat()).expect(0).json()["partial"], false);
}

#[test]
fn repair_takes_a_journal_without_store_and_refuses_what_no_key_opens() {
    let bench = Bench::new();
    let id = bench.finished();
    let node = bench.node(&[]);
    let repair =
        |dest: &str, key: &str| bench.run(&["journal", "repair", "data", dest, "--key-file", key, "--json"]);
    assert_eq!(repair("new", "key").expect(11).error()["code"], "locked");
    assert_eq!(node.stop().0, Some(0));
    bench.write("wrong", &[7; 32], 0o600);
    repair("new", "wrong").expect(12);
    bench.remove("data/store");
    assert_eq!(repair("new", "key").expect(0).json()["executions"], 1);
    bench.run(&["journal", "replay", "new", &id, "--key-file", "key"]).expect(0);
    bench.flip(SEGMENT, FIRST_GROUP_BODY);
    let done = repair("newer", "key").expect(0).json();
    assert_eq!((&done["executions"], &done["losses"][0]["kind"]), (&0.into(), &"execution".into()));
    bench.run(&["journal", "repair", "nowhere", "x", "--key-file", "key"]).expect(10);
    bench.remove("data/keyring.0");
    bench.remove("data/keyring.1");
    repair("other", "key").expect(13);
    assert!(!bench.path("other").exists() && !bench.path(".other.building").exists());
}
