//! A data directory whose file system is full: the node goes on reading, says what it refuses, and resumes.
#![expect(clippy::disallowed_methods, reason = "fills a file system from outside")]

use std::fs::remove_file;

use crashbox::http::Client;
use crashbox::offline;
use sealog_tests::workbench::{Workbench, accepted, events, get, mock, submit};
use serde_json::json;

use crate::small::Small;

/// A small file system for the data directory; unmounted when it is dropped, behind the node.
fn below(bench: &mut Workbench, bytes: u64) -> Small {
    let small = Small::make(&bench.dir().join("small"), bytes);
    bench.home.data = small.place.join("data");
    small
}

/// Submits executions with so much output until the node refuses; the ids that it took, and the refusal.
fn until_refused(client: &mut Client, chunk_bytes: u32) -> (Vec<String>, u16, String) {
    let mut taken = Vec::new();
    for number in 0..10_000 {
        let body = mock("fill", &json!({"chunks": 2, "chunk_bytes": chunk_bytes}));
        let reply = submit(client, &body, Some(&format!("fill-{chunk_bytes}-{number}"))).unwrap();
        if reply.status != 202 {
            return (taken, reply.status, reply.text());
        }
        taken.push(sealog_tests::workbench::text(&reply.body, "execution_id"));
        // One after another, so that the disk is what gives out first.
        events(client, taken.last().unwrap());
    }
    panic!("ten thousand executions fit on a full disk");
}

#[test]
fn a_full_disk_refuses_and_resumes() {
    let mut bench = Workbench::new();
    let small = below(&mut bench, 48 << 20);
    let node = bench.start();
    let mut client = Workbench::client(&node);
    let first = accepted(&mut client, &mock("first", &json!({})), Some("first"));
    let known = events(&mut client, &first);
    let running = accepted(&mut client, &mock("running", &json!({"stall_after": 1})), None);

    let ballast = small.fill("ballast");
    let (taken, status, refusal) = until_refused(&mut client, 60_000);
    assert!(matches!(status, 500 | 503) && refusal.contains("queue_full"), "{status} {refusal}");
    println!("{} executions before the refusal {status} {refusal}", taken.len());
    // Everything taken has ended, what ran still runs, and what is durable is served.
    for id in &taken {
        assert!(events(&mut client, id).contains("event: execution."), "{id}");
    }
    assert_eq!(events(&mut client, &first), known);
    assert_eq!(get(&mut client, &format!("/v1/executions/{running}")).1["status"], "running");
    // An end has room where a beginning has none.
    let path = format!("/v1/executions/{running}/cancel");
    let reply = client.ask(&crashbox::http::Request::post(&path, &[], b"")).unwrap();
    assert_eq!(reply.status, 202, "{}", reply.text());
    assert!(events(&mut client, &running).contains("\"code\":\"cancelled\""));

    ballast.release();
    let body = mock("again", &json!({}));
    let again = loop {
        let reply = submit(&mut client, &body, Some("again")).unwrap();
        match reply.status {
            202 => break sealog_tests::workbench::text(&reply.body, "execution_id"),
            500 | 503 => assert!(reply.text().contains("queue_full"), "{}", reply.text()),
            status => panic!("{status} {}", reply.text()),
        }
    };
    assert!(events(&mut client, &again).contains("event: execution.completed"));
    assert_eq!(get(&mut client, "/v1/runtime").0, 200);
    drop(client);
    drop(node);
    offline::verify(&bench.home).unwrap().unwrap();
    assert_eq!(offline::panic(&bench.home.log).unwrap(), None);
    drop(small);
}

#[test]
fn a_start_on_a_full_disk_serves_reads_and_becomes_ready_by_itself() {
    let mut bench = Workbench::new();
    let small = below(&mut bench, 48 << 20);
    let node = bench.start();
    let mut client = Workbench::client(&node);
    let first = accepted(&mut client, &mock("first", &json!({})), Some("first"));
    let known = events(&mut client, &first);
    let running = accepted(&mut client, &mock("running", &json!({"stall_after": 1})), None);
    let ballast = small.fill("ballast");
    let (taken, _, _) = until_refused(&mut client, 60_000);
    // What is left to the large ones' neighbours goes as well.
    until_refused(&mut client, 10);
    drop(client);
    node.kill().unwrap();
    // A start takes the prepared segment away first; the room of that goes, too.
    match remove_file(bench.home.data.join("segments/next")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        Ok(()) | Err(_) => {}
    }
    let rest = small.fill("rest");

    // Without room for the end of what was running: everything durable is served, nothing new is taken.
    let node = bench.start();
    let mut client = Workbench::client(&node);
    let (status, runtime) = get(&mut client, "/v1/runtime");
    assert_eq!((status, &runtime["state"]), (503, &json!("unavailable")), "{}", bench.log());
    assert!(bench.log().contains("the disk is full: 1 interrupted execution cannot be ended yet"));
    let (status, readiness) = get(&mut client, "/readyz");
    assert_eq!(status, 503);
    assert!(readiness["reasons"].as_array().unwrap().contains(&json!("unended")), "{readiness}");
    assert_eq!(events(&mut client, &first), known);
    for id in &taken {
        assert!(events(&mut client, id).contains("event: execution."), "{id}");
    }
    assert_eq!(get(&mut client, &format!("/v1/executions/{running}")).1["status"], "running");
    let again = submit(&mut client, &mock("again", &json!({})), Some("again")).unwrap();
    assert_eq!(again.status, 503, "{}", again.text());
    assert!(again.text().contains("queue_full"), "{}", again.text());
    let replayed = submit(&mut client, &mock("first", &json!({})), Some("first")).unwrap();
    assert_eq!(replayed.status, 200, "{}", replayed.text());
    offline::verify(&bench.home).unwrap().unwrap();

    rest.release();
    ballast.release();
    // Ends with the terminal event, which only the resumed recovery writes.
    assert!(events(&mut client, &running).contains("\"outcome\":\"unknown\""));
    while get(&mut client, "/v1/runtime").0 != 200 {}
    let again = accepted(&mut client, &mock("again", &json!({})), Some("again"));
    assert!(events(&mut client, &again).contains("event: execution.completed"));
    drop(client);
    drop(node);
    offline::verify(&bench.home).unwrap().unwrap();
    assert_eq!(offline::panic(&bench.home.log).unwrap(), None);
    drop(small);
}
