//! No text of prompts, results or keys stands in a file below the data directory, in a log, or in an error body: at
//! every moment of a node's life, a kill and a torn tail among them.
#![expect(clippy::disallowed_methods, reason = "damages and reads a node's files from outside")]
#![expect(clippy::unwrap_used, reason = "a test's own functions are tests as well")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use crashbox::exchange::Until;
use crashbox::frame::{Frames, Next};
use crashbox::http::{Client, Request};
use crashbox::node::Node;
use crashbox::offline;
use crashbox::upstream::{Ending, Script};
use rustix::process::Signal;
use sealog_tests::canary::{assert_clean, find, forms, secret};
use sealog_tests::workbench::{
    PATIENCE, UPSTREAM_KEY_ENV, Workbench, accepted, counted, events, mock, submit,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const KEY: [u8; 32] = *b"\x91\xe4Kq\x07~\xd2\x1f\xaa\x30\xc8Z\x5b\xf0\x11\x96\x8d\xec\x02\xb7u>\xc9\x4a\x6f\xd1\x88\x23\xfe\x5e\x70\x39";

/// A workbench whose node holds secrets everywhere, and what must not be found.
fn secrets() -> (Workbench, Vec<Vec<u8>>) {
    let mut bench = Workbench::new();
    bench.use_key(&KEY);
    bench.home.environment.push(("SEALOG_LOG".to_owned(), "trace".to_owned()));
    bench.home.environment.push((UPSTREAM_KEY_ENV.to_owned(), secret("provider")));
    let mut needles = vec![sealog_tests::canary::MARKER.as_bytes().to_vec()];
    needles.extend(forms(&KEY));
    // A digest of a key tells whoever guesses the key that the guess was right.
    needles.extend(forms(&Sha256::digest(secret("key-0").as_bytes())));
    (bench, needles)
}

/// Work that ends, work that fails, and work that is still streaming when this returns.
fn work(bench: &Workbench, node: &Node) -> Vec<String> {
    let mut client = Workbench::client(node);
    let tool_calls =
        json!([{"call_id": secret("call"), "name": secret("name"), "arguments": secret("arguments")}]);
    let mut request = mock(
        &secret("prompt"),
        &json!({"tool_calls": tool_calls, "usage":
        [{"unit": secret("unit"), "quantity": 1}]}),
    );
    request["metadata"] = json!({secret("member"): secret("value")});
    let mut ids = vec![accepted(&mut client, &request, Some(&secret("key-0")))];
    let script = |name: &str, ending| Script { name: secret(name), ending, deltas: 3, delay_ms: 0 };
    ids.push(accepted(
        &mut client,
        &counted(&script("whole", Ending::Whole).prompt()),
        Some(&secret("key-1")),
    ));
    ids.push(accepted(&mut client, &counted(&script("cut", Ending::Cut).prompt()), None));
    for id in &ids {
        let events = events(&mut client, id);
        assert!(events.contains("event: execution.completed") || id == &ids[2], "{events}");
    }
    assert_eq!(bench.upstream.authorization(), Some(format!("Bearer {}", secret("provider"))));
    for number in 0..4 {
        let steps = json!({"chunks": 100_000, "chunk_bytes": 500, "delay_ms": 2});
        let body = mock(&secret("prompt").repeat(200), &steps);
        ids.push(accepted(&mut client, &body, Some(&secret(&format!("running-{number}")))));
    }
    let silent = Script { name: secret("silent"), ending: Ending::Silent, deltas: 40, delay_ms: 1 };
    ids.push(accepted(&mut client, &counted(&silent.prompt()), None));
    // Streaming has begun: the files below are being written.
    for id in &ids[3..] {
        assert!(stream(&mut client, id, 20) >= 20, "{id}");
    }
    ids
}

/// Reads so many frames of a running execution and leaves.
fn stream(client: &mut Client, id: &str, frames_max: u64) -> u64 {
    let path = format!("/v1/executions/{id}/events");
    let opened = client.open(&Request::get(&path)).unwrap();
    assert_eq!(opened.status, 200);
    let mut frames = Frames::new(opened.body);
    let mut count = 0;
    while Until::Frames(count) != Until::Frames(frames_max) {
        match frames.read_next().unwrap().unwrap() {
            Next::Frame(_) => count += 1,
            Next::End => break,
        }
    }
    count
}

/// Everything around the node but what we wrote down ourselves: the configuration and the key.
fn assert_all_clean(bench: &Workbench, needles: &[Vec<u8>]) {
    assert!(assert_clean(&bench.home.data, needles) > 4096, "an empty directory proves nothing");
    let log = bench.log();
    assert!(log.contains("epoch"), "an empty log proves nothing: {log}");
    assert_eq!(find(log.as_bytes(), needles).map(|(which, at)| (which, &log[at..])), None);
    for entry in fs::read_dir(bench.dir()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            ["data", "key", "node.log", "sealog.toml"].contains(&name.as_str()),
            "{name} was left behind"
        );
    }
}

#[test]
fn files_and_logs_hold_no_plaintext_at_any_moment() {
    let (bench, needles) = secrets();
    let node = bench.start();
    let ids = work(&bench, &node);
    assert_all_clean(&bench, &needles);
    node.kill().unwrap();
    assert_all_clean(&bench, &needles);

    // The secrets are there for whoever has the key: in two results, and in deltas that were interrupted.
    for (id, expected) in [(&ids[0], "arguments"), (&ids[1], "whole"), (&ids[7], "silent")] {
        let output = bench.home.journal("replay").arg(id).args(["--format", "sse"]).output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains(&secret(expected)), "{expected}");
    }

    let node = bench.start();
    assert_all_clean(&bench, &needles);
    let mut client = Workbench::client(&node);
    for id in &ids {
        assert!(events(&mut client, id).contains("event: execution."), "{id}");
    }
    drop(client);
    node.signal(Signal::TERM).unwrap();
    assert!(node.ended(PATIENCE).unwrap().success());
    assert_all_clean(&bench, &needles);
}

#[test]
fn a_torn_tail_in_quarantine_holds_no_plaintext() {
    let (bench, needles) = secrets();
    // Evidence may have covered the newest group by the time of the kill; then it is damage, and the next life tries.
    for _ in 0..20 {
        let node = bench.start();
        work(&bench, &node);
        node.kill().unwrap();
        let (path, whole) = newest_segment(&bench.home.data);
        let written = whole.iter().rposition(|byte| *byte != 0).unwrap();
        let mut torn = whole.clone();
        torn[written - 40..=written].fill(0);
        fs::write(&path, &torn).unwrap();
        match offline::verify(&bench.home).unwrap() {
            Ok(verified) if verified.torn_tail => {
                drop(bench.start());
                let quarantine = bench.home.data.join("quarantine");
                assert!(assert_clean(&quarantine, &needles) > 1000, "the tail was kept");
                assert_all_clean(&bench, &needles);
                return;
            }
            Ok(_) | Err(_) => fs::write(&path, &whole).unwrap(),
        }
    }
    panic!("twenty newest groups in a row were covered by evidence");
}

fn newest_segment(data: &Path) -> (PathBuf, Vec<u8>) {
    let names = fs::read_dir(data.join("segments")).unwrap().map(|entry| entry.unwrap().path());
    // Numbers have one width, so the order of names is the order of segments.
    let newest = names.filter(|path| path.extension().is_some_and(|end| end == "seg")).max().unwrap();
    let bytes = fs::read(&newest).unwrap();
    (newest, bytes)
}

#[test]
fn error_bodies_repeat_nothing() {
    let (bench, needles) = secrets();
    let node = bench.start();
    let mut client = Workbench::client(&node);
    let body = mock(&secret("prompt"), &json!({}));
    let id = accepted(&mut client, &body, Some(&secret("key-0")));
    let long = secret(&"k".repeat(300));
    let mut answers = vec![
        (400, submit(&mut client, &mock(&secret("other"), &json!({})), Some(&secret("key-0"))).unwrap()),
        (400, submit(&mut client, &body, Some(&long)).unwrap()),
        (400, submit(&mut client, &json!({secret("member"): secret("value")}), None).unwrap()),
        (
            400,
            submit(
                &mut client,
                &json!({"ability": secret("ability"), "input": [{"type": secret("t")}]}),
                None,
            )
            .unwrap(),
        ),
    ];
    let path = |path: &str| path.replace("{}", &secret("path"));
    for (status, target) in [
        (404, path("/v1/{}")),
        (404, path("/v1/executions/{}")),
        (404, path("/v1/executions/{}/events?after=1")),
        (400, format!("/v1/executions/{id}/events?after={}", secret("cursor"))),
        (400, path("/v1/executions/%FF{}")),
    ] {
        answers.push((status, client.ask(&Request::get(&target)).unwrap()));
    }
    let raw = |headers: &[(&str, &str)], body: &str, client: &mut Client| {
        client.ask(&Request::post("/v1/executions", headers, body.as_bytes())).unwrap()
    };
    answers.push((400, raw(&[("content-type", &secret("type"))], &secret("text"), &mut client)));
    answers.push((
        400,
        raw(&[("content-type", "application/json")], &format!("{{\"{}", secret("cut")), &mut client),
    ));
    let cursor = [("last-event-id", secret("cursor"))];
    let headers: Vec<(&str, &str)> = cursor.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let events = format!("/v1/executions/{id}/events");
    answers.push((400, client.ask(&Request { headers: &headers, ..Request::get(&events) }).unwrap()));
    for (status, reply) in &answers {
        assert_eq!(reply.status, *status, "{}", reply.text());
        assert_eq!(find(&reply.body, &needles), None, "{}", reply.text());
        assert_eq!(find(format!("{:?}", reply.headers).as_bytes(), &needles), None, "{:?}", reply.headers);
        assert!(serde_json::from_slice::<Value>(&reply.body).unwrap()["error"]["code"].is_string());
    }
    drop(node);
    assert_all_clean(&bench, &needles);
}

#[test]
fn an_abort_leaves_no_core_behind() {
    let (bench, needles) = secrets();
    let node = bench.start();
    work(&bench, &node);
    let limits = fs::read_to_string(format!("/proc/{}/limits", node.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
    node.signal(Signal::ABORT).unwrap();
    let status = node.ended(PATIENCE).unwrap();
    assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()));
    assert!(!status.core_dumped());
    assert_all_clean(&bench, &needles);
}
