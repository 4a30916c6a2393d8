//! `ps`, `show`, `tail` and `cancel`: at a node, and over a journal that no node runs on.

use serde_json::Value;

use crate::bench::{Bench, Node, Ran, id_in};

const STALL: &str = r#"{"mock":{"stall_after":1}}"#;
const JOURNAL: [&str; 4] = ["--data-dir", "data", "--key-file", "key"];

fn over_journal(bench: &Bench, words: &[&str]) -> Ran {
    bench.run(&[words, &JOURNAL].concat())
}

/// An execution of this node that says one word and then waits.
pub fn stalled(bench: &Bench, place: &[&str]) -> String {
    let mut child = bench.saying_hello(&[&["run", "hi", "--extensions", STALL], place].concat());
    child.kill().unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    id_in(&ran.stderr)
}

#[test]
fn a_dead_journal_is_listed_shown_and_read() {
    let bench = Bench::new();
    let done = bench.finished();
    let failing = ["run", "hi", "--ability", "nobody-has-it"];
    let failed = id_in(&over_journal(&bench, &failing).expect(20).stderr);

    let listed = over_journal(&bench, &["ps", "--json"]).expect(0).json();
    let entries = listed["data"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (&entries[0]["execution_id"], &entries[0]["ability"]),
        (&failed.as_str().into(), &"nobody-has-it".into())
    );
    assert_eq!(
        (&entries[1]["execution_id"], &entries[1]["status"]),
        (&done.as_str().into(), &"succeeded".into())
    );
    assert!(entries.iter().all(|entry| entry.get("result").is_none()));
    for (filter, expected) in [
        (&["--status", "succeeded"][..], &done),
        (&["--ability", "nobody-has-it"], &failed),
        (&["--status", "failed", "--ability", "nobody-has-it"], &failed),
    ] {
        let found = over_journal(&bench, &[&["ps", "--json"], filter].concat()).expect(0).json();
        let ids: Vec<&Value> =
            found["data"].as_array().unwrap().iter().map(|entry| &entry["execution_id"]).collect();
        assert_eq!(ids, [&Value::from(expected.as_str())], "{filter:?}");
    }
    let first = over_journal(&bench, &["ps", "--json", "--limit", "1"]).expect(0).json();
    let next = first["next"].as_str().unwrap().to_owned();
    let second = over_journal(&bench, &["ps", "--json", "--after", &next]).expect(0).json();
    assert_eq!(second["data"][0]["execution_id"], done.as_str());
    assert_eq!(over_journal(&bench, &["ps", "--after", "nonsense"]).expect(2).word(), "bad_place");

    let shown = over_journal(&bench, &["show", &done]).expect(0).stdout;
    for words in
        ["status     succeeded", "target     provider-mock/model-alpha", "result     hello from mock"]
    {
        assert!(shown.contains(words), "{shown}");
    }
    let replay = ["journal", "replay", "data", &done, "--key-file", "key", "--format"];
    let snapshot = bench.run(&[&replay[..], &["snapshot"]].concat()).expect(0).stdout;
    assert_eq!(
        over_journal(&bench, &["show", &done, "--json"]).expect(0).stdout.trim_end(),
        snapshot.trim_end()
    );

    for follow in [&[][..], &["-f"]] {
        let text = over_journal(&bench, &[&["tail", &done], follow].concat()).expect(0).stdout;
        assert_eq!(text, "hello from mock\n");
        let events = over_journal(&bench, &[&["tail", &done, "--json"], follow].concat()).expect(0).stdout;
        assert_eq!(events, bench.run(&[&replay[..], &["jsonl"]].concat()).expect(0).stdout);
    }
    let rest = over_journal(&bench, &["tail", &done, "--after", "6", "--json"]).expect(0).stdout;
    assert_eq!(rest.lines().count(), 1);
    assert_eq!(over_journal(&bench, &["tail", &failed]).expect(20).word(), "execution_failed");

    let unknown = "11111111-2222-4333-8444-555555555555";
    for verb in ["show", "tail"] {
        assert_eq!(over_journal(&bench, &[verb, unknown]).expect(4).word(), "not_found");
        assert_eq!(over_journal(&bench, &[verb, "no-id"]).expect(4).word(), "not_found");
    }
}

#[test]
fn a_backup_is_read_as_well() {
    let bench = Bench::new();
    let done = bench.finished();
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
    let from = ["--data-dir", "copy", "--key-file", "key"];
    assert!(bench.run(&[&["ps"][..], &from].concat()).expect(0).stdout.contains(&done));
    assert_eq!(
        bench.run(&[&["tail", "-f", &done][..], &from].concat()).expect(0).stdout,
        "hello from mock\n"
    );
}

#[test]
fn a_node_is_asked_and_told_to_cancel() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let url = node.url().to_owned();
    let at_node = |words: &[&str]| bench.run(&[words, &["--url", &url]].concat());
    let id = stalled(&bench, &["--url", &url]);
    let listed = at_node(&["ps", "--status", "running"]).expect(0).stdout;
    assert!(listed.contains(&id) && listed.contains("text-generation"), "{listed}");
    // What there is, and then it ends by itself.
    assert_eq!(at_node(&["tail", &id]).expect(0).stdout, "hello\n");
    at_node(&["cancel", &id]).expect(0);
    assert_eq!(at_node(&["tail", "-f", &id]).expect(22).word(), "execution_cancelled");
    assert!(at_node(&["show", &id]).expect(0).stdout.contains("status     cancelled"));
    let ended = at_node(&["cancel", &id]).expect(4);
    assert_eq!(ended.word(), "nothing_to_cancel");
    assert!(ended.stderr.contains("the execution has ended: cancelled"), "{}", ended.stderr);
    assert_eq!(at_node(&["cancel", "no-id"]).expect(4).word(), "not_found");
    assert_eq!(at_node(&["show", "no-id"]).expect(4).word(), "not_found");
    assert_eq!(at_node(&["ps", "--after", "nonsense"]).expect(2).word(), "bad_place");
}

/// Follows an execution of `node` while it is killed and started again; `place` is what a client says of where it is,
/// `listen` what the second start is told.
pub fn goes_on_across_a_restart(bench: &Bench, node: Node, place: &[&str], listen: &[&str]) {
    let id = stalled(bench, place);
    let following = bench.saying_hello(&[&["tail", "-f", &id], place].concat());
    node.kill();
    let node = Node::start(bench.command(&[&["serve"], &JOURNAL[..], listen].concat()));
    let ran = Ran::from(following.wait_with_output().unwrap()).expect(21);
    assert!(ran.stderr.contains("the connection was lost; it goes on behind event 3"), "{}", ran.stderr);
    assert!(ran.stderr.contains("outcome_unknown") || ran.word() == "outcome_unknown", "{}", ran.stderr);
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn following_goes_on_across_a_restart_and_says_where() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let url = node.url().to_owned();
    goes_on_across_a_restart(
        &bench,
        node,
        &["--url", &url],
        &["--listen", url.strip_prefix("http://").unwrap()],
    );
}

#[test]
fn a_journal_that_stopped_in_the_middle_says_so() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let id = stalled(&bench, &["--url", node.url()]);
    node.kill();
    assert_eq!(over_journal(&bench, &["tail", &id]).expect(0).stdout, "hello\n");
    let ran = over_journal(&bench, &["tail", "-f", &id]).expect(21);
    assert_eq!((ran.word(), ran.stdout.as_str()), ("not_ended", "hello\n"));
}

#[test]
fn a_token_is_sent_where_the_node_asks_for_one() {
    let bench = Bench::new();
    let made = bench.run(&["token", "new", "--scope", "read", "--file", "tokens"]).expect(0);
    bench.write("mine", made.stdout.as_bytes(), 0o600);
    let node = bench.node(&["--token-file", "tokens"]);
    let url = node.url().to_owned();
    assert_eq!(bench.run(&["ps", "--url", &url]).expect(2).word(), "not_allowed");
    bench.run(&["ps", "--url", &url, "--token-file", "mine"]).expect(0);
    let id = "11111111-2222-4333-8444-555555555555";
    assert_eq!(
        bench.run(&["cancel", id, "--url", &url, "--token-file", "mine"]).expect(2).word(),
        "not_allowed"
    );
    assert_eq!(bench.run(&["ps", "--url", &url, "--token-file", "none"]).expect(2).word(), "bad_token");
}

#[test]
fn a_flag_about_a_journal_is_refused_at_a_node() {
    let bench = Bench::new();
    for verb in [&["ps"][..], &["show", "x"], &["tail", "x"]] {
        let ran =
            bench.run(&[verb, &["--url", "http://127.0.0.1:1", "--key-file", "key"]].concat()).expect(2);
        assert_eq!(ran.word(), "usage");
        bench.run(&[verb, &["--url", "http://127.0.0.1:1", "--data-dir", "data"]].concat()).expect(2);
    }
}

#[test]
fn the_exit_code_is_the_outcome_also_behind_the_end() {
    let bench = Bench::new();
    let done = bench.finished();
    let failing = ["run", "hi", "--ability", "nobody-has-it"];
    let failed = id_in(&over_journal(&bench, &failing).expect(20).stderr);
    let behind = [
        &["--after", "2"][..],
        &["--after", "99"],
        &["-f", "--after", "99"],
        &["-f", "--after", "2", "--json"],
    ];
    for more in behind {
        let ran = over_journal(&bench, &[&["tail", &failed], more].concat()).expect(20);
        assert_eq!(ran.stdout, "", "{more:?}");
        assert!(ran.stderr.contains("capability_unavailable"), "{}", ran.stderr);
    }
    over_journal(&bench, &["tail", &done, "--after", "99"]).expect(0);
    let node = bench.node(&[]);
    let url = node.url().to_owned();
    for more in behind {
        let ran = bench.run(&[&["tail", &failed, "--url", &url][..], more].concat()).expect(20);
        assert_eq!(ran.stdout, "", "{more:?}");
    }
    let waiting = stalled(&bench, &["--url", &url]);
    assert_eq!(bench.run(&["tail", &waiting, "--after", "99", "--url", &url]).expect(0).stdout, "");
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn following_ends_where_another_journal_has_taken_the_place() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let url = node.url().to_owned();
    let id = stalled(&bench, &["--url", &url]);
    let following = bench.saying_hello(&["tail", "-f", &id, "--url", &url]);
    node.kill();
    let address = url.strip_prefix("http://").unwrap();
    let arguments = ["serve", "--data-dir", "other", "--key-file", "other-key", "--listen", address];
    let node = crate::bench::Node::start(bench.command(&arguments));
    let ran = Ran::from(following.wait_with_output().unwrap()).expect(4);
    assert_eq!(ran.word(), "not_found");
    node.stop();
}
