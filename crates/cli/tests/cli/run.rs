//! `run`: what it prints and how it ends, in process and at a node.

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Bench, Unheard, id_in};

fn run(bench: &Bench, more: &[&str]) -> crate::bench::Ran {
    bench.run(&[&["run", "hi", "--data-dir", "data", "--key-file", "key"], more].concat())
}

#[test]
fn text_is_data_and_the_rest_is_talk() {
    let bench = Bench::new();
    let ran = run(&bench, &[]).expect(0);
    assert_eq!(ran.stdout, "hello from mock\n");
    let id = id_in(&ran.stderr);
    let replay = |format: &str| {
        bench
            .run(&["journal", "replay", "data", &id, "--key-file", "key", "--format", format])
            .expect(0)
            .stdout
    };
    assert_eq!(replay("text"), ran.stdout);
    let jsonl = replay("jsonl");
    assert_eq!(jsonl.lines().count(), 7);
    let snapshot: serde_json::Value = serde_json::from_str(&replay("snapshot")).unwrap();
    assert_eq!((&snapshot["status"], &snapshot["last_sequence"]), (&"succeeded".into(), &7.into()));
}

#[test]
fn json_prints_the_events_as_they_are_replayed() {
    let bench = Bench::new();
    let ran = run(&bench, &["--json"]).expect(0);
    let id = id_in(&ran.stdout);
    let replay = bench.run(&["journal", "replay", "data", &id, "--key-file", "key", "--json"]).expect(0);
    assert_eq!(ran.stdout, replay.stdout);
    assert!(ran.stderr.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn the_text_may_come_from_standard_input() {
    let bench = Bench::new();
    let arguments = ["run", "-", "--data-dir", "data", "--key-file", "key"];
    assert_eq!(bench.run_with_input(&arguments, b"hi").expect(0).stdout, "hello from mock\n");
}

#[test]
fn a_failed_execution_is_20() {
    let bench = Bench::new();
    let ran = run(&bench, &["--ability", "nobody-has-it"]).expect(20);
    assert_eq!((ran.word(), ran.stdout.as_str()), ("execution_failed", ""));
    let mock = r#"{"mock":{"fail_after":1,"fail_code":"rate_limited"}}"#;
    let partial = run(&bench, &["--extensions", mock, "--json"]).expect(20);
    assert_eq!(partial.error()["code"], "execution_failed");
    assert!(partial.error()["message"].as_str().unwrap().starts_with("rate_limited: "));
}

#[test]
fn a_provider_is_asked_first_and_the_next_one_if_that_is_allowed() {
    let bench = Bench::new();
    let config = "[[providers]]\ntype = \"openai-chat\"\nid = \"dead\"\nmodel = \"m\"\n\
                  base_url = \"http://127.0.0.1:1/v1\"\n\n[[providers]]\ntype = \"mock\"\nid = \"mock\"\n";
    bench.write("sealog.toml", config.as_bytes(), 0o600);
    let asked = |more: &[&str], code| {
        let flags = [&["--config", "sealog.toml", "--json"], more].concat();
        let ran = run(&bench, &flags).expect(code);
        let events = ran.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let routed = events.filter(|event| event["type"] == "route.selected");
        routed.map(|event| event["target"]["provider"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(asked(&[], 20), ["dead"]);
    assert_eq!(asked(&["--provider", "mock"], 0), ["mock"]);
    assert_eq!(asked(&["--allow-fallback"], 0), ["dead", "mock"]);
    assert_eq!(asked(&["--provider", "mock", "--provider", "dead", "--allow-fallback"], 0), ["mock"]);
    let another = |more: &[&str]| {
        let ran = run(&bench, &[&["--config", "sealog.toml"], more].concat());
        ran.stderr.contains("no provider that --provider names can serve this; dead is asked")
    };
    assert!(another(&["--provider", "nosuch"]), "an order ranks, it excludes nobody");
    assert!(another(&["--provider", "nosuch", "--allow-fallback"]));
    assert!(!another(&["--provider", "dead", "--allow-fallback"]), "what comes after it was asked for");
    assert!(!another(&[]));
}

#[test]
fn the_same_key_runs_once_and_belongs_to_one_request() {
    let bench = Bench::new();
    let first = run(&bench, &["--idempotency-key", "a"]).expect(0);
    let again = run(&bench, &["--idempotency-key", "a"]).expect(0);
    assert_eq!(id_in(&first.stderr), id_in(&again.stderr));
    assert!(again.stderr.contains("nothing was started"), "{}", again.stderr);
    let other = run(&bench, &["--idempotency-key", "a", "--ability", "x"]).expect(2);
    assert_eq!(other.word(), "invalid_request");
    assert_eq!(run(&bench, &["--idempotency-key", ""]).expect(2).word(), "invalid_request");
    assert_eq!(run(&bench, &["--extensions", "[]"]).expect(2).word(), "bad_extensions");
}

#[test]
fn an_interrupted_execution_is_21() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let stall = r#"{"mock":{"stall_after":1}}"#;
    let submit = ["run", "hi", "--idempotency-key", "a", "--extensions", stall];
    let url = node.url().to_owned();
    let mut child = bench.saying_hello(&[&submit[..], &["--url", &url]].concat());
    node.kill();
    child.kill().unwrap();
    child.wait().unwrap();
    let node = bench.node(&[]);
    let url = node.url().to_owned();
    let again = bench.run(&[&submit[..], &["--url", &url]].concat()).expect(21);
    assert_eq!((again.word(), again.stdout.as_str()), ("outcome_unknown", "hello\n"));
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(0));
    assert!(stderr.contains("1 interrupted execution ended as failed: 1 with unknown outcome"), "{stderr}");
}

#[test]
fn an_interrupt_cancels_and_is_22() {
    let bench = Bench::new();
    let stall = r#"{"mock":{"stall_after":1}}"#;
    let child =
        bench.saying_hello(&["run", "hi", "--data-dir", "data", "--key-file", "key", "--extensions", stall]);
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let ran = crate::bench::Ran::from(child.wait_with_output().unwrap()).expect(22);
    assert_eq!(ran.word(), "execution_cancelled");
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
}

#[test]
fn a_flag_about_a_journal_is_refused_where_none_is_opened() {
    let bench = Bench::new();
    let id = "0123456789abcdef0123456789abcdef";
    for flags in [
        &["--no-create"][..],
        &["--store-id", id],
        &["--allow-network-fs"],
        &["--key-file", "key"],
        &["--key-fd", "3"],
        &["--passphrase-file", "words"],
        &["--prompt"],
    ] {
        let ran = bench.run(&[&["run", "hi", "--url", "http://127.0.0.1:1"], flags].concat()).expect(2);
        assert_eq!(ran.word(), "usage");
        assert!(ran.stderr.contains(&format!("{} counts only with --data-dir", flags[0])), "{}", ran.stderr);
    }
}

#[test]
fn without_a_node_it_is_75() {
    let bench = Bench::new();
    let unheard = Unheard::new();
    let ran = bench.run(&["run", "hi", "--url", &unheard.url()]).expect(75);
    assert_eq!(ran.word(), "no_node");
    for url in ["ftp://127.0.0.1:1", "nonsense"] {
        bench.run(&["run", "hi", "--url", url]).expect(2);
    }
}
