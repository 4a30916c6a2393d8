//! Damage that a start does not see, because it was told to leave older segments to the scrub (JR-21): the node stops
//! writing, goes on serving what reads, ends with 13, and the next start that looks refuses.

use std::time::{Duration, Instant};

use crate::bench::{Bench, FIRST_GROUP_BODY, id_in};

const REQUEST: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"hi"}]}"#;

/// Asks again until it is so.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < end, "not within the time");
    }
}

#[test]
fn damage_that_the_scrub_finds_stops_the_writer_and_is_13() {
    let bench = Bench::new();
    bench.write("sealog.toml", b"[store]\nboot_check_bytes = 0\n", 0o644);
    let first = bench.finished();
    // A second segment, and a summary of the first: with it a start has no need to read that one.
    let node = bench.node(&[]);
    let second = id_in(&node.http("POST /v1/executions", REQUEST));
    node.http(&format!("GET /v1/executions/{second}/events"), "");
    assert_eq!(node.stop().0, Some(0));
    let node = bench.node(&[]);
    until(|| bench.path("data/segments/000000000001.idx").exists());
    assert_eq!(node.stop().0, Some(0));
    bench.flip("data/segments/000000000001.seg", FIRST_GROUP_BODY);

    let node = bench.node(&["--config", "sealog.toml"]);
    until(|| node.http("GET /readyz", "").starts_with("HTTP/1.1 503 "));
    assert!(node.http("GET /readyz", "").ends_with(r#"{"ready":false,"reasons":["damaged"]}"#));
    let refused = node.http("POST /v1/executions", REQUEST);
    assert!(refused.starts_with("HTTP/1.1 503 ") || refused.starts_with("HTTP/1.1 500 "), "{refused}");
    let read = node.http(&format!("GET /v1/executions/{second}"), "");
    assert!(read.starts_with("HTTP/1.1 200 ") && read.contains("succeeded"), "{read}");
    let (code, told) = node.stop();
    assert_eq!(code, Some(13), "{told}");
    assert!(told.contains("000000000001") || told.contains("segment 1"), "the place is named: {told}");

    let ran = bench.run(&["serve", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"]);
    ran.expect(13);
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(13);
    // What the damage does not touch can still be read.
    let replay = ["journal", "replay", "data", second.as_str(), "--key-file", "key"];
    assert!(bench.run(&replay).stdout.contains("execution.completed"), "of {first} and {second}");
}
