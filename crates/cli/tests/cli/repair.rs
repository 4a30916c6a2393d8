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
    // With a file beside the segments lost it is not sound, and yet nothing is missing.
    bench.remove("data/store");
    let ran = bench.run(&["journal", "repair", "data", "again", "--key-file", "key"]).expect(0);
    assert!(ran.stderr.contains("every record of it reads"), "{}", ran.stderr);
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
