//! The public protocol's testable statements that a whole process shows, by their numbers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use crate::bench::{Bench, FIRST_GROUP_BODY, id_in};

const EXECUTION: &str = r#"{"ability":"chat","input":[{"type":"text","text":"x"}]}"#;

#[test]
fn facts_13_a_wrong_key_changes_no_byte() {
    let bench = Bench::new();
    bench.finished();
    bench.write("other", &[1; 32], 0o600);
    let before = bench.files("data");
    for verb in
        [&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"][..], &["journal", "verify", "data"]]
    {
        let ran = bench.run(&[verb, &["--key-file", "other"]].concat()).expect(12);
        assert_eq!(ran.word(), "wrong_key");
        assert!(bench.files("data") == before);
    }
}

#[test]
fn facts_15_garbage_behind_what_was_written_is_cut() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let key = "chunked";
    let body = EXECUTION.replace("chat", "text-generation");
    let id = id_in(&node.http("POST /v1/executions", &body));
    let stream = node.http(&format!("GET /v1/executions/{id}/events"), "");
    assert!(stream.contains("execution.completed"), "{key}: {stream}");
    node.kill();
    // Zeros were prepared there; now something stands in the last sector of them.
    let segment = "data/segments/000000000001.seg";
    let length = bench.read(segment).len();
    bench.flip(segment, length - 9);
    let torn = bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
    assert!(torn.stdout.contains("torn tail"), "{}", torn.stdout);
    let node = bench.node(&[]);
    assert!(node.http(&format!("GET /v1/executions/{id}"), "").contains("\"succeeded\""));
    assert_eq!(node.stop().0, Some(0));
    assert!(bench.read(segment).len() < length && bench.read(segment).len() > FIRST_GROUP_BODY);
    let sound = bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
    assert!(!sound.stdout.contains("torn tail"), "{}", sound.stdout);
}

#[test]
fn facts_17_open_directories_and_links_are_refused_and_no_id_leads_outside() {
    let bench = Bench::new();
    let id = bench.finished();
    let verify = |dir: &str| bench.run(&["journal", "verify", dir, "--key-file", "key"]);
    std::os::unix::fs::symlink(bench.path("data"), bench.path("link")).unwrap();
    assert_eq!(verify("link").expect(1).word(), "unsafe_directory");
    rustix::fs::chmod(bench.path("data"), rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
    assert_eq!(verify("data").expect(1).word(), "unsafe_directory");
    rustix::fs::chmod(bench.path("data"), rustix::fs::Mode::from_raw_mode(0o700)).unwrap();
    let replay = |id: &str| bench.run(&["journal", "replay", "data", id, "--key-file", "key"]);
    for absent in ["../external", "..%2fexternal", "", &id[1..]] {
        replay(absent).expect(4);
    }
    let node = bench.node(&[]);
    let outside = node.http("GET /v1/executions/..%2Fexternal", "");
    assert!(outside.starts_with("HTTP/1.1 404"), "{outside}");
    node.stop();
    // A segment that is a link is no segment.
    let segment = "data/segments/000000000001.seg";
    let bytes = bench.read(segment);
    bench.write("elsewhere", &bytes, 0o600);
    bench.remove(segment);
    std::os::unix::fs::symlink(bench.path("elsewhere"), bench.path(segment)).unwrap();
    assert_ne!(verify("data").code, Some(0));
}

/// An upstream that begins an answer and then says nothing more.
fn stalling_upstream() -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            head.read_line(&mut line).unwrap();
        }
        let chunk = r#"{"choices":[{"index":0,"delta":{"content":"begun"}}]}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {chunk}\n\n");
        stream.write_all(answer.as_bytes()).unwrap();
        // Until the node gives the connection up.
        let mut rest = Vec::new();
        let _ = head.read_to_end(&mut rest);
    });
    (url, serving)
}

#[test]
fn facts_54_a_stop_during_an_upstreams_answer_ends_as_cancelled() {
    let bench = Bench::new();
    let (url, serving) = stalling_upstream();
    bench.write("provider.key", b"k", 0o600);
    let config = format!(
        "[[providers]]\ntype = 'openai-chat'\nmodel = 'm'\nabilities = ['chat']\nbase_url = '{url}'\napi_key_file = '{}'\n",
        bench.text("provider.key")
    );
    bench.write("sealog.toml", config.as_bytes(), 0o644);
    let node = bench.node(&["--config", "sealog.toml"]);
    let id = id_in(&node.http("POST /v1/executions", EXECUTION));
    assert_eq!(node.stop_while_it_streams(&id), Some(0));
    serving.join().unwrap();
}

#[test]
fn facts_55_an_unfinished_request_uses_up_the_grace() {
    let bench = Bench::new();
    let node = bench.node(&["--grace-ms", "100"]);
    let address = node.url().strip_prefix("http://").unwrap().to_owned();
    let mut unfinished = std::net::TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /v1/executions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n"
    );
    unfinished.write_all(head.as_bytes()).unwrap();
    // It has read the head, and waits for the body.
    let mut told = [0; 12];
    unfinished.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100");
    unfinished.write_all(b"{").unwrap();
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("grace period expired"), "{stderr}");
}
