//! `serve --read-only`: the whole read API from a backup and from a stopped node's directory, and nothing else.

use crate::backup::backup;
use crate::bench::{Bench, Node, id_in};

const PLAIN: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}]}"#;
const STALLING: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}],"extensions":{"mock":{"stall_after":2}}}"#;

fn arguments(dir: &str) -> [&str; 8] {
    ["serve", "--read-only", "--data-dir", dir, "--key-file", "key", "--listen", "127.0.0.1:0"]
}

fn status(answer: &str) -> u16 {
    answer.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap()
}

/// Without what differs between two answers of the same content.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn mode(bench: &Bench, dir: &str, mode: u32) {
    for folder in ["", "/segments", "/quarantine"] {
        let path = bench.path(&format!("{dir}{folder}"));
        if path.exists() {
            rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(mode)).unwrap();
        }
    }
}

#[test]
fn a_backup_and_a_stopped_directory_are_served_as_they_are() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let id = id_in(&node.http("POST /v1/executions", PLAIN));
    node.http(&format!("GET /v1/executions/{id}/events"), "");
    let paths =
        ["", "/events", "/events?after=3", "/result"].map(|end| format!("GET /v1/executions/{id}{end}"));
    let live: Vec<String> = paths.iter().map(|path| node.http(path, "")).collect();
    let open = id_in(&node.http("POST /v1/executions", STALLING));
    while !node.http(&format!("GET /v1/executions/{open}"), "").contains(r#""last_sequence":4"#) {
        std::thread::yield_now();
    }
    backup(&bench).expect(0);
    bench.run(&arguments("data")).expect(11);
    // As after a power cut: nothing is closed.
    node.kill();
    for dir in ["copy", "data"] {
        let (before, stamps) = (bench.files(dir), stamps(&bench, dir));
        mode(&bench, dir, 0o500);
        let node = Node::start(bench.command(&arguments(dir)));
        for (path, live) in paths.iter().zip(&live) {
            let found = node.http(path, "");
            assert_eq!((status(&found), body(&found)), (200, body(live)), "{dir} {path}");
        }
        assert!(
            node.http(&format!("GET /v1/executions/{open}"), "").contains(r#""status":"running""#),
            "{dir}"
        );
        // What was running is shown as far as it came, and its stream breaks there: it has no end here.
        let stream = node.http(&format!("GET /v1/executions/{open}/events"), "");
        assert!(stream.contains("id: 4") && !stream.ends_with("0\r\n\r\n"), "{dir}: {stream}");
        assert_eq!(status(&node.http("GET /v1/providers", "")), 200);
        assert_eq!(status(&node.http("GET /v1/executions/11111111-2222-4333-8444-555555555555", "")), 404);
        assert_eq!(status(&node.http("GET /v1/runtime", "")), 503);
        for path in ["POST /v1/executions".to_owned(), format!("POST /v1/executions/{open}/cancel")] {
            let refused = node.http(&path, PLAIN);
            assert!(
                status(&refused) == 503 && refused.contains("Runtime is read-only"),
                "{dir} {path}: {refused}"
            );
        }
        // Nobody is kept out.
        bench.run(&["journal", "verify", dir, "--key-file", "key"]).expect(0);
        assert_eq!(node.stop().0, Some(0));
        mode(&bench, dir, 0o700);
        assert!(
            bench.files(dir) == before && self::stamps(&bench, dir) == stamps,
            "{dir}: something was written"
        );
    }
    bench.run(&arguments("nowhere")).expect(10);
    bench.run(&["serve", "--read-only", "--no-create", "--data-dir", "data"]).expect(2);
}

fn stamps(bench: &Bench, dir: &str) -> Vec<std::time::SystemTime> {
    bench.files(dir).iter().map(|(path, _)| path.metadata().unwrap().modified().unwrap()).collect()
}
